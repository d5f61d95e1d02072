//! Delayed once is enough: what passed a protected waiter, and on which resources nothing passes it any more.
use super::Gate;
use super::lease::LeaseIx;
use super::resource::ResourceIx;
use crate::api::Name;
use crate::ids::{ClaimId, Fence};

/// A claim that was passed.
#[derive(Clone, Debug, Default)]
pub(super) struct Delay {
    /// Leases that passed it, with the resource they passed it on; those that have ended are taken out now and then.
    by: Vec<(LeaseIx, Fence, ResourceIx)>,
    /// Resources on which it was delayed once.
    strict: Vec<ResourceIx>,
    /// So many entries of `by` make it worth looking for ended ones.
    crowded: usize,
}

/// Below so many entries it is not worth looking for ended ones.
const FEW: usize = 32;

impl Gate {
    /// A waiting claim was delayed once on a resource, before the restart: nothing passes it there any more.
    pub fn restore_delay(&mut self, id: ClaimId, resource: &str) {
        if self.waiting.contains(&id)
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
            self.delays.insert(id, Delay { crowded: FEW, ..Delay::default() });
        }
        self.delays.get_mut(&id).expect("put there just now")
    }

    /// A lease passed a waiting claim on a resource.
    pub(super) fn note_passed(&mut self, id: ClaimId, lease: LeaseIx, fence: Fence, at: ResourceIx) {
        self.delay_mut(id);
        let leases = &self.leases;
        let Some(delay) = self.delays.get_mut(&id) else { return };
        if delay.by.len() >= delay.crowded {
            delay.by.retain(|(lease, fence, _)| leases.get(*lease).is_some_and(|lease| lease.fence == *fence));
            delay.crowded = FEW.max(delay.by.len() * 2);
        }
        delay.by.push((lease, fence, at));
        if !self.newly_passed.contains(&id) {
            self.newly_passed.push(id);
        }
    }

    /// A claim joined the line: it may have been passed when it waited before.
    pub(super) fn remember_delay(&mut self, id: ClaimId) {
        if self.delays.contains(&id) {
            self.newly_passed.push(id);
        }
    }

    /// A claim left the line: only what still runs and passed it is remembered, should it come back.
    pub(super) fn forget_delay(&mut self, id: ClaimId, needs: &[(ResourceIx, u64)]) {
        let Some(delay) = self.delays.get_mut(&id) else { return };
        for (at, _) in needs {
            if let Some(line) = self.resources[*at].line.as_mut() {
                line.passed_over.remove(&id);
            }
        }
        delay.strict.clear();
        let leases = &self.leases;
        delay.by.retain(|(lease, fence, _)| leases.get(*lease).is_some_and(|lease| lease.fence == *fence));
        if delay.by.is_empty() {
            self.delays.remove(&id);
        }
    }

    /// A lease ended: what it passed, and does not wait any more, need not be remembered for its sake.
    pub(super) fn forget_passed(&mut self, passed: &[(ClaimId, ResourceIx)]) {
        for (id, _) in passed {
            if !self.waiting.contains(id) {
                self.forget_delay(*id, &[]);
            }
        }
    }

    /// At the begin of a step: who could start but for what passed it is passed there no more.
    pub(super) fn mark_delayed(&mut self) {
        let mut ids = std::mem::take(&mut self.newly_passed);
        for id in &ids {
            let Some(class) = self.waiting.get(id).map(|waiting| waiting.class) else { continue };
            for (at, _) in &self.classes[class].key.needs {
                if let Some(line) = self.resources[*at].line.as_mut() {
                    line.passed_over.insert(*id);
                }
            }
        }
        for at in &self.touched {
            ids.extend(self.resources[*at].line.iter().flat_map(|line| line.passed_over.iter().copied()));
        }
        ids.sort_unstable();
        ids.dedup();
        for id in ids.drain(..) {
            self.mark_if_delayed(id);
        }
        self.newly_passed = ids;
    }

    fn mark_if_delayed(&mut self, id: ClaimId) {
        let (Some(waiting), Some(delay)) = (self.waiting.get(&id), self.delays.get(&id)) else { return };
        let class = &self.classes[waiting.class];
        let rank = self.rank(waiting);
        if delay.by.is_empty() || (!class.key.covered.is_empty() && self.is_cover_short(waiting.class, rank)) {
            return;
        }
        let missing = |(at, units): &(ResourceIx, u64)| {
            let free = i128::from(self.resources[*at].free(self.now));
            u64::try_from(i128::from(*units) - free).ok().filter(|missing| *missing > 0).map(|missing| (*at, missing))
        };
        let missing: Vec<(ResourceIx, u64)> = class.key.needs.iter().filter_map(missing).collect();
        if missing.iter().any(|(at, _)| self.resources[*at].bucket().is_some()) {
            return;
        }
        let makes_up = |(lease, fence, at): &(LeaseIx, Fence, ResourceIx)| {
            let lease = self.leases.get(*lease).filter(|lease| lease.fence == *fence)?;
            missing.iter().all(|(short, units)| lease.takes(*short) >= *units).then_some(*at)
        };
        let marked: Vec<ResourceIx> = delay.by.iter().filter_map(makes_up).collect();
        for at in marked {
            self.mark(id, at);
        }
    }

    fn mark(&mut self, id: ClaimId, at: ResourceIx) {
        if !self.is_strict(id, at) {
            self.delay_mut(id).strict.push(at);
            self.delayed.push_back((id, Name::clone(&self.resources[at].name)));
            self.stamp += 1;
        }
    }
}
