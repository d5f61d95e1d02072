//! Promises: docs/internals/gate.md §3, by looking at everything every time.
use super::Model;
use super::records::{Balance, Claim, Lease};
use mirab_core::{ClaimId, Time};

impl Model {
    /// The last four durations of its kind.
    pub(super) fn known(&self, kind: &str) -> Vec<u64> {
        self.kinds.iter().find(|(name, _)| name == kind).map(|(_, last)| last.clone()).unwrap_or_default()
    }

    /// The same; where there are none, those of its resources; else what is assumed.
    pub(super) fn recent(&self, c: &Claim) -> Vec<u64> {
        let known = self.known(&c.kind);
        if !known.is_empty() {
            return known;
        }
        let others = c.needs.iter().filter_map(|(name, _)| self.declaration(name));
        let others: Vec<u64> = others.flat_map(|declared| declared.durations.iter().copied()).collect();
        if others.is_empty() { vec![self.assumed] } else { others }
    }

    pub(super) fn learn(&mut self, lease: &Lease) {
        let duration = self.now.since(lease.started_at).max(1_000_000);
        let push = |last: &mut Vec<u64>| {
            last.push(duration);
            if last.len() > 4 {
                last.remove(0);
            }
        };
        match self.kinds.iter_mut().find(|(name, _)| *name == lease.kind) {
            Some((_, last)) => push(last),
            None => self.kinds.push((lease.kind.clone(), vec![duration])),
        }
        for name in &lease.needs {
            let declared_as = self.declaration(name).map(|d| d.name.clone());
            let declared = self.declared.iter_mut().find(|d| Some(&d.name) == declared_as.as_ref());
            declared.into_iter().for_each(|d| push(&mut d.durations));
        }
    }

    /// After its kind's shortest recent duration; up to twice that: at any moment; later: when its time has doubled once more.
    pub(super) fn expected_end(&self, l: &Lease) -> Time {
        let age = self.now.since(l.started_at);
        if age < l.shortest {
            l.started_at.plus(l.shortest)
        } else if age < 2 * l.shortest {
            self.now
        } else {
            self.next_doubling(l)
        }
    }

    pub(super) fn next_doubling(&self, l: &Lease) -> Time {
        let mut time = 2 * l.shortest;
        while time <= self.now.since(l.started_at) {
            time *= 2;
        }
        l.started_at.plus(time)
    }

    pub(super) fn sure_end(l: &Lease) -> Time {
        l.started_at.plus(l.longest.unwrap_or(0) * 5 / 4)
    }

    pub(super) fn usable(&self, bucket: &Balance) -> i128 {
        if self.now < bucket.cooling_until { 0 } else { bucket.scaled_at(self.now) }
    }

    /// When so many units have been given back, by ends and units in any order.
    fn freed(&self, name: &str, units: u64, mut ends: Vec<(Time, u64)>) -> Option<Time> {
        ends.sort_unstable();
        let (mut free, mut at) = (self.free(name), self.now);
        for (end, more) in ends {
            if free >= i128::from(units) {
                break;
            }
            (free, at) = (free + i128::from(more), end);
        }
        (free >= i128::from(units)).then_some(at)
    }

    fn holding(&self, name: &str) -> impl Iterator<Item = (&Lease, u64)> {
        self.leases.iter().map(move |l| (l, l.taken(name))).filter(|(_, units)| *units > 0)
    }

    /// When so many units are expected to be free; `None`: never, as things are.
    pub(super) fn time_of(&self, name: &str, units: u64) -> Option<Time> {
        match self.balance(name) {
            Some(bucket) => bucket.time_of(units, self.now),
            None => self.freed(name, units, self.holding(name).map(|(l, u)| (self.expected_end(l), u)).collect()),
        }
    }

    /// When it starts at the latest, if nothing runs a quarter longer than its kind did of late; `None` where that cannot be said.
    fn sure_time(&self, c: &Claim) -> Option<Time> {
        let mut latest = self.now;
        for (name, units) in self.open_needs(c) {
            let at = match self.balance(name) {
                Some(bucket) => bucket.time_of(units, self.now)?,
                None => {
                    let ends = self.holding(name).map(|(l, u)| (Self::sure_end(l), u));
                    self.freed(name, units, ends.filter(|(end, _)| *end >= self.now).collect())?
                }
            };
            latest = latest.max(at);
        }
        (!self.cover_short(c)).then_some(latest)
    }

    fn free_at(&self, name: &str, at: Time) -> i128 {
        let ended = self.holding(name).filter(|(l, _)| self.expected_end(l) <= at);
        self.free(name) + ended.map(|(_, units)| i128::from(units)).sum::<i128>()
    }

    pub(super) fn promise(&self, c: &Claim) -> Option<Time> {
        let mut latest = self.now;
        for (name, units) in self.open_needs(c) {
            latest = latest.max(self.time_of(name, units)?);
        }
        (!self.cover_short(c)).then_some(latest)
    }

    /// The first claim in rank that waits and needs this resource, and could ever start as things are.
    pub(super) fn first_on(&self, name: &str) -> Option<&Claim> {
        self.by_rank().into_iter().find(|c| self.open_need(c, name).is_some() && self.promise(c).is_some())
    }

    /// The first in rank of those that are short of this resource and whose promise it decides.
    pub(super) fn decider_on(&self, name: &str) -> Option<&Claim> {
        self.by_rank().into_iter().find(|c| {
            let short = self.open_need(c, name).filter(|units| !self.is_free(name, *units));
            short.is_some_and(|units| self.promise(c).is_some() && self.time_of(name, units) == self.promise(c))
        })
    }

    /// The protected waiters of a resource, two at most, that rank above `x`, best first.
    pub(super) fn guards(&self, name: &str, x: &Claim) -> Vec<&Claim> {
        let mut found: Vec<&Claim> = self.first_on(name).into_iter().chain(self.decider_on(name)).collect();
        found.retain(|h| h.id != x.id && self.rank(h) < self.rank(x));
        found.sort_by_key(|h| self.rank(h));
        found.dedup_by_key(|h| h.id);
        found
    }

    /// May `x`, which ranks below `h`, take what it needs of this resource now?
    pub(super) fn may_pass(&self, x: &Claim, h: &Claim, name: &str) -> bool {
        let (need_x, need_h) = (self.open_need(x, name).unwrap_or(0), self.open_need(h, name).unwrap_or(0));
        let (free, bucket, pool) = (self.free(name), self.balance(name), name.starts_with("pool:"));
        let at = self.promise(h).unwrap_or(self.now);
        if free - i128::from(need_x) >= i128::from(need_h) {
            return true; // 1. enough is left for h
        }
        let in_time = |durations: Vec<u64>| match &bucket {
            Some(bucket) => self.is_refilled(bucket, need_x, need_h, at),
            None => durations.iter().max().is_some_and(|longest| self.now.plus(*longest) <= at),
        };
        if h.strict.iter().any(|strict| strict == name) {
            let short = |(n, units): &(&str, u64)| *n != name && !self.is_free(n, *units);
            return self.open_needs(h).iter().any(short) && (pool || in_time(self.known(&x.kind)));
        }
        let beside = bucket.is_none() && self.free_at(name, at) - i128::from(need_x) >= i128::from(need_h);
        let ok = in_time(self.recent(x)) || beside;
        if !self.is_free(name, need_h) && self.time_of(name, need_h) == Some(at) {
            return ok && x.priority >= h.priority; // 2. what h waits for longest: never to a lower priority
        }
        if ok || pool {
            return true; // 3. h waits longer for something else
        }
        if bucket.is_some() && !self.is_free(name, need_h) {
            return false;
        }
        let Some(sure) = self.sure_time(h) else { return true };
        let wait = i128::from(sure.since(self.now)) * 10;
        match &bucket {
            Some(bucket) => wait * bucket.units > i128::from(need_x) * bucket.scale,
            None => wait > i128::from(self.recent(x).into_iter().max().unwrap_or(0)),
        }
    }

    /// Tokens do not come back: are they refilled by `at`?
    fn is_refilled(&self, bucket: &Balance, need_x: u64, need_h: u64, at: Time) -> bool {
        let left = self.usable(bucket) - i128::from(need_x) * bucket.scale;
        let then = left + bucket.units * i128::from(at.since(self.now));
        then.min(bucket.most()) >= i128::from(need_h) * bucket.scale
    }

    /// What it would pass by starting now; `None` where it must not.
    pub(super) fn passes(&self, c: &Claim) -> Option<Vec<(ClaimId, String)>> {
        let mut out = Vec::new();
        for (name, _) in self.open_needs(c) {
            for h in self.guards(name, c) {
                if !self.may_pass(c, h, name) {
                    return None;
                }
                out.push((h.id, name.to_owned()));
            }
        }
        Some(out)
    }

    /// Who could start but for what passed it is passed there no more.
    pub(super) fn mark_delayed(&mut self) {
        let mut marks = Vec::new();
        for l in &self.leases {
            for (id, name) in &l.passed {
                let Some(h) = self.waiting.iter().find(|c| c.id == *id) else { continue };
                let made_up = |(n, units): (&str, u64)| self.free(n) + i128::from(l.taken(n)) >= i128::from(units);
                if !self.cover_short(h) && self.open_needs(h).into_iter().all(made_up) {
                    marks.push((*id, name.clone()));
                }
            }
        }
        for (id, name) in marks {
            self.mark(id, &name, true);
        }
    }

    pub(super) fn mark(&mut self, id: ClaimId, name: &str, is_new: bool) {
        let Some(h) = self.waiting.iter_mut().find(|c| c.id == id && !c.strict.iter().any(|s| s == name)) else {
            return;
        };
        h.strict.push(name.to_owned());
        if is_new {
            self.delayed.push_back((id, name.into()));
        }
    }
}
