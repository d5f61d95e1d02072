//! Which runs a reader asks for.
use mirab_core::ClaimId;
use mirab_flow::{RunRecord, State};

/// Which runs to list, newest first. What is empty or `None` does not narrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFilter {
    /// In any of these states.
    pub states: Vec<State>,
    /// Of this project.
    pub project: Option<String>,
    /// Of the flow with this short name.
    pub flow: Option<String>,
    /// At most so many.
    pub limit: u32,
    /// Older than this run: the last one of the page before.
    pub before: Option<ClaimId>,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { states: Vec::new(), project: None, flow: None, limit: 100, before: None }
    }
}

impl RunFilter {
    /// True when the run is one of those asked for, whatever the limit.
    #[must_use]
    pub fn matches(&self, run: &RunRecord) -> bool {
        (self.states.is_empty() || self.states.contains(&run.state))
            && self.project.as_ref().is_none_or(|project| *project == run.project)
            && self.flow.as_ref().is_none_or(|flow| *flow == run.flow)
            && self.before.is_none_or(|before| run.id < before)
    }
}
