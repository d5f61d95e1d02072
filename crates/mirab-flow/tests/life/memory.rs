//! A journal in memory, whose commits and loads fail when they are told to.
use mirab_core::ClaimId;
use mirab_flow::{
    BucketRecord, DurationsRecord, EventRecord, Fact, Journal, LearnerKind, LeaseRecord, ProjectRecord, RunRecord,
    Stored, TaskRecord,
};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Memory {
    counters: mirab_flow::Counters,
    projects: BTreeMap<String, ProjectRecord>,
    pub runs: BTreeMap<ClaimId, RunRecord>,
    pub tasks: BTreeMap<ClaimId, TaskRecord>,
    pub leases: BTreeMap<ClaimId, LeaseRecord>,
    pub events: Vec<EventRecord>,
    pub buckets: BTreeMap<String, BucketRecord>,
    pub durations: BTreeMap<(LearnerKind, String), DurationsRecord>,
    pub totals: BTreeMap<String, u64>,
    settings: BTreeMap<String, String>,
    pub commits: u64,
    pub failing_commits: u32,
    pub failing_loads: u32,
}

impl Memory {
    fn put(&mut self, fact: &Fact) {
        match fact.clone() {
            Fact::Project(project) => drop(self.projects.insert(project.name.clone(), project)),
            Fact::Run(run) => drop(self.runs.insert(run.id, *run)),
            Fact::Task(task) => drop(self.tasks.insert(task.id, *task)),
            Fact::Lease(lease) => drop(self.leases.insert(lease.id, lease)),
            Fact::LeaseEnded(id) => drop(self.leases.remove(&id)),
            Fact::Event(event) => {
                assert!(self.events.last().is_none_or(|last| last.seq < event.seq), "event {} again", event.seq);
                self.events.push(event);
            }
            Fact::Bucket(bucket) => drop(self.buckets.insert(bucket.name.clone(), bucket)),
            Fact::Durations(of) => drop(self.durations.insert((of.learner, of.name.clone()), of)),
            Fact::Total(name, most) => drop(self.totals.insert(name, most)),
            Fact::Setting(key, value) => drop(self.settings.insert(key, value)),
            Fact::Counters(counters) => self.counters = counters,
        }
    }

    fn is_of_latest_attempt(&self, task: &TaskRecord) -> bool {
        let run = self.runs.get(&task.run);
        run.is_some_and(|run| !run.state.is_terminal() && run.attempt == task.run_attempt)
    }

    pub fn stored(&self) -> Stored {
        let keys = self.runs.values().filter_map(|run| Some((run.idempotency_key.clone()?, run.id)));
        Stored {
            counters: self.counters,
            projects: self.projects.values().cloned().collect(),
            runs: self.runs.values().filter(|run| !run.state.is_terminal()).cloned().collect(),
            tasks: self.tasks.values().filter(|task| self.is_of_latest_attempt(task)).cloned().collect(),
            leases: self.leases.values().cloned().collect(),
            buckets: self.buckets.values().cloned().collect(),
            durations: self.durations.values().cloned().collect(),
            totals: self.totals.clone().into_iter().collect(),
            settings: self.settings.clone().into_iter().collect(),
            keys: keys.collect(),
        }
    }
}

impl Journal for Memory {
    type Error = &'static str;

    fn commit(&mut self, facts: &[Fact]) -> Result<(), &'static str> {
        assert!(!facts.is_empty(), "nothing to commit");
        if self.failing_commits > 0 {
            self.failing_commits -= 1;
            return Err("disk full");
        }
        self.commits += 1;
        facts.iter().for_each(|fact| self.put(fact));
        Ok(())
    }

    fn load(&mut self) -> Result<Stored, &'static str> {
        if self.failing_loads > 0 {
            self.failing_loads -= 1;
            return Err("disk gone");
        }
        Ok(self.stored())
    }
}
