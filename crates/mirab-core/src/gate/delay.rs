//! Delayed once is enough: what passed a protected waiter, and on which resources nothing passes it any more.
use super::Gate;
use super::class::{Class, ClassIx};
use super::lease::{Lease, LeaseIx};
use super::resource::ResourceIx;
use crate::api::Name;
use crate::ids::{ClaimId, Fence};
use crate::slab::Slab;

/// A lease that passed, and the resource it passed on.
#[derive(Clone, Copy, Debug)]
struct Passer {
    lease: LeaseIx,
    fence: Fence,
    on: ResourceIx,
}

/// A claim that was passed.
#[derive(Clone, Debug, Default)]
pub(super) struct Delay {
    /// What passed it; those that have ended are taken out now and then.
    by: Vec<Passer>,
    /// Resources on which it was delayed once.
    strict: Vec<ResourceIx>,
    /// So many entries of `by` make it worth looking for ended ones.
    crowded: usize,
    /// It is short of this resource, which nothing that passed it could make up for: only what happens there can change that.
    watch: Option<ResourceIx>,
    /// True while it does not wait: it is remembered for the sake of what passed it, should it come back.
    gone: bool,
}

/// Below so many entries it is not worth looking for ended ones.
const FEW: usize = 32;

impl Passer {
    fn lives<'a>(&self, leases: &'a Slab<Lease>) -> Option<&'a Lease> {
        leases.get(self.lease).filter(|lease| lease.fence == self.fence)
    }
}

impl Gate {
    /// A waiting claim was delayed once on a resource, before the restart: nothing passes it there any more.
    pub fn restore_delay(&mut self, id: ClaimId, resource: &str) {
        if self.waiting_of(id).is_some()
            && let Some(&at) = self.by_name.get(resource)
        {
            self.delay_mut(id).strict.push(at);
            self.stamp += 1;
        }
    }

    pub(super) fn is_strict(&self, id: ClaimId, at: ResourceIx) -> bool {
        self.delays.get(&id).is_some_and(|delay| delay.strict.contains(&at))
    }

    /// On which resources a claim was delayed once.
    pub(super) fn strict_of(&self, id: ClaimId) -> Vec<ResourceIx> {
        self.delays.get(&id).map(|delay| delay.strict.clone()).unwrap_or_default()
    }

    /// A claim that moved in the line stays delayed where it was.
    pub(super) fn keep_strict(&mut self, id: ClaimId, strict: Vec<ResourceIx>) {
        if !strict.is_empty() {
            self.delay_mut(id).strict = strict;
        }
    }

    fn delay_mut(&mut self, id: ClaimId) -> &mut Delay {
        if !self.delays.contains(&id) {
            self.delays.insert(id, Delay { gone: self.waiting_of(id).is_none(), ..Delay::default() });
        }
        self.delays.get_mut(&id).expect("put there just now")
    }

    /// A lease passed a claim on a resource.
    pub(super) fn note_passed(&mut self, id: ClaimId, lease: LeaseIx, on: ResourceIx) {
        let passing = &self.leases[lease];
        let (fence, leases) = (passing.fence, &self.leases);
        let Some(delay) = self.delays.get_mut(&id) else {
            self.delay_mut(id).by.push(Passer { lease, fence, on });
            self.newly_passed.push(id);
            return;
        };
        if delay.by.len() >= delay.crowded {
            delay.by.retain(|passer| passer.lives(leases).is_some());
            delay.crowded = FEW.max(delay.by.len() * 2);
        }
        delay.by.push(Passer { lease, fence, on });
        // What it watches stays decisive, unless this lease has units of it.
        let matters = delay.watch.is_none_or(|watch| passing.taken(watch) > 0);
        if matters && !self.newly_passed.contains(&id) {
            self.newly_passed.push(id);
        }
    }

    /// A claim joined the line: it may have been passed when it waited before.
    pub(super) fn remember_delay(&mut self, id: ClaimId) {
        if self.delays.len() > 0
            && let Some(delay) = self.delays.get_mut(&id)
        {
            delay.gone = false;
            self.newly_passed.push(id);
        }
    }

    /// A claim left the line: only what still runs and passed it is remembered, should it come back.
    pub(super) fn forget_delay(&mut self, id: ClaimId) {
        if self.delays.len() == 0 {
            return;
        }
        let Self { delays, leases, resources, .. } = self;
        let Some(delay) = delays.get_mut(&id) else { return };
        if let Some(line) = delay.watch.take().and_then(|watch| resources[watch].line.as_mut()) {
            line.watched.remove(&id);
        }
        delay.strict.clear();
        delay.gone = true;
        delay.by.retain(|passer| passer.lives(leases).is_some());
        if delay.by.is_empty() {
            delays.remove(&id);
        }
    }

    /// A lease ended: what it passed, and does not wait any more, need not be remembered for its sake.
    pub(super) fn forget_passed(&mut self, passed: &[(ClaimId, ResourceIx)]) {
        for (id, _) in passed {
            if self.delays.get(id).is_some_and(|delay| delay.gone) {
                self.forget_delay(*id);
            }
        }
    }

    /// At the begin of a step: who could start but for what passed it is passed there no more.
    pub(super) fn mark_delayed(&mut self) {
        self.gather_watched();
        if self.newly_passed.is_empty() {
            return;
        }
        let mut ids = std::mem::take(&mut self.newly_passed);
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            if let Some(class) = self.waiting_of(id).map(|waiting| waiting.class) {
                self.mark_if_delayed(id, class);
            }
        }
    }

    /// Claims for which what happened in this step may be decisive are to be looked at.
    pub(super) fn gather_watched(&mut self) {
        if self.delays.len() == 0 {
            return;
        }
        for at in &self.touched {
            if let Some(line) = self.resources[*at].line.as_mut()
                && !line.watched.is_empty()
            {
                self.newly_passed.extend(std::mem::take(&mut line.watched));
            }
        }
    }

    fn mark_if_delayed(&mut self, id: ClaimId, class: ClassIx) {
        if self.delays.get(&id).is_none_or(|delay| delay.by.is_empty()) {
            return;
        }
        self.watch(id, None);
        let covered = !self.classes[class].key.covered.is_empty();
        if covered && self.waiting_of(id).is_some_and(|waiting| self.is_cover_short(class, self.rank(waiting))) {
            self.newly_passed.push(id);
            return;
        }
        match self.decisive(id, class) {
            Some(watch) => self.watch(id, Some(watch)),
            None => self.mark_all(id, class),
        }
    }

    /// What a claim is missing of each resource it is short of.
    fn missing(&self, class: &Class) -> impl Iterator<Item = (ResourceIx, u64)> {
        class.key.needs.iter().filter_map(|(at, units)| {
            let missing = i128::from(*units) - i128::from(self.resources[*at].free(self.now));
            u64::try_from(missing).ok().filter(|missing| *missing > 0).map(|missing| (*at, missing))
        })
    }

    /// A resource that it is short of, and nothing that passed it holds enough to make up for.
    fn decisive(&self, id: ClaimId, class: ClassIx) -> Option<ResourceIx> {
        let delay = self.delays.get(&id)?;
        let makes_up = |at: ResourceIx, missing: u64| {
            let mut live = delay.by.iter().filter_map(|passer| passer.lives(&self.leases));
            live.any(|lease| lease.taken(at) >= missing)
        };
        self.missing(&self.classes[class]).find(|(at, missing)| !makes_up(*at, *missing)).map(|(at, _)| at)
    }

    /// Marks what is due; what passed it and cannot be blamed yet is looked at in the next step again.
    fn mark_all(&mut self, id: ClaimId, class: ClassIx) {
        let Some(delay) = self.delays.get(&id) else { return };
        let missing: Vec<(ResourceIx, u64)> = self.missing(&self.classes[class]).collect();
        let (mut due, mut others) = (Vec::new(), false);
        for passer in &delay.by {
            let Some(lease) = passer.lives(&self.leases) else { continue };
            if missing.iter().all(|(at, units)| lease.taken(*at) >= *units) {
                due.push(passer.on);
            } else {
                others = true;
            }
        }
        for at in due {
            if !self.is_strict(id, at) {
                self.delay_mut(id).strict.push(at);
                self.delayed.push_back((id, Name::clone(&self.resources[at].name)));
                self.stamp += 1;
            }
        }
        if others {
            self.newly_passed.push(id);
        }
    }

    fn watch(&mut self, id: ClaimId, watch: Option<ResourceIx>) {
        let Some(delay) = self.delays.get_mut(&id) else { return };
        let before = std::mem::replace(&mut delay.watch, watch);
        if let Some(line) = before.and_then(|at| self.resources[at].line.as_mut()) {
            line.watched.remove(&id);
        }
        if let Some(line) = watch.and_then(|at| self.resources[at].line.as_mut()) {
            line.watched.insert(id);
        }
    }
}
