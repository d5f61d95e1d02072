//! What readers are shown, made from the very state that decides.
use crate::records::Failure;
use crate::state::State;
use mirab_core::{ClaimId, Explanation, Time};

/// A state as it is shown: `Waiting` is told apart by what is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It waits for an engine only.
    Queued,
    /// A resource, a tag or its flow's cap is short, or kept for work ahead of it.
    AwaitingResource,
    /// As it is stored.
    As(State),
}

impl Shown {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Shown::Queued => "Queued",
            Shown::AwaitingResource => "AwaitingResource",
            Shown::As(state) => state.as_str(),
        }
    }
}

/// The line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueView {
    /// In order of rank, at most as many as were asked for.
    pub waiting: Vec<WaitingRow>,
    /// How many wait in all.
    pub total: u64,
}

/// One that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRow {
    /// The run or task run.
    pub id: ClaimId,
    /// True for a task run.
    pub is_task: bool,
    /// The run it is, or belongs to.
    pub run: ClaimId,
    /// Project of the run.
    pub project: String,
    /// `flow`, or `flow/task`.
    pub name: String,
    /// Queued or AwaitingResource.
    pub shown: Shown,
    /// By which it ranks.
    pub priority: i32,
    /// 1 is the first of all that wait.
    pub position: u64,
    /// Since when it waits.
    pub since: Time,
    /// One sentence.
    pub reason: String,
    /// What the gate says.
    pub explanation: Explanation,
}

/// Why a live run, or a task of one, is not further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The run or task run.
    pub id: ClaimId,
    /// What it is.
    pub who: Who,
    /// Its state.
    pub shown: Shown,
    /// One sentence.
    pub reason: String,
    /// How its latest attempt failed.
    pub error: Option<Failure>,
    /// It itself when it waits; else, of a run, its tasks that wait.
    pub waiting: Vec<WaitingRow>,
}

/// What a claim id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The run it is, or belongs to.
    pub run: ClaimId,
    /// True for a task run.
    pub is_task: bool,
    /// `flow`, or `flow/task`.
    pub name: String,
}
