//! What may start now.
use super::Gate;
use super::class::{Class, ClassIx, Covered, Filed, covered_by};
use super::resource::ResourceIx;
use crate::rank::Rank;
use std::sync::Arc;

/// Where units are free and a promise holds them back, so many of the best waiting classes of that resource are considered.
const CONSIDERED: usize = 256;

/// Whether the head of a class may start.
enum Verdict {
    Start,
    /// Units are missing.
    Short(ResourceIx),
    /// Units are there, but a protected claim must not be passed.
    Held(ResourceIx),
}

impl Gate {
    /// Starts, best rank first, everything that may start, until nothing may.
    pub(super) fn pump(&mut self) {
        if self.withheld {
            self.settle_lines();
            return;
        }
        self.mark_delayed();
        for resource in std::mem::take(&mut self.crowded) {
            if self.resources.contains(resource) {
                self.touch(resource);
            }
        }
        loop {
            while let Some(class) = self.next_to_start() {
                if let Some((seat, _)) = self.classes[class].queue.first() {
                    self.start(class, seat);
                }
            }
            self.passing.clear();
            match self.given_way() {
                Some((class, seat)) => self.start(class, seat),
                None => break,
            }
        }
        self.settle_touched();
    }

    /// Sets timers anew, and forgets what nobody uses any more.
    fn settle_touched(&mut self) {
        self.settle_lines();
        // Taken out and put back empty: its memory serves the next step.
        let mut touched = std::mem::take(&mut self.touched);
        for resource in touched.drain(..) {
            self.resources[resource].touched = false;
            let at = &self.resources[resource];
            if at.line.as_ref().is_some_and(|line| at.bucket().is_some() || line.timer.is_some()) {
                self.rearm(resource);
            }
            self.reap(resource);
        }
        self.touched = touched;
        self.rearm_mixed();
        self.rearm_overruns();
        self.reap_idle();
    }

    /// What getters read of the lines that have changed is right again.
    fn settle_lines(&mut self) {
        let Self { touched, resources, classes, .. } = self;
        for &mut resource in touched {
            if let Some(line) = resources[resource].line.as_mut() {
                line.settle_first(classes, resource);
                line.heads.take();
            }
        }
    }

    /// The best-ranked class whose head may start; those that may not and were to be looked at are filed under what blocks them.
    fn next_to_start(&mut self) -> Option<ClassIx> {
        let mut looked_at = None;
        loop {
            let (rank, class) = self.next_candidate(looked_at)?;
            looked_at = Some((rank, class));
            self.counters.evaluations += 1;
            match self.verdict(class) {
                Verdict::Start => return Some(class),
                Verdict::Short(resource) => self.file(class, Filed::Short(resource)),
                Verdict::Held(resource) => self.file(class, Filed::Held(resource)),
            }
        }
    }

    /// The best-ranked class that may be able to start: one whose head is new, one filed under a touched resource that has enough by now,
    /// or one that is held back, after those that were looked at since the last start.
    fn next_candidate(&self, looked_at: Option<(Rank, ClassIx)>) -> Option<(Rank, ClassIx)> {
        let mut best = self.ready.first().copied();
        let better = |found: (Rank, ClassIx), best: Option<(Rank, ClassIx)>| best.is_none_or(|best| found < best);
        for &at in &self.touched {
            let resource = &self.resources[at];
            let Some(line) = resource.line.as_ref().filter(|line| line.held < CONSIDERED) else { continue };
            if let Some(found) = line.candidate(resource.whole_free(self.now))
                && better(found, best)
            {
                best = Some(found);
            }
        }
        let after = looked_at.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        if !self.held.is_empty()
            && let Some(&found) = self.held.range((after, std::ops::Bound::Unbounded)).next()
            && better(found, best)
        {
            best = Some(found);
        }
        best
    }

    fn verdict(&mut self, class: ClassIx) -> Verdict {
        if let Some(short) = self.short(class) {
            return Verdict::Short(short);
        }
        self.passing.clear();
        let (key, rank) = (Arc::clone(&self.classes[class].key), self.classes[class].head);
        for &(resource, _) in &key.needs {
            for (index, guard) in self.guards(resource).into_iter().enumerate() {
                let Some(guard) = guard.filter(|guard| guard.rank < rank) else { continue };
                if !self.may_pass(class, resource, index) {
                    return Verdict::Held(resource);
                }
                self.passing.push((guard.id, resource));
            }
        }
        Verdict::Start
    }

    /// The first resource that the class needs more of than is free.
    fn short(&self, class: ClassIx) -> Option<ResourceIx> {
        let mut needs = self.classes[class].key.needs.iter();
        needs.find(|(resource, units)| !self.resources[*resource].has(*units, self.now)).map(|(short, _)| *short)
    }

    /// Would the head of a class that is filed under `at` start if it were looked at?
    pub(super) fn could_start(&mut self, class: ClassIx) -> bool {
        let passing = std::mem::take(&mut self.passing);
        let could = matches!(self.verdict(class), Verdict::Start);
        self.passing = passing;
        could
    }

    /// After the head of a class came, went or moved: files it anew, or removes the class when nothing is left of it.
    pub(super) fn head_changed(&mut self, class: ClassIx) {
        self.file(class, Filed::Aside);
        self.set_heads(class, false);
        self.classes[class].startable = false;
        let key = Arc::clone(&self.classes[class].key);
        self.touch_all(&key.needs);
        let Some((seat, _)) = self.classes[class].queue.first() else {
            self.remove_class(class);
            return;
        };
        self.classes[class].head = seat.rank(key.priority, self.options.aging);
        self.refresh(class);
    }

    /// Reads anew whether the head of a class could start as things are, and files it by that.
    pub(super) fn refresh(&mut self, class: ClassIx) {
        let startable = self.is_satisfiable(class) && !self.is_cover_short(class, self.classes[class].head);
        if startable == self.classes[class].startable {
            return;
        }
        self.stamp += 1;
        self.classes[class].startable = startable;
        self.set_heads(class, startable);
        // What is short now stays short until the resource is touched: no need to look at it again in this step.
        let short = || self.short(class).map_or(Filed::Ready, Filed::Short);
        self.file(class, if startable { short() } else { Filed::Aside });
        let key = Arc::clone(&self.classes[class].key);
        self.touch_all(&key.needs);
    }

    pub(super) fn refresh_borrowers(&mut self, covered: &[Covered]) {
        for (_, _, holder) in covered {
            let body = self.lease_of(*holder).and_then(|lease| lease.body.as_ref());
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
            let Some(lease) = self.lease_of(holder) else {
                return false;
            };
            let borrowers = lease.body.iter().flat_map(|body| body.borrowers.iter());
            let wants = |other: &Class| other.head < rank && covered_by(&other.key.covered, resource, holder) > 0;
            lease.lent(resource) + units > lease.has(resource)
                || borrowers.map(|other| &self.classes[*other]).any(wants)
        })
    }

    /// Moves a class from where it is filed to another place.
    pub(super) fn file(&mut self, at: ClassIx, to: Filed) {
        let class = &mut self.classes[at];
        let from = std::mem::replace(&mut class.filed, to);
        if from != to {
            self.unfile(at, from);
            self.file_under(at, to);
        }
    }

    fn unfile(&mut self, at: ClassIx, from: Filed) {
        let class = &self.classes[at];
        let entry = (class.head, at);
        match from {
            Filed::Ready => _ = self.ready.remove(&entry),
            Filed::Short(resource) => {
                let line = self.resources[resource].line.as_mut();
                if let Some(shelf) = line.and_then(|line| line.shelf_mut(class.units(resource))) {
                    shelf.filed.remove(&entry);
                }
            }
            Filed::Held(resource) => {
                self.held.remove(&entry);
                self.held_tasks.remove(&at);
                if let Some(line) = self.resources[resource].line.as_mut() {
                    line.held -= 1;
                }
            }
            Filed::Aside => {}
        }
    }

    fn file_under(&mut self, at: ClassIx, to: Filed) {
        let class = &self.classes[at];
        let entry = (class.head, at);
        match to {
            Filed::Ready => _ = self.ready.insert(entry),
            Filed::Short(resource) => {
                let line = self.resources[resource].line.as_mut();
                if let Some(shelf) = line.and_then(|line| line.shelf_mut(class.units(resource))) {
                    shelf.filed.insert(entry);
                }
            }
            Filed::Held(resource) => {
                self.held.insert(entry);
                if class.key.parent.is_some() {
                    self.held_tasks.insert(at);
                }
                if let Some(line) = self.resources[resource].line.as_mut() {
                    line.held += 1;
                    if line.held >= CONSIDERED {
                        self.crowded.insert(resource);
                    }
                }
            }
            Filed::Aside => {}
        }
    }

    fn set_heads(&mut self, at: ClassIx, on: bool) {
        let Self { classes, resources, .. } = self;
        let class = &classes[at];
        for &(resource, units) in &class.key.needs {
            let Some(line) = resources[resource].line.as_mut() else { continue };
            if let Some(heads) = line.shelf_mut(units).and_then(|shelf| shelf.heads.as_mut()) {
                if on {
                    heads.insert((class.head, at));
                } else {
                    heads.remove(&(class.head, at));
                }
            }
            if on {
                line.note_head(class.head, at, classes);
            }
        }
    }
}
