//! Inner records as they go over the wire, by hand: an inner change cannot change the interface by accident.
use mirab_core::{Blocked, ClaimId, Promise, SECOND, Time};
use mirab_flow::{EventRecord, Failure, Orchestrator, RunRecord, Shown, State, TaskRecord, WaitingRow};
use mirab_wire as wire;

/// Seconds since the epoch.
#[expect(clippy::cast_precision_loss, reason = "a float keeps instants of our time to less than a microsecond")]
pub(crate) fn seconds(at: Time) -> f64 {
    at.0 as f64 / SECOND as f64
}

/// `shown` is the word for its state.
pub(crate) fn run(record: RunRecord, shown: &str) -> wire::Run {
    wire::Run {
        id: record.id.0,
        project: record.project,
        flow: record.flow,
        state: shown.to_owned(),
        message: record.message,
        params: record.params,
        priority: record.priority,
        tags: record.tags,
        needs: record.needs.into_iter().collect(),
        attempt: record.attempt,
        created_at: seconds(record.created_at),
        due_at: seconds(record.due_at),
        started_at: record.started_at.map(seconds),
        ended_at: record.ended_at.map(seconds),
        result: record.result,
        error: record.error.map(failure),
    }
}

pub(crate) fn task(record: TaskRecord, shown: &str) -> wire::TaskRun {
    wire::TaskRun {
        id: record.id.0,
        run_id: record.run.0,
        name: record.name,
        state: shown.to_owned(),
        needs: record.needs.into_iter().collect(),
        attempt: record.attempt,
        run_attempt: record.run_attempt,
        created_at: seconds(record.created_at),
        started_at: record.started_at.map(seconds),
        ended_at: record.ended_at.map(seconds),
        error: record.error.map(failure),
    }
}

pub(crate) fn event(record: EventRecord) -> wire::Event {
    wire::Event {
        seq: record.seq,
        at: seconds(record.at),
        run_id: record.run.0,
        task_id: record.task.map(|id| id.0),
        kind: record.kind,
        state: record.state.map(|state| state.as_str().to_owned()),
        reason: record.reason,
        cause: record.cause,
    }
}

pub(crate) fn failure(failure: Failure) -> wire::Failure {
    wire::Failure { kind: failure.kind, message: failure.message, traceback: failure.traceback }
}

pub(crate) fn inner_failure(failure: wire::Failure) -> Failure {
    Failure { kind: failure.kind, message: failure.message, traceback: failure.traceback }
}

/// The word for a state. What the machines say tells the kinds of waiting apart and no more: they may be at a later moment than
/// the row, and a list must not mix two moments.
pub(crate) fn word(state: State, machines: Option<Shown>) -> &'static str {
    match (state, machines) {
        (State::Waiting, Some(Shown::AwaitingResource)) => "AwaitingResource",
        (State::Waiting, _) => "Queued",
        _ => state.as_str(),
    }
}

pub(crate) fn waiting(orchestrator: &Orchestrator, row: WaitingRow) -> wire::Waiting {
    let blocked_on = row.explanation.blocked_on.into_iter().map(|blocked| blocker(orchestrator, blocked)).collect();
    wire::Waiting {
        id: row.id.0,
        kind: kind(row.is_task),
        run_id: row.run.0,
        project: row.project,
        name: row.name,
        state: row.shown.as_str().into(),
        priority: row.priority,
        position: row.position,
        since: seconds(row.since),
        reason: row.reason,
        unsatisfiable: row.explanation.unsatisfiable,
        promise: row.explanation.promise.map(promise),
        blocked_on,
    }
}

fn promise(promise: Promise) -> wire::Promise {
    wire::Promise {
        at: seconds(promise.at),
        earliest: seconds(promise.earliest),
        latest: promise.latest.map(seconds),
        decided_by: promise.decided_by,
        known: promise.known,
        assumed: promise.assumed,
    }
}

fn blocker(orchestrator: &Orchestrator, blocked: Blocked) -> wire::Blocker {
    wire::Blocker {
        resource: blocked.resource,
        need: blocked.need,
        free: blocked.free,
        capacity: blocked.capacity,
        holders: blocked.holders.into_iter().map(|lease| holder(orchestrator, lease)).collect(),
        holders_total: blocked.holders_total,
        behind: blocked.behind.into_iter().map(|id| id.0).collect(),
        ahead: blocked.ahead,
        tokens_at: blocked.tokens_at.map(seconds),
        passed_by_total: blocked.passed_by.len() as u64,
        passed_by: blocked.passed_by.into_iter().map(|id| id.0).collect(),
    }
}

/// Who holds units: claim, units, since when.
pub(crate) fn holder(orchestrator: &Orchestrator, (id, units, since): (ClaimId, u64, Time)) -> wire::Holder {
    let who = orchestrator.describe(id);
    wire::Holder {
        id: id.0,
        kind: kind(who.as_ref().is_some_and(|who| who.is_task)),
        run_id: who.as_ref().map_or(id.0, |who| who.run.0),
        name: who.map_or_else(String::new, |who| who.name),
        units,
        since: seconds(since),
    }
}

/// The word for what an id stands for.
pub(crate) fn kind(is_task: bool) -> String {
    if is_task { "task".into() } else { "run".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_state_is_never_shown_as_one_of_a_later_moment() {
        let now = [Shown::As(State::Pending), Shown::As(State::Running), Shown::As(State::Completed), Shown::Queued];
        for machines in now.map(Some).into_iter().chain([None]) {
            assert_eq!(word(State::Waiting, machines), "Queued", "{machines:?}");
            assert_eq!(word(State::Running, machines), "Running", "{machines:?}");
        }
        assert_eq!(word(State::Waiting, Some(Shown::AwaitingResource)), "AwaitingResource");
        assert_eq!(word(State::Pending, Some(Shown::AwaitingResource)), "Pending");
    }
}
