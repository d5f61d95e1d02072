//! Flows, projects, and what the discovery process reports.
use crate::{Failure, Needs};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Options of a flow, as its decorator has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowOptions {
    /// Cap: at most so many runs are Pending or Running at once.
    #[serde(default)]
    pub max_concurrent: Option<u64>,
    /// `enqueue`, `skip` or `cancel_new`.
    #[serde(default = "enqueue")]
    pub on_overlap: String,
    /// Higher first.
    #[serde(default)]
    pub priority: i32,
    /// Units that each run holds.
    #[serde(default)]
    pub resources: Needs,
    /// Tags of each run.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How often a failed run is tried again.
    #[serde(default)]
    pub retries: u32,
    /// Seconds between a failure and the next attempt.
    #[serde(default)]
    pub retry_delay_s: f64,
    /// How often a crashed run is tried again.
    #[serde(default)]
    pub crash_retries: u32,
}

fn enqueue() -> String {
    "enqueue".into()
}

/// A parameter of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// True when a run must give it.
    pub required: bool,
    /// Its annotation as text: `int`, `str`, `float`, `bool`, ...; `None` when there is none.
    pub annotation: Option<String>,
    /// Its default, where it is JSON.
    #[schema(value_type = serde_json::Value)]
    pub default: Option<serde_json::Value>,
}

/// A flow found in a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundFlow {
    /// Short name.
    pub name: String,
    /// File relative to the project's directory.
    pub file: String,
    /// Attribute of the module.
    pub function: String,
    /// Its options.
    pub options: FlowOptions,
    /// Its parameters in order.
    pub params: Vec<Param>,
    /// True when it takes any further parameters by name (`**kwargs`).
    #[serde(default)]
    pub any_params: bool,
}

/// A file that did not import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BrokenFile {
    /// File relative to the project's directory.
    pub file: String,
    /// The error with its traceback.
    pub error: Failure,
}

/// What the discovery process writes for one project directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Discovery {
    /// In order of file and place.
    pub flows: Vec<FoundFlow>,
    /// Files that did not import; the flows of the others are served all the same.
    pub broken: Vec<BrokenFile>,
    /// Tasks at the top level of the files, for `mirab check`.
    #[serde(default)]
    pub tasks: Vec<FoundTask>,
}

/// A task found in a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundTask {
    /// Its name.
    pub name: String,
    /// File relative to the project's directory.
    pub file: String,
    /// Units that each call holds.
    pub resources: Needs,
    /// Tags of each call.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Names of its parameters.
    pub params: Vec<String>,
    /// True when it takes any further parameters by name (`**kwargs`).
    pub any_params: bool,
}

/// A flow as served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Flow {
    /// Project it belongs to.
    pub project: String,
    /// What was found.
    #[serde(flatten)]
    pub found: FoundFlow,
    /// Runs that have not ended.
    pub live_runs: u64,
}

/// A served directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// Absolute path.
    pub path: String,
    /// Files that did not import.
    pub broken: Vec<BrokenFile>,
}

/// Answer of `GET /api/flows`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowList {
    /// In name order.
    pub flows: Vec<Flow>,
    /// The served directories.
    pub projects: Vec<Project>,
}

/// Body of `POST /api/projects`: serve one more directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddProject {
    /// Absolute path of the directory.
    pub path: String,
}
