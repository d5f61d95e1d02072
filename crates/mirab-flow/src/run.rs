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
}

impl Run {
    pub fn new(record: RunRecord, since: Time) -> Self {
        Self { record, since, tasks: BTreeMap::new() }
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
