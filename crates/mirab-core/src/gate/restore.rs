//! Building a gate again from what its host has stored.
use super::Gate;
use super::class::ClassKey;
use super::holders::Holder;
use super::lease::{Body, Lease, More, Span};
use super::resource::ResourceIx;
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
        self.advance(now);
        self.gather_watched();
        self.start_what_may();
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
        let now = self.now;
        if let Some(bucket) = self.resources[at].bucket_mut() {
            bucket.restore(state, now);
        }
        self.touch(at);
        Ok(())
    }

    /// Holds a stored lease again, with the units it was given, even if the declaration changed since. Enclosing bodies first.
    ///
    /// # Errors
    /// `UnknownResource` when a name is no longer declared, `InvalidClaim` when the id is in use. Then nothing has changed.
    pub fn restore_lease(&mut self, now: Time, stored: StoredLease<'_>) -> Result<(), Refusal> {
        if self.claims.contains(&stored.id) {
            return Err(Refusal::InvalidClaim { why: format!("claim {} waits or holds already", stored.id.0) });
        }
        let taken = stored.takes.iter().chain(stored.tokens).map(|(name, _)| name);
        for name in taken.chain(stored.covered.iter().map(|(name, ..)| name)) {
            self.find(name)?;
        }
        self.advance(now);
        let takes = self.numbers(stored.takes);
        let tokens = self.numbers(stored.tokens);
        let StoredLease { id, fence, priority, parent, place, started_at, shortest, longest, .. } = stored;
        let span = Span { started_at, shortest, longest };
        for &(resource, units) in &takes {
            self.resources[resource].holders.insert(fence, Holder { id, units, span });
            self.touch(resource);
        }
        let covered = stored.covered.iter().map(|(name, units, holder)| (self.number(name), *units, *holder)).collect();
        let mut needs: Vec<(ResourceIx, u64)> = takes.iter().chain(&tokens).copied().collect();
        needs.sort_unstable();
        let key = ClassKey { needs, covered, parent, priority, kind: self.kind(stored.kind) };
        let passed = self.known_numbers(stored.passed);
        let more = More { held: Some(takes.into()), tokens, passed, body: Body::default() };
        let lease = Lease { id, fence, key: Arc::new(key), place, span, more: Some(Box::new(more)) };
        let at = self.add_lease(lease);
        self.inside(at);
        self.restore_counters(place.seq.max(place.call).saturating_add(1), fence.0.saturating_add(1));
        Ok(())
    }

    fn numbers(&mut self, units: &[(String, u64)]) -> Vec<(ResourceIx, u64)> {
        units.iter().map(|(name, units)| (self.number(name), *units)).collect()
    }

    /// What was passed on a name that nothing declares any more does not matter any more.
    fn known_numbers(&mut self, passed: &[(ClaimId, String)]) -> Vec<(ClaimId, ResourceIx)> {
        let mut known = Vec::with_capacity(passed.len());
        for (id, name) in passed {
            if self.find(name).is_ok() {
                let at = self.number(name);
                self.touch(at);
                known.push((*id, at));
            }
        }
        known
    }
}
