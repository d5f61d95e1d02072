//! What the machine refuses, each with a stable code.
use super::spec::TaskId;
use mirab_core::Refusal;
use thiserror::Error;

/// A refused command. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TaskError {
    /// No pool has that name.
    #[error("there is no pool named {name:?}, expected one of {}", told(known))]
    UnknownPool {
        /// The name asked for.
        name: String,
        /// The pools there are, nearest first.
        known: Vec<String>,
    },
    /// No such task is live or remembered.
    #[error("task {} is not known: it was never submitted here, or ended so long ago that it is not remembered", .0.0)]
    UnknownTask(TaskId),
    /// As many tasks wait for the pool as may.
    #[error("pool {pool:?} has {queued} tasks waiting, at most {max_queued} may: submit again once some have started")]
    QueueFull {
        /// The pool.
        pool: String,
        /// How many wait.
        queued: u64,
        /// How many may.
        max_queued: u64,
    },
    /// The key belongs to a task that asked for something else.
    #[error("key {key:?} belongs to task {}, which differs in {differs}: use another key, or submit the very same task", id.0)]
    KeyConflict {
        /// The key.
        key: String,
        /// The task that has it.
        id: TaskId,
        /// In what they differ.
        differs: &'static str,
    },
    /// The pool cannot be taken away.
    #[error("pool {name:?} has {waiting} tasks waiting and {running} running: let them end or cancel them first")]
    PoolInUse {
        /// Its name.
        name: String,
        /// Tasks that wait.
        waiting: u64,
        /// Attempts that run.
        running: u64,
    },
    /// A name that no pool can have.
    #[error("{name:?} cannot name a pool: {why}")]
    InvalidPool {
        /// The name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The gate refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl TaskError {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            TaskError::UnknownPool { .. } => "UnknownPool",
            TaskError::UnknownTask(_) => "UnknownTask",
            TaskError::QueueFull { .. } => "QueueFull",
            TaskError::KeyConflict { .. } => "KeyConflict",
            TaskError::PoolInUse { .. } => "ResourceInUse",
            TaskError::InvalidPool { .. } => "InvalidResource",
            TaskError::Refused(refusal) => refusal.code(),
        }
    }
}

fn told(known: &[String]) -> String {
    if known.is_empty() { "none: add a pool first".into() } else { known.join(", ") }
}
