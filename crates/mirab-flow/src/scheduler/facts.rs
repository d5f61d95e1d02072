//! What a durable host stores: the state of what has changed since it asked last, as plain data.
use super::spec::{On, TaskCounts, TaskEnd, TaskId, TaskSpec};
use mirab_core::{BucketState, Place, Time};
use std::collections::BTreeMap;

/// Something to store. The facts of one step belong in one commit, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskFact {
    /// A new task.
    Accepted(Box<StoredTask>),
    /// A live task stands elsewhere.
    Changed(TaskId, Box<Progress>),
    /// A task is over. Its payload is not needed any more.
    Ended(TaskId, Box<StoredEnd>),
    /// A task that has ended is not remembered any more: nothing of it needs to be kept.
    Forgotten(TaskId),
    /// The balance of a bucket.
    Bucket(String, BucketState),
    /// A bucket is full, or is gone: nothing of it needs to be kept.
    BucketForgotten(String),
    /// Numbers that only grow.
    Counters(MachineCounters),
}

/// A task as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// Its id.
    pub id: TaskId,
    /// What it has in common with others.
    pub spec: TaskSpec,
    /// Its key with the digest of its payload.
    pub key: Option<(String, u64)>,
    /// What it comes after.
    pub after: Vec<(TaskId, On)>,
    /// It does not join the line before.
    pub not_before: Option<Time>,
    /// Where it stands; of one that has ended, where it stood.
    pub progress: Progress,
    /// How it ended.
    pub end: Option<StoredEnd>,
}

/// The part of a live task that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Where it stands.
    pub stage: StoredStage,
    /// Higher first.
    pub priority: i32,
    /// Attempts that were started.
    pub attempts: u32,
    /// Those of them that went with the process that executed them.
    pub lost: u32,
    /// Its place in line, once it has one.
    pub place: Option<Place>,
    /// It expires then, unless it has started.
    pub start_by: Option<Time>,
    /// Resources on which nothing passes it any more.
    pub delayed: Vec<String>,
}

/// Where a stored task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredStage {
    /// It comes after tasks that have not ended.
    Blocked,
    /// It joins the line then.
    Due(Time),
    /// In line since then.
    Queued(Time),
    /// An attempt executes.
    Running,
    /// An attempt executes that was asked to stop for a cancel.
    Cancelling,
}

/// How a stored task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEnd {
    /// It was so many-eth to end: the order of forgetting.
    pub order: u64,
    /// How.
    pub end: TaskEnd,
    /// Attempts that were started.
    pub attempts: u32,
    /// Its last priority.
    pub priority: i32,
}

/// Numbers that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineCounters {
    /// The next task's, without its shard.
    pub next_id: u64,
    /// The next place's.
    pub next_seq: u64,
    /// The next attempt's.
    pub next_fence: u64,
    /// Tasks so far.
    pub counts: TaskCounts,
}

/// All that is stored of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredTasks {
    /// Live ones and those that are remembered.
    pub tasks: BTreeMap<TaskId, StoredTask>,
    /// Balances by name.
    pub buckets: BTreeMap<String, BucketState>,
    /// Numbers that only grow.
    pub counters: MachineCounters,
}

impl StoredTasks {
    /// What a store does with a fact, in memory: for tests, and for hosts that keep no file.
    pub fn apply(&mut self, fact: TaskFact) {
        match fact {
            TaskFact::Accepted(task) => _ = self.tasks.insert(task.id, *task),
            TaskFact::Changed(id, progress) => {
                if let Some(task) = self.tasks.get_mut(&id) {
                    task.progress = *progress;
                }
            }
            TaskFact::Ended(id, end) => {
                if let Some(task) = self.tasks.get_mut(&id) {
                    task.end = Some(*end);
                }
            }
            TaskFact::Forgotten(id) => _ = self.tasks.remove(&id),
            TaskFact::Bucket(name, state) => _ = self.buckets.insert(name, state),
            TaskFact::BucketForgotten(name) => _ = self.buckets.remove(&name),
            TaskFact::Counters(counters) => self.counters = counters,
        }
    }
}
