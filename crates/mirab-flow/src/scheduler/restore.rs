//! A machine from what is stored: after a restart.
use super::ended::{EndedTask, Keyed};
use super::facts::{StoredStage, StoredTask, StoredTasks};
use super::record::{More, Record, Shape, Stage};
use super::spec::{PoolSpec, TaskEnd, TaskId, TaskSpec};
use super::timing::Alarm;
use super::{MachineOptions, TaskError, TaskMachine};
use mirab_core::{ResourceConfig, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Pools and resources as the program declares them: they are not stored.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Resources and patterns.
    pub resources: Vec<ResourceConfig>,
    /// Pools.
    pub pools: Vec<PoolSpec>,
}

impl TaskMachine {
    /// Takes up what is stored. Waiting tasks are in line at their old places. Attempts that executed went with their process: their tasks
    /// are in line again, each at its old place, for a further attempt that no retry is used up by. What expired or fell due meanwhile
    /// does so now. A pool or resource that stored tasks need and nothing declares any more is paused until it is declared: what waits
    /// for it is kept and can be seen.
    ///
    /// Times must go on where they were when the facts were taken: nanoseconds since the Unix epoch, not since the start of the process.
    ///
    /// # Errors
    /// What [`TaskMachine::set_resource`] and [`TaskMachine::set_pool`] refuse.
    pub fn restore(
        options: MachineOptions,
        limits: &Limits,
        stored: StoredTasks,
        now: Time,
    ) -> Result<Self, TaskError> {
        let StoredTasks { tasks, buckets, counters } = stored;
        let (ended, live): (Vec<StoredTask>, Vec<StoredTask>) =
            tasks.into_values().partition(|task| task.end.is_some());
        let mut this = Self::new(options);
        this.next_id = counters.next_id.max(1);
        this.counts = counters.counts;
        this.gate.restore_counters(counters.next_seq, counters.next_fence);
        this.gate.withhold_starts();
        this.declare_all(limits, &live, now)?;
        // Before anything is noted, so that what changes from here on is.
        if let Some(notes) = this.notes.as_mut() {
            notes.counters = counters;
            notes.stored = buckets.keys().cloned().collect();
        }
        this.remember_ended(ended);
        let stages = this.take_up(live)?;
        for (name, state) in &buckets {
            // One that is not declared any more, or is a semaphore now, has no balance to keep.
            let _ = this.gate.restore_bucket(now, name, *state);
        }
        this.note_removal();
        this.line_up(now, stages);
        this.ring(now);
        this.gate.resume_starts(now);
        this.drain(now);
        Ok(this)
    }

    fn declare_all(&mut self, limits: &Limits, live: &[StoredTask], now: Time) -> Result<(), TaskError> {
        for resource in &limits.resources {
            self.set_resource(now, resource.clone())?;
        }
        for pool in &limits.pools {
            self.set_pool(now, pool.clone())?;
        }
        let wanted: BTreeSet<&str> = live.iter().map(|task| task.spec.pool.as_str()).collect();
        for name in wanted {
            if !self.pools.contains_key(name) {
                self.set_pool(now, PoolSpec::new(name, 0))?;
            }
        }
        for name in live.iter().flat_map(|task| &task.spec.resources).map(|(name, _)| name) {
            let name = mirab_core::check_requested(name)?;
            if !self.gate.is_declared(&name) {
                let shard = self.options.gate.shard.clone();
                self.set_resource(now, ResourceConfig::semaphore(&name, 0).in_shard(&shard))?;
            }
        }
        Ok(())
    }

    fn remember_ended(&mut self, mut ended: Vec<StoredTask>) {
        ended.sort_unstable_by_key(|task| task.end.as_ref().map(|end| end.order));
        for task in ended {
            let Some(stored) = task.end else { continue };
            let keyed = self.keyed(&task.spec, task.key, task.id);
            let (end, attempts, priority) = (stored.end, stored.attempts, stored.priority);
            self.remember(task.id, EndedTask { end, attempts, priority, keyed });
        }
    }

    fn keyed(&mut self, spec: &TaskSpec, key: Option<(String, u64)>, id: TaskId) -> Option<Box<Keyed>> {
        let (key, digest) = (Arc::<str>::from(key.as_ref()?.0.as_str()), key?.1);
        // Its pool may be gone by now.
        let shape = match self.shapes.get(spec) {
            Some(shape) => shape,
            None => self.shapes.insert(Shape::new(spec).ok()?),
        };
        self.keys.insert(Arc::clone(&key), id);
        Some(Box::new(Keyed { key, digest, shape }))
    }

    /// Takes live tasks into memory, in nobody's way yet; gives where each stood.
    fn take_up(&mut self, live: Vec<StoredTask>) -> Result<Vec<(TaskId, StoredStage)>, TaskError> {
        let ids: BTreeSet<TaskId> = live.iter().map(|task| task.id).collect();
        let mut stages = Vec::with_capacity(live.len());
        let mut edges = Vec::new();
        for task in live {
            let (id, stage) = (task.id, task.progress.stage);
            // What has ended since it was accepted ended well, else this one would have been skipped.
            let open = task.after.iter().filter(|(earlier, _)| ids.contains(earlier));
            let before = edges.len();
            if stage == StoredStage::Blocked {
                edges.extend(open.map(|(earlier, on)| (*earlier, id, *on)));
            }
            let open = u32::try_from(edges.len() - before).unwrap_or(u32::MAX);
            let record = self.record_of(task, open)?;
            if let Some((key, _)) = record.key() {
                self.keys.insert(Arc::clone(key), id);
            }
            self.tasks.insert(id, record);
            self.pool_of(id).queued += 1;
            stages.push((id, stage));
        }
        for (earlier, id, on) in edges {
            if let Some(record) = self.tasks.get_mut(earlier) {
                record.more.get_or_insert_default().dependants.push((id, on));
            }
        }
        Ok(stages)
    }

    fn record_of(&mut self, task: StoredTask, open: u32) -> Result<Record, TaskError> {
        let shape = self.shape(&task.spec)?;
        let progress = task.progress;
        let has_more =
            task.key.is_some() || !task.after.is_empty() || progress.lost > 0 || !progress.delayed.is_empty();
        let more = More {
            key: task.key.map(|(key, digest)| (key.into(), digest)),
            dependants: Vec::new(),
            after: task.after,
            delayed: progress.delayed,
            lost: progress.lost,
        };
        Ok(Record {
            shape,
            stage: Stage::Blocked(open),
            priority: progress.priority,
            attempts: progress.attempts,
            place: progress.place,
            not_before: task.not_before,
            start_by: progress.start_by,
            deadline: None,
            more: has_more.then(|| Box::new(more)),
        })
    }

    /// Puts all where they stood. The order does not matter: those in line have their places, and nothing starts before all are there.
    fn line_up(&mut self, now: Time, stages: Vec<(TaskId, StoredStage)>) {
        for (id, stage) in stages {
            if let Some(at) = self.tasks.get(id).and_then(|record| record.start_by) {
                self.alarms.insert((at, id, Alarm::Expire));
            }
            match stage {
                StoredStage::Blocked => {}
                StoredStage::Due(at) => {
                    self.set_stage(id, Stage::Due(at));
                    self.alarms.insert((at, id, Alarm::Due));
                }
                StoredStage::Queued(since) => self.back_in_line(now, id, since),
                StoredStage::Running => {
                    if let Some(record) = self.tasks.get_mut(id) {
                        record.more.get_or_insert_default().lost += 1;
                    }
                    self.back_in_line(now, id, now);
                    self.note(id);
                }
                StoredStage::Cancelling => self.end(now, id, TaskEnd::Cancelled),
            }
        }
    }

    fn back_in_line(&mut self, now: Time, id: TaskId, since: Time) {
        self.fall_due(now, id);
        self.set_stage(id, Stage::Queued(since));
        let delayed = self.tasks.get(id).and_then(|record| Some(record.more.as_ref()?.delayed.clone()));
        for resource in delayed.unwrap_or_default() {
            self.gate.restore_delay(id.claim(), &resource);
        }
    }

    fn set_stage(&mut self, id: TaskId, stage: Stage) {
        if let Some(record) = self.tasks.get_mut(id) {
            record.stage = stage;
        }
    }
}
