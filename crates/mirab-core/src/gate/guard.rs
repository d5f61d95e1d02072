//! Protected waiters, and who may pass them: the promise of docs/internals/gate.md §3.
//!
//! On each resource two waiters are protected: the first in rank of all that need it, and the first in rank of those that are short of it
//! and whose promise it decides. All is read from the state as it is; within a step, what was read is kept until something changes.
use super::Gate;
use super::class::{ClassIx, ClassKey};
use super::resource::ResourceIx;
use crate::ids::ClaimId;
use crate::rank::{Head, Rank};
use crate::time::Time;

/// A protected waiter of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub class: ClassIx,
    pub id: ClaimId,
    pub rank: Rank,
    pub need: u64,
    pub outlook: Option<Outlook>,
}

/// What must be known of a protected waiter once not enough for it is left beside another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// Its promise.
    at: Time,
    /// It was delayed here once before.
    strict: bool,
    /// It is short of something else.
    elsewhere: bool,
    /// It is short of this resource, which decides its promise.
    decides: bool,
    /// Units that are expected to be free at its promise (semaphores).
    free_then: i128,
    /// When it starts for certain, if nothing runs longer than of late, once somebody asked.
    sure: Option<Option<Time>>,
}

/// The protected waiters of a resource as they were read at `stamp`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guards {
    stamp: u64,
    list: [Option<Guard>; 2],
}

impl Gate {
    /// The earliest instant at which all that the head of a class needs is expected to be free; `None` when it cannot start as things are.
    pub(super) fn promise(&self, class: ClassIx) -> Option<Time> {
        let class = &self.classes[class];
        if !class.is_startable() {
            return None;
        }
        let mut latest = self.now;
        for &(resource, units) in &class.key.needs {
            latest = latest.max(self.resources[resource].time_of(units, self.now)?);
        }
        Some(latest)
    }

    /// When the head of a class starts at the latest, if nothing runs a quarter longer than its kind did of late.
    fn sure_time(&self, class: ClassIx) -> Option<Time> {
        let mut latest = self.now;
        for &(resource, units) in &self.classes[class].key.needs {
            latest = latest.max(self.resources[resource].sure_time_of(units, self.now)?);
        }
        Some(latest)
    }

    /// True when the head of a class is short of a resource that decides its promise.
    fn decides(&self, class: ClassIx, at: ResourceIx) -> bool {
        let (resource, units) = (&self.resources[at], self.classes[class].units(at));
        if resource.has(units, self.now) {
            return false;
        }
        let promise = self.promise(class);
        promise.is_some() && resource.time_of(units, self.now) == promise
    }

    fn guard(&self, head: Head, at: ResourceIx) -> Guard {
        let (rank, class) = (head.rank(), head.class());
        let need = self.classes[class].units(at);
        Guard { class, id: self.classes[class].head_id(), rank, need, outlook: None }
    }

    /// The first in rank of those that are short of a resource and whose promise it decides, over heads in order.
    fn decider_among(&self, heads: impl Iterator<Item = Head>, at: ResourceIx) -> Option<Guard> {
        let mut heads = heads.filter(|head| self.classes[head.class()].is_startable());
        heads.find(|head| self.decides(head.class(), at)).map(|head| self.guard(head, at))
    }

    /// The same, where some ask for no more than is free: only then somebody could take what it is short of.
    fn decider_on(&self, at: ResourceIx) -> Option<Guard> {
        let line = self.resources[at].line.as_ref()?;
        let (fitting, short) = line.split(self.resources[at].whole_free(self.now));
        if fitting.is_empty() || short.is_empty() {
            return None;
        }
        let startable = short.iter().filter_map(|shelf| Some(shelf.startable.as_ref()?.iter().copied().peekable()));
        let mut shelves: Vec<_> = startable.collect();
        let merged = std::iter::from_fn(|| {
            let heads = shelves.iter_mut().enumerate().filter_map(|(at, heads)| Some((*heads.peek()?, at)));
            let (_, best) = heads.min()?;
            shelves[best].next()
        });
        self.decider_among(merged, at)
    }

    /// The protected waiters of a resource, whoever asks: for explanations.
    pub(super) fn protected(&self, at: ResourceIx) -> impl Iterator<Item = Guard> + use<> {
        let heads = self.heads(at);
        let first = heads.iter().find(|head| self.classes[head.class()].is_startable());
        let first = first.map(|head| self.guard(*head, at));
        let decider = self.decider_among(heads.iter().copied(), at);
        let decider = decider.filter(|decider| first.is_none_or(|first| first.id != decider.id));
        first.into_iter().chain(decider)
    }

    /// The protected waiters of a resource that may rank above `rank`, read again when something has changed since.
    pub(super) fn guards(&mut self, at: ResourceIx, rank: Rank) -> [Option<Guard>; 2] {
        let stamp = self.stamp;
        let known = self.resources[at].line.as_ref().map(|line| (line.guards.stamp == stamp, line.guards.list));
        let Some((is_new, list)) = known else { return [None; 2] };
        if is_new && list[0].is_some() {
            return list;
        }
        let first = self.first_above(at, rank).map(|head| self.guard(head, at));
        let decider = if is_new { list[1] } else { self.decider_on(at) };
        let decider = decider.filter(|other| first.is_none_or(|first| first.id != other.id));
        let list = [first, decider];
        if let Some(line) = self.resources[at].line.as_mut() {
            line.guards = Guards { stamp, list };
        }
        list
    }

    /// The best-ranked of all heads that could start as things are, where it ranks above `rank`.
    pub(super) fn best_above(&self, rank: Rank) -> Option<Head> {
        let mut best = self.tops.best();
        for other in [self.ready.first(), self.held.first()].into_iter().flatten() {
            best = Some(best.map_or(*other, |best| best.min(*other)));
        }
        best.filter(|best| best.rank() < rank)
    }

    /// The first waiter of a resource, if it ranks above `rank`.
    fn first_above(&mut self, at: ResourceIx, rank: Rank) -> Option<Head> {
        let best = self.best_above(rank)?;
        if self.classes[best.class()].key.units(at).is_some() {
            return Some(best);
        }
        let Self { classes, resources, .. } = self;
        resources[at].line.as_mut()?.first(classes).filter(|head| head.rank() < rank)
    }

    /// May the head of `class` take what it needs of a resource now, though the guard ranks above it?
    pub(super) fn may_pass(&mut self, class: ClassIx, at: ResourceIx, index: usize) -> bool {
        let rank = self.classes[class].head;
        let Some(mut guard) = self.guards(at, rank)[index] else { return true };
        if self.leaves_enough(&self.classes[class].key, at, &guard) {
            return true;
        }
        let outlook = match guard.outlook {
            Some(outlook) => outlook,
            None => {
                for &(resource, _) in &std::sync::Arc::clone(&self.classes[guard.class].key).needs {
                    self.resources[resource].holders.prepare(self.now);
                }
                self.outlook(&guard, at)
            }
        };
        let (allowed, outlook) = self.is_allowed(&self.classes[class].key, at, &guard, outlook);
        guard.outlook = Some(outlook);
        if let Some(line) = self.resources[at].line.as_mut() {
            line.guards.list[index] = Some(guard);
        }
        allowed
    }

    /// The same, changing nothing.
    pub(super) fn may_pass_now(&self, key: &ClassKey, at: ResourceIx, guard: &Guard) -> bool {
        self.leaves_enough(key, at, guard) || self.is_allowed(key, at, guard, self.outlook(guard, at)).0
    }

    /// Rule 1: enough for the guard is left beside it.
    fn leaves_enough(&self, key: &ClassKey, at: ResourceIx, guard: &Guard) -> bool {
        let free = i128::from(self.resources[at].free(self.now));
        free - i128::from(key.units(at).unwrap_or(0)) >= i128::from(guard.need)
    }

    fn outlook(&self, guard: &Guard, at: ResourceIx) -> Outlook {
        let resource = &self.resources[at];
        let needs = &self.classes[guard.class].key.needs;
        let promise = self.promise(guard.class).unwrap_or(self.now);
        let short = |(resource, units): &(ResourceIx, u64)| !self.resources[*resource].has(*units, self.now);
        let free_then = if resource.bucket().is_some() { 0 } else { resource.free_at(promise, self.now) };
        Outlook {
            at: promise,
            strict: self.is_strict(guard.id, at),
            elsewhere: needs.iter().any(|need| need.0 != at && short(need)),
            decides: short(&(at, guard.need)) && resource.time_of(guard.need, self.now) == Some(promise),
            free_then,
            sure: None,
        }
    }

    /// Rules 1 (its second half), 2 and 3.
    fn is_allowed(&self, key: &ClassKey, at: ResourceIx, guard: &Guard, outlook: Outlook) -> (bool, Outlook) {
        let resource = &self.resources[at];
        let units = key.units(at).unwrap_or(0);
        let in_time = |longest: Option<u64>| match resource.bucket() {
            // Tokens do not come back: are they refilled by then?
            Some(bucket) => bucket.refills(units, guard.need, outlook.at, self.now),
            None => longest.is_some_and(|longest| self.now.plus(longest) <= outlook.at),
        };
        if outlook.strict {
            let known = self.known(key).map(|(_, longest)| longest);
            return (outlook.elsewhere && (resource.is_pool || in_time(known)), outlook);
        }
        let (_, longest) = self.recent(key);
        let beside = resource.bucket().is_none() && outlook.free_then - i128::from(units) >= i128::from(guard.need);
        let ok = in_time(Some(longest)) || beside;
        if outlook.decides {
            return (ok && key.priority >= self.classes[guard.class].key.priority, outlook);
        }
        if ok || resource.is_pool {
            return (true, outlook);
        }
        if resource.bucket().is_some() && !resource.has(guard.need, self.now) {
            return (false, outlook);
        }
        let sure = outlook.sure.unwrap_or_else(|| self.sure_time(guard.class));
        let within_a_tenth = sure.is_some_and(|sure| {
            let wait = u128::from(sure.since(self.now)) * 10;
            match resource.bucket() {
                Some(bucket) => bucket.takes_longer_to_refill(units, wait),
                None => wait <= u128::from(longest),
            }
        });
        (!within_a_tenth, Outlook { sure: Some(sure), ..outlook })
    }
}
