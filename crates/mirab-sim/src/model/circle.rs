//! Circles of bodies that wait for each other: docs/internals/gate.md §8, by reduction.
use super::Model;
use super::records::{Claim, Lease};
use mirab_core::{ClaimId, Refusal};

/// What is left while bodies that wait for nothing end, again and again.
struct Reduction<'a> {
    model: &'a Model,
    leases: Vec<&'a Lease>,
    waiting: Vec<&'a Claim>,
}

impl<'a> Reduction<'a> {
    /// Tokens come by themselves, so of a bucket all that can ever be there is.
    fn free(&self, name: &str) -> i128 {
        let total = i128::from(self.model.amount(name).capacity());
        if self.model.balance(name).is_some() {
            return total;
        }
        total - self.leases.iter().map(|l| i128::from(l.taken(name))).sum::<i128>()
    }

    fn lease_waits(&self, lease: &Lease) -> bool {
        let parent = Some(lease.id);
        self.leases.iter().any(|l| l.parent == parent) || self.waiting.iter().any(|c| c.parent == parent)
    }

    fn waits_for_sisters(&self, c: &Claim) -> bool {
        self.model.covered_needs(c).into_iter().any(|(name, units, holder)| {
            let used: u64 = self.leases.iter().map(|l| l.uses(holder.id, name)).sum();
            used + units > holder.has(name)
                || self.waiting.iter().any(|earlier| self.model.precedes(earlier, c, name, holder))
        })
    }

    /// With the line counted: every claim ahead of it that needs one of its resources.
    fn waits_in_line(&self, c: &Claim) -> bool {
        let names = self.model.open_needs(c);
        let ahead = self.waiting.iter().filter(|h| self.model.rank(h) < self.model.rank(c));
        ahead.into_iter().any(|h| names.iter().any(|(name, _)| self.model.open_need(h, name).is_some()))
    }

    fn claim_waits(&self, c: &Claim, line: bool) -> bool {
        let short = self.model.open_needs(c).into_iter().any(|(name, units)| self.free(name) < i128::from(units));
        short || self.waits_for_sisters(c) || (line && self.waits_in_line(c))
    }

    fn step(&mut self, line: bool) -> bool {
        let lease = self.leases.iter().position(|l| !self.lease_waits(l));
        if let Some(index) = lease {
            self.leases.remove(index);
            return true;
        }
        let claim = self.waiting.iter().position(|c| !self.claim_waits(c, line));
        claim.map(|index| self.waiting.remove(index)).is_some()
    }
}

impl Model {
    /// Claims that can never start though every body that waits for nothing ends; with `line`, a claim also waits for those ahead of it
    /// that need one of its resources. What only a changed total can let go is not counted.
    pub(super) fn stuck(&self, line: bool) -> Vec<&Claim> {
        let waiting = self.waiting.iter().filter(|c| !self.unsatisfiable(c) && !self.paused(c)).collect();
        let mut left = Reduction { model: self, leases: self.leases.iter().collect(), waiting };
        while left.step(line) {}
        left.waiting
    }

    /// Does `other` wait for something that a body around `c` holds or uses, or for `c` to be served before it?
    fn keeps_waiting(&self, c: &Claim, other: &Claim) -> bool {
        let bodies = self.ancestors(c.parent);
        let short = |name: &str, units: u64| !self.is_bucket(name) && !self.is_free(name, units);
        let open = self.open_needs(other).into_iter();
        let held = open.into_iter().any(|(n, units)| short(n, units) && bodies.iter().any(|l| l.taken(n) > 0));
        held || self.covered_needs(other).into_iter().any(|(name, units, holder)| {
            let used_up = self.cover_used(holder, name) + units > holder.has(name);
            (used_up && bodies.iter().any(|l| l.uses(holder.id, name) > 0)) || self.precedes(c, other, name, holder)
        })
    }

    /// Of what can never start: without those, again and again, that keep nobody else waiting. They wait behind a circle, not in one.
    pub(super) fn circle(&self) -> Vec<ClaimId> {
        let mut left = self.stuck(false);
        while let Some(index) =
            left.iter().position(|c| !left.iter().any(|other| other.id != c.id && self.keeps_waiting(c, other)))
        {
            left.remove(index);
        }
        left.into_iter().map(|c| c.id).collect()
    }

    /// The newest task in a circle is refused, until there is none.
    pub(super) fn refuse_circles(&mut self) {
        while !self.restoring {
            let circle = self.circle();
            let newest = self.waiting.iter().filter(|c| circle.contains(&c.id)).max_by_key(|c| c.place.call);
            let Some(id) = newest.map(|c| c.id) else { return };
            self.waiting.retain(|c| c.id != id);
            self.refused.push_back((id, Refusal::ResourceDeadlock { circle: Vec::new() }));
            self.pump();
        }
    }
}
