//! A body has ended, and all it held is given back.
use super::Orchestrator;
use crate::error::Error;
use crate::records::Failure;
use crate::state::State;
use crate::step::Wake;
use mirab_core::{ClaimId, Ended, Fence, Time};
use serde_json::Value;

const BODY_ENDED: &str = "the run's body has ended";

impl Orchestrator {
    /// The body of a run returned.
    ///
    /// # Errors
    /// `StaleLease`.
    pub fn complete(&mut self, now: Time, id: ClaimId, fence: Fence, result: Option<Value>) -> Result<(), Error> {
        let now = self.advance(now);
        let worker = self.body_ended(now, id, fence, Ended::ByItself)?;
        self.change_run(now, id, &worker, |run| run.complete(now, result));
        self.settle(now);
        Ok(())
    }

    /// The body of a run raised, or stopped because it was asked to.
    ///
    /// # Errors
    /// `StaleLease`.
    pub fn fail(
        &mut self,
        now: Time,
        id: ClaimId,
        fence: Fence,
        failure: Failure,
        cancelled: bool,
    ) -> Result<(), Error> {
        let now = self.advance(now);
        let ended = if cancelled { Ended::Stopped } else { Ended::ByItself };
        let worker = self.body_ended(now, id, fence, ended)?;
        if cancelled {
            self.change_run(now, id, &worker, |run| run.cancelled(now, "its body was stopped by a cancel"));
        } else {
            self.change_run(now, id, &worker, |run| run.fail(now, failure));
        }
        if let Some(run) = self.runs.get(&id).filter(|run| run.state() == State::AwaitingRetry) {
            self.timers.set(run.record.due_at, Wake::Retry(id));
        }
        self.settle(now);
        Ok(())
    }

    /// A body that was asked to stop did not end by itself, whatever it says.
    fn body_ended(&mut self, now: Time, id: ClaimId, fence: Fence, ended: Ended) -> Result<String, Error> {
        let worker = self.check_lease(id, fence)?;
        self.take_up(now, id);
        let ended = if self.is_cancelling(id) { Ended::Stopped } else { ended };
        self.end_body(now, id, State::Cancelled, ended);
        Ok(worker)
    }

    pub(super) fn is_cancelling(&self, id: ClaimId) -> bool {
        self.runs.get(&id).is_some_and(|run| run.state() == State::Cancelling)
    }

    /// The delay before the next attempt is over.
    pub(super) fn retry_due(&mut self, now: Time, id: ClaimId) {
        let reason = "the delay before its next attempt is over";
        self.change_run(now, id, super::create::SERVER, |run| {
            run.enter(now, State::Waiting, reason).map(|()| reason.into())
        });
        self.line_up_again(now, id);
    }

    /// Gives back all that a run holds: first its tasks end, those that execute in `state`, then its own lease.
    pub(super) fn end_body(&mut self, now: Time, id: ClaimId, state: State, ended: Ended) {
        let Some(run) = self.runs.get(&id) else { return };
        let project = run.record.project.clone();
        let tasks = run.tasks.values().copied().collect();
        self.end_tasks(now, tasks, state, BODY_ENDED);
        let Some(lease) = self.leases.remove(&id) else { return };
        self.release(now, &lease, ended);
        self.silent.remove(&id);
        if let Some(worker) = lease.worker {
            self.workers.remove(&worker);
        } else if let Some(offers) = self.offers.get_mut(&project) {
            offers.remove(&(lease.fence, id));
            if offers.is_empty() {
                self.offers.remove(&project);
            }
        }
        for wake in [Wake::HandOff(id), Wake::Lapse(id), Wake::CancelGrace(id)] {
            self.timers.clear(&wake);
        }
    }
}
