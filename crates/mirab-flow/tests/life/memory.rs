//! A journal in memory: the twin of a store on disk, for tests and for hosts that keep nothing.
use crate::journal::Journal;
use crate::records::{BucketRecord, EventRecord, Fact, LeaseRecord, ProjectRecord, RunRecord, Stored, TaskRecord};
use mirab_core::ClaimId;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Keeps facts in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal {
    counters: crate::records::Counters,
    projects: BTreeMap<String, ProjectRecord>,
    runs: BTreeMap<ClaimId, RunRecord>,
    tasks: BTreeMap<ClaimId, TaskRecord>,
    leases: BTreeMap<ClaimId, LeaseRecord>,
    events: Vec<EventRecord>,
    buckets: BTreeMap<String, BucketRecord>,
    settings: BTreeMap<String, String>,
}

impl MemoryJournal {
    /// The run as it was stored last, ended or not.
    #[must_use]
    pub fn run(&self, id: ClaimId) -> Option<&RunRecord> {
        self.runs.get(&id)
    }

    /// The task run as it was stored last, ended or not.
    #[must_use]
    pub fn task(&self, id: ClaimId) -> Option<&TaskRecord> {
        self.tasks.get(&id)
    }

    /// All runs by id.
    pub fn runs(&self) -> impl Iterator<Item = &RunRecord> {
        self.runs.values()
    }

    /// All events, oldest first.
    #[must_use]
    pub fn events(&self) -> &[EventRecord] {
        &self.events
    }

    fn put(&mut self, fact: &Fact) {
        match fact.clone() {
            Fact::Project(project) => drop(self.projects.insert(project.name.clone(), project)),
            Fact::Run(run) => drop(self.runs.insert(run.id, *run)),
            Fact::Task(task) => drop(self.tasks.insert(task.id, *task)),
            Fact::Lease(lease) => drop(self.leases.insert(lease.id, lease)),
            Fact::LeaseEnded(id) => drop(self.leases.remove(&id)),
            Fact::Event(event) => self.events.push(event),
            Fact::Bucket(bucket) => drop(self.buckets.insert(bucket.name.clone(), bucket)),
            Fact::Setting(key, value) => drop(self.settings.insert(key, value)),
            Fact::Counters(counters) => self.counters = counters,
        }
    }

    fn is_of_latest_attempt(&self, task: &TaskRecord) -> bool {
        let run = self.runs.get(&task.run);
        run.is_some_and(|run| !run.state.is_terminal() && run.attempt == task.run_attempt)
    }
}

impl Journal for MemoryJournal {
    type Error = Infallible;

    fn commit(&mut self, facts: &[Fact]) -> Result<(), Infallible> {
        facts.iter().for_each(|fact| self.put(fact));
        Ok(())
    }

    fn load(&mut self) -> Result<Stored, Infallible> {
        let keys = self.runs.values().filter_map(|run| Some((run.idempotency_key.clone()?, run.id)));
        Ok(Stored {
            counters: self.counters,
            projects: self.projects.values().cloned().collect(),
            runs: self.runs.values().filter(|run| !run.state.is_terminal()).cloned().collect(),
            tasks: self.tasks.values().filter(|task| self.is_of_latest_attempt(task)).cloned().collect(),
            leases: self.leases.values().cloned().collect(),
            buckets: self.buckets.values().cloned().collect(),
            settings: self.settings.clone().into_iter().collect(),
            keys: keys.collect(),
        })
    }
}
