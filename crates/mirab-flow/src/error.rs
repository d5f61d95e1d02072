//! What can be refused, each with a stable code.
use crate::state::State;
use mirab_core::{ClaimId, Fence, Refusal};
use thiserror::Error;

/// A refused command. Nothing was changed, unless the command says so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// No flow of that name is served.
    #[error("no flow named {name:?} is served{}", did_you_mean(near))]
    UnknownFlow {
        /// The name asked for.
        name: String,
        /// The nearest names, best first.
        near: Vec<String>,
    },
    /// The short name stands for several flows.
    #[error("{name:?} is the name of several flows: say which of {} is meant", candidates.join(", "))]
    AmbiguousFlow {
        /// The name asked for.
        name: String,
        /// The full names it may stand for.
        candidates: Vec<String>,
    },
    /// No live run has that id.
    #[error("no run {} is live", .0.0)]
    UnknownRun(ClaimId),
    /// The run has no such task.
    #[error("the run has no task {}", .0.0)]
    UnknownTask(ClaimId),
    /// No pool has that name.
    #[error("there is no pool named {name:?}, the only one is {:?}", crate::POOL)]
    UnknownPool {
        /// The name asked for.
        name: String,
    },
    /// The lease ended, or its work was given to someone else.
    #[error("lease {} moved on: fence {} was sent, {}; drop this work and lease again", id.0, fence.0, current_fence(*current))]
    StaleLease {
        /// The lease.
        id: ClaimId,
        /// The fence that was sent.
        fence: Fence,
        /// The fence of the live lease, if there is one.
        current: Option<Fence>,
    },
    /// Waiting would close a circle of runs that wait for each other, which is told in words.
    #[error("waiting here would never end: {told}; let one of these runs ask for all of it before it starts")]
    Deadlock {
        /// Who holds what and waits for what.
        told: String,
    },
    /// The gate refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Error {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::UnknownFlow { .. } | Error::AmbiguousFlow { .. } => "UnknownFlow",
            Error::UnknownRun(_) => "UnknownRun",
            Error::UnknownTask(_) => "UnknownTask",
            Error::UnknownPool { .. } => "UnknownPool",
            Error::StaleLease { .. } => "StaleLease",
            Error::Deadlock { .. } => "ResourceDeadlock",
            Error::Refused(refusal) => refusal.code(),
        }
    }
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

fn current_fence(current: Option<Fence>) -> String {
    current.map_or_else(|| "it is not live any more".into(), |fence| format!("{} is current", fence.0))
}

/// A commit failed: nothing of its group was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the store could not be written ({why}): nothing was accepted; free its cause, then try again")]
pub struct StoreUnavailable {
    /// What the store said.
    pub why: String,
}

impl StoreUnavailable {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "StoreUnavailable"
    }
}

/// A change that the table of states does not have; nothing was changed. Seeing one is an error of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{} cannot go from {from} to {to}", id.0)]
pub struct IllegalChange {
    /// The run or task run.
    pub id: ClaimId,
    /// Where it stands.
    pub from: State,
    /// Where it was to go.
    pub to: State,
}
