//! Every order of events that a scheduler of threads can bring about, drawn by a model checker, between those who wait for work and the
//! writer that hands it out. The files of the server themselves are compiled here, with the checker's locks, channels and threads.
#[path = "../../src/effects.rs"]
mod effects;
#[path = "../../src/host.rs"]
mod host;
#[path = "../../src/polls.rs"]
mod polls;
#[path = "../../src/wakers.rs"]
mod wakers;

mod cases;
mod world;

/// In place of those of the standard library.
mod sync {
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, mpsc};
    pub(crate) use shuttle::thread;
}

/// The checker has no time: no timer is ever due.
mod clock {
    #[derive(Clone, Copy)]
    pub(crate) struct Clock;

    impl Clock {
        pub fn now(&self) -> mirab_core::Time {
            mirab_core::Time(1_000 * mirab_core::SECOND)
        }
    }
}

/// Engine processes have no part in this.
mod supervisor {
    pub(crate) enum Order {
        Kill { worker: String, run: mirab_core::ClaimId, reason: String },
        LookAgain,
    }

    #[derive(Clone)]
    pub(crate) struct Orders;

    impl Orders {
        pub fn send(&self, order: Order) -> Result<(), String> {
            match order {
                Order::LookAgain => Ok(()),
                Order::Kill { worker, run, reason } => panic!("{worker} is to be killed for run {}: {reason}", run.0),
            }
        }
    }
}
