//! What the gate enforces, and who waits and holds: read from the very state that it decides with.
use super::Gate;
use super::class::ClassIx;
use super::resource::{Resource, ResourceIx};
use crate::api::ResourceView;
use crate::ids::{ClaimId, Place};
use crate::rank::Rank;
use crate::time::Time;
use std::collections::BTreeSet;

impl Gate {
    /// Every resource that is declared by name or in use, in name order.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceView> {
        let mut views: Vec<ResourceView> = self.resources.iter().map(|resource| self.view(resource)).collect();
        views.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// One resource by name, when it is declared or in use.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<ResourceView> {
        self.by_name.get(name).map(|at| self.view((*at, &self.resources[*at])))
    }

    /// The declared patterns with their limits, in name order.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, crate::config::Limit)> {
        self.patterns.iter().map(|(name, declared)| (&**name, self.declared[*declared].limit))
    }

    fn view(&self, (at, resource): (ResourceIx, &Resource)) -> ResourceView {
        ResourceView {
            name: resource.name.to_string(),
            limit: resource.limit(),
            used: resource.holders.sum(),
            free: resource.free(self.now),
            waiters: self.waiters(at),
            declared_as: self.declared[resource.declared].name.to_string(),
        }
    }

    /// How many claims wait and need a resource.
    pub(super) fn waiters(&self, at: ResourceIx) -> u64 {
        let members = self.resources[at].line.iter().flat_map(|line| line.members());
        members.map(|class| self.classes[class].queue.len() as u64).sum()
    }

    /// Who holds units of a resource, oldest first: claim, units, since when.
    #[must_use]
    pub fn holders(&self, name: &str) -> Vec<(ClaimId, u64, Time)> {
        let holders = self.by_name.get(name).map(|at| &self.resources[*at].holders);
        let told = holders.into_iter().flat_map(|holders| holders.iter());
        told.map(|holder| (holder.id, holder.units, holder.span.started_at)).collect()
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
        let ahead: usize = self.classes.iter().map(|(at, _)| self.ahead_in(at, rank, usize::MAX)).sum();
        Some(ahead as u64 + 1)
    }

    /// How many claims of a class rank above `rank`, counted up to about `limit`.
    pub(super) fn ahead_in(&self, class: ClassIx, rank: Rank, limit: usize) -> usize {
        let class = &self.classes[class];
        if class.head >= rank {
            return 0;
        }
        class.queue.count_where(|seat| seat.rank(class.key.priority, self.options.aging) < rank, limit)
    }

    /// Where a waiting claim stands in the line.
    #[must_use]
    pub fn place(&self, id: ClaimId) -> Option<Place> {
        self.waiting.get(&id).map(|waiting| waiting.place)
    }

    /// Merges the queues of classes by rank.
    fn merged(&self, classes: impl Iterator<Item = ClassIx>, limit: usize) -> Vec<ClaimId> {
        let first = |class: ClassIx| Some((self.classes[class].head, class, self.classes[class].queue.first()?));
        let mut heads: BTreeSet<_> = classes.filter_map(first).collect();
        let mut out = Vec::new();
        while out.len() < limit
            && let Some((_, class, (seat, id))) = heads.pop_first()
        {
            out.push(id);
            let Some(next) = self.classes[class].queue.next_after(&seat) else { continue };
            let rank = next.0.rank(self.classes[class].key.priority, self.options.aging);
            heads.insert((rank, class, next));
        }
        out
    }
}
