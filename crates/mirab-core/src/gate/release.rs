//! Leases end.
use super::Gate;
use super::lease::Body;
use crate::api::{Ended, Release};
use crate::ids::{ClaimId, Fence};
use crate::refusal::Refusal;
use crate::time::Time;

impl Gate {
    /// Ends a lease: its units are free, and what they allow starts in this step. Idempotent: a second release, or one with an old
    /// fence, changes nothing and is counted. Tasks inside that still wait are refused (see [`Gate::poll_refused`]).
    pub fn release(&mut self, now: Time, id: ClaimId, fence: Fence, _ended: Ended) -> Release {
        self.advance(now);
        if self.lease(id) != Some(fence) {
            self.counters.double_releases += 1;
            self.pump();
            return Release::Double;
        }
        self.refuse_inside(id);
        let Some(lease) = self.leases.remove(&id) else {
            return Release::Double;
        };
        self.parents.remove(&id);
        for &(resource, _) in lease.takes.iter() {
            self.resources[resource].holders.remove(lease.started_at, id);
            self.touch(resource);
        }
        for &(resource, units, holder) in &lease.covered {
            if let Some(lent) =
                self.leases.get_mut(&holder).and_then(|lease| lease.body.as_mut()?.lent.get_mut(&resource))
            {
                *lent -= units;
            }
        }
        if let Some(parent) = lease.parent {
            self.leave_parent(parent, |body| {
                body.running.remove(&id);
            });
        }
        self.refresh_borrowers(&lease.covered);
        self.pump();
        Release::Done
    }

    /// Nothing may wait inside a body that has ended.
    fn refuse_inside(&mut self, id: ClaimId) {
        let body = self.leases.get(&id).and_then(|lease| lease.body.as_ref());
        for task in body.map(|body| body.waiting.clone()).unwrap_or_default() {
            self.leave(task);
            self.refused.push_back((task, Refusal::InvalidClaim { why: "the enclosing body has ended".into() }));
        }
    }

    /// Changes what a lease has inside, and forgets it as a parent when nothing is left.
    pub(super) fn leave_parent(&mut self, parent: ClaimId, change: impl FnOnce(&mut Body)) {
        if let Some(lease) = self.leases.get_mut(&parent) {
            let body = lease.body_mut();
            change(body);
            if body.running.is_empty() && body.waiting.is_empty() {
                self.parents.remove(&parent);
            }
        }
    }
}
