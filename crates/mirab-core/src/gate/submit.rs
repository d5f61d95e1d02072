//! Claims join the line, leave it, or move in it.
use super::Gate;
use super::class::{Class, ClassIx, ClassKey, Covered, Filed, Waiting};
use super::declare::Found;
use super::resource::ResourceIx;
use crate::api::Submission;
use crate::ids::{ClaimId, Place};
use crate::rank::Rank;
use crate::refusal::Refusal;
use crate::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Resolved needs: what must be taken at the gate, and what enclosing bodies hold.
type Resolved = (Vec<(ResourceIx, u64)>, Vec<Covered>);

impl Gate {
    /// Puts a claim in line; it may start in this very step. Gives its place, to be stored with the work.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceExceedsCapacity`, `InvalidResource`, `ResourceOnOtherShard`, and `InvalidClaim` when the id is in
    /// use or the parent holds nothing. Then nothing has changed.
    pub fn submit(&mut self, now: Time, claim: Submission<'_>) -> Result<Place, Refusal> {
        // Everything is checked before anything moves: a refusal changes nothing.
        if self.waiting.contains(&claim.id) || self.leases.contains(&claim.id) {
            return Err(Refusal::InvalidClaim { why: format!("claim {} waits or holds already", claim.id.0) });
        }
        let (needs, covered) = match self.resolve_plain(claim.needs, claim.parent) {
            Some(needs) => (needs, Vec::new()),
            None => {
                self.check(claim.needs, claim.parent, claim.place.is_some())?;
                self.numbered(claim.needs, claim.parent)
            }
        };
        self.advance(now);
        let place = claim.place.unwrap_or_else(|| self.new_place(claim.parent));
        self.next_seq = self.next_seq.max(place.seq + 1).max(place.call + 1);
        let priority =
            claim.parent.and_then(|parent| self.leases.get(&parent)).map_or(claim.priority, |lease| lease.priority);
        let key = ClassKey { needs: needs.into(), covered: covered.into(), parent: claim.parent, priority };
        self.join(claim.id, key, place);
        self.pump();
        if claim.parent.is_some() && self.waiting.contains(&claim.id) {
            self.refuse_circles();
        }
        Ok(place)
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
        let movable = |waiting: &Waiting| self.classes[waiting.class].key.parent.is_none();
        if !self.waiting.get(&id).is_some_and(movable) {
            self.pump();
            return false;
        }
        if let Some((key, place)) = self.leave(id) {
            self.join(id, ClassKey { priority, ..ClassKey::clone(&key) }, place);
        }
        self.pump();
        true
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
        if parent.is_some_and(|parent| !self.leases.contains(&parent)) {
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
                None => (self.most(resource), false),
            },
            Found::Instance(pattern) => (self.patterns.get(pattern).map_or(u64::MAX, |declared| declared.most), false),
        };
        if need > capacity && (held_by_run || !was_in_line) {
            return Err(Refusal::ResourceExceedsCapacity { name: name.into(), need, capacity, held_by_run });
        }
        Ok(())
    }

    /// The most that a new claim may ask for of a resource; an instance of a pattern goes by the pattern.
    fn most(&self, resource: ResourceIx) -> u64 {
        let resource = &self.resources[resource];
        let pattern = resource.pattern.as_ref().and_then(|pattern| self.patterns.get(pattern));
        pattern.map_or_else(|| resource.most(), |declared| declared.most)
    }

    /// The nearest enclosing body that has units of the resource, and how many.
    fn cover(&self, resource: ResourceIx, parent: Option<ClaimId>) -> Option<(ClaimId, u64)> {
        let mut at = parent;
        while let Some(id) = at {
            let lease = self.leases.get(&id)?;
            let has = lease.has(resource);
            if has > 0 {
                return Some((id, has));
            }
            at = lease.parent;
        }
        None
    }

    /// The common case in one pass: work in no run that asks once for each of some existing resources, within their capacity.
    fn resolve_plain(&self, needs: &[(&str, u64)], parent: Option<ClaimId>) -> Option<Vec<(ResourceIx, u64)>> {
        let mut open = Vec::with_capacity(needs.len());
        for &(name, units) in needs {
            let resource = *self.by_name.get(name)?;
            if units == 0 || units > self.most(resource) || open.iter().any(|(of, _)| *of == resource) {
                return None;
            }
            open.push((resource, units));
        }
        open.sort_unstable();
        parent.is_none().then_some(open)
    }

    /// Turns checked names into numbers, sums doubled ones, and makes missing instances of patterns.
    fn numbered(&mut self, needs: &[(&str, u64)], parent: Option<ClaimId>) -> Resolved {
        let (mut open, mut covered): Resolved = (Vec::with_capacity(needs.len()), Vec::new());
        for &(name, units) in needs {
            let resource = self.number(name);
            match self.cover(resource, parent) {
                Some((holder, _)) => match covered.iter_mut().find(|(of, ..)| *of == resource) {
                    Some((_, sum, _)) => *sum = sum.saturating_add(units),
                    None => covered.push((resource, units, holder)),
                },
                None => match open.iter_mut().find(|(of, _)| *of == resource) {
                    Some((_, sum)) => *sum = sum.saturating_add(units),
                    None => open.push((resource, units)),
                },
            }
        }
        open.sort_unstable();
        covered.sort_unstable();
        (open, covered)
    }

    pub(super) fn number(&mut self, name: &str) -> ResourceIx {
        match self.find(name) {
            Ok(Found::Resource(resource)) => resource,
            Ok(Found::Instance(pattern)) => {
                let (pattern, limit) = (pattern.to_owned(), self.patterns[pattern].limit);
                self.add_resource(name.to_owned(), Some(pattern), limit)
            }
            Err(_) => unreachable!("names are checked before they are resolved"),
        }
    }

    fn new_place(&self, parent: Option<ClaimId>) -> Place {
        match parent.and_then(|parent| self.leases.get(&parent)) {
            Some(lease) => Place { seq: lease.place.seq, call: self.next_seq, joined_at: lease.place.joined_at },
            None => Place { seq: self.next_seq, call: 0, joined_at: self.now },
        }
    }

    pub(super) fn join(&mut self, id: ClaimId, key: ClassKey, place: Place) {
        let rank = Rank::new(key.priority, place, self.options.aging);
        if let Some(parent) = key.parent {
            if let Some(lease) = self.leases.get_mut(&parent) {
                lease.body_mut().waiting.insert(id);
            }
            self.parents.insert(parent);
        }
        let class = match self.by_key.get(&key) {
            Some(&class) => class,
            None => self.add_class(key, rank),
        };
        self.waiting.insert(id, Waiting { class, place });
        let key = Arc::clone(&self.classes[class].key);
        let queue = &mut self.classes[class].queue;
        queue.insert(rank, id);
        if queue.first_key_value().is_some_and(|(first, _)| *first == rank) {
            self.head_changed(class);
            // A task that comes back for its next attempt is ahead of siblings that were called after it.
            self.refresh_borrowers(&key.covered);
        }
    }

    /// Takes a waiting claim out of its class; gives what is needed to let it join again.
    pub(super) fn leave(&mut self, id: ClaimId) -> Option<(Arc<ClassKey>, Place)> {
        let Waiting { class, place } = self.waiting.remove(&id)?;
        let rank = Rank::new(self.classes[class].key.priority, place, self.options.aging);
        let key = Arc::clone(&self.classes[class].key);
        let was_head = self.classes[class].head == rank;
        self.classes[class].queue.remove(&rank);
        if let Some(parent) = key.parent {
            self.leave_parent(parent, |body| {
                body.waiting.remove(&id);
            });
        }
        if was_head {
            // It may have been what others were held back for.
            for &(resource, _) in &key.needs {
                self.touch(resource);
            }
            self.head_changed(class);
        }
        self.refresh_borrowers(&key.covered);
        Some((key, place))
    }

    fn add_class(&mut self, key: ClassKey, head: Rank) -> ClassIx {
        let key = Arc::new(key);
        let class =
            Class { key: Arc::clone(&key), queue: BTreeMap::new(), filed: Filed::Aside, head, startable: false };
        let class = self.classes.insert(class);
        self.by_key.insert(Arc::clone(&key), class);
        for &(resource, units) in &key.needs {
            self.resources[resource].shelves.get_or_add(units).members.insert(class);
            self.keep_guards(resource);
            // A bucket's timer may have to be set for it.
            self.touch(resource);
        }
        for (_, _, holder) in &key.covered {
            if let Some(lease) = self.leases.get_mut(holder) {
                lease.body_mut().borrowers.insert(class);
            }
        }
        class
    }

    /// Every shelf above the smallest keeps its guards in order.
    fn keep_guards(&mut self, resource: ResourceIx) {
        for shelf in self.resources[resource].shelves.iter_mut().skip(1) {
            if shelf.guards.is_none() {
                let startable = shelf.members.iter().filter(|class| self.classes[**class].startable);
                shelf.guards = Some(startable.map(|class| (self.classes[*class].head, *class)).collect());
            }
        }
    }

    pub(super) fn remove_class(&mut self, class: ClassIx) {
        let Some(gone) = self.classes.remove(class) else { return };
        self.by_key.remove(&gone.key);
        for &(resource, units) in &gone.key.needs {
            let shelves = &mut self.resources[resource].shelves;
            if let Some(shelf) = shelves.get_mut(units) {
                shelf.members.remove(&class);
                if shelf.members.is_empty() {
                    shelves.remove(units);
                }
            }
            self.touch(resource);
        }
        for (_, _, holder) in &gone.key.covered {
            if let Some(body) = self.leases.get_mut(holder).and_then(|lease| lease.body.as_mut()) {
                body.borrowers.remove(&class);
            }
        }
    }
}
