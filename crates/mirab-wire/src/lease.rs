//! The worker protocol: lease, heartbeat, report, and claims of tasks inside a run. Local engines speak it too.
use crate::{Failure, Needs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Body of `POST /api/pools/{pool}/lease`: a long poll for work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// Who asks; unique among workers. The server gives local engines theirs.
    pub worker: String,
    /// The only project whose runs this worker takes.
    pub project: String,
    /// The same id again gives the same lease again while it is live: a lost answer loses no work and starts nothing twice.
    pub request_id: String,
    /// How long to wait for work, in seconds (at most 60).
    #[serde(default)]
    pub wait_s: f64,
}

/// Answer of `POST /api/pools/{pool}/lease`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeaseAnswer {
    /// `None` when no work came within the wait.
    pub lease: Option<Lease>,
    /// True: this worker is to end now (its pool shrank or its files changed). Never true together with a lease.
    pub retire: bool,
}

/// One attempt of a run, given to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// Id of the run.
    pub id: u64,
    /// Must be sent with every call about this lease; an older one is refused with `StaleLease`.
    pub fence: u64,
    /// The lease lapses when no heartbeat came for so long, in seconds.
    pub ttl_s: f64,
    /// Send a heartbeat at least this often, in seconds.
    pub heartbeat_s: f64,
    /// Short name of the flow.
    pub flow: String,
    /// The file to import, relative to the project's directory.
    pub file: String,
    /// The attribute of the module that holds the flow.
    pub function: String,
    /// Parameters by name.
    #[schema(value_type = Object)]
    pub params: serde_json::Map<String, Value>,
    /// 1 for the first attempt.
    pub attempt: u32,
}

/// Body of `POST /api/leases/{id}/heartbeat`; the first one also says that the hand-off was taken up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// Fence of the lease.
    pub fence: u64,
    /// Answer only after so many seconds, or at once when a cancel is asked for (at most 10): one call renews and listens.
    #[serde(default)]
    pub wait_s: f64,
}

/// Answer of a heartbeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// True: stop the body now and report `cancelled`.
    pub cancel: bool,
}

/// Body of `POST /api/leases/{id}/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    /// Fence of the lease.
    pub fence: u64,
    /// What the flow returned, where it is JSON.
    #[serde(default)]
    #[schema(value_type = Value, required = false)]
    pub result: Option<Value>,
}

/// Body of `POST /api/leases/{id}/fail`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// Fence of the lease.
    pub fence: u64,
    /// The error of the body.
    pub error: Failure,
    /// True: the body ended because a cancel was asked for.
    #[serde(default)]
    pub cancelled: bool,
}

/// Body of `POST /api/leases/{id}/claims`: a task inside the run asks to start. A long poll, idempotent by `key`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// Fence of the run's lease.
    pub fence: u64,
    /// Names this call of the task within this attempt of the run; the same key asks about the same claim.
    pub key: String,
    /// Name of the task.
    pub name: String,
    /// Units it wants.
    #[serde(default)]
    pub resources: Needs,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How often it is tried again after a failure.
    #[serde(default)]
    pub retries: u32,
    /// Seconds between a failure and the next attempt.
    #[serde(default)]
    pub retry_delay_s: f64,
    /// Of a flow that is called inside the run: its cap, which is claimed too.
    #[serde(default)]
    pub max_concurrent: Option<u64>,
    /// The claim of the enclosing task body, when a task is called in a task.
    #[serde(default)]
    pub parent: Option<u64>,
    /// How long to wait for the start, in seconds (at most 60).
    #[serde(default)]
    pub wait_s: f64,
}

/// Where a claim stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Claim {
    /// Id of the task run.
    pub id: u64,
    /// Fence of the started attempt; 0 while it waits.
    pub fence: u64,
    /// `AwaitingResource`, `Running`, `AwaitingRetry`, or a terminal state.
    pub state: String,
    /// Attempts started so far.
    pub attempt: u32,
}

/// Body of `POST /api/leases/{id}/settle`: what a call really used of a token bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// Fence of the run's lease.
    pub fence: u64,
    /// The claim of the task whose body says so; left out: the run's own body does. The tokens are those of the nearest body
    /// around it that took any.
    #[serde(default)]
    pub claim: Option<u64>,
    /// Name of the bucket, as it was asked for.
    pub resource: String,
    /// Units used in truth, instead of those taken: the difference is given back or owed.
    pub actual: u64,
}

/// Body of `POST /api/leases/{id}/cooldown`: the far side asked for a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cooldown {
    /// Fence of the run's lease.
    pub fence: u64,
    /// The claim of the task whose body says so; left out: the run's own body does.
    #[serde(default)]
    pub claim: Option<u64>,
    /// Name of the bucket.
    pub resource: String,
    /// For so many seconds nothing that needs the bucket starts.
    pub seconds: f64,
}

/// Body of `DELETE /api/leases/{id}/claims/{claim}`: the task's body has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndClaim {
    /// Fence of the run's lease.
    pub fence: u64,
    /// `completed`, `failed` or `cancelled`.
    pub outcome: Outcome,
    /// The error, when it failed.
    #[serde(default)]
    pub error: Option<Failure>,
}

/// How a task's body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It returned.
    Completed,
    /// It raised.
    Failed,
    /// It was stopped, or gave up waiting.
    Cancelled,
}

/// Answer to the end of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndClaimAnswer {
    /// `Some`: claim the same key again (the server lets it start only after so many seconds); `None`: the task has ended for good.
    pub retry_in_s: Option<f64>,
}
