//! What the machine knows, as JSON: asked for by people and tests, not by every task.
use super::effects::end_parts;
use super::seconds::{Clock, seconds};
use mirab_core::{Blocked, Explanation, Limit, Promise};
use mirab_flow::scheduler::{MachineSnapshot, PoolSnapshot, Quantiles, ResourceSnapshot, TaskState, TaskStatus};
use serde_json::{Map, Value, json};

pub fn status(clock: Clock, status: TaskStatus) -> Value {
    let (end, message, timed_out) = match status.end {
        Some(end) => end_parts(end),
        None => (state(status.state), None, false),
    };
    json!({
        "state": end,
        "attempts": status.attempts,
        "priority": status.priority,
        "due_at": status.due_at.map(|at| clock.seconds(at)),
        "message": message,
        "timed_out": timed_out,
    })
}

fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Blocked => "Blocked",
        TaskState::Scheduled => "Scheduled",
        TaskState::Queued => "Queued",
        TaskState::Running => "Running",
        TaskState::Stopping => "Stopping",
        TaskState::AwaitingRetry => "AwaitingRetry",
        TaskState::Ended => "Ended",
    }
}

pub fn explanation(clock: Clock, explanation: &Explanation, position: Option<u64>) -> Value {
    json!({
        "position": position,
        "blocked_on": explanation.blocked_on.iter().map(|at| blocked(clock, at)).collect::<Vec<_>>(),
        "unsatisfiable": explanation.unsatisfiable,
        "promise": explanation.promise.as_ref().map(|at| promise(clock, at)),
    })
}

fn blocked(clock: Clock, blocked: &Blocked) -> Value {
    let holder = |(id, units, since): &(mirab_core::ClaimId, u64, mirab_core::Time)| json!({"task_id": id.0, "units": units, "since": clock.seconds(*since)});
    json!({
        "resource": blocked.resource,
        "need": blocked.need,
        "free": blocked.free,
        "capacity": blocked.capacity,
        "holders": blocked.holders.iter().map(holder).collect::<Vec<_>>(),
        "holders_total": blocked.holders_total,
        "behind": blocked.behind.iter().map(|id| id.0).collect::<Vec<_>>(),
        "ahead": blocked.ahead,
        "tokens_at": blocked.tokens_at.map(|at| clock.seconds(at)),
        "passed_by": blocked.passed_by.iter().map(|id| id.0).collect::<Vec<_>>(),
    })
}

fn promise(clock: Clock, promise: &Promise) -> Value {
    json!({
        "at": clock.seconds(promise.at),
        "earliest": clock.seconds(promise.earliest),
        "latest": promise.latest.map(|at| clock.seconds(at)),
        "decided_by": promise.decided_by,
        "known": promise.known,
        "assumed": promise.assumed,
    })
}

pub fn snapshot(snapshot: &MachineSnapshot) -> Value {
    let counts = &snapshot.counts;
    let pools: Map<String, Value> = snapshot.pools.iter().map(|at| (at.spec.name.clone(), pool(at))).collect();
    let resources: Map<String, Value> =
        snapshot.resources.iter().map(|at| (at.view.name.clone(), resource(at))).collect();
    json!({
        "pools": pools,
        "resources": resources,
        "counts": {
            "submitted": counts.submitted,
            "started": counts.started,
            "retried": counts.retried,
            "completed": counts.completed,
            "failed": counts.failed,
            "cancelled": counts.cancelled,
            "expired": counts.expired,
            "skipped": counts.skipped,
        },
        "priority_inversions": snapshot.priority_inversions,
    })
}

fn pool(pool: &PoolSnapshot) -> Value {
    json!({
        "slots": pool.spec.slots,
        "max_queued": pool.spec.max_queued,
        "waiting": pool.waiting,
        "running": pool.running,
        "waits": quantiles(pool.waits),
    })
}

fn resource(resource: &ResourceSnapshot) -> Value {
    let view = &resource.view;
    let (kind, rate) = match view.limit {
        Limit::Semaphore { .. } => ("semaphore", None),
        Limit::TokenBucket { rate, .. } => ("token_bucket", Some(rate.as_f64())),
    };
    json!({
        "kind": kind,
        "capacity": view.limit.capacity(),
        "rate": rate,
        "used": view.used,
        "free": view.free,
        "waiting": view.waiters,
        "declared_as": view.declared_as,
        "waits": quantiles(resource.waits),
    })
}

fn quantiles(waits: Quantiles) -> Value {
    json!({"count": waits.count, "p50": seconds(waits.p50), "p90": seconds(waits.p90), "p99": seconds(waits.p99)})
}
