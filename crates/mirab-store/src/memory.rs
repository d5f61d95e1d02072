//! The twin in memory, for simulations and tests. It forgets everything with its last owner.
use crate::filter::RunFilter;
use mirab_core::ClaimId;
use mirab_flow::{
    BucketRecord, Counters, DurationsRecord, EventRecord, Fact, Journal, LearnerKind, LeaseRecord, ProjectRecord,
    RunRecord, State, Stored, TaskRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// Why a commit to memory was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The store was told to fail.
    #[error("the store fails because it was told to")]
    Told,
    /// There is an event of this number.
    #[error("event {0} is stored already, expected a new number")]
    EventTaken(u64),
    /// Another run has this idempotency key.
    #[error("the idempotency key {0:?} belongs to another run")]
    KeyTaken(String),
}

/// A store in memory: refuses what [`crate::SqliteStore`] refuses, and fails when it is told to.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    counters: Counters,
    projects: BTreeMap<String, ProjectRecord>,
    runs: BTreeMap<ClaimId, RunRecord>,
    tasks: BTreeMap<ClaimId, TaskRecord>,
    leases: BTreeMap<ClaimId, LeaseRecord>,
    events: BTreeMap<u64, EventRecord>,
    buckets: BTreeMap<String, BucketRecord>,
    durations: BTreeMap<(LearnerKind, String), DurationsRecord>,
    totals: BTreeMap<String, u64>,
    settings: BTreeMap<String, String>,
    keys: BTreeMap<String, ClaimId>,
    failures: u32,
}

impl MemoryStore {
    /// The next so many commits fail.
    pub fn fail_next(&mut self, commits: u32) {
        self.failures = commits;
    }

    /// The run of this id.
    #[must_use]
    pub fn run(&self, id: ClaimId) -> Option<&RunRecord> {
        self.runs.get(&id)
    }

    /// The run that was created with this idempotency key.
    #[must_use]
    pub fn run_by_key(&self, key: &str) -> Option<&RunRecord> {
        self.runs.get(self.keys.get(key)?)
    }

    /// The runs that the filter asks for, newest first.
    #[must_use]
    pub fn runs(&self, filter: &RunFilter) -> Vec<RunRecord> {
        let newest_first = self.runs.values().rev().filter(|run| filter.matches(run));
        newest_first.take(filter.limit as usize).cloned().collect()
    }

    /// How many runs stand in each state; states without runs are left out.
    #[must_use]
    pub fn count_by_state(&self) -> BTreeMap<State, u64> {
        let mut counts = BTreeMap::new();
        for run in self.runs.values() {
            *counts.entry(run.state).or_default() += 1;
        }
        counts
    }

    /// All tasks of a run, of all its attempts, by id.
    #[must_use]
    pub fn tasks(&self, run: ClaimId) -> Vec<TaskRecord> {
        self.tasks.values().filter(|task| task.run == run).cloned().collect()
    }

    /// The next events of a run after a sequence number, oldest first.
    #[must_use]
    pub fn events(&self, run: ClaimId, after_seq: u64, limit: u32) -> Vec<EventRecord> {
        self.after(after_seq).filter(|event| event.run == run).take(limit as usize).cloned().collect()
    }

    /// The next events of all runs after a sequence number, oldest first.
    #[must_use]
    pub fn all_events(&self, after_seq: u64, limit: u32) -> Vec<EventRecord> {
        self.after(after_seq).take(limit as usize).cloned().collect()
    }

    fn after(&self, seq: u64) -> impl Iterator<Item = &EventRecord> {
        self.events.values().skip_while(move |event| event.seq <= seq)
    }

    /// All that can be refused is refused before anything is changed. A run never changes or drops its key.
    fn check(&self, facts: &[Fact]) -> Result<(), MemoryError> {
        let (mut events, mut keys) = (BTreeSet::new(), BTreeMap::new());
        for fact in facts {
            match fact {
                Fact::Event(event) if self.events.contains_key(&event.seq) || !events.insert(event.seq) => {
                    return Err(MemoryError::EventTaken(event.seq));
                }
                Fact::Run(run) => {
                    let Some(key) = &run.idempotency_key else { continue };
                    let owner = *self.keys.get(key).unwrap_or(keys.entry(key).or_insert(run.id));
                    if owner != run.id {
                        return Err(MemoryError::KeyTaken(key.clone()));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn apply(&mut self, fact: &Fact) {
        match fact.clone() {
            Fact::Project(project) => drop(self.projects.insert(project.name.clone(), project)),
            Fact::Run(run) => {
                self.keys.extend(run.idempotency_key.clone().map(|key| (key, run.id)));
                self.runs.insert(run.id, *run);
            }
            Fact::Task(task) => drop(self.tasks.insert(task.id, *task)),
            Fact::Lease(lease) => drop(self.leases.insert(lease.id, lease)),
            Fact::LeaseEnded(id) => drop(self.leases.remove(&id)),
            Fact::Event(event) => drop(self.events.insert(event.seq, event)),
            Fact::Bucket(bucket) => drop(self.buckets.insert(bucket.name.clone(), bucket)),
            Fact::Durations(durations) => {
                self.durations.insert((durations.learner, durations.name.clone()), durations);
            }
            Fact::Total(name, most) => drop(self.totals.insert(name, most)),
            Fact::Setting(key, value) => drop(self.settings.insert(key, value)),
            Fact::Counters(counters) => self.counters = counters,
        }
    }

    fn is_live(&self, task: &TaskRecord) -> bool {
        self.runs.get(&task.run).is_some_and(|run| !run.state.is_terminal() && run.attempt == task.run_attempt)
    }
}

impl Journal for MemoryStore {
    type Error = MemoryError;

    fn commit(&mut self, facts: &[Fact]) -> Result<(), MemoryError> {
        if self.failures > 0 {
            self.failures -= 1;
            return Err(MemoryError::Told);
        }
        self.check(facts)?;
        facts.iter().for_each(|fact| self.apply(fact));
        Ok(())
    }

    fn load(&mut self) -> Result<Stored, MemoryError> {
        Ok(Stored {
            counters: self.counters,
            projects: self.projects.values().cloned().collect(),
            runs: self.runs.values().filter(|run| !run.state.is_terminal()).cloned().collect(),
            tasks: self.tasks.values().filter(|task| self.is_live(task)).cloned().collect(),
            leases: self.leases.values().cloned().collect(),
            buckets: self.buckets.values().cloned().collect(),
            durations: self.durations.values().cloned().collect(),
            totals: self.totals.clone().into_iter().collect(),
            settings: self.settings.clone().into_iter().collect(),
            keys: self.keys.clone().into_iter().collect(),
        })
    }
}
