//! What may start now.
use super::Gate;
use super::class::{Class, ClassIx, Covered, Filed, covered_by};
use super::line::Line;
use super::resource::ResourceIx;
use crate::rank::{Head, Rank};

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

/// Where a class is to be filed (see [`Filed`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Ready,
    Short(ResourceIx),
    Held(ResourceIx),
    Aside,
}

impl Gate {
    /// Starts, best rank first, everything that may start, until nothing may.
    pub(super) fn pump(&mut self) {
        if self.withheld || self.is_settled() {
            return;
        }
        self.mark_delayed();
        self.start_what_may();
    }

    /// Nothing has come, gone or changed that could let anything start, or set any timer anew: mostly so after a claim has joined.
    fn is_settled(&self) -> bool {
        let nothing_new = self.touched.is_empty() && self.changed.is_empty() && self.ready.is_empty();
        nothing_new
            && self.held.is_empty()
            && self.newly_passed.is_empty()
            && self.crowded.is_empty()
            && self.mixed.is_empty()
            && self.overruns.next().is_none()
            && self.idle.first().is_none_or(|(at, _)| *at > self.now)
    }

    /// The same without looking who was delayed since the last step: after a restart, that is for the next one.
    pub(super) fn start_what_may(&mut self) {
        if !self.crowded.is_empty() {
            for resource in self.crowded.clone() {
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
            self.is_first = false;
            match self.given_way() {
                Some((class, seat)) => self.start(class, seat),
                None => break,
            }
        }
        self.settle_touched();
    }

    /// Sets timers anew, and forgets what nobody uses any more.
    pub(super) fn settle_touched(&mut self) {
        // Taken out and put back empty: its memory serves the next step.
        let mut touched = std::mem::take(&mut self.touched);
        touched.append(&mut self.changed);
        for resource in touched.drain(..) {
            // One that was touched and changed may be gone by now.
            let Some(at) = self.resources.get_mut(resource) else { continue };
            (at.touched, at.changed) = (false, false);
            match at.line.as_ref() {
                Some(line) if at.bucket().is_some() || line.timer.is_some() => self.rearm(resource),
                Some(_) => {}
                None => self.reap(resource),
            }
        }
        self.touched = touched;
        if !self.crowded.is_empty() {
            let Self { crowded, resources, .. } = self;
            crowded.retain(|at| resources[*at].line.as_ref().is_some_and(|line| line.held >= CONSIDERED));
        }
        self.rearm_mixed();
        self.rearm_overruns();
        self.reap_idle();
    }

    /// The best-ranked class whose head may start; those that may not and were to be looked at are filed under what blocks them.
    fn next_to_start(&mut self) -> Option<ClassIx> {
        let mut looked_at = None;
        loop {
            let head = self.next_candidate(looked_at)?;
            let class = head.class();
            looked_at = Some(head);
            self.counters.evaluations += 1;
            match self.verdict(class) {
                Verdict::Start => return Some(class),
                Verdict::Short(resource) => self.file(class, To::Short(resource)),
                Verdict::Held(resource) => self.file(class, To::Held(resource)),
            }
        }
    }

    /// The best-ranked class that may be able to start: one whose head is new, one filed under a touched resource that has enough by now,
    /// or one that is held back, after those that were looked at since the last start.
    fn next_candidate(&mut self, looked_at: Option<Head>) -> Option<Head> {
        let mut best = self.ready.first().copied();
        let better = |found: Head, best: Option<Head>| best.is_none_or(|best| found < best);
        for &at in &self.touched {
            let resource = &self.resources[at];
            let Some(line) = resource.line.as_ref().filter(|line| line.best.is_some() && line.held < CONSIDERED) else {
                continue;
            };
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
        let rank = self.classes[class].head;
        let is_first = self.best_above(rank).is_none();
        self.is_first = is_first;
        for index in 0..self.classes[class].key.needs.len() {
            let (resource, _) = self.classes[class].key.needs[index];
            // Where it ranks first of all, or is the only one, and all ask for the same, nobody is protected from it: the common case.
            let none = |line: &Line| line.shelves.len() == 1 && (is_first || line.startable == 1);
            if self.resources[resource].line.as_ref().is_none_or(|line| none(line)) {
                continue;
            }
            for (index, guard) in self.guards(resource, rank).into_iter().enumerate() {
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
        let (passing, is_first) = (std::mem::take(&mut self.passing), self.is_first);
        let could = matches!(self.verdict(class), Verdict::Start);
        (self.passing, self.is_first) = (passing, is_first);
        could
    }

    /// After the head of a class came, went or moved: files it anew, or lets the class go when nothing is left of it.
    pub(super) fn head_changed(&mut self, class: ClassIx) {
        self.stamp += 1;
        let Class { queue, key, .. } = &self.classes[class];
        let Some((seat, _)) = queue.first() else {
            self.note_change(class);
            self.file(class, To::Aside);
            self.emptied(class);
            return;
        };
        let head = seat.rank(key.priority, self.options.aging);
        let is_inside = !key.covered.is_empty();
        self.note_change(class);
        let old = std::mem::replace(&mut self.classes[class].head, head);
        let to = self.place_for(class);
        self.file_from(class, old, to);
        if is_inside && to != To::Aside {
            self.touch_needs(class);
        }
    }

    /// Reads anew whether the head of a class could start as things are, and files it by that.
    pub(super) fn refresh(&mut self, class: ClassIx) {
        let (to, was) = (self.place_for(class), self.classes[class].is_startable());
        if self.classes[class].queue.is_empty() || was == (to != To::Aside) {
            return;
        }
        self.stamp += 1;
        self.note_change(class);
        self.file(class, to);
        if was || !self.classes[class].key.covered.is_empty() {
            self.touch_needs(class);
        }
    }

    /// Where a class belongs. What is short now stays short until the resource is touched: no need to look at it again in this step.
    fn place_for(&self, class: ClassIx) -> To {
        let Class { key, head, .. } = &self.classes[class];
        let mut to = To::Ready;
        for &(at, units) in &key.needs {
            let resource = &self.resources[at];
            if units > resource.capacity() {
                return To::Aside;
            }
            if to == To::Ready && !resource.has(units, self.now) {
                to = To::Short(at);
            }
        }
        if !key.covered.is_empty() && self.is_cover_short(class, *head) {
            return To::Aside;
        }
        to
    }

    /// What others are held back for, or who was passed, may be another matter now.
    fn touch_needs(&mut self, class: ClassIx) {
        for index in 0..self.classes[class].key.needs.len() {
            self.touch(self.classes[class].key.needs[index].0);
        }
    }

    pub(super) fn refresh_borrowers(&mut self, covered: &[Covered]) {
        for (_, _, holder) in covered {
            let body = self.lease_of(*holder).and_then(|lease| lease.body());
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
            let borrowers = lease.body().into_iter().flat_map(|body| body.borrowers.iter());
            let wants = |other: &Class| other.head < rank && covered_by(&other.key.covered, resource, holder) > 0;
            lease.lent(resource) + units > lease.has(resource)
                || borrowers.map(|other| &self.classes[*other]).any(wants)
        })
    }

    /// Moves a class from where it is filed to another place.
    pub(super) fn file(&mut self, at: ClassIx, to: To) {
        self.file_from(at, self.classes[at].head, to);
    }

    /// The same, where it was filed with another head.
    fn file_from(&mut self, at: ClassIx, old: Rank, to: To) {
        let class = &self.classes[at];
        let (from, old, new) = (class.filed, Head::new(old, at), Head::new(class.head, at));
        match (from, to) {
            (Filed::Short(resource, slot), To::Short(other)) if resource == other => {
                if old != new {
                    self.refile(at, resource, slot, Some(new));
                }
            }
            (Filed::Ready, To::Ready) if old == new => {}
            (Filed::Aside, To::Aside) => {}
            _ => {
                self.unfile(at, from, old);
                self.classes[at].filed = self.file_under(at, to, new);
            }
        }
        let (was, is) = (from != Filed::Aside, to != To::Aside);
        if old != new || was != is {
            self.note_startable(at, was.then_some(old), is.then_some(new));
        }
    }

    fn unfile(&mut self, at: ClassIx, from: Filed, old: Head) {
        match from {
            Filed::Ready => _ = self.ready.remove(&old),
            Filed::Short(resource, slot) => self.refile(at, resource, slot, None),
            Filed::Aside => {}
            Filed::Held(resource) => {
                self.held.remove(&old);
                self.held_tasks.remove(&at);
                if let Some(line) = self.resources[resource].line.as_mut() {
                    line.held -= 1;
                }
            }
        }
    }

    fn file_under(&mut self, at: ClassIx, to: To, head: Head) -> Filed {
        match to {
            To::Aside => Filed::Aside,
            To::Ready => {
                self.ready.insert(head);
                Filed::Ready
            }
            To::Short(resource) => {
                let units = self.classes[at].units(resource);
                let line = self.resources[resource].line.as_mut().expect("the line of a resource that a class needs");
                let (slot, is_new) = line.file(units, head);
                if is_new {
                    self.top_changed(resource);
                }
                Filed::Short(resource, slot)
            }
            To::Held(resource) => {
                self.held.insert(head);
                if self.classes[at].key.parent.is_some() {
                    self.held_tasks.insert(at);
                }
                if let Some(line) = self.resources[resource].line.as_mut() {
                    line.held += 1;
                    if line.held >= CONSIDERED {
                        self.crowded.insert(resource);
                    }
                }
                Filed::Held(resource)
            }
        }
    }

    fn refile(&mut self, at: ClassIx, resource: ResourceIx, slot: u32, head: Option<Head>) {
        let units = self.classes[at].units(resource);
        let Some(line) = self.resources[resource].line.as_mut() else { return };
        if line.refile(units, slot, head) {
            self.top_changed(resource);
        }
    }

    /// The best of those that are filed under a resource may be another one now.
    fn top_changed(&mut self, resource: ResourceIx) {
        let Some(line) = self.resources[resource].line.as_mut() else { return };
        match (line.slot, line.best) {
            (Some(slot), Some(best)) => _ = self.tops.replace(slot, best),
            (None, Some(best)) => line.slot = Some(self.tops.insert(best).0),
            (Some(slot), None) => {
                self.tops.remove(slot);
                line.slot = None;
            }
            (None, None) => {}
        }
    }

    /// The head of a class that could start as things are came, moved or went.
    fn note_startable(&mut self, at: ClassIx, from: Option<Head>, to: Option<Head>) {
        let Self { classes, resources, .. } = self;
        for &(resource, units) in &classes[at].key.needs {
            let Some(line) = resources[resource].line.as_mut() else { continue };
            line.startable = line.startable + usize::from(to.is_some()) - usize::from(from.is_some());
            if line.keeps_order() {
                line.move_startable(units, from, to);
            }
        }
    }

    /// Somebody of a class joined, left or moved: the timers of buckets may have to be set anew.
    pub(super) fn note_change(&mut self, class: ClassIx) {
        let Self { classes, resources, changed, .. } = self;
        if classes[class].held.is_none() {
            // All semaphores.
            return;
        }
        for &(at, _) in &classes[class].key.needs {
            let resource = &mut resources[at];
            if resource.bucket().is_some() && !resource.changed {
                resource.changed = true;
                changed.push(at);
            }
        }
    }
}
