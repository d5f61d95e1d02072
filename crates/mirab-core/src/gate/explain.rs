//! Why something waits, and what the gate enforces: read from the very state that it decides with.
use super::Gate;
use super::class::{Waiting, covered_by};
use super::resource::{Resource, ResourceIx, Store};
use crate::api::{AHEAD_LIMIT, Blocked, Explanation, ResourceView};
use crate::ids::{ClaimId, Place};
use crate::rank::Rank;
use crate::time::Time;
use std::collections::BTreeSet;

/// How many holders an explanation names.
const HOLDERS_NAMED: usize = 5;

impl Gate {
    /// Why a claim waits; `None` when it does not.
    #[must_use]
    pub fn explain(&self, id: ClaimId) -> Option<Explanation> {
        let waiting = self.waiting.get(&id)?;
        let key = &self.classes[waiting.class].key;
        let open = key.needs.iter().filter_map(|(resource, units)| self.blocked(*resource, *units, waiting));
        let covered = key.covered.iter().filter_map(|covered| self.blocked_inside(*covered, waiting));
        let blocked_on = open.chain(covered).collect();
        let too_much = |(resource, units): &(ResourceIx, u64)| {
            let capacity = self.resources[*resource].capacity();
            capacity > 0 && *units > capacity
        };
        Some(Explanation { id, blocked_on, unsatisfiable: key.needs.iter().any(too_much), promise: None })
    }

    fn blocked(&self, at: ResourceIx, need: u64, waiting: &Waiting) -> Option<Blocked> {
        let resource = &self.resources[at];
        let rank = self.rank(waiting);
        let behind = resource.guard(self.now).filter(|(guard, _)| *guard < rank);
        let behind: Vec<ClaimId> = behind.map(|(_, class)| self.classes[class].head_id()).into_iter().collect();
        if resource.has(need, self.now) && behind.is_empty() {
            return None;
        }
        let tokens_at = match &resource.store {
            Store::Bucket(bucket) => bucket.time_of(need, self.now),
            Store::Semaphore { .. } => None,
        };
        Some(Blocked {
            resource: resource.name.to_string(),
            need,
            free: resource.free(self.now),
            capacity: resource.capacity(),
            holders: resource.holders.iter().take(HOLDERS_NAMED).collect(),
            holders_total: resource.holders.len() as u64,
            behind,
            ahead: self.ahead(resource, rank),
            tokens_at,
            passed_by: Vec::new(),
        })
    }

    /// For units of an enclosing body: its other tasks are the holders.
    fn blocked_inside(&self, (at, need, holder): (ResourceIx, u64, ClaimId), waiting: &Waiting) -> Option<Blocked> {
        let rank = self.rank(waiting);
        let lease = self.leases.get(&holder)?;
        let body = lease.body.as_ref()?;
        let earlier = |class: &&u32| {
            let class = &self.classes[**class];
            class.head < rank && covered_by(&class.key.covered, at, holder) > 0
        };
        let ahead: usize =
            body.borrowers.iter().filter(earlier).map(|class| self.classes[*class].queue.range(..rank).count()).sum();
        let capacity = lease.has(at);
        let free = capacity.saturating_sub(lease.lent(at));
        if free >= need && ahead == 0 {
            return None;
        }
        let users = self.inside(holder).into_iter().filter_map(|id| {
            let inside = self.leases.get(&id)?;
            let units = covered_by(&inside.covered, at, holder);
            (units > 0).then_some((id, units, inside.started_at))
        });
        let users: Vec<(ClaimId, u64, Time)> = users.collect();
        Some(Blocked {
            resource: self.resources[at].name.to_string(),
            need,
            free: i64::try_from(free).unwrap_or(i64::MAX),
            capacity,
            holders_total: users.len() as u64,
            holders: users.into_iter().take(HOLDERS_NAMED).collect(),
            behind: Vec::new(),
            ahead: ahead as u64,
            tokens_at: None,
            passed_by: Vec::new(),
        })
    }

    /// All bodies inside a body, at any depth.
    fn inside(&self, id: ClaimId) -> Vec<ClaimId> {
        let body = self.leases.get(&id).and_then(|lease| lease.body.as_ref());
        let running = body.iter().flat_map(|body| body.running.iter().copied());
        running.flat_map(|id| std::iter::once(id).chain(self.inside(id)).collect::<Vec<_>>()).collect()
    }

    fn ahead(&self, resource: &Resource, rank: Rank) -> u64 {
        let mut ahead = 0;
        for class in resource.shelves.iter().flat_map(|shelf| &shelf.members) {
            let left = AHEAD_LIMIT as usize - ahead;
            ahead += self.classes[*class].queue.range(..rank).take(left).count();
        }
        ahead as u64
    }

    /// Every resource that is declared by name or in use, in name order.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceView> {
        let mut views: Vec<ResourceView> = self.resources.iter().map(|(_, resource)| self.view(resource)).collect();
        views.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// One resource by name, when it is declared or in use.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<ResourceView> {
        self.by_name.get(name).map(|at| self.view(&self.resources[*at]))
    }

    /// The declared patterns with their limits, in name order.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, crate::config::Limit)> {
        self.patterns.iter().map(|(name, declared)| (name.as_str(), declared.limit))
    }

    pub(super) fn view(&self, resource: &Resource) -> ResourceView {
        let classes = resource.shelves.iter().flat_map(|shelf| &shelf.members);
        ResourceView {
            name: resource.name.to_string(),
            limit: resource.limit(),
            used: resource.holders.sum(),
            free: resource.free(self.now),
            waiters: classes.map(|class| self.classes[*class].queue.len() as u64).sum(),
            declared_as: resource.pattern.clone().unwrap_or_else(|| resource.name.to_string()),
        }
    }

    /// Who holds units of a resource, oldest first: claim, units, since when.
    #[must_use]
    pub fn holders(&self, name: &str) -> Vec<(ClaimId, u64, Time)> {
        self.by_name.get(name).map(|at| self.resources[*at].holders.iter().collect()).unwrap_or_default()
    }

    /// The first waiting claims that need a resource, best rank first.
    #[must_use]
    pub fn first_waiters(&self, name: &str, limit: usize) -> Vec<ClaimId> {
        let Some(&at) = self.by_name.get(name) else {
            return Vec::new();
        };
        self.merged(self.classes_on(at).into_iter(), limit)
    }

    /// The first waiting claims of all, best rank first.
    #[must_use]
    pub fn line(&self, limit: usize) -> Vec<ClaimId> {
        self.merged(self.classes.iter().map(|(at, _)| at), limit)
    }

    /// How many claims rank ahead of a waiting claim, plus one.
    #[must_use]
    pub fn position(&self, id: ClaimId) -> Option<u64> {
        let rank = self.rank(self.waiting.get(&id)?);
        let ahead: usize = self.classes.iter().map(|(_, class)| class.queue.range(..rank).count()).sum();
        Some(ahead as u64 + 1)
    }

    /// Where a waiting claim stands in the line.
    #[must_use]
    pub fn place(&self, id: ClaimId) -> Option<Place> {
        self.waiting.get(&id).map(|waiting| waiting.place)
    }

    /// Merges the queues of classes by rank.
    fn merged(&self, classes: impl Iterator<Item = u32>, limit: usize) -> Vec<ClaimId> {
        let mut heads: BTreeSet<(Rank, u32)> = classes.map(|class| (self.classes[class].head, class)).collect();
        let mut out = Vec::new();
        while out.len() < limit
            && let Some((rank, class)) = heads.pop_first()
        {
            let mut rest = self.classes[class].queue.range(rank..);
            out.extend(rest.next().map(|(_, id)| *id));
            heads.extend(rest.next().map(|(next, _)| (*next, class)));
        }
        out
    }
}
