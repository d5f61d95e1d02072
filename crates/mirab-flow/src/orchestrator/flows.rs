//! Projects, their flows, and how a flow is found by name.
use super::Orchestrator;
use crate::error::Error;
use crate::flow_spec::{FlowSpec, cap_name};
use crate::records::{Fact, ProjectRecord};
use mirab_core::{ClaimId, Refusal, ResourceConfig, Time, near_names};
use std::sync::Arc;

/// Total of a cap that was taken away: its name stays, because work that has or wants it may be there.
const NO_CAP: u64 = 1 << 40;

impl Orchestrator {
    /// Serves a project; a project of that name is replaced.
    pub fn add_project(&mut self, now: Time, project: ProjectRecord) {
        self.advance(now);
        self.fact(Fact::Project(project.clone()));
        self.projects.insert(project.name.clone(), project);
    }

    /// The served projects, by name.
    #[must_use]
    pub fn projects(&self) -> Vec<&ProjectRecord> {
        self.projects.values().collect()
    }

    /// Replaces the flows of a project. A flow that is gone keeps its cap for the runs that are left. Gives back the caps that could
    /// not be declared; their flows are served without runs.
    pub fn set_flows(&mut self, now: Time, project: &str, flows: Vec<FlowSpec>) -> Vec<Refusal> {
        let now = self.advance(now);
        Arc::make_mut(&mut self.declared).flows.retain(|(of, _), _| of != project);
        let mut refused = Vec::new();
        for flow in flows {
            refused.extend(self.set_cap(now, &flow).err());
            Arc::make_mut(&mut self.declared).flows.insert((project.to_owned(), flow.name.clone()), flow);
        }
        Arc::make_mut(&mut self.declared).discovered.insert(project.to_owned());
        self.join_due_runs(now, project);
        self.line_up_parked(now, project);
        self.settle(now);
        refused
    }

    pub(super) fn set_cap(&mut self, now: Time, flow: &FlowSpec) -> Result<(), Refusal> {
        let name = cap_name(&flow.project, &flow.name);
        match flow.max_concurrent {
            Some(permits) => self.put_semaphore(now, &name, permits),
            None if self.gate.is_declared(&name) => self.put_semaphore(now, &name, NO_CAP),
            None => Ok(()),
        }
    }

    pub(super) fn put_semaphore(&mut self, now: Time, name: &str, permits: u64) -> Result<(), Refusal> {
        self.gate.declare(now, ResourceConfig::semaphore(name, permits))
    }

    /// Scheduled runs that fell due before their flows were known.
    fn join_due_runs(&mut self, now: Time, project: &str) {
        let is_of_project = |id: &&ClaimId| self.runs.get(id).is_some_and(|run| run.record.project == project);
        let due: Vec<ClaimId> = self.due_unknown.iter().filter(is_of_project).copied().collect();
        for id in due {
            self.due_unknown.remove(&id);
            self.fall_due(now, id);
        }
    }

    /// Runs that no engine could take while their project was not served.
    fn line_up_parked(&mut self, now: Time, project: &str) {
        let is_of_project = |id: &&ClaimId| self.runs.get(id).is_some_and(|run| run.record.project == project);
        let parked: Vec<ClaimId> = self.parked.iter().filter(is_of_project).copied().collect();
        for id in parked {
            self.parked.remove(&id);
            self.line_up_again(now, id);
        }
    }

    /// All flows, by project and name.
    pub fn flows(&self) -> impl Iterator<Item = &FlowSpec> {
        self.declared.flows.values()
    }

    /// How many runs of a flow have not ended.
    #[must_use]
    pub fn live_runs(&self, project: &str, flow: &str) -> u64 {
        self.by_flow.get(&(project.to_owned(), flow.to_owned())).map_or(0, |live| live.len() as u64)
    }

    /// Finds a flow by `project/flow`, or by its short name while that is unique.
    ///
    /// # Errors
    /// `UnknownFlow`, with near names; an ambiguous short name, with the full names.
    pub fn find_flow(&self, name: &str) -> Result<&FlowSpec, Error> {
        if let Some(flow) = self.flows().find(|flow| flow.full_name() == name) {
            return Ok(flow);
        }
        let found: Vec<&FlowSpec> = self.flows().filter(|flow| flow.name == name).collect();
        match found.as_slice() {
            [flow] => Ok(flow),
            [] => Err(Error::UnknownFlow { name: name.into(), near: self.flows_near(name) }),
            several => {
                let candidates = several.iter().map(|flow| flow.full_name()).collect();
                Err(Error::AmbiguousFlow { name: name.into(), candidates })
            }
        }
    }

    fn flows_near(&self, name: &str) -> Vec<String> {
        let names: Vec<String> = self.flows().flat_map(|flow| [flow.name.clone(), flow.full_name()]).collect();
        let near = near_names(name, names.iter().map(String::as_str));
        let is_near = |flow: &&FlowSpec| near.contains(&flow.name) || near.contains(&flow.full_name());
        self.flows().filter(is_near).map(FlowSpec::full_name).take(3).collect()
    }
}
