//! What the gate learns and is to remember: durations, delays, totals and balances become facts.
use super::Orchestrator;
use crate::records::{BucketRecord, DurationsRecord, Fact, LearnerKind, LeaseRecord, Stored};
use mirab_core::{BucketState, ClaimId, Ended, Learner, Name, Time};
use std::sync::Arc;

impl LearnerKind {
    fn of(self, name: &str) -> Learner<'_> {
        match self {
            LearnerKind::Kind => Learner::Kind(name),
            LearnerKind::Resource => Learner::Resource(name),
        }
    }
}

impl Orchestrator {
    /// Ends a lease that was taken out of memory, with its fact. What a body took that ended by itself is learned.
    pub(super) fn release(&mut self, now: Time, lease: &LeaseRecord, ended: Ended) {
        if ended == Ended::ByItself {
            self.note_learners(lease);
        }
        self.gate.release(now, lease.id, lease.fence, ended);
        self.fact(Fact::LeaseEnded(lease.id));
    }

    /// The durations themselves are read once a step, however many bodies of a kind end in it.
    fn note_learners(&mut self, lease: &LeaseRecord) {
        let needed = lease.takes.iter().chain(&lease.tokens).map(|(name, _)| name);
        let names = needed.chain(lease.covered.iter().map(|(name, ..)| name));
        let declared = names.filter_map(|name| Some(self.gate.resolve(name).ok()?.declared_as));
        self.learned.extend(declared.map(|name| (LearnerKind::Resource, name)));
        self.learned.insert((LearnerKind::Kind, lease.kind.clone()));
    }

    /// Facts of what was learned since the last step was taken.
    pub(super) fn tell_learned(&mut self) {
        for (learner, name) in std::mem::take(&mut self.learned) {
            let recent = self.gate.durations(learner.of(&name));
            // A name that is not declared any more has nothing to remember.
            if !recent.is_empty() {
                self.fact(Fact::Durations(DurationsRecord { learner, name, recent }));
            }
        }
    }

    /// A waiting claim that was delayed once is to be delayed no more, also after a restart.
    pub(super) fn delayed(&mut self, id: ClaimId, on: &Name) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.record.delayed.push(on.to_string());
            let record = Box::new(run.record.clone());
            self.fact(Fact::Run(record));
        } else if let Some(task) = self.tasks.get_mut(&id) {
            task.record.delayed.push(on.to_string());
            let record = Box::new(task.record.clone());
            self.fact(Fact::Task(record));
        }
    }

    pub(super) fn tell_bucket(&mut self, name: &str, state: BucketState) {
        self.fact(Fact::Bucket(BucketRecord { name: name.to_owned(), state }));
    }

    /// Facts of a declared name or pattern whose limit has changed: its last total above 0, and the balances that were cut.
    pub(super) fn tell_limit(&mut self, declared: &str) {
        self.tell_total(declared);
        for resource in self.gate.resources_of(declared) {
            if let Some(state) = self.gate.bucket_state(&resource.name) {
                self.tell_bucket(&resource.name, state);
            }
        }
    }

    /// A name that never had a total above 0 has none to remember.
    fn tell_total(&mut self, declared: &str) {
        let Some(most) = self.gate.most(declared).filter(|most| *most < u64::MAX) else { return };
        if self.totals.get(declared) != Some(&most) {
            self.totals.insert(declared.to_owned(), most);
            self.fact(Fact::Total(declared.to_owned(), most));
        }
    }

    /// A name that is declared anew owes nothing to what it was before: neither its total nor how long it was held.
    pub(super) fn forget_declared(&mut self, declared: String) {
        if self.totals.insert(declared.clone(), u64::MAX).is_some() {
            self.fact(Fact::Total(declared.clone(), u64::MAX));
        }
        let learner = LearnerKind::Resource;
        self.learned.remove(&(learner, declared.clone()));
        self.fact(Fact::Durations(DurationsRecord { learner, name: declared, recent: vec![] }));
    }

    /// Takes over what was learned; the names must be declared. Totals that were changed while nothing was served are told anew.
    pub(super) fn restore_learned(&mut self, stored: &Stored) {
        for DurationsRecord { learner, name, recent } in &stored.durations {
            self.gate.restore_durations(learner.of(name), recent);
        }
        for (name, most) in &stored.totals {
            self.gate.restore_most(name, *most);
        }
        self.totals = stored.totals.iter().cloned().collect();
        let declared = Arc::clone(&self.declared);
        declared.options.resources.keys().for_each(|name| self.tell_total(name));
    }

    /// For all that waits, once it is in line.
    pub(super) fn restore_delays(&mut self) {
        let of_runs = self.runs.values().map(|run| (run.record.id, &run.record.delayed));
        let of_tasks = self.tasks.values().map(|task| (task.record.id, &task.record.delayed));
        for (id, on) in of_runs.chain(of_tasks) {
            on.iter().for_each(|name| self.gate.restore_delay(id, name));
        }
    }
}
