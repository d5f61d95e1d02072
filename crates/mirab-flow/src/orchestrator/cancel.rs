//! A user's cancel.
use super::Orchestrator;
use crate::error::Error;
use crate::records::RunRecord;
use crate::state::State;
use crate::step::{Effect, Wake};
use mirab_core::{ClaimId, Ended, Time};

const ASKED: &str = "a cancel was asked for";

impl Orchestrator {
    /// Cancels a run: at once when it does not execute, else by asking its body to stop. Asking again changes nothing.
    ///
    /// # Errors
    /// `UnknownRun` when it is not live: it never was, or has ended.
    pub fn cancel_run(&mut self, now: Time, id: ClaimId, cause: &str) -> Result<RunRecord, Error> {
        let now = self.advance(now);
        let state = self.runs.get(&id).ok_or(Error::UnknownRun(id))?.state();
        let ended = match state {
            State::Cancelling => None,
            State::Running => {
                self.ask_to_stop(now, id, cause);
                None
            }
            _ => self.cancel_idle(now, id, cause),
        };
        self.settle(now);
        ended.or_else(|| self.run(id).cloned()).ok_or(Error::UnknownRun(id))
    }

    fn ask_to_stop(&mut self, now: Time, id: ClaimId, cause: &str) {
        self.change_run(now, id, cause, |run| run.enter(now, State::Cancelling, ASKED).map(|()| ASKED.into()));
        self.timers.set(now.plus(self.declared.options.cancel_grace), Wake::CancelGrace(id));
        self.tell_body_to_stop(id);
    }

    pub(super) fn tell_body_to_stop(&mut self, id: ClaimId) {
        if let Some(worker) = self.leases.get(&id).and_then(|lease| lease.worker.clone()) {
            self.effect(Effect::StopBody { run: id, worker });
        }
    }

    fn cancel_idle(&mut self, now: Time, id: ClaimId, cause: &str) -> Option<RunRecord> {
        self.gate.cancel(now, id);
        self.parked.remove(&id);
        self.end_body(now, id, State::Cancelled, Ended::Stopped);
        self.change_run(now, id, cause, |run| run.cancelled(now, ASKED))
    }

    /// The body that was asked to stop did not, for as long as it had.
    pub(super) fn grace_is_over(&mut self, id: ClaimId) {
        let seconds = self.declared.options.cancel_grace / mirab_core::SECOND;
        if let Some(worker) = self.leases.get(&id).and_then(|lease| lease.worker.clone()) {
            let reason = format!("a cancel was not heeded for {seconds} s");
            self.effect(Effect::KillWorker { worker, run: id, reason });
        }
    }
}
