//! When time alone may let something start: tokens that come, and holders that run on while something that fits is held back.
use super::Gate;
use super::lease::{Lease, LeaseIx};
use super::line::Shelf;
use super::resource::ResourceIx;
use crate::ids::Fence;
use crate::rank::Rank;
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Instants at which what is expected of a lease changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Overruns {
    /// Of every lease, while something was held back of late.
    instants: Option<BinaryHeap<Reverse<Instant>>>,
    /// Starts since nothing is held back.
    idle: usize,
    /// The earliest, while something is held back.
    next: Option<Time>,
}

/// When, of which lease, and whether its time has doubled then; else it should have ended for certain.
type Instant = (Time, LeaseIx, Fence, bool);

/// Both kinds of instants of a lease.
fn instants_of(at: LeaseIx, lease: &Lease, now: Time) -> [Reverse<Instant>; 2] {
    let (doubling, sure) = (lease.span.next_doubling(now), lease.span.sure_end().plus(1));
    [Reverse((doubling, at, lease.fence, true)), Reverse((sure, at, lease.fence, false))]
}

impl Overruns {
    pub fn next(&self) -> Option<Time> {
        self.next
    }
}

impl Gate {
    /// Sets the timer of a bucket to when its tokens next reach what may let a waiter start: what it asks for, or that beside what a
    /// protected waiter needs.
    pub(super) fn rearm(&mut self, resource: ResourceIx) {
        let guards = self.guards(resource, Rank::LAST);
        let guards = guards.iter().flatten().map(|guard| (guard.rank, guard.need));
        let next = self.next_tokens(resource, guards.collect());
        let Some(line) = self.resources[resource].line.as_mut() else { return };
        if line.timer != next {
            if let Some(old) = line.timer.take() {
                self.timers.remove(&(old, resource));
            }
            line.timer = next;
            self.timers.extend(next.map(|at| (at, resource)));
        }
        if line.live().nth(1).is_some() {
            self.mixed.insert(resource);
        } else {
            self.mixed.remove(&resource);
        }
    }

    /// Buckets whose protected waiters can change with what happens elsewhere.
    pub(super) fn rearm_mixed(&mut self) {
        if self.mixed.is_empty() {
            return;
        }
        for resource in std::mem::take(&mut self.mixed) {
            if self.resources.get(resource).is_some_and(|resource| resource.bucket().is_some()) {
                self.rearm(resource);
            }
        }
    }

    /// The next instant at which the tokens reach a level that matters.
    fn next_tokens(&self, at: ResourceIx, guards: Vec<(Rank, u64)>) -> Option<Time> {
        let resource = &self.resources[at];
        let (bucket, line) = (resource.bucket()?, resource.line.as_ref()?);
        let ahead = |units: u64| bucket.time_of(units, self.now).filter(|time| *time > self.now);
        let plain = line.live().find_map(|shelf| ahead(shelf.units));
        let beside = guards.into_iter().filter_map(|(rank, need)| {
            let mut shelves = line.live().filter(|shelf| self.has_below(shelf, rank));
            shelves.find_map(|shelf| ahead(shelf.units.saturating_add(need)))
        });
        plain.into_iter().chain(beside).min()
    }

    /// Does anybody who asks for so many rank below?
    fn has_below(&self, shelf: &Shelf, rank: Rank) -> bool {
        shelf.members.iter().any(|class| {
            let class = &self.classes[*class];
            let last = class.queue.last_key().map(|seat| seat.rank(class.key.priority, self.options.aging));
            last.is_some_and(|last| last > rank)
        })
    }

    /// While something that fits is held back, the timer is set to the next instant at which what is expected of a lease changes.
    pub(super) fn rearm_overruns(&mut self) {
        if self.held.is_empty() {
            self.overruns.next = None;
            if self.overruns.instants.as_ref().is_some_and(|instants| self.overruns.idle > instants.len()) {
                self.overruns = Overruns::default();
            }
            return;
        }
        let now = self.now;
        let Self { overruns, leases, .. } = self;
        overruns.idle = 0;
        let instants = overruns
            .instants
            .get_or_insert_with(|| leases.iter().flat_map(|(at, lease)| instants_of(at, lease, now)).collect());
        while let Some(&Reverse((time, at, fence, doubling))) = instants.peek() {
            let lease = leases.get(at).filter(|lease| lease.fence == fence);
            if time > now && lease.is_some() {
                break;
            }
            instants.pop();
            if let Some(lease) = lease
                && doubling
            {
                instants.push(Reverse((lease.span.next_doubling(now), at, fence, true)));
            }
        }
        overruns.next = instants.peek().map(|Reverse((time, ..))| *time);
    }

    /// A lease began.
    pub(super) fn expect_overruns(&mut self, at: LeaseIx) {
        let Self { overruns, leases, now, .. } = self;
        let Some(instants) = overruns.instants.as_mut() else { return };
        instants.extend(instants_of(at, &leases[at], *now));
        overruns.idle += 1;
    }
}
