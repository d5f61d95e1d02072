//! What the model tells about itself, in the gate's own words.
use super::Model;
use super::records::{Claim, Lease};
use mirab_core::{
    AHEAD_LIMIT, Blocked, ClaimId, Counters, Explanation, Fence, Promise, Refusal, ResourceView, STARTS_REMEMBERED,
    Start, Time, TimeoutReason,
};

/// An end that nobody can tell.
const NEVER: Time = Time(u64::MAX);

fn clamped(units: i128) -> i64 {
    i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
}

impl Model {
    /// The next claim that was admitted.
    pub fn poll_start(&mut self) -> Option<Start> {
        self.started.pop_front()
    }

    /// The next claim that was refused after it had waited.
    pub fn poll_refused(&mut self) -> Option<(ClaimId, Refusal)> {
        self.refused.pop_front()
    }

    /// The earliest later instant at which time alone may let some waiter start, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Time, TimeoutReason)> {
        let later = |at: &Time| *at > self.now;
        let mut tokens: Vec<(Time, &str)> = Vec::new();
        for c in &self.waiting {
            for (name, units) in self.open_needs(c).into_iter().filter(|(name, _)| self.is_bucket(name)) {
                let beside = self.guards(name, c).into_iter().filter_map(|h| self.open_need(h, name));
                let levels = std::iter::once(units).chain(beside.map(|need| units + need));
                tokens.extend(levels.filter_map(|level| self.time_of(name, level)).map(|at| (at, name)));
            }
        }
        let tokens = tokens.into_iter().filter(|(at, _)| later(at)).min();
        let held_back = self.waiting.iter().any(|c| self.fits(c));
        let ends = self.leases.iter().filter(|_| held_back);
        let overruns = ends.flat_map(|l| [self.next_doubling(l), Self::sure_end(l).plus(1)]).filter(later).min();
        match (tokens, overruns) {
            (Some((at, _)), Some(overrun)) if overrun < at => Some((overrun, TimeoutReason::Overrun)),
            (Some((at, name)), _) => Some((at, TimeoutReason::Tokens { resource: name.into() })),
            (None, overrun) => overrun.map(|at| (at, TimeoutReason::Overrun)),
        }
    }

    /// Why a claim waits.
    #[must_use]
    pub fn explain(&self, id: ClaimId) -> Option<Explanation> {
        let c = self.waiting.iter().find(|c| c.id == id)?;
        let blocked_on = c.needs.iter().filter_map(|(name, need)| self.blocked(c, name, *need)).collect();
        Some(Explanation { id, blocked_on, unsatisfiable: self.unsatisfiable(c), promise: self.promise_of(c) })
    }

    fn blocked(&self, c: &Claim, name: &str, need: u64) -> Option<Blocked> {
        if let Some(holder) = self.coverer(c.parent, name) {
            return self.cover_short_on(c, name, need, holder).then(|| self.covered_blocked(c, name, need, holder));
        }
        let behind = self.guards(name, c).into_iter().filter(|h| !self.may_pass(c, h, name));
        let behind: Vec<ClaimId> = behind.map(|h| h.id).collect();
        if self.is_free(name, need) && behind.is_empty() {
            return None;
        }
        let mut holders = self.holders(name);
        let holders_total = holders.len() as u64;
        holders.truncate(5);
        let ahead = self.by_rank().into_iter().take_while(|h| h.id != c.id);
        Some(Blocked {
            resource: name.into(),
            need,
            free: clamped(self.free(name)),
            capacity: self.amount(name).capacity(),
            holders,
            holders_total,
            behind,
            ahead: (ahead.filter(|h| self.open_need(h, name).is_some()).count() as u64).min(AHEAD_LIMIT),
            tokens_at: self.balance(name).and_then(|b| b.time_of(need, self.now)),
            passed_by: self.passed_by(c, name),
        })
    }

    fn promise_of(&self, c: &Claim) -> Option<Promise> {
        let at = self.promise(c)?;
        let open = self.open_needs(c);
        let is_it = |h: Option<&Claim>| h.is_some_and(|h| h.id == c.id);
        if !open.iter().any(|(name, _)| is_it(self.first_on(name)) || is_it(self.decider_on(name))) {
            return None;
        }
        let mut short: Vec<(&str, u64)> =
            open.into_iter().filter(|(name, units)| !self.is_free(name, *units)).collect();
        short.sort_unstable();
        let decided_by = short.iter().find(|(name, units)| self.time_of(name, *units) == Some(at));
        let holders =
            || self.leases.iter().flat_map(|l| short.iter().filter(|(name, _)| l.taken(name) > 0).map(move |_| l));
        let known = holders().filter(|l| l.longest.is_some()).count() as u64;
        let earliest = self.all_free(&short, |l| Some(l.started_at.plus(l.shortest).max(self.now)));
        let latest = self.all_free(&short, |l| Some(l.started_at.plus(l.longest?)).filter(|end| *end >= self.now));
        Some(Promise {
            at,
            earliest: earliest.unwrap_or(at),
            latest,
            decided_by: decided_by.map(|(name, _)| (*name).to_owned()),
            known,
            assumed: holders().count() as u64 - known,
        })
    }

    /// When all is free, if holders end as told; `None` when one that is counted on has no end.
    fn all_free(&self, short: &[(&str, u64)], end: impl Fn(&Lease) -> Option<Time>) -> Option<Time> {
        let mut latest = self.now;
        for (name, units) in short {
            let at = match self.balance(name) {
                Some(bucket) => bucket.time_of(*units, self.now)?,
                None => {
                    let holding = self.leases.iter().filter(|l| l.taken(name) > 0);
                    let mut ends: Vec<_> = holding.map(|l| (end(l).unwrap_or(NEVER), l.taken(name))).collect();
                    ends.sort_unstable();
                    let mut free = self.free(name);
                    let enough = ends.into_iter().find(|(_, more)| {
                        free += i128::from(*more);
                        free >= i128::from(*units)
                    });
                    enough.map(|(at, _)| at).filter(|at| *at < NEVER)?
                }
            };
            latest = latest.max(at);
        }
        Some(latest)
    }

    fn passed_by(&self, c: &Claim, name: &str) -> Vec<ClaimId> {
        let mut starts: Vec<_> = self.history.iter().filter(|s| s.names.iter().any(|n| n == name)).collect();
        starts.drain(..starts.len().saturating_sub(STARTS_REMEMBERED));
        let passed = |s: &&super::records::Started| s.fence >= c.joined && s.rank > self.rank(c);
        starts.into_iter().filter(passed).map(|s| s.id).collect()
    }

    fn covered_blocked(&self, c: &Claim, name: &str, need: u64, holder: &Lease) -> Blocked {
        let users = self.leases.iter().filter(|l| l.uses(holder.id, name) > 0);
        let mut users: Vec<&Lease> = users.collect();
        users.sort_by_key(|l| l.fence);
        let mut holders: Vec<_> = users.iter().map(|l| (l.id, l.uses(holder.id, name), l.started_at)).collect();
        let holders_total = holders.len() as u64;
        holders.truncate(5);
        let mut earlier: Vec<&Claim> = self.waiting.iter().filter(|e| self.precedes(e, c, name, holder)).collect();
        earlier.sort_by_key(|e| e.place.call);
        let capacity = holder.has(name);
        Blocked {
            resource: name.into(),
            need,
            free: clamped(i128::from(capacity) - i128::from(self.cover_used(holder, name))),
            capacity,
            holders,
            holders_total,
            behind: Vec::new(),
            ahead: earlier.len() as u64,
            tokens_at: None,
            passed_by: Vec::new(),
        }
    }

    /// A resource as it is enforced; `None` when no declaration matches. Idle keys of patterns are told too, unlike by the gate: there is
    /// nothing here that could be forgotten.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<ResourceView> {
        let declared = self.declaration(name)?;
        Some(ResourceView {
            name: name.into(),
            limit: declared.amount.limit(),
            used: self.used(name),
            free: clamped(self.free(name)),
            waiters: self.waiting.iter().filter(|c| self.open_need(c, name).is_some()).count() as u64,
            declared_as: declared.name.clone(),
        })
    }

    /// Every declared name, and every instance of a pattern that is held or waited for, by name.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceView> {
        let declared = self.declared.iter().map(|d| d.name.as_str()).filter(|name| !name.contains('*'));
        let held = self.leases.iter().flat_map(|l| l.takes.iter().map(|(name, _)| name.as_str()));
        let wanted = self.waiting.iter().flat_map(|c| self.open_needs(c)).map(|(name, _)| name);
        let mut names: Vec<&str> = declared.chain(held).chain(wanted).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.resource(name)).collect()
    }

    /// Leases that hold units of a resource.
    #[must_use]
    pub fn holders(&self, name: &str) -> Vec<(ClaimId, u64, Time)> {
        let mut holding: Vec<&Lease> = self.leases.iter().filter(|l| l.taken(name) > 0).collect();
        holding.sort_by_key(|l| l.fence);
        holding.iter().map(|l| (l.id, l.taken(name), l.started_at)).collect()
    }

    /// The first waiters of a resource, best rank first.
    #[must_use]
    pub fn first_waiters(&self, name: &str, limit: usize) -> Vec<ClaimId> {
        let line = self.by_rank().into_iter().filter(|c| self.open_need(c, name).is_some());
        line.take(limit).map(|c| c.id).collect()
    }

    /// The line, best rank first.
    #[must_use]
    pub fn line(&self, limit: usize) -> Vec<ClaimId> {
        self.by_rank().into_iter().take(limit).map(|c| c.id).collect()
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// The fence of a lease.
    #[must_use]
    pub fn lease(&self, id: ClaimId) -> Option<Fence> {
        self.leases.iter().find(|l| l.id == id).map(|l| l.fence)
    }

    /// True when some lease or waiting claim has this body around it.
    #[must_use]
    pub fn has_leases_inside(&self, id: ClaimId) -> bool {
        self.leases.iter().any(|l| l.parent == Some(id))
    }

    /// Invariant 2: claims that wait though they could start.
    #[must_use]
    pub fn lost_wakes(&self) -> Vec<ClaimId> {
        self.waiting.iter().filter(|c| self.can_start(c)).map(|c| c.id).collect()
    }

    /// Invariant 12: claims in a circle.
    #[must_use]
    pub fn circles(&self) -> Vec<ClaimId> {
        self.circle()
    }

    /// The next numbers of the line and of fences.
    #[must_use]
    pub fn next_numbers(&self) -> (u64, u64) {
        (self.next_seq, self.next_fence)
    }

    /// Counters that only grow; the model counts no evaluations.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
