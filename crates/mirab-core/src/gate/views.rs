//! What the gate enforces, and who waits and holds: read from the very state that it decides with.
use super::Gate;
use super::class::ClassIx;
use super::resource::{Resource, ResourceIx};
use crate::api::ResourceView;
use crate::ids::{ClaimId, Place};
use crate::rank::{Head, Rank};
use crate::time::Time;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Resources of which somebody read the order of heads since the last step.
#[derive(Debug, Default)]
pub(super) struct OrdersRead(Mutex<Vec<ResourceIx>>);

impl OrdersRead {
    fn note(&self, at: ResourceIx) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(at);
    }

    fn take(&mut self) -> Vec<ResourceIx> {
        std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Clone for OrdersRead {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl Gate {
    /// Every resource that is declared by name or in use, in name order.
    #[must_use]
    pub fn resources(&self) -> Vec<ResourceView> {
        let mut views: Vec<ResourceView> = self.resources.iter().map(|resource| self.view(resource)).collect();
        views.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// The resources that go by a declared name or pattern, in the order in which they came to be.
    #[must_use]
    pub fn resources_of(&self, declared: &str) -> Vec<ResourceView> {
        let instances = self.declared_by_name.get(declared).map(|declared| self.instances(*declared));
        instances.into_iter().flatten().map(|at| self.view((at, &self.resources[at]))).collect()
    }

    /// One resource by name, when it is declared by that name or in use. What an idle key of a pattern would get is told by
    /// [`Gate::resolve`].
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

    /// The heads of all classes that need a resource, best first: read once, for all who ask until the next step.
    pub(super) fn heads(&self, at: ResourceIx) -> &[Head] {
        let Some(line) = self.resources[at].line.as_ref() else { return &[] };
        line.heads.get_or_init(|| {
            self.orders_read.note(at);
            let waited_for = line.members().filter(|class| !self.classes[*class].queue.is_empty());
            let mut heads: Vec<_> = waited_for.map(|class| Head::new(self.classes[class].head, class)).collect();
            heads.sort_unstable();
            heads
        })
    }

    /// At the begin of a step: what was read of the order of heads holds no more.
    pub(super) fn forget_orders(&mut self) {
        for at in self.orders_read.take() {
            if let Some(line) = self.resources.get_mut(at).and_then(|resource| resource.line.as_mut()) {
                line.heads.take();
            }
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
        let rank = self.rank(self.waiting_of(id)?);
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
        self.waiting_of(id).map(|waiting| waiting.place)
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
