//! What may start now.
use super::Gate;
use super::class::{Class, ClassIx, Covered, Filed, covered_by};
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

impl Gate {
    /// Starts, best rank first, everything that may start, until nothing may.
    pub(super) fn pump(&mut self) {
        if self.withheld {
            return;
        }
        self.mark_delayed();
        self.start_what_may();
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
            if at.line.as_ref().is_some_and(|line| at.bucket().is_some() || line.timer.is_some()) {
                self.rearm(resource);
            }
            self.reap(resource);
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
                Verdict::Short(resource) => self.file(class, Filed::Short(resource)),
                Verdict::Held(resource) => self.file(class, Filed::Held(resource)),
            }
        }
    }

    /// The best-ranked class that may be able to start: one whose head is new, one filed under a touched resource that has enough by now,
    /// or one that is held back, after those that were looked at since the last start.
    fn next_candidate(&mut self, looked_at: Option<Head>) -> Option<Head> {
        let Self { touched, resources, classes, now, ready, .. } = self;
        let mut best = ready.first().copied();
        let better = |found: Head, best: Option<Head>| best.is_none_or(|best| found < best);
        for &mut at in touched {
            let resource = &mut resources[at];
            let free = resource.whole_free(*now);
            let Some(line) = resource.line.as_mut().filter(|line| free > 0 && line.held < CONSIDERED) else { continue };
            if let Some(found) = line.candidate(free, classes, at)
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
        // Where it ranks first of all, and all ask for the same, nobody is protected from it: the common case.
        let is_first = self.is_first(rank);
        for index in 0..self.classes[class].key.needs.len() {
            let (resource, _) = self.classes[class].key.needs[index];
            if is_first && self.resources[resource].line.as_ref().is_none_or(|line| line.shelves.len() == 1) {
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
        let passing = std::mem::take(&mut self.passing);
        let could = matches!(self.verdict(class), Verdict::Start);
        self.passing = passing;
        could
    }

    /// After the head of a class came, went or moved: files it anew, or lets the class go when nothing is left of it.
    pub(super) fn head_changed(&mut self, class: ClassIx) {
        self.stamp += 1;
        self.file(class, Filed::Aside);
        if std::mem::take(&mut self.classes[class].startable) {
            self.set_startable(class, false);
        }
        let Class { queue, key, .. } = &self.classes[class];
        let Some((seat, _)) = queue.first() else {
            self.note_change(class);
            self.emptied(class);
            return;
        };
        let head = seat.rank(key.priority, self.options.aging);
        self.classes[class].head = head;
        self.refresh(class);
        if !self.classes[class].startable {
            self.note_change(class);
        }
    }

    /// Reads anew whether the head of a class could start as things are, and files it by that.
    pub(super) fn refresh(&mut self, class: ClassIx) {
        let Class { queue, head, startable: was, .. } = &self.classes[class];
        if queue.is_empty() {
            return;
        }
        let (head, was) = (*head, *was);
        let startable = self.is_satisfiable(class) && !self.is_cover_short(class, head);
        if startable == was {
            return;
        }
        self.stamp += 1;
        self.note_change(class);
        self.classes[class].startable = startable;
        self.set_startable(class, startable);
        // What is short now stays short until the resource is touched: no need to look at it again in this step.
        let short = || self.short(class).map_or(Filed::Ready, Filed::Short);
        self.file(class, if startable { short() } else { Filed::Aside });
        if was || !self.classes[class].key.covered.is_empty() {
            // What it was held back for, or who was passed, may be another matter now.
            for index in 0..self.classes[class].key.needs.len() {
                self.touch(self.classes[class].key.needs[index].0);
            }
        }
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
        let entry = Head::new(class.head, at);
        match from {
            Filed::Ready => _ = self.ready.remove(&entry),
            // Its entry there holds no more, which is seen when it is read.
            Filed::Short(_) | Filed::Aside => {}
            Filed::Held(resource) => {
                self.held.remove(&entry);
                self.held_tasks.remove(&at);
                if let Some(line) = self.resources[resource].line.as_mut() {
                    line.held -= 1;
                }
            }
        }
    }

    fn file_under(&mut self, at: ClassIx, to: Filed) {
        let class = &self.classes[at];
        let entry = Head::new(class.head, at);
        match to {
            Filed::Ready => _ = self.ready.insert(entry),
            Filed::Short(resource) => {
                let (units, Self { classes, resources, .. }) = (class.units(resource), self);
                if let Some(line) = resources[resource].line.as_mut() {
                    line.file(entry, units, classes, resource);
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

    /// The head of a class could start as things are, or could not any more.
    fn set_startable(&mut self, at: ClassIx, on: bool) {
        let Self { classes, resources, heads, .. } = self;
        let class = &classes[at];
        let head = Head::new(class.head, at);
        if on {
            if heads.len() > 2 * classes.len() + 64 {
                let startable = classes.iter().filter(|(other, class)| class.startable && *other != at);
                heads.replace(startable.map(|(at, class)| Head::new(class.head, at)));
            }
            heads.push(head);
        }
        for &(resource, units) in &class.key.needs {
            let Some(line) = resources[resource].line.as_mut() else { continue };
            if let Some(startable) = line.shelf_mut(units).and_then(|shelf| shelf.startable.as_mut()) {
                if on {
                    startable.insert(head);
                } else {
                    startable.remove(&head);
                }
            }
            if on {
                line.note_head(head);
            }
        }
    }

    /// Somebody of a class joined, left or moved.
    pub(super) fn note_change(&mut self, class: ClassIx) {
        let Self { classes, resources, changed, .. } = self;
        for &(at, _) in &classes[class].key.needs {
            let resource = &mut resources[at];
            if let Some(line) = resource.line.as_mut() {
                line.changed();
            }
            if resource.bucket().is_some() && !resource.changed {
                resource.changed = true;
                changed.push(at);
            }
        }
    }
}
