//! Carries out what a committed step calls for. Runs on the writer's thread: it only wakes others.
use crate::supervisor::{Order, Orders};
use crate::wakers::{Topic, Wakers};
use mirab_flow::Effect;

/// Passes effects on to who waits for them.
pub(crate) fn carry_out(wakers: Wakers, orders: Orders) -> impl FnMut(Vec<Effect>) + Send + 'static {
    move |effects| {
        let mut has_offers = false;
        for effect in effects {
            match effect {
                Effect::Offer { pool, project } => {
                    wakers.wake_one(&Topic::Offer { pool, project });
                    has_offers = true;
                }
                Effect::TaskChanged { task } => wakers.wake_all(&Topic::Task(task.0)),
                Effect::StopBody { run, .. } => wakers.wake_all(&Topic::Stop(run.0)),
                Effect::KillWorker { worker, run, reason } => {
                    drop(orders.send(Order::Kill { worker, run, reason }));
                }
            }
        }
        if has_offers {
            let _ = orders.send(Order::LookAgain);
        }
    }
}
