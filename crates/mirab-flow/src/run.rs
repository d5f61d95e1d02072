//! One run: which changes it can make, its attempts, and what follows a failure or a crash.
use crate::error::IllegalChange;
use crate::records::{Failure, RunRecord};
use crate::state::State;
use mirab_core::{ClaimId, Time};
use serde_json::Value;
use std::collections::BTreeMap;

/// A live run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub record: RunRecord,
    /// When it came to its state.
    pub since: Time,
    /// Tasks of its latest attempt, by key.
    pub tasks: BTreeMap<String, ClaimId>,
    /// True once a task of it called a task.
    pub has_nested_tasks: bool,
}

impl Run {
    pub fn new(record: RunRecord, since: Time) -> Self {
        Self { record, since, tasks: BTreeMap::new(), has_nested_tasks: false }
    }

    pub fn state(&self) -> State {
        self.record.state
    }

    /// Goes to another state if the table has that change.
    pub fn enter(&mut self, now: Time, to: State, reason: &str) -> Result<(), IllegalChange> {
        let from = self.record.state;
        if !from.next().contains(&to) {
            return Err(IllegalChange { id: self.record.id, from, to });
        }
        self.record.state = to;
        // Who leaves the line has been delayed by nobody.
        self.record.delayed.clear();
        self.record.message = is_worth_telling(from, to).then(|| reason.to_owned());
        self.record.ended_at = to.is_terminal().then_some(now);
        self.since = now;
        Ok(())
    }

    /// The hand-off was taken up: a new attempt executes.
    pub fn begin(&mut self, now: Time, reason: &str) -> Result<(), IllegalChange> {
        self.enter(now, State::Running, reason)?;
        self.record.attempt += 1;
        self.record.started_at = Some(now);
        self.record.error = None;
        Ok(())
    }

    /// Its body returned. After a cancel was asked for, the run is cancelled all the same.
    pub fn complete(&mut self, now: Time, result: Option<Value>) -> Result<String, IllegalChange> {
        if self.state() == State::Cancelling {
            return self.cancelled(now, "its body completed after a cancel was asked for");
        }
        let reason = "its body returned";
        self.enter(now, State::Completed, reason)?;
        self.record.result = result;
        Ok(reason.into())
    }

    /// Its body raised: it is tried again after a delay while retries are left.
    pub fn fail(&mut self, now: Time, failure: Failure) -> Result<String, IllegalChange> {
        if self.state() == State::Cancelling {
            let reason = format!("its body failed after a cancel was asked for: {}", told(&failure));
            self.record.error = Some(failure);
            return self.cancelled(now, &reason);
        }
        let again = self.record.failures < self.record.retries;
        let reason = format!("attempt {} failed: {}", self.record.attempt, told(&failure));
        self.enter(now, if again { State::AwaitingRetry } else { State::Failed }, &reason)?;
        self.record.failures += 1;
        self.record.error = Some(failure);
        if again {
            self.record.due_at = now.plus(self.record.retry_delay);
        }
        Ok(reason)
    }

    /// Its worker was lost: back to its place in the line while reruns are left.
    pub fn crash(&mut self, now: Time, why: &str) -> Result<String, IllegalChange> {
        if self.state() == State::Cancelling {
            return self.cancelled(now, &format!("cancelled; its body ended when its worker was lost: {why}"));
        }
        let again = self.record.crashes < self.record.crash_retries;
        let reason = if again { format!("crashed, to be run again: {why}") } else { why.to_owned() };
        self.enter(now, if again { State::Waiting } else { State::Crashed }, &reason)?;
        self.record.crashes += 1;
        Ok(reason)
    }

    /// It could not be admitted.
    pub fn refuse(&mut self, now: Time, failure: Failure) -> Result<String, IllegalChange> {
        let reason = told(&failure);
        self.enter(now, State::Failed, &reason)?;
        self.record.error = Some(failure);
        Ok(reason)
    }

    pub fn cancelled(&mut self, now: Time, reason: &str) -> Result<String, IllegalChange> {
        self.enter(now, State::Cancelled, reason)?;
        Ok(reason.into())
    }
}

/// True when the reason of a change is shown beside the state, not only in the event.
fn is_worth_telling(from: State, to: State) -> bool {
    match to {
        State::Scheduled | State::Pending | State::Running | State::Completed => false,
        State::Waiting => matches!(from, State::Pending | State::Running),
        _ => true,
    }
}

/// A failure in one line.
pub(crate) fn told(failure: &Failure) -> String {
    match (failure.kind.as_str(), failure.message.as_str()) {
        ("", message) => message.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, message) => format!("{kind}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::STATES;
    use State::{AwaitingRetry, Cancelled, Cancelling, Completed, Crashed, Failed, Running, Waiting};

    const NOW: Time = Time(100);

    fn run_in(state: State) -> Run {
        let record = RunRecord {
            id: ClaimId(1),
            project: "shop".into(),
            flow: "nightly".into(),
            file: "nightly.py".into(),
            function: "nightly".into(),
            params: Default::default(),
            priority: 0,
            tags: vec![],
            needs: vec![],
            state,
            message: None,
            attempt: 1,
            failures: 0,
            crashes: 0,
            retries: 1,
            retry_delay: 7,
            crash_retries: 1,
            place: None,
            created_at: Time(1),
            due_at: Time(1),
            started_at: None,
            ended_at: None,
            result: None,
            error: None,
            idempotency_key: None,
            delayed: vec![],
        };
        Run::new(record, Time(1))
    }

    #[test]
    fn every_change_that_the_table_does_not_have_is_refused_and_changes_nothing() {
        for (from, _) in STATES {
            for (to, _) in STATES {
                let mut run = run_in(from);
                if from.next().contains(&to) {
                    assert_eq!(run.enter(NOW, to, "because"), Ok(()), "{from} to {to}");
                    assert_eq!((run.state(), run.since), (to, NOW));
                    assert_eq!(run.record.ended_at.is_some(), to.is_terminal());
                } else {
                    let before = run.record.clone();
                    assert_eq!(run.enter(NOW, to, "because"), Err(IllegalChange { id: ClaimId(1), from, to }));
                    assert_eq!((run.record, run.since), (before, Time(1)));
                }
            }
        }
    }

    #[test]
    fn what_a_body_reports_is_only_taken_from_a_body() {
        for (from, _) in STATES.into_iter().filter(|(state, _)| !matches!(state, Running | Cancelling)) {
            assert!(run_in(from).complete(NOW, None).is_err(), "{from}");
            assert!(run_in(from).fail(NOW, Failure::default()).is_err(), "{from}");
        }
    }

    #[test]
    fn failures_and_crashes_are_counted_apart() {
        let mut run = run_in(Running);
        let ends = [AwaitingRetry, Failed].map(|expected| {
            run.fail(NOW, Failure::default()).unwrap();
            let reached = run.state();
            run.record.state = Running;
            (reached, expected)
        });
        assert!(ends.iter().all(|(reached, expected)| reached == expected));
        assert_eq!((run.record.failures, run.record.due_at), (2, Time(107)));
        run.crash(NOW, "gone").unwrap();
        assert_eq!((run.state(), run.record.crashes), (Waiting, 1));
        assert_eq!(run.record.message.as_deref(), Some("crashed, to be run again: gone"));
        run.record.state = Running;
        run.crash(NOW, "gone").unwrap();
        assert_eq!((run.state(), run.record.message.as_deref()), (Crashed, Some("gone")));
    }

    #[test]
    fn nothing_but_cancelled_follows_a_cancel_that_was_asked_for() {
        let ends: [fn(&mut Run); 3] = [
            |run| drop(run.complete(NOW, Some(Value::Null)).unwrap()),
            |run| drop(run.fail(NOW, Failure::default()).unwrap()),
            |run| drop(run.crash(NOW, "gone").unwrap()),
        ];
        for end in ends {
            let mut run = run_in(Cancelling);
            end(&mut run);
            assert_eq!((run.state(), run.record.result.is_none()), (Cancelled, true));
        }
    }

    #[test]
    fn a_new_attempt_forgets_how_the_last_one_failed() {
        let mut run = run_in(State::Pending);
        run.record.error = Some(Failure::default());
        run.begin(NOW, "taken up").unwrap();
        assert_eq!((run.record.attempt, run.record.error.is_none(), run.record.started_at), (2, true, Some(NOW)));
        run.complete(NOW, None).unwrap();
        assert_eq!((run.state(), run.record.message), (Completed, None));
    }

    #[test]
    fn a_failure_is_told_in_one_line() {
        let told = |kind: &str, message: &str| {
            told(&Failure { kind: kind.into(), message: message.into(), traceback: Some("long".into()) })
        };
        assert_eq!((told("A", "b"), told("A", ""), told("", "b")), ("A: b".into(), "A".into(), "b".into()));
    }
}
