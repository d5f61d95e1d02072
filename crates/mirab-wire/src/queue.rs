//! The line: what waits, in which order and why.
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Answer of `GET /api/queue`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// In the order of rank, at most `limit`.
    pub waiting: Vec<Waiting>,
    /// How many wait in all.
    pub total: u64,
    /// Engine processes.
    pub engines: Vec<Engine>,
}

/// One waiting run or task run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    /// Its id.
    pub id: u64,
    /// `run` or `task`.
    pub kind: String,
    /// The run it is, or belongs to.
    pub run_id: u64,
    /// Project of the run.
    pub project: String,
    /// `flow`, or `flow/task`.
    pub name: String,
    /// `Queued` (only an engine is short) or `AwaitingResource`.
    pub state: String,
    /// Higher first.
    pub priority: i32,
    /// 1 is the first of all that wait.
    pub position: u64,
    /// Since when it waits, seconds since the epoch.
    pub since: f64,
    /// One sentence that says why it waits.
    pub reason: String,
    /// True when a lowered total no longer allows it at all: it stays in line until that is raised, or it is cancelled.
    pub unsatisfiable: bool,
    /// When it is expected to start, if what ranks below it may not delay it; `None` for all others.
    pub promise: Option<Promise>,
    /// Every resource it is short of or held back on.
    pub blocked_on: Vec<Blocker>,
}

/// When a claim is expected to start, and what that rests on. Instants are seconds since the epoch.
///
/// The range is what was seen of late, no quantile: four durations are remembered of a kind. Steady work starts at the instant itself. Where
/// durations vary at random, one holder ends within the range in three of five cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Promise {
    /// The expected instant.
    pub at: f64,
    /// If every holder takes as long as the shortest of its kind of late.
    pub earliest: f64,
    /// If every holder takes as long as the longest of its kind of late; `None` where a kind is unknown or a holder overruns.
    pub latest: Option<f64>,
    /// The resource that decides it; `None` when nothing is short.
    pub decided_by: Option<String>,
    /// How many holders it rests on whose kinds are known.
    pub known: u64,
    /// How many holders it rests on of which nothing is known yet.
    pub assumed: u64,
}

/// Why one resource does not let a claim start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Blocker {
    /// Name of the resource, such as `db`, `pool:default` or `flow:shop/nightly`.
    pub resource: String,
    /// Units it needs.
    pub need: u64,
    /// Free units now (whole tokens for a token bucket); may be negative after a total was lowered.
    pub free: i64,
    /// `permits` or `burst`.
    pub capacity: u64,
    /// Who holds units, at most five, oldest first.
    pub holders: Vec<Holder>,
    /// How many holders there are.
    pub holders_total: u64,
    /// Claims that it must not pass on this resource, though enough units may be free for itself; at most two.
    pub behind: Vec<u64>,
    /// How many claims that need this resource rank ahead; 1000 stands for that many or more.
    pub ahead: u64,
    /// When so many tokens will have come, for a token bucket, if nobody ahead takes them: seconds since the epoch.
    pub tokens_at: Option<f64>,
    /// Claims that rank below it and started while it waited, among the last 256 starts of this resource, in the order of their starts.
    /// In `GET /api/queue` the latest five of them.
    pub passed_by: Vec<u64>,
    /// How many of the last 256 starts they are in all.
    pub passed_by_total: u64,
}

/// Who holds units of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Holder {
    /// Id of the run or task run.
    pub id: u64,
    /// `run` or `task`.
    pub kind: String,
    /// The run it is, or belongs to.
    pub run_id: u64,
    /// `flow`, or `flow/task`.
    pub name: String,
    /// Units held.
    pub units: u64,
    /// Since when, seconds since the epoch.
    pub since: f64,
}

/// Answer of `GET /api/runs/{id}/why`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// Id of the run or task run.
    pub id: u64,
    /// `run` or `task`.
    pub kind: String,
    /// The run it is, or belongs to.
    pub run_id: u64,
    /// Project of the run.
    pub project: String,
    /// `flow`, or `flow/task`.
    pub name: String,
    /// Its state now.
    pub state: String,
    /// One sentence.
    pub reason: String,
    /// How its latest attempt failed.
    pub error: Option<crate::Failure>,
    /// It itself when it waits; else, of a run, its tasks that wait.
    pub waiting: Vec<Waiting>,
}

/// An engine process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Engine {
    /// Its worker name, such as `engine-3`.
    pub worker: String,
    /// The project whose runs it takes.
    pub project: String,
    /// Process id.
    pub pid: u32,
    /// The run it executes.
    pub run_id: Option<u64>,
    /// `starting`, `idle`, `busy` or `retiring`.
    pub state: String,
}

/// Answer of `GET /api/pools`: one line a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// How many at once.
    pub slots: u64,
    /// Slots in use.
    pub used: u64,
    /// Claims that wait and need it.
    pub waiting: u64,
}
