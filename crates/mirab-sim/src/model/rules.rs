//! Who may start: docs/internals/gate.md §2, §3 and §8, by looking at everything every time.
use super::Model;
use super::records::{Balance, Claim, Lease, Started};
use crate::amount::Amount;
use mirab_core::{ClaimId, Fence, Place};

impl Model {
    /// Smaller goes first. A task inside a run has its run's priority and place, and its own order of call.
    pub(super) fn rank(&self, c: &Claim) -> (i128, u64, u64) {
        self.rank_of(c.priority, c.place)
    }

    fn rank_of(&self, priority: i32, place: Place) -> (i128, u64, u64) {
        let priority = i128::from(priority);
        let first = match self.aging {
            None => -priority,
            Some(aging) => i128::from(place.joined_at.0) - priority * i128::from(aging),
        };
        (first, place.seq, place.call)
    }

    /// Does work of this priority and place go before that of the other?
    #[must_use]
    pub fn ranks_above(&self, priority: i32, place: Place, than: i32, other: Place) -> bool {
        self.rank_of(priority, place) < self.rank_of(than, other)
    }

    pub(super) fn by_rank(&self) -> Vec<&Claim> {
        let mut line: Vec<&Claim> = self.waiting.iter().collect();
        line.sort_by_key(|c| self.rank(c));
        line
    }

    /// The enclosing bodies of a claim or lease, nearest first.
    pub(super) fn ancestors(&self, parent: Option<ClaimId>) -> Vec<&Lease> {
        let mut found = Vec::new();
        let mut next = parent;
        while let Some(lease) = next.and_then(|id| self.leases.iter().find(|l| l.id == id)) {
            found.push(lease);
            next = lease.parent;
        }
        found
    }

    /// Is something with that parent inside `body`, at any depth?
    pub(super) fn is_inside(&self, parent: Option<ClaimId>, body: ClaimId) -> bool {
        parent == Some(body) || self.ancestors(parent).into_iter().any(|l| l.parent == Some(body))
    }

    /// The nearest enclosing body that has units of this name.
    pub(super) fn coverer(&self, parent: Option<ClaimId>, name: &str) -> Option<&Lease> {
        self.ancestors(parent).into_iter().find(|l| l.has(name) > 0)
    }

    /// What a claim must take at the gate.
    pub(super) fn open_needs<'a>(&self, c: &'a Claim) -> Vec<(&'a str, u64)> {
        let open = c.needs.iter().filter(|(name, _)| self.coverer(c.parent, name).is_none());
        open.map(|(name, units)| (name.as_str(), *units)).collect()
    }

    /// What it shares of the units that enclosing bodies hold.
    pub(super) fn covered_needs<'a>(&'a self, c: &'a Claim) -> Vec<(&'a str, u64, &'a Lease)> {
        let covered = |(name, units): &'a (String, u64)| Some((name.as_str(), *units, self.coverer(c.parent, name)?));
        c.needs.iter().filter_map(covered).collect()
    }

    pub(super) fn open_need(&self, c: &Claim, name: &str) -> Option<u64> {
        self.open_needs(c).into_iter().find(|(needed, _)| *needed == name).map(|(_, units)| units)
    }

    /// `earlier` was called before `c` and wants the same name of the same body: in order of call, it goes first.
    pub(super) fn precedes(&self, earlier: &Claim, c: &Claim, name: &str, holder: &Lease) -> bool {
        let same_body = self.covered_needs(earlier).iter().any(|(n, _, by)| *n == name && by.id == holder.id);
        same_body && earlier.place.call < c.place.call
    }

    pub(super) fn cover_used(&self, holder: &Lease, name: &str) -> u64 {
        self.leases.iter().map(|l| l.uses(holder.id, name)).sum()
    }

    /// Is this covered need not to be had now?
    pub(super) fn cover_short_on(&self, c: &Claim, name: &str, units: u64, holder: &Lease) -> bool {
        let behind = self.waiting.iter().any(|earlier| self.precedes(earlier, c, name, holder));
        behind || self.cover_used(holder, name) + units > holder.has(name)
    }

    pub(super) fn cover_short(&self, c: &Claim) -> bool {
        self.covered_needs(c).into_iter().any(|(name, units, holder)| self.cover_short_on(c, name, units, holder))
    }

    // resources ----------------------------------------------------------------------------------------------------
    pub(super) fn amount(&self, name: &str) -> Amount {
        self.declaration(name).map_or(Amount::Semaphore(0), |d| d.amount)
    }

    pub(super) fn used(&self, name: &str) -> u64 {
        self.leases.iter().map(|l| l.taken(name)).sum()
    }

    /// The bucket as it is; one that was never touched is full.
    pub(super) fn balance(&self, name: &str) -> Option<Balance> {
        let known = self.balances.iter().find(|b| b.name == name).cloned();
        known.or_else(|| Balance::full(name, self.amount(name), self.now))
    }

    /// Free units; whole tokens for a bucket.
    pub(super) fn free(&self, name: &str) -> i128 {
        match self.balance(name) {
            Some(bucket) => self.usable(&bucket).div_euclid(bucket.scale),
            None => i128::from(self.amount(name).capacity()) - i128::from(self.used(name)),
        }
    }

    pub(super) fn is_free(&self, name: &str, units: u64) -> bool {
        self.free(name) >= i128::from(units)
    }

    // the rules ----------------------------------------------------------------------------------------------------
    pub(super) fn unsatisfiable(&self, c: &Claim) -> bool {
        self.open_needs(c).iter().any(|(name, units)| *units > self.amount(name).capacity() && !self.is_paused(name))
    }

    pub(super) fn paused(&self, c: &Claim) -> bool {
        self.open_needs(c).iter().any(|(name, _)| self.is_paused(name))
    }

    pub(super) fn is_paused(&self, name: &str) -> bool {
        self.amount(name).capacity() == 0
    }

    pub(super) fn fits(&self, c: &Claim) -> bool {
        !self.cover_short(c) && self.open_needs(c).into_iter().all(|(name, units)| self.is_free(name, units))
    }

    pub(super) fn can_start(&self, c: &Claim) -> bool {
        self.fits(c) && self.passes(c).is_some()
    }

    /// Starts whatever may start, best rank first; where nothing may, a line gives way to a task whose waiting would close a circle.
    pub(super) fn pump(&mut self) {
        if !self.restoring {
            self.mark_delayed();
        }
        self.start_what_may();
    }

    /// The same without looking who was delayed since the last step: after a restart, that is for the next one.
    pub(super) fn start_what_may(&mut self) {
        while !self.restoring {
            let next = self.by_rank().into_iter().find(|c| self.can_start(c)).or_else(|| self.given_way());
            let Some(id) = next.map(|c| c.id) else { return };
            self.start(id);
        }
    }

    /// A task inside a run that fits, but is held back by one that waits, through any chain, for that very run.
    fn given_way(&self) -> Option<&Claim> {
        let stuck = self.stuck(true);
        self.by_rank().into_iter().find(|c| c.parent.is_some() && self.fits(c) && stuck.iter().any(|s| s.id == c.id))
    }

    fn start(&mut self, id: ClaimId) {
        let Some(index) = self.waiting.iter().position(|c| c.id == id) else {
            return;
        };
        let claim = self.waiting[index].clone();
        let mut lease = self.lease_of_nothing(&claim);
        let mut buckets = Vec::new();
        for (name, units) in self.open_needs(&claim) {
            match self.take_tokens(name, units) {
                Some(state) => {
                    buckets.push((name.into(), state));
                    lease.tokens.push((name.into(), units));
                }
                None => lease.takes.push((name.into(), units)),
            }
        }
        self.waiting.remove(index);
        self.next_fence += 1;
        self.counters.starts += 1;
        let names = self.open_needs(&claim).iter().map(|(name, _)| (*name).to_owned()).collect();
        self.history.push(Started { id, names, rank: self.rank(&claim), fence: lease.fence.0 });
        self.started.push_back(lease.told(buckets));
        self.leases.push(lease);
    }

    /// The lease that a claim gets by starting now, before it takes anything at the gate.
    fn lease_of_nothing(&self, claim: &Claim) -> Lease {
        let covered =
            self.covered_needs(claim).into_iter().map(|(name, units, by)| (name.into(), units, by.id)).collect();
        let (recent, known) = (self.recent(claim), self.known(&claim.kind));
        Lease {
            id: claim.id,
            fence: Fence(self.next_fence),
            priority: claim.priority,
            parent: claim.parent,
            place: claim.place,
            started_at: self.now,
            takes: Vec::new(),
            covered,
            kind: claim.kind.clone(),
            needs: claim.needs.iter().map(|(name, _)| name.clone()).collect(),
            tokens: Vec::new(),
            shortest: recent.into_iter().min().unwrap_or(self.assumed),
            longest: known.into_iter().max(),
            passed: self.passes(claim).unwrap_or_default(),
        }
    }
}
