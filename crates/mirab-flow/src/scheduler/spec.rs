//! What goes into the machine and what comes out of it, as plain data.
use mirab_core::{ClaimId, Fence, Time};

/// Names a task; unique within its scheduler, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl TaskId {
    /// The number of its shard.
    #[must_use]
    pub fn shard_number(self) -> u8 {
        (self.0 >> 56) as u8
    }

    pub(super) fn claim(self) -> ClaimId {
        ClaimId(self.0)
    }
}

/// A pool: where tasks execute, and how many at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// So many attempts execute at once; 0 pauses it.
    pub slots: u64,
    /// So many tasks may wait (for their time, for others, or in line); more are refused. `None`: any number.
    pub max_queued: Option<u64>,
}

impl PoolSpec {
    /// A pool with any number of tasks waiting.
    #[must_use]
    pub fn new(name: &str, slots: u64) -> Self {
        Self { name: name.into(), slots, max_queued: None }
    }
}

/// What tasks of one kind have in common: it is kept once for all that are alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskSpec {
    /// The pool.
    pub pool: String,
    /// What durations are learned by, within the pool: a bounded set. Empty: one kind for the whole pool.
    pub kind: String,
    /// Units by resource name. A name given twice is summed.
    pub resources: Vec<(String, u64)>,
    /// Tags: a declared `tag:<name>` limits the tasks that carry it, one unit each.
    pub tags: Vec<String>,
    /// An attempt that has not ended after so many nanoseconds is stopped, and has failed.
    pub timeout: Option<u64>,
    /// What happens after a failure.
    pub retry: Retry,
}

impl TaskSpec {
    /// A task of a pool that needs a slot of it and nothing else, and is tried once.
    #[must_use]
    pub fn new(pool: &str) -> Self {
        Self {
            pool: pool.into(),
            kind: String::new(),
            resources: Vec::new(),
            tags: Vec::new(),
            timeout: None,
            retry: Retry::default(),
        }
    }
}

/// Further attempts after a failure: the pause before attempt n + 1 is drawn between 0 and `min(cap, base * 2^(n - 1))` ("full jitter"; see
/// M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Retry {
    /// So many further attempts at most.
    pub retries: u32,
    /// Nanoseconds.
    pub base: u64,
    /// Nanoseconds.
    pub cap: u64,
}

impl Default for Retry {
    /// No retry; when `retries` is set, pauses of up to 1 s, 2 s, 4 s, up to 5 min.
    fn default() -> Self {
        Self { retries: 0, base: mirab_core::SECOND, cap: 300 * mirab_core::SECOND }
    }
}

/// What is each task's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Higher first.
    pub priority: i32,
    /// A second submission with this key gives the task of the first, while that is live or remembered.
    pub key: Option<String>,
    /// Tells payloads apart for a repeated key: the same for the same payload.
    pub digest: u64,
    /// It joins the line at this instant.
    pub not_before: Option<Time>,
    /// Unless its first attempt has started by then, it ends Expired and has consumed nothing.
    pub start_by: Option<Time>,
    /// It joins the line once these have ended like that.
    pub after: Vec<(TaskId, On)>,
}

/// How a task that another one comes after is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// Completed.
    Success,
    /// Failed.
    Failure,
    /// In any way.
    Completion,
}

/// What a submission gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The task.
    pub id: TaskId,
    /// False for the task of an earlier submission with the same key.
    pub is_new: bool,
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// It returned.
    Success,
    /// It failed.
    Failure {
        /// In words.
        message: String,
        /// Whether to try again.
        again: Again,
    },
    /// It ended because it was stopped (see [`TaskEffect::Stop`]), or went with what executed it.
    Stopped,
}

/// Whether a failed attempt is followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// As its [`Retry`] says.
    ByPolicy,
    /// As its [`Retry`] says, but after exactly so many nanoseconds.
    After(u64),
    /// No.
    Never,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// Its body returned.
    Completed,
    /// Its last attempt failed.
    Failed {
        /// In words.
        message: String,
        /// True when it was stopped for its timeout.
        timed_out: bool,
    },
    /// By a cancel.
    Cancelled,
    /// It did not start in time.
    Expired,
    /// What it was to come after did not end as it should.
    Skipped {
        /// In words.
        reason: String,
    },
}

/// What the host has to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEffect {
    /// Execute an attempt; say how it ended with [`super::TaskMachine::finish`].
    Start(TaskStart),
    /// Stop the body of this attempt. Its units are held until it has ended.
    Stop {
        /// The task.
        id: TaskId,
        /// The attempt.
        fence: Fence,
        /// Why.
        why: StopReason,
    },
    /// It is over. Nothing of it is to come.
    Ended {
        /// The task.
        id: TaskId,
        /// How.
        end: TaskEnd,
    },
}

/// An attempt that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStart {
    /// The task.
    pub id: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// To be given back when it ends.
    pub fence: Fence,
    /// When.
    pub at: Time,
    /// When it is stopped.
    pub deadline: Option<Time>,
}

/// Why a body is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody cancelled it.
    Cancelled,
    /// Its timeout has come.
    TimedOut,
}

/// Something that happened to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    /// When.
    pub at: Time,
    /// The task.
    pub id: TaskId,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It was accepted.
    Submitted,
    /// It joined the line.
    Queued,
    /// An attempt started.
    Started {
        /// From 1.
        attempt: u32,
        /// Nanoseconds in line.
        waited: u64,
    },
    /// An attempt failed and another one follows.
    Retrying {
        /// The attempt that failed.
        attempt: u32,
        /// The pause that was drawn, in nanoseconds.
        pause: u64,
        /// What it was drawn from: up to so many nanoseconds.
        at_most: u64,
        /// How it failed.
        message: String,
    },
    /// Its body was asked to stop.
    Stopping(StopReason),
    /// It has another priority.
    Reprioritised(i32),
    /// It is over.
    Ended(TaskEnd),
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskState {
    /// It waits for other tasks to end.
    Blocked,
    /// Its time has not come.
    Scheduled,
    /// In line.
    Queued,
    /// An attempt executes.
    Running,
    /// Its body was asked to stop and has not ended.
    Stopping,
    /// An attempt failed; the next one is to come.
    AwaitingRetry,
    /// See [`TaskEnd`].
    Ended,
}

/// What is known of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// Where it stands.
    pub state: TaskState,
    /// Attempts that were started.
    pub attempts: u32,
    /// Its priority.
    pub priority: i32,
    /// When it joins the line, while it is Scheduled or AwaitingRetry; on the clock of the host.
    pub due_at: Option<Time>,
    /// How it ended, once it has.
    pub end: Option<TaskEnd>,
}

/// Counters that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Tasks accepted.
    pub submitted: u64,
    /// Attempts started.
    pub started: u64,
    /// Attempts that failed and were followed by another.
    pub retried: u64,
    /// Tasks by how they ended.
    pub completed: u64,
    /// See `completed`.
    pub failed: u64,
    /// See `completed`.
    pub cancelled: u64,
    /// See `completed`.
    pub expired: u64,
    /// See `completed`.
    pub skipped: u64,
}

impl TaskCounts {
    /// Tasks that have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.completed + self.failed + self.cancelled + self.expired + self.skipped
    }
}
