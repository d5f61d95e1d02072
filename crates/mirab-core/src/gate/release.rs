//! Leases end.
use super::Gate;
use super::lease::{Body, Lease};
use crate::api::{Ended, Release};
use crate::ids::{ClaimId, Fence};
use crate::refusal::Refusal;
use crate::time::Time;

impl Gate {
    /// Ends a lease: its units are free, and what they allow starts in this step. Idempotent: a second release, or one with an old
    /// fence, changes nothing and is counted. Tasks inside that still wait are refused (see [`Gate::poll_refused`]). The duration of a
    /// body that ended by itself is learned (see [`Gate::durations`]).
    pub fn release(&mut self, now: Time, id: ClaimId, fence: Fence, ended: Ended) -> Release {
        self.advance(now);
        let Some(lease) = self.remove_lease(id, fence) else {
            self.counters.double_releases += 1;
            self.pump();
            return Release::Double;
        };
        if ended == Ended::ByItself {
            self.learn(&lease.key, self.now.since(lease.span.started_at));
        }
        self.give_back(&lease);
        self.pump();
        Release::Done
    }

    fn remove_lease(&mut self, id: ClaimId, fence: Fence) -> Option<Lease> {
        let at = self.lease_ix(id).filter(|at| self.leases[*at].fence == fence)?;
        if self.leases[at].body().is_some() {
            self.refuse_inside(id);
            self.parents.remove(&id);
        }
        self.claims.remove(&id);
        self.leases.remove(at)
    }

    fn give_back(&mut self, lease: &Lease) {
        for &(resource, _) in lease.takes().iter() {
            self.resources[resource].holders.remove(lease.fence);
            self.touch(resource);
        }
        for &(resource, units, holder) in &lease.key.covered {
            let body = self.lease_of_mut(holder).map(Lease::body_mut);
            if let Some(lent) = body.and_then(|body| body.lent.get_mut(&resource)) {
                *lent -= units;
            }
        }
        let covered = lease.key.covered.iter().map(|(at, ..)| *at);
        for resource in lease.tokens().iter().map(|(at, _)| *at).chain(covered) {
            self.resources[resource].users -= 1;
            self.touch(resource);
        }
        if let Some(parent) = lease.key.parent {
            self.leave_parent(parent, |body| {
                body.running.remove(&lease.id);
            });
        }
        self.forget_passed(lease.passed());
        self.refresh_borrowers(&lease.key.covered);
    }

    /// Nothing may wait inside a body that has ended, at any depth: bodies end from the inside out, so who ends the outer one first has lost
    /// what runs inside.
    fn refuse_inside(&mut self, id: ClaimId) {
        let bodies = std::iter::once(id).chain(self.inside_of(id));
        let waiting = bodies.filter_map(|id| Some(&self.lease_of(id)?.body()?.waiting));
        let tasks: std::collections::BTreeSet<ClaimId> = waiting.flatten().copied().collect();
        for task in tasks {
            self.leave(task);
            self.refused.push_back((task, Refusal::InvalidClaim { why: "the enclosing body has ended".into() }));
        }
    }

    /// Changes what a lease has inside, and forgets it as a parent when nothing is left.
    pub(super) fn leave_parent(&mut self, parent: ClaimId, change: impl FnOnce(&mut Body)) {
        if let Some(lease) = self.lease_of_mut(parent) {
            let body = lease.body_mut();
            change(body);
            if body.running.is_empty() && body.waiting.is_empty() {
                self.parents.remove(&parent);
            }
        }
    }
}
