//! Why something waits: read from the very state that the gate decides with.
use super::Gate;
use super::class::{Class, Covered, Waiting, covered_by};
use super::guard::Guard;
use super::holders::Holder;
use super::resource::{Resource, ResourceIx};
use crate::api::{AHEAD_LIMIT, Blocked, Explanation, Promise};
use crate::ids::ClaimId;
use crate::rank::Rank;
use crate::time::Time;

/// How many holders an explanation names.
const HOLDERS_NAMED: usize = 5;

impl Gate {
    /// Why a claim waits; `None` when it does not.
    #[must_use]
    pub fn explain(&self, id: ClaimId) -> Option<Explanation> {
        let waiting = self.waiting_of(id)?;
        let class = &self.classes[waiting.class];
        let open = class.key.needs.iter().filter_map(|need| self.blocked(*need, class, waiting));
        let covered = class.key.covered.iter().filter_map(|covered| self.blocked_inside(*covered, waiting));
        let blocked_on = open.chain(covered).collect();
        let too_much = |(resource, units): &(ResourceIx, u64)| {
            let capacity = self.resources[*resource].capacity();
            capacity > 0 && *units > capacity
        };
        let unsatisfiable = class.key.needs.iter().any(too_much);
        Some(Explanation { id, blocked_on, unsatisfiable, promise: self.promise_of(id, class, waiting) })
    }

    fn blocked(&self, (at, need): (ResourceIx, u64), class: &Class, waiting: Waiting) -> Option<Blocked> {
        let resource = &self.resources[at];
        let rank = self.rank(waiting);
        let is_short = !resource.has(need, self.now);
        let mut ahead: Vec<Guard> = self.protected(at).filter(|guard| guard.rank < rank).collect();
        ahead.retain(|guard| !self.may_pass_now(&class.key, at, guard));
        ahead.sort_by_key(|guard| guard.rank);
        if !is_short && ahead.is_empty() {
            return None;
        }
        let named = |holder: Holder| (holder.id, holder.units, holder.span.started_at);
        Some(Blocked {
            resource: resource.name.to_string(),
            need,
            free: resource.free(self.now),
            capacity: resource.capacity(),
            holders: resource.holders.iter().take(HOLDERS_NAMED).map(named).collect(),
            holders_total: resource.holders.len() as u64,
            behind: ahead.into_iter().map(|guard| guard.id).collect(),
            ahead: self.ahead(at, rank),
            tokens_at: resource.bucket().and_then(|bucket| bucket.time_of(need, self.now)),
            passed_by: passed_by(resource, rank, waiting.joined),
        })
    }

    /// For units of an enclosing body: its other tasks are the holders.
    fn blocked_inside(&self, (at, need, holder): Covered, waiting: Waiting) -> Option<Blocked> {
        let rank = self.rank(waiting);
        let lease = self.lease_of(holder)?;
        let body = lease.body()?;
        let wants = |class: &&u32| covered_by(&self.classes[**class].key.covered, at, holder) > 0;
        let ahead: usize =
            body.borrowers.iter().filter(wants).map(|class| self.ahead_in(*class, rank, usize::MAX)).sum();
        let capacity = lease.has(at);
        let free = capacity.saturating_sub(lease.lent(at));
        if free >= need && ahead == 0 {
            return None;
        }
        let mut users = self.users_inside(holder, at);
        let holders_total = users.len() as u64;
        users.truncate(HOLDERS_NAMED);
        Some(Blocked {
            resource: self.resources[at].name.to_string(),
            need,
            free: i64::try_from(free).unwrap_or(i64::MAX),
            capacity,
            holders_total,
            holders: users,
            behind: Vec::new(),
            ahead: ahead as u64,
            tokens_at: None,
            passed_by: Vec::new(),
        })
    }

    /// Who uses units of a resource that `holder` has, in the order of starting.
    fn users_inside(&self, holder: ClaimId, at: ResourceIx) -> Vec<(ClaimId, u64, Time)> {
        let inside = self.inside_of(holder).into_iter().filter_map(|id| self.lease_of(id));
        let units = |lease: &super::lease::Lease| covered_by(&lease.key.covered, at, holder);
        let mut users: Vec<_> = inside.filter(|lease| units(lease) > 0).collect();
        users.sort_by_key(|lease| lease.fence);
        users.into_iter().map(|lease| (lease.id, units(lease), lease.span.started_at)).collect()
    }

    /// All bodies inside a body, at any depth.
    pub(super) fn inside_of(&self, id: ClaimId) -> Vec<ClaimId> {
        let body = self.lease_of(id).and_then(|lease| lease.body());
        let running = body.iter().flat_map(|body| body.running.iter().copied());
        running.flat_map(|id| std::iter::once(id).chain(self.inside_of(id)).collect::<Vec<_>>()).collect()
    }

    fn ahead(&self, at: ResourceIx, rank: Rank) -> u64 {
        let mut ahead = 0;
        for head in self.heads(at).iter().take_while(|head| head.rank() < rank) {
            let left = AHEAD_LIMIT as usize - ahead;
            ahead += self.ahead_in(head.class(), rank, left).min(left);
            if ahead as u64 == AHEAD_LIMIT {
                break;
            }
        }
        ahead as u64
    }

    /// When a protected claim is expected to start.
    fn promise_of(&self, id: ClaimId, class: &Class, waiting: Waiting) -> Option<Promise> {
        if class.head_id() != id {
            return None;
        }
        let at = self.promise(waiting.class)?;
        let needs = &class.key.needs;
        if !needs.iter().any(|(resource, _)| self.protected(*resource).any(|guard| guard.id == id)) {
            return None;
        }
        let mut short: Vec<_> = needs
            .iter()
            .map(|(at, units)| (&self.resources[*at], *units))
            .filter(|(resource, units)| !resource.has(*units, self.now))
            .collect();
        short.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let decides = |(resource, units): &&(&Resource, u64)| resource.time_of(*units, self.now) == Some(at);
        let decided_by = short.iter().find(decides).map(|(resource, _)| resource.name.to_string());
        let holders = || short.iter().flat_map(|(resource, _)| resource.holders.iter());
        let known = holders().filter(|holder| holder.span.longest.is_some()).count() as u64;
        let assumed = holders().count() as u64 - known;
        let earliest =
            self.latest_of(&short, |holder| Some(holder.span.started_at.plus(holder.span.shortest).max(self.now)));
        let latest = self.latest_of(&short, |holder| {
            let end = holder.span.started_at.plus(holder.span.longest?);
            (end >= self.now).then_some(end)
        });
        Some(Promise { at, earliest: earliest.unwrap_or(at), latest, decided_by, known, assumed })
    }

    /// When all that is short is free, if holders end as told; `None` when one that is counted on has no end.
    fn latest_of(&self, short: &[(&Resource, u64)], end: impl Fn(&Holder) -> Option<Time>) -> Option<Time> {
        let mut latest = self.now;
        for (resource, units) in short {
            let at = match resource.bucket() {
                Some(bucket) => bucket.time_of(*units, self.now)?,
                None => self.freed_at(resource, *units, &end)?,
            };
            latest = latest.max(at);
        }
        Some(latest)
    }

    fn freed_at(&self, resource: &Resource, units: u64, end: impl Fn(&Holder) -> Option<Time>) -> Option<Time> {
        let mut ends: Vec<(Option<Time>, u64)> =
            resource.holders.iter().map(|holder| (end(&holder), holder.units)).collect();
        // Those without an end come last.
        ends.sort_unstable_by_key(|(end, units)| (end.is_none(), *end, *units));
        let mut free = i128::from(resource.free(self.now));
        for (end, freed) in ends {
            free += i128::from(freed);
            if free >= i128::from(units) {
                return end;
            }
        }
        None
    }
}

/// Claims that rank below and started on a resource since fence `joined`.
fn passed_by(resource: &Resource, rank: Rank, joined: u64) -> Vec<ClaimId> {
    let starts = resource.line.iter().flat_map(|line| &line.starts);
    starts.filter(|start| start.fence >= joined && start.rank > rank).map(|start| start.id).collect()
}
