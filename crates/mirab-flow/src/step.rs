//! What a step hands out: facts to store, effects to carry out after that, and why to wake up.
use crate::records::Fact;
use mirab_core::ClaimId;

/// Facts and effects since the last step was taken. The effects must wait until the facts are committed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// In order; to be committed together.
    pub facts: Vec<Fact>,
    /// In order.
    pub effects: Vec<Effect>,
}

/// Something for the host to do. Carrying one out twice must do no harm: a rebuilt orchestrator repeats its offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A run became Pending: answer a worker of this project that waits for a lease, or start an engine.
    Offer {
        /// The pool.
        pool: String,
        /// The project.
        project: String,
    },
    /// A task run was granted, refused or ended: wake its long poll.
    TaskChanged {
        /// The task run.
        task: ClaimId,
    },
    /// A cancel was asked for: wake the heartbeat that listens for it.
    StopBody {
        /// The run.
        run: ClaimId,
        /// Who executes it.
        worker: String,
    },
    /// Kill the worker if it is a local engine, and report it lost once it is reaped.
    KillWorker {
        /// The worker.
        worker: String,
        /// The run it was given.
        run: ClaimId,
        /// Why.
        reason: String,
    },
}

/// Why to call `handle_timeout` at an instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// Enough tokens of this bucket will have come for a waiter.
    Tokens(String),
    /// Work that fits is held back, and what is expected of the holders changes.
    Overrun,
    /// A scheduled run falls due.
    Due(ClaimId),
    /// The delay before a run's next attempt ends.
    Retry(ClaimId),
    /// An offered run was not taken up.
    HandOff(ClaimId),
    /// No heartbeat came for as long as a lease lives.
    Lapse(ClaimId),
    /// A cancel was not heeded for too long.
    CancelGrace(ClaimId),
    /// The store failed: try it again.
    Store,
}
