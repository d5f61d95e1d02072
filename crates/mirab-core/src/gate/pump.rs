//! What may start now.
use super::Gate;
use super::class::{Class, ClassIx, ClassKey, Covered, Filed, covered_by};
use super::lease::Lease;
use super::resource::{ResourceIx, Store};
use crate::api::Start;
use crate::ids::{ClaimId, Fence};
use crate::rank::Rank;
use std::sync::Arc;

/// What keeps a class's head from starting.
enum Block {
    /// Units are missing.
    Short(ResourceIx),
    /// Units are there, but a better-ranked claim is short of the resource.
    Held(ResourceIx),
}

impl Gate {
    /// Starts, best rank first, everything that may start, until nothing may.
    pub(super) fn pump(&mut self) {
        if self.withheld {
            return;
        }
        loop {
            while let Some(class) = self.next_candidate() {
                self.decide(class);
            }
            self.note_held_tasks();
            match self.given_way() {
                Some((class, rank)) => self.start(class, rank),
                None => break,
            }
        }
        // Taken out and put back empty: its memory serves the next step.
        let mut touched = std::mem::take(&mut self.touched);
        for resource in touched.drain(..) {
            self.resources[resource].touched = false;
            self.rearm(resource);
            self.reap(resource);
        }
        self.touched = touched;
        self.reap_idle();
    }

    /// Tasks that were short of a touched resource may fit now, and be held back on it: they may be given way.
    fn note_held_tasks(&mut self) {
        for &at in &self.touched {
            let resource = &self.resources[at];
            let Some((guard, _)) = resource.guard(self.now) else { continue };
            let filed = resource.fitting(self.now).iter().flat_map(|shelf| shelf.filed.range((guard, 0)..));
            let tasks = filed.map(|(_, class)| *class).filter(|class| self.classes[*class].key.parent.is_some());
            self.held_tasks.extend(tasks);
        }
    }

    /// The best-ranked class that may be able to start: one whose head is new, or one filed under a touched resource that no longer
    /// blocks it.
    fn next_candidate(&self) -> Option<ClassIx> {
        let mut best = self.ready.first().copied();
        for &resource in &self.touched {
            if let Some(found) = self.resources[resource].candidate(self.now)
                && best.is_none_or(|best| found < best)
            {
                best = Some(found);
            }
        }
        best.map(|(_, class)| class)
    }

    /// Starts the head of a class, or files the class under what blocks it.
    fn decide(&mut self, class: ClassIx) {
        self.counters.evaluations += 1;
        match self.block(class) {
            None => self.start(class, self.classes[class].head),
            Some(Block::Short(resource)) => self.file(class, Filed::On(resource)),
            Some(Block::Held(resource)) => {
                self.file(class, Filed::On(resource));
                if self.classes[class].key.parent.is_some() {
                    self.held_tasks.insert(class);
                }
            }
        }
    }

    fn block(&self, class: ClassIx) -> Option<Block> {
        if let Some(short) = self.short(class) {
            return Some(Block::Short(short));
        }
        let class = &self.classes[class];
        class
            .key
            .needs
            .iter()
            .find(|(resource, _)| self.is_held(*resource, class.head))
            .map(|(held, _)| Block::Held(*held))
    }

    /// The first resource that the class needs more of than is free.
    fn short(&self, class: ClassIx) -> Option<ResourceIx> {
        let mut needs = self.classes[class].key.needs.iter();
        needs.find(|(resource, units)| !self.resources[*resource].has(*units, self.now)).map(|(short, _)| *short)
    }

    /// True when a claim above `rank` is short of the resource.
    fn is_held(&self, resource: ResourceIx, rank: Rank) -> bool {
        self.resources[resource].guard(self.now).is_some_and(|(guard, _)| guard < rank)
    }

    /// True when nothing that the class needs is short.
    pub(super) fn fits(&self, class: ClassIx) -> bool {
        self.classes[class].startable && self.short(class).is_none()
    }

    fn start(&mut self, class: ClassIx, rank: Rank) {
        let Some(id) = self.classes[class].queue.remove(&rank) else {
            return;
        };
        let Some(waiting) = self.waiting.remove(&id) else {
            return;
        };
        let key = Arc::clone(&self.classes[class].key);
        self.count_inversion(&key, rank);
        let mut start = self.take(id, &key.needs);
        // What is held is what was taken just now, whatever kind of limit it was when the claim joined the line.
        let is_held = |resource: ResourceIx| matches!(self.resources[resource].store, Store::Semaphore { .. });
        let takes = key.needs.iter().copied().filter(|(resource, _)| is_held(*resource)).collect();
        for &(resource, units, holder) in &key.covered {
            if let Some(lease) = self.leases.get_mut(&holder) {
                *lease.body_mut().lent.entry(resource).or_default() += units;
            }
            start.covered.push((self.resources[resource].name.clone(), units, holder));
        }
        if let Some(lease) = key.parent.and_then(|parent| self.leases.get_mut(&parent)) {
            let body = lease.body_mut();
            body.waiting.remove(&id);
            body.running.insert(id);
        }
        let (fence, place, started_at) = (start.fence, waiting.place, self.now);
        let (parent, priority, covered) = (key.parent, key.priority, key.covered.clone());
        let tokens = start.tokens.iter().cloned().collect();
        let lease = Lease { fence, takes, covered, tokens, parent, priority, place, started_at, body: None };
        self.leases.insert(id, lease);
        self.counters.starts += 1;
        self.starts.push_back(start);
        self.head_changed(class);
        self.refresh_borrowers(&key.covered);
    }

    /// Looks whether a better-ranked claim that waits for the same pool could have started: there should be none.
    fn count_inversion(&mut self, key: &ClassKey, rank: Rank) {
        let pools = key.needs.iter().filter(|(resource, _)| self.resources[*resource].is_pool());
        let first = |(pool, _): &(ResourceIx, u64)| {
            self.resources[*pool].fitting(self.now).iter().filter_map(|shelf| shelf.filed.first()).min()
        };
        let overtaken = pools.filter_map(first).filter(|(other, class)| *other < rank && self.block(*class).is_none());
        self.counters.priority_inversions += overtaken.count() as u64;
    }

    /// Takes everything at once, under a new fence number.
    fn take(&mut self, id: ClaimId, needs: &[(ResourceIx, u64)]) -> Start {
        let fence = Fence(self.next_fence.max(1));
        self.next_fence = fence.0 + 1;
        let (mut takes, mut tokens, mut buckets) = (Vec::new(), Vec::new(), Vec::new());
        for &(at, units) in needs {
            let resource = &mut self.resources[at];
            match &mut resource.store {
                Store::Semaphore { .. } => {
                    resource.holders.insert(self.now, id, units);
                    takes.push((resource.name.clone(), units));
                }
                Store::Bucket(bucket) => {
                    bucket.take(units, self.now);
                    buckets.push((resource.name.clone(), bucket.state(self.now)));
                    tokens.push((resource.name.clone(), units));
                    self.touch(at);
                }
            }
        }
        let (takes, tokens, shortest) = (takes.into(), tokens.into(), self.options.assumed_duration);
        let (covered, passed) = (Vec::new(), Vec::new());
        Start { id, fence, at: self.now, takes, covered, tokens, buckets, shortest, longest: None, passed }
    }

    /// After the head of a class came, went or moved: files it anew, or removes the class when nothing is left of it.
    pub(super) fn head_changed(&mut self, class: ClassIx) {
        self.file(class, Filed::Aside);
        self.set_guards(class, false);
        self.classes[class].startable = false;
        let Some((&head, _)) = self.classes[class].queue.first_key_value() else {
            self.remove_class(class);
            return;
        };
        self.classes[class].head = head;
        self.refresh(class);
    }

    /// Reads anew whether the head of a class could start as things are, and files it by that.
    pub(super) fn refresh(&mut self, class: ClassIx) {
        let startable = self.is_satisfiable(class) && !self.is_cover_short(class, self.classes[class].head);
        if startable == self.classes[class].startable {
            return;
        }
        self.set_guards(class, startable);
        self.classes[class].startable = startable;
        // What is short now stays short until the resource is touched: no need to look at it again in this step.
        let short = || self.short(class).map_or(Filed::Ready, Filed::On);
        self.file(class, if startable { short() } else { Filed::Aside });
        if !startable {
            // It may have been what others were held back for.
            for &(resource, _) in &Arc::clone(&self.classes[class].key).needs {
                self.touch(resource);
            }
        }
    }

    pub(super) fn refresh_borrowers(&mut self, covered: &[Covered]) {
        for (_, _, holder) in covered {
            let body = self.leases.get(holder).and_then(|lease| lease.body.as_ref());
            for class in body.map(|body| body.borrowers.clone()).unwrap_or_default() {
                self.refresh(class);
            }
        }
    }

    /// False when a total no longer allows it, or is paused at 0.
    pub(super) fn is_satisfiable(&self, class: ClassIx) -> bool {
        self.classes[class].key.needs.iter().all(|(resource, units)| *units <= self.resources[*resource].capacity())
    }

    /// True when units that an enclosing body holds are in use by its siblings, or an earlier sibling waits for them.
    pub(super) fn is_cover_short(&self, class: ClassIx, rank: Rank) -> bool {
        self.classes[class].key.covered.iter().any(|&(resource, units, holder)| {
            let Some(lease) = self.leases.get(&holder) else {
                return false;
            };
            let borrowers = lease.body.iter().flat_map(|body| body.borrowers.iter());
            let wants = |other: &Class| other.head < rank && covered_by(&other.key.covered, resource, holder) > 0;
            lease.lent(resource) + units > lease.has(resource)
                || borrowers.map(|other| &self.classes[*other]).any(wants)
        })
    }

    /// Moves a class from where it is filed to another place.
    fn file(&mut self, at: ClassIx, to: Filed) {
        let class = &mut self.classes[at];
        let entry = (class.head, at);
        match std::mem::replace(&mut class.filed, to) {
            Filed::Ready => _ = self.ready.remove(&entry),
            Filed::On(resource) => {
                let units = self.classes[at].units(resource);
                if let Some(shelf) = self.resources[resource].shelves.get_mut(units) {
                    shelf.filed.remove(&entry);
                }
                self.held_tasks.remove(&at);
            }
            Filed::Aside => {}
        }
        match to {
            Filed::Ready => _ = self.ready.insert(entry),
            Filed::On(resource) => {
                let units = self.classes[at].units(resource);
                self.resources[resource].shelves.get_or_add(units).filed.insert(entry);
            }
            Filed::Aside => {}
        }
    }

    fn set_guards(&mut self, at: ClassIx, on: bool) {
        let class = &self.classes[at];
        for (resource, units) in &class.key.needs {
            let shelf = self.resources[*resource].shelves.get_mut(*units);
            if let Some(guards) = shelf.and_then(|shelf| shelf.guards.as_mut()) {
                if on {
                    guards.insert((class.head, at));
                } else {
                    guards.remove(&(class.head, at));
                }
            }
        }
    }
}
