//! A flow as its file declares it. Kept in memory only: it is discovered again at every start.
use crate::overlap::Overlap;
use crate::records::Needs;
use serde_json::{Map, Value};

/// A flow with the options that its runs take over when they are created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSpec {
    /// Project it belongs to.
    pub project: String,
    /// Short name.
    pub name: String,
    /// File relative to the project's directory.
    pub file: String,
    /// Attribute of the module that holds the flow.
    pub function: String,
    /// At most so many runs are Pending or Running at once.
    pub max_concurrent: Option<u64>,
    /// What a new run does at the cap.
    pub overlap: Overlap,
    /// Higher first.
    pub priority: i32,
    /// Units that each run holds.
    pub needs: Needs,
    /// Defaults of its parameters, for names of resources that hold parameters.
    pub defaults: Map<String, Value>,
    /// Tags of each run.
    pub tags: Vec<String>,
    /// How often a failed run is tried again.
    pub retries: u32,
    /// Nanoseconds between a failure and the next attempt.
    pub retry_delay: u64,
    /// How often a crashed run is tried again.
    pub crash_retries: u32,
}

impl FlowSpec {
    /// `project/flow`: unique among all flows.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.project, self.name)
    }
}

/// Name of the resource that caps a flow. The project is part of it: flows of one name in two projects are two flows.
#[must_use]
pub fn cap_name(project: &str, flow: &str) -> String {
    format!("flow:{project}/{flow}")
}
