//! Token buckets corrected by those who use them.
use super::Orchestrator;
use crate::error::Error;
use crate::records::Fact;
use crate::state::State;
use crate::task_run::TaskRun;
use mirab_core::{ClaimId, Fence, Time, check_requested};

impl Orchestrator {
    /// The true cost of what a body used of a token bucket: the difference to what it was charged is given back, or owed. `task`: the
    /// task run whose body says so, else it is the run's own. The tokens are those of the nearest body around it that took any.
    ///
    /// # Errors
    /// `StaleLease`; `UnknownTask` when the task's body does not execute in this run; `InvalidResource` when no tokens of that name were
    /// taken.
    pub fn settle_tokens(
        &mut self,
        now: Time,
        lease: ClaimId,
        fence: Fence,
        task: Option<ClaimId>,
        resource: &str,
        actual: u64,
    ) -> Result<(), Error> {
        let now = self.advance(now);
        let body = self.check_body(lease, fence, task)?;
        let name = check_requested(resource)?;
        self.take_up(now, lease);
        let payer = self.payer(body, &name).unwrap_or(body);
        let fence = self.leases.get(&payer).map(|lease| lease.fence).unwrap_or_default();
        let settled = self.gate.settle(now, payer, fence, &name, actual)?;
        self.tell_bucket(&name, settled.bucket);
        if let Some(lease) = self.leases.get_mut(&payer) {
            lease.tokens.iter_mut().filter(|(of, _)| *of == name).for_each(|(_, charged)| *charged = settled.charged);
            let fact = Fact::Lease(lease.clone());
            self.fact(fact);
        }
        self.settle(now);
        Ok(())
    }

    /// The far side asked for a pause of so many nanoseconds: nothing that needs this bucket starts before.
    ///
    /// # Errors
    /// `StaleLease`, `UnknownTask`, `UnknownResource`, or `InvalidResource` when it is no token bucket.
    pub fn cool_down(
        &mut self,
        now: Time,
        lease: ClaimId,
        fence: Fence,
        task: Option<ClaimId>,
        resource: &str,
        nanos: u64,
    ) -> Result<(), Error> {
        let now = self.advance(now);
        self.check_body(lease, fence, task)?;
        let name = check_requested(resource)?;
        self.take_up(now, lease);
        let state = self.gate.cooldown(now, &name, nanos)?;
        self.tell_bucket(&name, state);
        self.settle(now);
        Ok(())
    }

    /// The body that speaks: the run's, or that of a task in it.
    fn check_body(&self, lease: ClaimId, fence: Fence, task: Option<ClaimId>) -> Result<ClaimId, Error> {
        self.check_lease(lease, fence)?;
        let Some(id) = task else { return Ok(lease) };
        let executes = |task: &TaskRun| task.record.run == lease && task.state() == State::Running;
        if self.tasks.get(&id).is_some_and(executes) { Ok(id) } else { Err(Error::UnknownTask(id)) }
    }

    /// The nearest enclosing body that took tokens of this name, itself first.
    fn payer(&self, body: ClaimId, name: &str) -> Option<ClaimId> {
        let mut at = Some(body);
        while let Some(id) = at {
            let lease = self.leases.get(&id)?;
            if lease.tokens.iter().any(|(of, _)| of == name) {
                return Some(id);
            }
            at = lease.parent;
        }
        None
    }
}
