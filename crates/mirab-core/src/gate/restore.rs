//! Building a gate again from what its host has stored.
use super::Gate;
use super::lease::Lease;
use super::resource::{ResourceIx, Store};
use crate::api::StoredLease;
use crate::bucket::BucketState;
use crate::ids::ClaimId;
use crate::refusal::Refusal;
use crate::time::Time;
use std::sync::Arc;

impl Gate {
    /// Withholds all starts until [`Gate::resume_starts`], so that no claim overtakes one that joins the line after it but ranks above
    /// it: while stored work is restored, and while an attempt that was lost goes back in line.
    pub fn withhold_starts(&mut self) {
        self.withheld = true;
    }

    /// Lets start what may start.
    pub fn resume_starts(&mut self, now: Time) {
        self.withheld = false;
        self.handle_timeout(now);
        self.refuse_circles();
    }

    /// Goes on with numbers above those that were ever given: a place's sequence number and a fence.
    pub fn restore_counters(&mut self, next_seq: u64, next_fence: u64) {
        self.next_seq = self.next_seq.max(next_seq);
        self.next_fence = self.next_fence.max(next_fence);
    }

    /// The next sequence number and fence number, to be stored.
    #[must_use]
    pub fn next_numbers(&self) -> (u64, u64) {
        (self.next_seq, self.next_fence)
    }

    /// Gives a bucket its stored balance; the time that passed since is credited, never a full bucket for nothing.
    ///
    /// # Errors
    /// `UnknownResource` when it is no longer declared.
    pub fn restore_bucket(&mut self, now: Time, name: &str, state: BucketState) -> Result<(), Refusal> {
        self.find(name)?;
        self.advance(now);
        let at = self.number(name);
        if let Store::Bucket(bucket) = &mut self.resources[at].store {
            bucket.restore(state, self.now);
        }
        self.touch(at);
        Ok(())
    }

    /// A waiting claim was delayed once on a resource, before the restart: nothing passes it there any more.
    pub fn restore_delay(&mut self, _id: ClaimId, _resource: &str) {}

    /// Holds a stored lease again, with the units it was given, even if the declaration changed since. Enclosing bodies first.
    ///
    /// # Errors
    /// `UnknownResource` when a name is no longer declared, `InvalidClaim` when the id is in use. Then nothing has changed.
    pub fn restore_lease(&mut self, now: Time, stored: StoredLease<'_>) -> Result<(), Refusal> {
        if self.waiting.contains(&stored.id) || self.leases.contains(&stored.id) {
            return Err(Refusal::InvalidClaim { why: format!("claim {} waits or holds already", stored.id.0) });
        }
        for name in stored.takes.iter().map(|(name, _)| name).chain(stored.covered.iter().map(|(name, ..)| name)) {
            self.find(name)?;
        }
        self.advance(now);
        let takes: Arc<[(ResourceIx, u64)]> =
            stored.takes.iter().map(|(name, units)| (self.number(name), *units)).collect();
        for &(resource, units) in takes.iter() {
            self.resources[resource].holders.insert(stored.started_at, stored.id, units);
        }
        let covered: Box<[_]> =
            stored.covered.iter().map(|(name, units, holder)| (self.number(name), *units, *holder)).collect();
        for &(resource, units, holder) in &covered {
            if let Some(lease) = self.leases.get_mut(&holder) {
                *lease.body_mut().lent.entry(resource).or_default() += units;
            }
        }
        if let Some(parent) = stored.parent
            && let Some(lease) = self.leases.get_mut(&parent)
        {
            lease.body_mut().running.insert(stored.id);
            self.parents.insert(parent);
        }
        let StoredLease { id, fence, priority, parent, place, started_at, .. } = stored;
        let tokens = stored.tokens.iter().map(|(name, units)| (name.as_str().into(), *units)).collect();
        self.leases
            .insert(id, Lease { fence, takes, covered, tokens, parent, priority, place, started_at, body: None });
        self.restore_counters(place.seq.max(place.call) + 1, fence.0 + 1);
        Ok(())
    }
}
