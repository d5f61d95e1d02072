//! Runs on offer are taken by workers, who keep their leases alive by heartbeats.
use super::{HAND_OFF, LEASE_LIFE, Orchestrator, POOL};
use crate::error::Error;
use crate::records::{Fact, LeaseRecord};
use crate::state::State;
use crate::step::Wake;
use mirab_core::{ClaimId, Fence, Time};
use serde_json::{Map, Value};

/// A worker asks for work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeLease {
    /// From this pool.
    pub pool: String,
    /// Of this project.
    pub project: String,
    /// Who asks.
    pub worker: String,
    /// The same id again gives the same lease again.
    pub request_id: String,
}

/// One attempt of a run, given to a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Leased {
    /// The run.
    pub id: ClaimId,
    /// To be sent with every call about this lease.
    pub fence: Fence,
    /// Short name of the flow.
    pub flow: String,
    /// File to import.
    pub file: String,
    /// Attribute that holds the flow.
    pub function: String,
    /// Parameters by name.
    pub params: Map<String, Value>,
    /// 1 for the first.
    pub attempt: u32,
}

impl Orchestrator {
    /// Gives the run of the project that was admitted first to a worker, if one is on offer.
    ///
    /// A worker has one lease: asking anew says that it lost the body of the one it had.
    ///
    /// # Errors
    /// `UnknownPool`.
    pub fn take_lease(&mut self, now: Time, ask: TakeLease) -> Result<Option<Leased>, Error> {
        let now = self.advance(now);
        if ask.pool != POOL {
            return Err(Error::UnknownPool { name: ask.pool });
        }
        if let Some(&id) = self.workers.get(&ask.worker) {
            let request = self.leases.get(&id).and_then(|lease| lease.request_id.as_ref());
            if request == Some(&ask.request_id) {
                self.renew_hand_off(now, id);
                return Ok(self.leased(id));
            }
            self.asked_anew(now, id, &ask.worker);
            self.settle(now);
        }
        Ok(self.hand_over(now, ask))
    }

    fn hand_over(&mut self, now: Time, ask: TakeLease) -> Option<Leased> {
        let offers = self.offers.get_mut(&ask.project)?;
        let (_, id) = offers.pop_first()?;
        if offers.is_empty() {
            self.offers.remove(&ask.project);
        }
        let lease = self.leases.get_mut(&id)?;
        (lease.worker, lease.request_id) = (Some(ask.worker.clone()), Some(ask.request_id));
        let fact = Fact::Lease(lease.clone());
        self.fact(fact);
        self.workers.insert(ask.worker, id);
        self.renew_hand_off(now, id);
        self.leased(id)
    }

    /// The time to take a run up counts from when it was handed over, also when that had to be told again.
    fn renew_hand_off(&mut self, now: Time, id: ClaimId) {
        if self.runs.get(&id).is_some_and(|run| run.state() == State::Pending) {
            self.timers.set(now.plus(HAND_OFF), Wake::HandOff(id));
        }
    }

    fn leased(&self, id: ClaimId) -> Option<Leased> {
        let (lease, run) = (self.leases.get(&id)?, &self.runs.get(&id)?.record);
        Some(Leased {
            id,
            fence: lease.fence,
            flow: run.flow.clone(),
            file: run.file.clone(),
            function: run.function.clone(),
            params: run.params.clone(),
            attempt: if run.state == State::Pending { run.attempt + 1 } else { run.attempt },
        })
    }

    /// Renews a lease; the first time it also says that the run was taken up. True when its body is to stop.
    ///
    /// # Errors
    /// `StaleLease`.
    pub fn heartbeat(&mut self, now: Time, id: ClaimId, fence: Fence) -> Result<bool, Error> {
        let now = self.advance(now);
        self.check_lease(id, fence)?;
        self.take_up(now, id);
        self.timers.set(now.plus(LEASE_LIFE), Wake::Lapse(id));
        Ok(self.is_cancelling(id))
    }

    /// Gives every lease a full life from now on, as after a restart: the host itself was away, so that nobody could renew.
    pub fn renew_leases(&mut self, now: Time) {
        let now = self.advance(now);
        let leased: Vec<(ClaimId, State)> =
            self.leases.keys().filter_map(|id| Some((*id, self.run(*id)?.state))).collect();
        for (id, state) in leased.into_iter().filter(|(id, _)| !self.silent.contains(id)) {
            match state {
                State::Pending => self.timers.set(now.plus(HAND_OFF), Wake::HandOff(id)),
                _ => self.timers.set(now.plus(LEASE_LIFE), Wake::Lapse(id)),
            }
        }
    }

    /// Gives the worker that holds this lease of a run.
    pub(super) fn check_lease(&self, id: ClaimId, fence: Fence) -> Result<String, Error> {
        let is_live = self.runs.contains_key(&id) && !self.silent.contains(&id);
        let lease = self.leases.get(&id).filter(|_| is_live);
        match lease {
            Some(LeaseRecord { fence: current, worker: Some(worker), .. }) if *current == fence => Ok(worker.clone()),
            lease => Err(Error::StaleLease { id, fence, current: lease.map(|lease| lease.fence) }),
        }
    }

    /// Any call with the right fence says that the run executes.
    pub(super) fn take_up(&mut self, now: Time, id: ClaimId) {
        let Some(run) = self.runs.get_mut(&id).filter(|run| run.state() == State::Pending) else { return };
        for task in std::mem::take(&mut run.tasks).into_values() {
            self.tasks.remove(&task); // Of the attempt before; all of them have ended.
        }
        let worker = self.leases.get(&id).and_then(|lease| lease.worker.clone()).unwrap_or_default();
        let reason = format!("taken up by {worker}");
        self.change_run(now, id, &worker, |run| run.begin(now, &reason).map(|()| reason.clone()));
        self.timers.clear(&Wake::HandOff(id));
        self.timers.set(now.plus(LEASE_LIFE), Wake::Lapse(id));
    }
}
