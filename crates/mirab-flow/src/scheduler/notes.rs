//! What has changed since the host of a durable machine took its facts.
use super::TaskMachine;
use super::facts::{MachineCounters, Progress, StoredEnd, StoredStage, StoredTask, TaskFact};
use super::record::{Record, Shape, Stage};
use super::spec::{StopReason, TaskEnd, TaskId};
use mirab_core::BucketState;
use std::collections::{BTreeMap, BTreeSet};

/// Stored buckets are looked through for full ones when there are at least so many.
const FEW: usize = 1_024;

/// Kept by a durable machine only.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Of what is not there any more; the rest is read from the machine when it is taken.
    facts: Vec<TaskFact>,
    /// Live tasks that changed; true for new ones.
    tasks: BTreeMap<TaskId, bool>,
    buckets: BTreeSet<String>,
    /// Buckets of which a balance is stored.
    pub stored: BTreeSet<String>,
    /// When so many are stored, full ones are forgotten.
    crowded: usize,
    /// As they were told last.
    pub counters: MachineCounters,
}

impl TaskMachine {
    /// What has changed since the last call, for a durable machine ([`super::MachineOptions::durable`]): to be committed before the
    /// effects of the same steps are carried out and their callers answered.
    pub fn take_facts(&mut self) -> Vec<TaskFact> {
        let counters = self.counters();
        let Some(mut notes) = self.notes.take() else { return Vec::new() };
        let mut facts = std::mem::take(&mut notes.facts);
        for (id, is_new) in std::mem::take(&mut notes.tasks) {
            let Some(record) = self.tasks.get(id) else { continue };
            facts.push(if is_new { accepted(id, record) } else { TaskFact::Changed(id, Box::new(progress(record))) });
        }
        for name in std::mem::take(&mut notes.buckets) {
            match self.balance(&name) {
                Some(state) => {
                    notes.stored.insert(name.clone());
                    facts.push(TaskFact::Bucket(name, state));
                }
                None => facts.extend(notes.stored.remove(&name).then_some(TaskFact::BucketForgotten(name))),
            }
        }
        if notes.stored.len() >= notes.crowded.max(FEW) {
            let gone = self.forget_full(&mut notes.stored);
            notes.crowded = 2 * notes.stored.len();
            facts.extend(gone);
        }
        if counters != notes.counters {
            notes.counters = counters;
            facts.push(TaskFact::Counters(counters));
        }
        self.notes = Some(notes);
        facts
    }

    fn counters(&self) -> MachineCounters {
        let (next_seq, next_fence) = self.gate.next_numbers();
        MachineCounters { next_id: self.next_id, next_seq, next_fence, counts: self.counts }
    }

    /// What is to be stored of a bucket: nothing of a full one, which is as good as new.
    fn balance(&self, name: &str) -> Option<BucketState> {
        let state = self.gate.bucket_state(name)?;
        let burst = self.gate.resolve(name).ok()?.limit.capacity();
        let is_full = state.cooling_until.0 == 0 && state.scaled >= i128::from(burst).saturating_mul(state.scale);
        (!is_full).then_some(state)
    }

    fn forget_full(&self, stored: &mut BTreeSet<String>) -> Vec<TaskFact> {
        let all = std::mem::take(stored).into_iter();
        let (kept, gone): (Vec<String>, Vec<String>) = all.partition(|name| self.balance(name).is_some());
        *stored = kept.into_iter().collect();
        gone.into_iter().map(TaskFact::BucketForgotten).collect()
    }

    /// A declaration was taken away: a later one of that name starts full.
    pub(super) fn note_removal(&mut self) {
        let Some(mut notes) = self.notes.take() else { return };
        let gone = self.forget_full(&mut notes.stored);
        notes.facts.extend(gone);
        self.notes = Some(notes);
    }

    pub(super) fn note_new(&mut self, id: TaskId) {
        if let Some(notes) = self.notes.as_mut() {
            notes.tasks.insert(id, true);
        }
    }

    pub(super) fn note(&mut self, id: TaskId) {
        if let Some(notes) = self.notes.as_mut() {
            notes.tasks.entry(id).or_insert(false);
        }
    }

    /// A task has left the live ones as this record.
    pub(super) fn note_end(&mut self, id: TaskId, record: &Record, end: &TaskEnd) {
        let order = self.counts.ended();
        let Some(notes) = self.notes.as_mut() else { return };
        if notes.tasks.remove(&id) == Some(true) {
            notes.facts.push(accepted(id, record));
        }
        let (end, attempts, priority) = (end.clone(), record.attempts, record.priority);
        notes.facts.push(TaskFact::Ended(id, Box::new(StoredEnd { order, end, attempts, priority })));
    }

    pub(super) fn note_forgotten(&mut self, id: TaskId) {
        if let Some(notes) = self.notes.as_mut() {
            notes.facts.push(TaskFact::Forgotten(id));
        }
    }

    /// An attempt started; what it took of buckets is gone.
    pub(super) fn note_start(&mut self, id: TaskId, shape: &Shape) {
        if self.notes.is_none() {
            return;
        }
        self.note(id);
        for (name, _) in &shape.needs[1..] {
            self.note_bucket(name);
        }
        for tag in &shape.tags {
            self.note_bucket(tag);
        }
    }

    /// A bucket, or those of a pattern, may have been cut to a new limit.
    pub(super) fn note_limit(&mut self, name: &str) {
        if let Some(notes) = self.notes.as_mut()
            && name.contains('*')
        {
            notes.buckets.extend(notes.stored.iter().cloned());
        }
        self.note_bucket(name);
    }

    pub(super) fn note_bucket(&mut self, name: &str) {
        let Self { notes, gate, .. } = self;
        if let Some(notes) = notes.as_mut()
            && !notes.buckets.contains(name)
            && gate.bucket_state(name).is_some()
        {
            notes.buckets.insert(name.to_owned());
        }
    }

    /// Nothing passes it any more on a resource where it was delayed once.
    pub(super) fn note_delay(&mut self, id: TaskId, resource: &str) {
        if self.notes.is_none() {
            return;
        }
        if let Some(record) = self.tasks.get_mut(id) {
            record.more.get_or_insert_default().delayed.push(resource.to_owned());
            self.note(id);
        }
    }
}

fn accepted(id: TaskId, record: &Record) -> TaskFact {
    let more = record.more.as_deref();
    TaskFact::Accepted(Box::new(StoredTask {
        id,
        spec: record.shape.spec.clone(),
        key: record.key().map(|(key, digest)| (key.to_string(), *digest)),
        after: more.map(|more| more.after.clone()).unwrap_or_default(),
        not_before: record.not_before,
        progress: progress(record),
        end: None,
    }))
}

fn progress(record: &Record) -> Progress {
    let stage = match record.stage {
        Stage::Blocked(_) => StoredStage::Blocked,
        Stage::Due(at) => StoredStage::Due(at),
        Stage::Queued(since) => StoredStage::Queued(since),
        Stage::Stopping(_, StopReason::Cancelled) => StoredStage::Cancelling,
        Stage::Running(_) | Stage::Stopping(_, StopReason::TimedOut) => StoredStage::Running,
    };
    let more = record.more.as_deref();
    Progress {
        stage,
        priority: record.priority,
        attempts: record.attempts,
        lost: record.lost(),
        place: record.place,
        start_by: record.start_by,
        delayed: more.map(|more| more.delayed.clone()).unwrap_or_default(),
    }
}
