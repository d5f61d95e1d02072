//! Long polls: in which order one who waits listens, looks and waits. The model checker (`tests/model`) compiles this very file.
use crate::wakers::{Listener, Topic, Wakers};
use mirab_core::{ClaimId, Fence, Time};
use mirab_flow::{Error, NewTask, Orchestrator, TakeLease, TaskStatus};
use std::future::{Future, poll_fn};
use std::task::Poll;

/// Looks once; gives what was seen, and what to wait for before another look. All is listened for before the look begins, so that
/// nothing that comes in between is missed.
pub(crate) async fn look<T, F: Future<Output = T>, const N: usize>(
    listeners: [&Listener; N],
    look: F,
) -> (T, impl Future<Output = ()> + use<T, F, N>) {
    let mut armed = listeners.map(Listener::armed);
    let seen = look.await;
    let news = poll_fn(move |context| {
        let has_come = armed.iter_mut().any(|armed| armed.as_mut().poll(context).is_ready());
        if has_come { Poll::Ready(()) } else { Poll::Pending }
    });
    (seen, news)
}

/// A worker waits for work, or for the word to end.
pub(crate) struct WorkPoll {
    wakers: Wakers,
    offer: Topic,
    offers: Listener,
    retired: Listener,
}

impl WorkPoll {
    /// Listens until it is dropped.
    pub fn of(wakers: &Wakers, ask: &TakeLease) -> Self {
        let offer = Topic::Offer { pool: ask.pool.clone(), project: ask.project.clone() };
        let offers = wakers.listen(offer.clone());
        let retired = wakers.listen(Topic::Retire(ask.worker.clone()));
        Self { wakers: wakers.clone(), offer, offers, retired }
    }

    /// See [`look`].
    pub async fn look<T, F: Future<Output = T>>(&self, seen: F) -> (T, impl Future<Output = ()> + use<T, F>) {
        look([&self.offers, &self.retired], seen).await
    }

    /// This worker takes nothing more. It may have been the one that was woken for an offer: another is to look.
    pub fn pass_on(&self) {
        self.wakers.wake_one(&self.offer);
    }
}

/// Claims what a task needs, on the writer's thread: there its change is listened for before anything else can happen to it.
pub(crate) fn claim(
    orchestrator: &mut Orchestrator,
    now: Time,
    wakers: &Wakers,
    (lease, fence): (ClaimId, Fence),
    task: NewTask,
) -> Result<(TaskStatus, impl Future<Output = ()> + Send + use<>), Error> {
    let status = orchestrator.claim_task(now, lease, fence, task)?;
    let listener = wakers.listen(Topic::Task(status.id.0));
    let changed = listener.armed();
    let news = async move {
        changed.await;
        drop(listener);
    };
    Ok((status, news))
}
