//! Workers that are gone: lost, silent, or never came.
use super::create::SERVER;
use super::{KILL_GRACE, Orchestrator};
use crate::state::State;
use crate::step::{Effect, Wake};
use mirab_core::{ClaimId, Ended, Time};

impl Orchestrator {
    /// A worker is gone: its lease ends, and its run is rerun or Crashed. A run that it had not begun goes back in line.
    pub fn worker_lost(&mut self, now: Time, worker: &str, reason: &str) {
        let now = self.advance(now);
        if let Some(&id) = self.workers.get(worker) {
            self.body_lost(now, id, reason, worker);
        }
        self.settle(now);
    }

    /// A worker that has a lease asks for other work, so the body is gone. One that did not begin is no crash.
    pub(super) fn asked_anew(&mut self, now: Time, id: ClaimId, worker: &str) {
        self.body_lost(now, id, "worker asked for new work", worker);
    }

    fn body_lost(&mut self, now: Time, id: ClaimId, reason: &str, cause: &str) {
        if self.runs.get(&id).is_some_and(|run| run.state() == State::Pending) {
            self.back_in_line(now, id, reason, cause);
        } else {
            self.crash(now, id, reason, cause);
        }
    }

    /// The run was not taken up in time: others get their chance, and it is offered anew from its old place.
    pub(super) fn hand_off_lapsed(&mut self, now: Time, id: ClaimId) {
        self.back_in_line(now, id, "no engine took it up within 5 s", SERVER);
    }

    /// No heartbeat came: nothing that the worker says about this lease counts any more. Its units are given on once the host says
    /// that the worker is gone (a local engine was killed and reaped, a remote one is out of reach), or has not said so in time.
    pub(super) fn lease_lapsed(&mut self, now: Time, id: ClaimId) {
        let reason = "no heartbeat for 15 s";
        match self.leases.get(&id).and_then(|lease| lease.worker.clone()) {
            Some(worker) if self.silent.insert(id) => {
                self.effect(Effect::KillWorker { worker, run: id, reason: reason.into() });
                self.timers.set(now.plus(KILL_GRACE), Wake::Lapse(id));
            }
            _ => self.crash(now, id, reason, SERVER),
        }
    }

    fn crash(&mut self, now: Time, id: ClaimId, reason: &str, cause: &str) {
        // What it held goes to whoever is first now, and that may be this very run.
        self.gate.withhold_starts();
        self.end_body(now, id, State::Crashed, Ended::Stopped);
        self.change_run(now, id, cause, |run| run.crash(now, reason));
        self.line_up_again(now, id);
        self.gate.resume_starts(now);
    }

    fn back_in_line(&mut self, now: Time, id: ClaimId, reason: &str, cause: &str) {
        self.gate.withhold_starts();
        self.end_body(now, id, State::Cancelled, Ended::Stopped);
        self.change_run(now, id, cause, |run| run.enter(now, State::Waiting, reason).map(|()| reason.into()));
        let is_served = self.runs.get(&id).is_none_or(|run| self.declared.discovered.contains(&run.record.project));
        if is_served {
            self.line_up_again(now, id);
        } else {
            self.parked.insert(id);
        }
        self.gate.resume_starts(now);
    }
}
