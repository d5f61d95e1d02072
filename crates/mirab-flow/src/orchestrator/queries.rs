//! Answers for readers, from the state that decides.
use super::{DEFAULT_POOL, Orchestrator};
use crate::records::{LeaseRecord, RunRecord, TaskRecord};
use crate::state::State;
use crate::views::{QueueView, Shown, WaitingRow, Who, Why};
use mirab_core::{ClaimId, Explanation, Place, ResourceView, Time};

impl Orchestrator {
    /// A live run.
    #[must_use]
    pub fn run(&self, id: ClaimId) -> Option<&RunRecord> {
        self.runs.get(&id).map(|run| &run.record)
    }

    /// All live runs, by id.
    pub fn runs(&self) -> impl Iterator<Item = &RunRecord> {
        self.runs.values().map(|run| &run.record)
    }

    /// A task run of the latest attempt of a live run.
    #[must_use]
    pub fn task(&self, id: ClaimId) -> Option<&TaskRecord> {
        self.tasks.get(&id).map(|task| &task.record)
    }

    /// Task runs of a live run's latest attempt, in the order of call.
    #[must_use]
    pub fn tasks_of(&self, run: ClaimId) -> Vec<&TaskRecord> {
        let mut ids: Vec<ClaimId> =
            self.runs.get(&run).map_or_else(Vec::new, |run| run.tasks.values().copied().collect());
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.task(id)).collect()
    }

    /// The state of a live run or task run as it is shown.
    #[must_use]
    pub fn shown_state(&self, id: ClaimId) -> Option<Shown> {
        let state = self.run(id).map(|run| run.state).or_else(|| self.task(id).map(|task| task.state))?;
        Some(match self.gate.explain(id) {
            Some(explanation) if state == State::Waiting => shown(&explanation),
            _ => Shown::As(state),
        })
    }

    /// The line, in order of rank. Tokens of buckets are counted as of the latest command: a host that wants them as of now calls
    /// [`Orchestrator::handle_timeout`] before.
    #[must_use]
    pub fn queue(&self, now: Time, limit: usize) -> QueueView {
        let line = self.gate.line(limit);
        let rows = (1..).zip(line).filter_map(|(position, id)| self.row(now, id, position));
        QueueView { waiting: rows.collect(), total: self.gate.waiting() }
    }

    /// Why a live run, or a task of a live run, is not further.
    #[must_use]
    pub fn why(&self, now: Time, id: ClaimId) -> Option<Why> {
        let (who, shown) = (self.describe(id)?, self.shown_state(id)?);
        let row = |id| self.row(now, id, self.gate.position(id)?);
        if let Some(task) = self.tasks.get(&id) {
            let waiting: Vec<WaitingRow> = row(id).into_iter().collect();
            let reason = self.reason_of_task(now, task, &waiting);
            return Some(Why { id, who, shown, reason, error: task.record.error.clone(), waiting });
        }
        let run = self.runs.get(&id)?;
        let tasks = self.tasks_of(id).into_iter().filter(|task| task.state == State::Waiting).map(|task| task.id);
        let waiting: Vec<ClaimId> =
            std::iter::once(id).filter(|_| run.state() == State::Waiting).chain(tasks).collect();
        let waiting: Vec<WaitingRow> = waiting.into_iter().filter_map(row).collect();
        let reason = self.reason_of_run(now, run, &waiting);
        Some(Why { id, who, shown, reason, error: run.record.error.clone(), waiting })
    }

    fn row(&self, now: Time, id: ClaimId, position: u64) -> Option<WaitingRow> {
        let Who { run, is_task, name } = self.describe(id)?;
        let since = self.tasks.get(&id).map(|task| task.since).or_else(|| Some(self.runs.get(&id)?.since))?;
        let explanation = self.gate.explain(id)?;
        let record = &self.runs.get(&run)?.record;
        // A task has the rank that the body around it started with.
        let parent = self.task(id).and_then(|task| self.leases.get(&task.parent));
        Some(WaitingRow {
            id,
            is_task,
            run,
            project: record.project.clone(),
            name,
            shown: shown(&explanation),
            priority: parent.map_or(record.priority, |lease| lease.priority),
            position,
            since,
            reason: self.reason(now, &explanation),
            explanation,
        })
    }

    /// What a live run or task run is.
    #[must_use]
    pub fn describe(&self, id: ClaimId) -> Option<Who> {
        if let Some(run) = self.run(id) {
            return Some(Who { run: id, is_task: false, name: run.flow.clone() });
        }
        let task = self.task(id)?;
        let flow = &self.run(task.run)?.flow;
        Some(Who { run: task.run, is_task: true, name: format!("{flow}/{}", task.name) })
    }

    /// Every resource as the gate enforces it; tokens as of the latest command.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceView> {
        self.gate.resources()
    }

    /// Offered runs that no worker has taken, by project.
    #[must_use]
    pub fn demand(&self) -> Vec<(String, u64)> {
        self.offers.iter().map(|(project, offers)| (project.clone(), offers.len() as u64)).collect()
    }

    /// Workers with the run that each has.
    #[must_use]
    pub fn leases_of_workers(&self) -> Vec<(String, ClaimId)> {
        self.workers.iter().map(|(worker, run)| (worker.clone(), *run)).collect()
    }

    /// A live lease.
    #[must_use]
    pub fn lease(&self, id: ClaimId) -> Option<&LeaseRecord> {
        self.leases.get(&id)
    }

    /// Where a claim stands in the line.
    #[must_use]
    pub fn place(&self, id: ClaimId) -> Option<Place> {
        self.run(id).map_or_else(|| self.task(id)?.place, |run| run.place)
    }
}

/// Whether anything but a pool's slot is short.
fn shown(explanation: &Explanation) -> Shown {
    let is_resource = explanation.blocked_on.iter().any(|blocked| blocked.resource != DEFAULT_POOL);
    if is_resource { Shown::AwaitingResource } else { Shown::Queued }
}
