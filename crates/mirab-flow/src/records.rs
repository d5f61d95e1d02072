//! What is stored: one plain record a table. The machines write them as facts; the store keeps them and gives them back.
use crate::state::State;
use mirab_core::{BucketState, ClaimId, Fence, Place, Time};
use serde_json::{Map, Value};
use std::str::FromStr;

/// Units by resource name, in name order.
pub type Needs = Vec<(String, u64)>;

/// How an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Name of the exception type, or a code such as `ResourceExceedsCapacity`.
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Its traceback, where there is one.
    pub traceback: Option<String>,
}

/// A served directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRecord {
    /// Its name, unique.
    pub name: String,
    /// Absolute path.
    pub path: String,
}

/// A run of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Unique, never reused; shared with task runs.
    pub id: ClaimId,
    /// Project of the flow.
    pub project: String,
    /// Short name of the flow.
    pub flow: String,
    /// File of the flow at creation, relative to the project.
    pub file: String,
    /// Attribute that holds the flow.
    pub function: String,
    /// Parameters by name.
    pub params: Map<String, Value>,
    /// Higher first.
    pub priority: i32,
    /// Tags.
    pub tags: Vec<String>,
    /// All it needs to start: pool slot, cap, tags, resources.
    pub needs: Needs,
    /// Where it stands.
    pub state: State,
    /// Why, where there is something to say.
    pub message: Option<String>,
    /// Attempts started.
    pub attempt: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// Attempts that crashed.
    pub crashes: u32,
    /// How often it is tried again after a failure.
    pub retries: u32,
    /// Nanoseconds between a failure and the next attempt.
    pub retry_delay: u64,
    /// How often it is tried again after a crash.
    pub crash_retries: u32,
    /// Its place in the line, once it has joined it.
    pub place: Option<Place>,
    /// When it was created.
    pub created_at: Time,
    /// When it is due to join the line; while it waits for a retry: when the delay ends.
    pub due_at: Time,
    /// When its latest attempt began to execute.
    pub started_at: Option<Time>,
    /// When it reached a terminal state.
    pub ended_at: Option<Time>,
    /// What the flow returned.
    pub result: Option<Value>,
    /// How the latest attempt failed.
    pub error: Option<Failure>,
    /// Given by the caller: the same key is the same run.
    pub idempotency_key: Option<String>,
    /// Resources on which it was delayed once while it waits: nothing passes it there any more.
    pub delayed: Vec<String>,
}

/// A task inside a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Unique, shares its numbers with runs.
    pub id: ClaimId,
    /// The run it belongs to.
    pub run: ClaimId,
    /// Which attempt of the run called it.
    pub run_attempt: u32,
    /// Names the call within that attempt.
    pub key: String,
    /// Name of the task.
    pub name: String,
    /// What it asks for: resources and tags.
    pub needs: Needs,
    /// The enclosing body: the run, or a task of it.
    pub parent: ClaimId,
    /// Where it stands.
    pub state: State,
    /// Attempts started.
    pub attempt: u32,
    /// How often it is tried again after a failure.
    pub retries: u32,
    /// Nanoseconds between a failure and the next attempt.
    pub retry_delay: u64,
    /// Its place in the line.
    pub place: Option<Place>,
    /// When it was called.
    pub created_at: Time,
    /// While it waits for a retry: when the delay ends.
    pub due_at: Time,
    /// When its latest attempt began.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// How its latest attempt failed.
    pub error: Option<Failure>,
    /// Resources on which it was delayed once while it waits: nothing passes it there any more.
    pub delayed: Vec<String>,
}

/// A lease: what a started run or task run holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The run or task run.
    pub id: ClaimId,
    /// Fence number.
    pub fence: Fence,
    /// Kind of the claim, as the gate was told.
    pub kind: String,
    /// Semaphore units held.
    pub takes: Needs,
    /// Units of enclosing bodies that it uses: name, units, holder.
    pub covered: Vec<(String, u64, ClaimId)>,
    /// Rank of its claim.
    pub priority: i32,
    /// Place of its claim.
    pub place: Place,
    /// The enclosing body, for a task run.
    pub parent: Option<ClaimId>,
    /// When the gate admitted it.
    pub started_at: Time,
    /// The worker that took it up; `None` while it is offered.
    pub worker: Option<String>,
    /// Request by which the worker took it.
    pub request_id: Option<String>,
    /// Tokens taken, as they were settled since.
    pub tokens: Needs,
    /// In so many nanoseconds from its start it was expected to end at the soonest.
    pub shortest: u64,
    /// So many nanoseconds its kind took at the longest of late; `None` while its kind was not known.
    pub longest: Option<u64>,
    /// Waiting claims that it passed by starting, and on which resource.
    pub passed: Vec<(ClaimId, String)>,
}

/// A stored change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Grows with each event, never reused.
    pub seq: u64,
    /// When.
    pub at: Time,
    /// The run it is about.
    pub run: ClaimId,
    /// The task run it is about.
    pub task: Option<ClaimId>,
    /// `run.state`, `run.priority`, `run.skipped`, `task.state`, `resource.exhausted`, `resource.unsatisfiable`.
    pub kind: String,
    /// The state it went to.
    pub state: Option<State>,
    /// Why.
    pub reason: String,
    /// Who or what caused it.
    pub cause: String,
}

/// A token bucket's balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRecord {
    /// Name of the resource.
    pub name: String,
    /// Its balance.
    pub state: BucketState,
}

/// What durations are learned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LearnerKind {
    /// A kind of work: `project/flow`, or `project/flow/task`.
    Kind,
    /// A declared name or pattern.
    Resource,
}

impl LearnerKind {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            LearnerKind::Kind => "kind",
            LearnerKind::Resource => "resource",
        }
    }
}

impl FromStr for LearnerKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "kind" => Ok(LearnerKind::Kind),
            "resource" => Ok(LearnerKind::Resource),
            _ => Err(format!("{word:?} learns no durations, expected kind or resource")),
        }
    }
}

/// How long something took of late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationsRecord {
    /// What its name names.
    pub learner: LearnerKind,
    /// Its name.
    pub name: String,
    /// Nanoseconds, oldest first.
    pub recent: Vec<u64>,
}

/// Numbers that are never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The next run or task run.
    pub next_id: u64,
    /// The next sequence number in the line.
    pub next_seq: u64,
    /// The next fence number.
    pub next_fence: u64,
    /// The next event.
    pub next_event: u64,
}

/// One change to the store. A step's facts are committed together, before its effects happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// Insert or replace.
    Project(ProjectRecord),
    /// Insert or replace.
    Run(Box<RunRecord>),
    /// Insert or replace.
    Task(Box<TaskRecord>),
    /// Insert or replace.
    Lease(LeaseRecord),
    /// Remove the lease of this claim.
    LeaseEnded(ClaimId),
    /// Insert.
    Event(EventRecord),
    /// Insert or replace.
    Bucket(BucketRecord),
    /// Insert or replace.
    Durations(DurationsRecord),
    /// Insert or replace: a declared name, and its last total above 0; `u64::MAX` where it has none any more.
    Total(String, u64),
    /// Insert or replace: key and value.
    Setting(String, String),
    /// Replace.
    Counters(Counters),
}

/// What a store gives back at start: everything that is still alive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// The numbers to go on from.
    pub counters: Counters,
    /// All projects.
    pub projects: Vec<ProjectRecord>,
    /// Runs in a state that is not terminal, by id.
    pub runs: Vec<RunRecord>,
    /// Tasks of those runs, of the run's latest attempt, by id, terminal ones too.
    pub tasks: Vec<TaskRecord>,
    /// All leases, by id.
    pub leases: Vec<LeaseRecord>,
    /// All buckets, by name.
    pub buckets: Vec<BucketRecord>,
    /// All durations, by what they are of and name.
    pub durations: Vec<DurationsRecord>,
    /// The last total above 0 of each declared name, by name.
    pub totals: Vec<(String, u64)>,
    /// All settings, by key.
    pub settings: Vec<(String, String)>,
    /// Every idempotency key with its run, ended ones too.
    pub keys: Vec<(String, ClaimId)>,
}
