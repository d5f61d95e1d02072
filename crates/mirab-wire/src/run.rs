//! Runs of flows, the task runs inside them, and their events.
use crate::Needs;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Body of `POST /api/runs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// `project/flow`, or the flow's short name while it is unique.
    pub flow: String,
    /// Parameters by name; missing ones take the flow's defaults.
    #[serde(default)]
    pub params: serde_json::Map<String, Value>,
    /// Instead of the flow's own priority; higher first.
    #[serde(default)]
    pub priority: Option<i32>,
    /// Added to the flow's own tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Units asked for besides the flow's own; a name given here replaces the flow's units of that name.
    #[serde(default)]
    pub resources: Needs,
    /// Seconds since the epoch before which the run does not join the line.
    #[serde(default)]
    pub scheduled_at: Option<f64>,
    /// The same key with the same body gives the same run again.
    #[serde(default)]
    pub idempotency_key: Option<String>,
}

/// Body of `PATCH /api/runs/{id}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchRun {
    /// Its priority from now on; higher first. For a run that executes it counts from its next attempt on.
    pub priority: i32,
}

/// A run of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Unique for the life of the store, never reused; shared with task runs.
    pub id: u64,
    /// The served directory it belongs to.
    pub project: String,
    /// Short name of the flow.
    pub flow: String,
    /// `Scheduled`, `Queued`, `AwaitingResource`, `Pending`, `Running`, `AwaitingRetry`, `Cancelling`, `Completed`, `Failed`,
    /// `Cancelled`, `Crashed` or `Skipped`.
    pub state: String,
    /// Why it is in this state, where there is something to say.
    pub message: Option<String>,
    /// Parameters as they were given.
    #[schema(value_type = Object)]
    pub params: serde_json::Map<String, Value>,
    /// Higher first.
    pub priority: i32,
    /// Tags of the run.
    pub tags: Vec<String>,
    /// All it must have to start: pool slot, cap, tags and resources.
    pub needs: Needs,
    /// Attempts started so far.
    pub attempt: u32,
    /// When it was created, seconds since the epoch.
    pub created_at: f64,
    /// When it was due to join the line.
    pub due_at: f64,
    /// When its latest attempt began to execute.
    pub started_at: Option<f64>,
    /// When it reached a terminal state.
    pub ended_at: Option<f64>,
    /// What the flow returned, where it is JSON.
    #[schema(value_type = Value)]
    pub result: Option<Value>,
    /// How its latest attempt failed.
    pub error: Option<Failure>,
}

/// How an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// Name of the exception type, or a code such as `ResourceExceedsCapacity`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The exception's text.
    pub message: String,
    /// Traceback, where there is one.
    #[serde(default)]
    pub traceback: Option<String>,
}

/// Answer of `GET /api/runs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<Run>,
    /// Pass as `cursor` for the next page.
    pub next_cursor: Option<u64>,
}

/// A task inside a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskRun {
    /// Unique, shares its numbers with runs.
    pub id: u64,
    /// The run it belongs to.
    pub run_id: u64,
    /// Name of the task.
    pub name: String,
    /// The same words as for runs.
    pub state: String,
    /// What it must have to start (without what its run holds for it).
    pub needs: Needs,
    /// Attempts started so far.
    pub attempt: u32,
    /// Which attempt of the run called it.
    pub run_attempt: u32,
    /// When it was called.
    pub created_at: f64,
    /// When its latest attempt began.
    pub started_at: Option<f64>,
    /// When it ended.
    pub ended_at: Option<f64>,
    /// How its latest attempt failed.
    pub error: Option<Failure>,
}

/// Answer of `GET /api/runs/{id}/tasks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskRunList {
    /// In the order of call.
    pub tasks: Vec<TaskRun>,
}

/// A stored change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Grows by at least one with each event of the store.
    pub seq: u64,
    /// Seconds since the epoch.
    pub at: f64,
    /// The run it is about.
    pub run_id: u64,
    /// The task run it is about, if it is about one.
    pub task_id: Option<u64>,
    /// `run.state`, `run.priority`, `run.skipped`, `task.state`, `resource.exhausted`, `resource.unsatisfiable`, ...
    pub kind: String,
    /// The state it went to, for changes of state, as it is stored: `Waiting` for both `Queued` and `AwaitingResource`.
    pub state: Option<String>,
    /// Why.
    pub reason: String,
    /// Who or what caused it: `api`, `gate`, `engine-1`, `server`.
    pub cause: String,
}

/// Answer of `GET /api/runs/{id}/events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// Oldest first.
    pub events: Vec<Event>,
}
