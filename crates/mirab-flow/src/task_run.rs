//! One task run inside a run: which changes it can make, its attempts, and what follows a failure.
use crate::error::{Error, IllegalChange};
use crate::records::{Failure, TaskRecord};
use crate::run::told;
use crate::state::State;
use mirab_core::Time;

/// A task run of the latest attempt of a live run.
#[derive(Clone, Debug)]
pub(crate) struct TaskRun {
    pub record: TaskRecord,
    /// When it came to its state.
    pub since: Time,
    /// Why the gate refused it, so that a repeated claim gets the same answer.
    pub refusal: Option<Error>,
}

impl TaskRun {
    pub fn new(record: TaskRecord, since: Time) -> Self {
        Self { record, since, refusal: None }
    }

    pub fn state(&self) -> State {
        self.record.state
    }

    /// Goes to another state if the table has that change.
    pub fn enter(&mut self, now: Time, to: State) -> Result<(), IllegalChange> {
        let from = self.record.state;
        if !from.next().contains(&to) {
            return Err(IllegalChange { id: self.record.id, from, to });
        }
        self.record.state = to;
        self.record.delayed.clear();
        self.record.ended_at = to.is_terminal().then_some(now);
        self.since = now;
        Ok(())
    }

    /// It was admitted: its body, which waited for that, executes at once.
    pub fn begin(&mut self, now: Time) -> Result<String, IllegalChange> {
        self.enter(now, State::Running)?;
        self.record.attempt += 1;
        self.record.started_at = Some(now);
        self.record.error = None;
        Ok("all it needs is held".into())
    }

    /// Its body raised: it may be claimed again after a delay while retries are left.
    pub fn fail(&mut self, now: Time, failure: Failure) -> Result<String, IllegalChange> {
        // A failure says that the attempts before it failed too: no second count is kept.
        let again = self.record.attempt <= self.record.retries;
        let reason = format!("attempt {} failed: {}", self.record.attempt, told(&failure));
        self.enter(now, if again { State::AwaitingRetry } else { State::Failed })?;
        self.record.error = Some(failure);
        if again {
            self.record.due_at = now.plus(self.record.retry_delay);
        }
        Ok(reason)
    }

    /// The gate refused it, or gave its wait up.
    pub fn refuse(&mut self, now: Time, refusal: Error) -> Result<String, IllegalChange> {
        self.enter(now, State::Failed)?;
        let failure = failure_of(&refusal);
        let reason = told(&failure);
        self.record.error = Some(failure);
        self.refusal = Some(refusal);
        Ok(reason)
    }
}

/// A refusal as it is stored.
pub(crate) fn failure_of(refusal: &Error) -> Failure {
    Failure { kind: refusal.code().into(), message: refusal.to_string(), traceback: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::STATES;
    use mirab_core::{ClaimId, Refusal};

    const NOW: Time = Time(100);

    fn task_in(state: State) -> TaskRun {
        let record = TaskRecord {
            id: ClaimId(2),
            run: ClaimId(1),
            run_attempt: 1,
            key: "load-1".into(),
            name: "load".into(),
            needs: vec![],
            parent: ClaimId(1),
            state,
            attempt: 0,
            retries: 1,
            retry_delay: 7,
            place: None,
            created_at: Time(1),
            due_at: Time(1),
            started_at: None,
            ended_at: None,
            error: None,
            delayed: vec![],
        };
        TaskRun::new(record, Time(1))
    }

    #[test]
    fn every_change_that_the_table_does_not_have_is_refused_and_changes_nothing() {
        for (from, _) in STATES {
            for (to, _) in STATES {
                let mut task = task_in(from);
                let before = task.record.clone();
                match task.enter(NOW, to) {
                    Ok(()) => assert!(from.next().contains(&to), "{from} to {to}"),
                    Err(illegal) => {
                        assert!(!from.next().contains(&to), "{illegal}");
                        assert_eq!(task.record, before);
                    }
                }
            }
        }
    }

    #[test]
    fn attempts_are_counted_by_their_beginnings() {
        let mut task = task_in(State::Waiting);
        task.begin(NOW).unwrap();
        task.fail(NOW, Failure::default()).unwrap();
        assert_eq!((task.state(), task.record.due_at), (State::AwaitingRetry, Time(107)));
        task.enter(NOW, State::Waiting).unwrap();
        task.begin(NOW).unwrap();
        assert_eq!((task.record.attempt, task.record.error.is_none()), (2, true));
        task.fail(NOW, Failure::default()).unwrap();
        assert_eq!((task.state(), task.record.ended_at), (State::Failed, Some(NOW)));
    }

    #[test]
    fn a_refusal_is_kept_with_its_code() {
        let mut task = task_in(State::Waiting);
        let refusal = Error::from(Refusal::UnknownResource { name: "dbb".into(), near: vec!["db".into()] });
        task.refuse(NOW, refusal.clone()).unwrap();
        assert_eq!((task.state(), task.refusal), (State::Failed, Some(refusal)));
        assert_eq!(task.record.error.unwrap().kind, "UnknownResource");
    }
}
