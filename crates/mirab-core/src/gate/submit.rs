//! Claims join the line, leave it, or move in it.
use super::Gate;
use super::class::{Claim, Class, ClassIx, ClassKey, Filed, Waiting};
use super::declare::Found;
use super::queue::SortedQueue;
use super::resource::ResourceIx;
use crate::api::Submission;
use crate::ids::{ClaimId, Place};
use crate::rank::{Rank, Seat};
use crate::refusal::Refusal;
use crate::time::Time;
use std::sync::Arc;

impl Gate {
    /// Puts a claim in line; it may start in this very step. Gives its place, to be stored with the work.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceExceedsCapacity`, `InvalidResource`, `ResourceOnOtherShard`, and `InvalidClaim` when the id is in
    /// use or the parent holds nothing. Then nothing has changed.
    pub fn submit(&mut self, now: Time, claim: Submission<'_>) -> Result<Place, Refusal> {
        // Everything is checked before anything moves: a refusal changes nothing.
        if self.claims.contains(&claim.id) {
            return Err(Refusal::InvalidClaim { why: format!("claim {} waits or holds already", claim.id.0) });
        }
        let mut key = std::mem::take(&mut self.asked);
        let numbered = self.number_needs(&mut key, &claim);
        if let Err(refusal) = numbered {
            self.asked = key;
            return Err(refusal);
        }
        self.advance(now);
        let place = claim.place.unwrap_or_else(|| self.new_place(claim.parent));
        self.next_seq = self.next_seq.max(place.seq.saturating_add(1)).max(place.call.saturating_add(1));
        let parent = claim.parent.and_then(|parent| self.lease_of(parent));
        key.priority = parent.map_or(claim.priority, |lease| lease.key.priority);
        key.parent = claim.parent;
        // Mostly it is of the same kind as the one before.
        if !self.is_kind(key.kind, claim.kind) {
            key.kind = self.kind(claim.kind);
        }
        self.join(claim.id, &key, place);
        self.asked = key;
        self.pump();
        if claim.parent.is_some() && self.waiting_of(claim.id).is_some() {
            self.refuse_circles();
        }
        Ok(place)
    }

    /// Writes what a claim asks for into a key, by number.
    fn number_needs(&mut self, key: &mut ClassKey, claim: &Submission<'_>) -> Result<(), Refusal> {
        key.needs.clear();
        key.covered.clear();
        if claim.parent.is_none() && self.resolve_plain(claim.needs, &mut key.needs) {
            return Ok(());
        }
        key.needs.clear();
        self.check(claim.needs, claim.parent, claim.place.is_some())?;
        self.resolve_checked(claim.needs, claim.parent, key);
        Ok(())
    }

    /// Takes a waiting claim out of the line. False when it does not wait.
    pub fn cancel(&mut self, now: Time, id: ClaimId) -> bool {
        self.advance(now);
        let left = self.leave(id).is_some();
        self.pump();
        left
    }

    /// Gives a waiting claim another priority; it keeps its place among equals. False when it does not wait or is inside a run.
    pub fn reprioritise(&mut self, now: Time, id: ClaimId, priority: i32) -> bool {
        self.advance(now);
        let movable = |waiting: Waiting| self.classes[waiting.class].key.parent.is_none();
        if !self.waiting_of(id).is_some_and(movable) {
            self.pump();
            return false;
        }
        self.move_to(id, priority);
        self.pump();
        true
    }

    fn move_to(&mut self, id: ClaimId, priority: i32) {
        let Some(Waiting { class, place, joined }) = self.waiting_of(id) else { return };
        if self.classes[class].key.priority == priority {
            return;
        }
        let key = ClassKey { priority, ..ClassKey::clone(&self.classes[class].key) };
        // Before it leaves, so that the lines it stands in go on.
        if !self.by_key.contains(&key) {
            self.add_class(&key, Rank::new(priority, place, self.options.aging));
        }
        let strict = self.strict_of(id);
        self.leave(id);
        self.join(id, &key, place);
        self.keep_strict(id, strict);
        if let Some(Claim::Waits { joined: again, .. }) = self.claims.get_mut(&id) {
            *again = joined;
        }
    }

    /// Checks what a claim asks for, as a submission would, and changes nothing.
    ///
    /// # Errors
    /// The same as for [`Gate::submit`].
    pub fn check_needs(&self, needs: &[(&str, u64)], parent: Option<ClaimId>) -> Result<(), Refusal> {
        self.check(needs, parent, false)
    }

    /// Work that was in line before may ask for more than a total that was lowered since: it waits, and is told to be unsatisfiable.
    fn check(&self, needs: &[(&str, u64)], parent: Option<ClaimId>, was_in_line: bool) -> Result<(), Refusal> {
        if parent.is_some_and(|parent| self.lease_ix(parent).is_none()) {
            return Err(Refusal::InvalidClaim { why: "the enclosing body holds no lease any more".into() });
        }
        for (at, &(name, units)) in needs.iter().enumerate() {
            if units == 0 {
                return Err(Refusal::invalid(name, "0 units were asked for, expected a whole number of at least 1"));
            }
            if needs[..at].iter().any(|(earlier, _)| *earlier == name) {
                continue;
            }
            let need =
                needs[at..].iter().filter(|(other, _)| *other == name).fold(0u64, |sum, (_, u)| sum.saturating_add(*u));
            self.check_amount(name, need, parent, was_in_line)?;
        }
        Ok(())
    }

    fn check_amount(&self, name: &str, need: u64, parent: Option<ClaimId>, was_in_line: bool) -> Result<(), Refusal> {
        let (capacity, held_by_run) = match self.find(name)? {
            Found::Resource(resource) => match self.cover(resource, parent) {
                Some((_, held)) => (held, true),
                None => (self.most_of(resource), false),
            },
            Found::Instance(pattern) => (self.declared[pattern].most, false),
        };
        if need > capacity && (held_by_run || !was_in_line) {
            return Err(Refusal::ResourceExceedsCapacity { name: name.into(), need, capacity, held_by_run });
        }
        Ok(())
    }

    /// The most that a new claim may ask for of a resource.
    fn most_of(&self, resource: ResourceIx) -> u64 {
        self.declared[self.resources[resource].declared].most
    }

    /// The nearest enclosing body that has units of the resource, and how many. Units that were held before it became a bucket are shared on.
    fn cover(&self, resource: ResourceIx, parent: Option<ClaimId>) -> Option<(ClaimId, u64)> {
        let mut at = parent;
        while let Some(id) = at {
            let lease = self.lease_of(id)?;
            let has = lease.has(resource);
            if has > 0 {
                return Some((id, has));
            }
            at = lease.key.parent;
        }
        None
    }

    /// The common case in one pass: work in no run that asks once for each of some existing resources, within their capacity. False where
    /// it is not that common.
    fn resolve_plain(&mut self, needs: &[(&str, u64)], open: &mut Vec<(ResourceIx, u64)>) -> bool {
        for (at, &(name, units)) in needs.iter().enumerate() {
            let Some(resource) = self.existing(at, name) else { return false };
            if units == 0 || units > self.most_of(resource) {
                return false;
            }
            open.push((resource, units));
            // There are few, and most stand in their order.
            let mut place = open.len() - 1;
            while place > 0 && open[place - 1].0 > resource {
                open.swap(place - 1, place);
                place -= 1;
            }
            if place > 0 && open[place - 1].0 == resource {
                return false;
            }
        }
        true
    }

    /// The resource of a name. Claims mostly ask for what the one before asked for in the same place: then its name is not looked up.
    fn existing(&mut self, at: usize, name: &str) -> Option<ResourceIx> {
        let before = self.asked_at.get(at).copied();
        if let Some(same) = before.filter(|before| self.resources.get(*before).is_some_and(|is| *is.name == *name)) {
            return Some(same);
        }
        let found = *self.by_name.get(name)?;
        match self.asked_at.get_mut(at) {
            Some(before) => *before = found,
            None => self.asked_at.push(found),
        }
        Some(found)
    }

    /// Turns checked names into numbers, sums doubled ones, and makes missing instances of patterns.
    fn resolve_checked(&mut self, needs: &[(&str, u64)], parent: Option<ClaimId>, key: &mut ClassKey) {
        for &(name, units) in needs {
            let resource = self.number(name);
            match self.cover(resource, parent) {
                Some((holder, _)) => match key.covered.iter_mut().find(|(of, ..)| *of == resource) {
                    Some((_, sum, _)) => *sum = sum.saturating_add(units),
                    None => key.covered.push((resource, units, holder)),
                },
                None => match key.needs.iter_mut().find(|(of, _)| *of == resource) {
                    Some((_, sum)) => *sum = sum.saturating_add(units),
                    None => key.needs.push((resource, units)),
                },
            }
        }
        key.needs.sort_unstable();
        key.covered.sort_unstable();
    }

    pub(super) fn number(&mut self, name: &str) -> ResourceIx {
        match self.find(name) {
            Ok(Found::Resource(resource)) => resource,
            Ok(Found::Instance(pattern)) => {
                let limit = self.declared[pattern].limit;
                self.add_resource(name.into(), pattern, limit)
            }
            Err(_) => unreachable!("names are checked before they are resolved"),
        }
    }

    fn new_place(&self, parent: Option<ClaimId>) -> Place {
        match parent.and_then(|parent| self.lease_of(parent)) {
            Some(lease) => Place { call: self.next_seq, ..lease.place },
            None => Place { seq: self.next_seq, call: 0, joined_at: self.now },
        }
    }

    fn join(&mut self, id: ClaimId, key: &ClassKey, place: Place) {
        let (seat, rank) = (Seat::new(place, self.options.aging), Rank::new(key.priority, place, self.options.aging));
        if let Some(parent) = key.parent {
            if let Some(lease) = self.lease_of_mut(parent) {
                lease.body_mut().waiting.insert(id);
            }
            self.parents.insert(parent);
        }
        let class = match self.by_key.get(key) {
            Some(&class) => class,
            None => self.add_class(key, rank),
        };
        self.claims.insert(id, Claim::Waits { class, place, joined: self.next_fence });
        self.waiting += 1;
        self.remember_delay(id);
        if self.classes[class].queue.is_empty() {
            self.count_live(class, true);
        }
        if self.classes[class].enqueue(seat, id) {
            self.head_changed(class);
            // A task that comes back for its next attempt is ahead of siblings that were called after it.
            self.refresh_borrowers(&key.covered);
        } else {
            self.note_change(class);
        }
    }

    /// Takes a waiting claim out of its class; gives what is needed to let it join again.
    pub(super) fn leave(&mut self, id: ClaimId) -> Option<(Arc<ClassKey>, Waiting)> {
        let waiting = self.waiting_of(id)?;
        let Waiting { class, place, .. } = waiting;
        self.claims.remove(&id);
        self.waiting -= 1;
        let key = Arc::clone(&self.classes[class].key);
        let seat = Seat::new(place, self.options.aging);
        let was_head = self.classes[class].queue.first().is_some_and(|(first, _)| first == seat);
        self.classes[class].queue.remove(&seat);
        self.forget_delay(id);
        if let Some(parent) = key.parent {
            self.leave_parent(parent, |body| {
                body.waiting.remove(&id);
            });
        }
        if was_head {
            self.head_changed(class);
        } else {
            self.note_change(class);
        }
        self.refresh_borrowers(&key.covered);
        Some((key, waiting))
    }

    fn add_class(&mut self, key: &ClassKey, head: Rank) -> ClassIx {
        let (held, takes) = self.held_by(key);
        let key = Arc::new(key.clone());
        let (queue, filed) = (SortedQueue::default(), Filed::Aside);
        let class = Class { key: Arc::clone(&key), held, takes, queue, newest: None, filed, head, kept: false };
        let class = self.classes.insert(class);
        self.by_key.insert(Arc::clone(&key), class);
        let Self { resources, classes, .. } = self;
        for &(resource, units) in &key.needs {
            resources[resource].line.get_or_insert_default().add(class, units, classes);
        }
        for (_, _, holder) in &key.covered {
            if let Some(lease) = self.lease_of_mut(*holder) {
                lease.body_mut().borrowers.insert(class);
            }
        }
        class
    }

    pub(super) fn remove_class(&mut self, class: ClassIx) {
        let Some(gone) = self.classes.remove(class) else { return };
        self.by_key.remove(&gone.key);
        for &(resource, units) in &gone.key.needs {
            let slot = &mut self.resources[resource].line;
            let Some(line) = slot.as_mut() else { continue };
            line.remove(class, units);
            if line.shelves.is_empty() {
                if let Some(timer) = line.timer {
                    self.timers.remove(&(timer, resource));
                }
                *slot = None;
                self.mixed.remove(&resource);
                self.crowded.remove(&resource);
                // Nobody may use it any more.
                self.touch(resource);
            }
        }
        for (_, _, holder) in &gone.key.covered {
            if let Some(body) = self.lease_of_mut(*holder).map(super::lease::Lease::body_mut) {
                body.borrowers.remove(&class);
            }
        }
    }
}
