//! What the scheduler refuses, and how tasks fail.
use crate::failure::Cause;
use mirab_core::Refusal;
use mirab_flow::scheduler::{TaskError as Refused, TaskId};
use thiserror::Error;

/// A refused command. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// It was shut down, its last handle was dropped, or the runtime that executes its tasks has gone.
    #[error("the scheduler is closed: it was shut down, or its runtime has gone; submit to one that runs")]
    SchedulerClosed,
    /// The pool's executor takes another payload.
    #[error("pool {pool:?} takes a payload of type {expected}, and was given {given}: submit what its executor takes")]
    WrongPayload {
        /// The pool.
        pool: String,
        /// What its executor takes.
        expected: &'static str,
        /// What was submitted.
        given: &'static str,
    },
    /// The pool's executor returns something else than the handle is to give.
    #[error(
        "pool {pool:?} gives results of type {given}, and {expected} was asked for: ask for a Handle<{given}>, or for a Handle<()> if the result does not matter"
    )]
    WrongResult {
        /// The pool.
        pool: String,
        /// What was asked for.
        expected: &'static str,
        /// What its executor returns.
        given: &'static str,
    },
    /// The attempt that says so has ended.
    #[error("attempt {attempt} of task {} has ended and holds nothing any more: settle before the executor returns", id.0)]
    StaleLease {
        /// The task.
        id: TaskId,
        /// The attempt.
        attempt: u32,
    },
    /// A `mirab.toml` cannot be used; says where and why.
    #[error(transparent)]
    InvalidConfig(#[from] mirab_config::ConfigError),
    /// An option makes no sense; says which, and what to do.
    #[error("{0}")]
    InvalidOption(String),
    /// The store cannot be used: what was asked for is not stored, so it was not accepted.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Store(std::sync::Arc<mirab_store::TaskStoreError>),
    /// The machine refused it.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Error {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::SchedulerClosed => "SchedulerClosed",
            Error::WrongPayload { .. } | Error::WrongResult { .. } => "WrongType",
            #[cfg(feature = "sqlite")]
            Error::Store(error) => error.code(),
            Error::StaleLease { .. } => "StaleLease",
            Error::InvalidConfig(_) => "InvalidConfig",
            Error::InvalidOption(_) => "InvalidOption",
            Error::Refused(refused) => refused.code(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::Refused(refusal.into())
    }
}

/// Why there is no result.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TaskFailure {
    /// Its last attempt failed.
    #[error("task {} failed in attempt {attempts}: {message}", id.0)]
    Failed {
        /// The task.
        id: TaskId,
        /// Attempts that were started.
        attempts: u32,
        /// How it failed.
        message: String,
        /// What the executor gave; `None` when it panicked or did not get to start.
        #[source]
        cause: Option<Cause>,
    },
    /// Its last attempt took longer than its timeout.
    #[error("task {} timed out in attempt {attempts}", id.0)]
    TimedOut {
        /// The task.
        id: TaskId,
        /// Attempts that were started.
        attempts: u32,
    },
    /// It was cancelled: by a handle, or because the scheduler closed.
    #[error("task {} was cancelled", .0.0)]
    Cancelled(TaskId),
    /// It did not start in time, and consumed nothing.
    #[error("task {} did not start in time", .0.0)]
    Expired(TaskId),
    /// What it was to come after did not end as it should.
    #[error("task {} was skipped: {reason}", id.0)]
    Skipped {
        /// The task.
        id: TaskId,
        /// In words.
        reason: String,
    },
}

impl TaskFailure {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            TaskFailure::Failed { .. } => "TaskFailed",
            TaskFailure::TimedOut { .. } => "TaskTimedOut",
            TaskFailure::Cancelled(_) => "TaskCancelled",
            TaskFailure::Expired(_) => "TaskExpired",
            TaskFailure::Skipped { .. } => "TaskSkipped",
        }
    }

    /// The task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        match self {
            TaskFailure::Cancelled(id) | TaskFailure::Expired(id) => *id,
            TaskFailure::Failed { id, .. } | TaskFailure::TimedOut { id, .. } | TaskFailure::Skipped { id, .. } => *id,
        }
    }
}
