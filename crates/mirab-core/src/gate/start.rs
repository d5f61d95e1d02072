//! A claim starts: it takes all it needs at once.
use super::Gate;
use super::class::{Claim, Class, ClassIx, ClassKey, Held};
use super::holders::Holder;
use super::lease::{Lease, LeaseIx, More, Span};
use super::line::Started;
use super::resource::ResourceIx;
use crate::api::{Name, Start, Units};
use crate::bucket::BucketState;
use crate::ids::{ClaimId, Fence, Place};
use crate::rank::{Rank, Seat};
use std::sync::Arc;

/// Tokens taken, and what is left of their buckets.
type Tokens = (Vec<(ResourceIx, u64)>, Vec<(Name, BucketState)>);

/// What a start mostly has none of costs nothing then.
fn each<T, U>(all: &[T], tell: impl FnMut(&T) -> U) -> Vec<U> {
    if all.is_empty() { Vec::new() } else { all.iter().map(tell).collect() }
}

impl Gate {
    /// Starts the claim in that seat of a class: its head, or one that a promise gives way to.
    pub(super) fn start(&mut self, class: ClassIx, seat: Seat) {
        let Some(id) = self.classes[class].queue.get(&seat) else { return };
        // First: counting a share waits for all that was written before.
        let Class { key, held, takes, .. } = &self.classes[class];
        let (key, held, takes) = (Arc::clone(key), held.clone(), Units::clone(takes));
        self.waiting -= 1;
        self.classes[class].queue.remove(&seat);
        let rank = seat.rank(key.priority, self.options.aging);
        if !self.is_first {
            self.count_inversion(&key, rank);
        }
        self.forget_delay(id);
        let fence = Fence(self.next_fence.max(1));
        self.next_fence = fence.0.saturating_add(1);
        let known = self.known(&key);
        let (shortest, _) = known.unwrap_or_else(|| self.assumed(&key));
        let longest = known.map(|(_, longest)| longest);
        let span = Span { started_at: self.now, shortest, longest };
        let (tokens, buckets) = self.take(id, fence, span, &key, rank);
        let passed = std::mem::take(&mut self.passing);
        let start = Start {
            id,
            fence,
            at: self.now,
            takes,
            covered: each(&key.covered, |(at, units, by)| (self.name(*at), *units, *by)),
            tokens: each(&tokens, |(at, units)| (self.name(*at), *units)),
            buckets,
            shortest,
            longest,
            passed: each(&passed, |(id, at)| (*id, self.name(*at))),
        };
        self.starts.push_back(start);
        self.counters.starts += 1;
        let is_inside = key.parent.is_some();
        let more = More::of(held, tokens, passed);
        let at = self.add_lease(Lease { id, fence, key, place: Place::default(), span, more });
        if is_inside {
            self.inside(at);
        }
        self.expect_overruns(at);
        self.head_changed(class);
        if is_inside {
            let key = Arc::clone(&self.leases[at].key);
            self.refresh_borrowers(&key.covered);
        }
    }

    pub(super) fn name(&self, at: ResourceIx) -> Name {
        Name::clone(&self.resources[at].name)
    }

    /// Keeps a lease, with what it passed.
    pub(super) fn add_lease(&mut self, lease: Lease) -> LeaseIx {
        let (id, passed) = (lease.id, lease.passed().len());
        for at in lease.tokens().iter().map(|(at, _)| *at).chain(lease.key.covered.iter().map(|(at, ..)| *at)) {
            self.resources[at].users += 1;
        }
        let at = self.leases.insert(lease);
        // A claim that waited keeps its place: it is had where it is overwritten, for a look at it by itself would cost as much again.
        if let Some(Claim::Waits { place, .. }) = self.claims.insert(id, Claim::Holds(at)) {
            self.leases[at].place = place;
        }
        for index in 0..passed {
            let (passed, resource) = self.leases[at].passed()[index];
            self.note_passed(passed, at, resource);
        }
        at
    }

    /// A task runs inside its enclosing body, and uses units that bodies around it hold.
    pub(super) fn inside(&mut self, at: LeaseIx) {
        let (id, key) = (self.leases[at].id, Arc::clone(&self.leases[at].key));
        for &(resource, units, holder) in &key.covered {
            if let Some(lease) = self.lease_of_mut(holder) {
                *lease.body_mut().lent.entry(resource).or_default() += units;
            }
        }
        if let Some(parent) = key.parent
            && let Some(lease) = self.lease_of_mut(parent)
        {
            let body = lease.body_mut();
            body.waiting.remove(&id);
            body.running.insert(id);
            self.parents.insert(parent);
        }
    }

    /// Takes everything at once; gives the tokens taken, and what is left of their buckets.
    fn take(&mut self, id: ClaimId, fence: Fence, span: Span, key: &ClassKey, rank: Rank) -> Tokens {
        let (mut tokens, mut buckets) = (Vec::new(), Vec::new());
        let now = self.now;
        for &(at, units) in &key.needs {
            let resource = &mut self.resources[at];
            if let Some(bucket) = resource.bucket_mut() {
                bucket.take(units, now);
                let state = bucket.state(now);
                buckets.push((Name::clone(&resource.name), state));
                tokens.push((at, units));
            } else {
                resource.holders.insert(fence, Holder { id, units, span });
            }
            if let Some(line) = resource.line.as_mut() {
                line.remember_start(Started { id, rank, fence: fence.0 });
            }
        }
        (tokens, buckets)
    }

    /// Looks whether a better-ranked claim that waits for the same pool could have started: there should be none.
    fn count_inversion(&mut self, key: &ClassKey, rank: Rank) {
        for &(at, _) in &key.needs {
            let resource = &self.resources[at];
            if !resource.is_pool {
                continue;
            }
            let free = resource.whole_free(self.now);
            let first = resource.line.as_ref().and_then(|line| line.candidate(free));
            if let Some(other) = first.filter(|other| other.rank() < rank)
                && self.could_start(other.class())
            {
                self.counters.priority_inversions += 1;
            }
        }
    }

    /// What the claims of a class hold of semaphores once started; by number only where that is not all of their needs.
    pub(super) fn held_by(&self, key: &ClassKey) -> (Option<Held>, Units) {
        let semaphores = key.needs.iter().filter(|(at, _)| self.resources[*at].bucket().is_none()).copied();
        let held: Vec<(ResourceIx, u64)> = semaphores.collect();
        let takes = held.iter().map(|(at, units)| (self.name(*at), *units)).collect();
        ((held.len() < key.needs.len()).then(|| held.into()), takes)
    }
}
