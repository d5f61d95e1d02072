//! Runs that hold while their tasks wait can lock each other. Found by reduction over counting units, as in R. C. Holt, "Some
//! deadlock properties of computer systems" (1972): let every body that waits for nothing end, again and again; who is left is in a
//! circle or behind one.
use super::Gate;
use super::class::{ClassIx, covered_by};
use super::resource::{ResourceIx, Store};
use crate::ids::ClaimId;
use crate::rank::Rank;
use crate::refusal::{InCircle, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// What is left while bodies end, one after the other.
struct Reduction {
    /// Units free, by resource.
    free: BTreeMap<ResourceIx, i128>,
    /// Leases with something inside.
    leases: BTreeSet<ClaimId>,
    /// Waiting claims by class, best rank first.
    claims: BTreeMap<ClassIx, BTreeMap<Rank, ClaimId>>,
    /// Their ids.
    ids: BTreeSet<ClaimId>,
}

impl Gate {
    /// Tasks inside a run that only a better-ranked claim holds back, while that claim waits, through any chain, for that very run:
    /// the best-ranked of them starts all the same.
    pub(super) fn given_way(&mut self) -> Option<(ClassIx, Rank)> {
        let held: Vec<ClassIx> = self.held_tasks.iter().copied().filter(|class| self.fits(*class)).collect();
        if held.is_empty() {
            return None;
        }
        let stuck = self.reduce(true);
        let first = |class: ClassIx| {
            let (rank, _) = stuck.claims.get(&class)?.first_key_value()?;
            let head = &self.classes[class];
            // Units of an enclosing body are had in the order of call, so there nobody but the head may go.
            (*rank == head.head || head.key.covered.is_empty()).then_some((*rank, class))
        };
        held.into_iter().filter_map(first).min().map(|(rank, class)| (class, rank))
    }

    /// Refuses the newest task in a circle of leases, until there is no circle.
    pub(super) fn refuse_circles(&mut self) {
        if self.withheld {
            return;
        }
        loop {
            let circle = self.circle();
            let Some(&newest) = circle.iter().max_by_key(|id| self.waiting.get(id).map(|waiting| waiting.place.call))
            else {
                return;
            };
            let told = self.tell(&circle);
            self.leave(newest);
            self.refused.push_back((newest, Refusal::ResourceDeadlock { circle: told }));
            self.pump();
        }
    }

    /// Of what can never start: drop, again and again, each claim whose enclosing bodies hold nothing that another one left is short of.
    fn circle(&self) -> Vec<ClaimId> {
        let mut left: Vec<ClaimId> = self.reduce(false).ids.into_iter().collect();
        loop {
            let keep: Vec<ClaimId> = left
                .iter()
                .copied()
                .filter(|id| left.iter().any(|other| other != id && self.waits_for(*other, *id)))
                .collect();
            if keep.len() == left.len() {
                return keep;
            }
            left = keep;
        }
    }

    /// True when `claim` is short of something that an enclosing body of `other` holds.
    fn waits_for(&self, claim: ClaimId, other: ClaimId) -> bool {
        let needs = self.waiting.get(&claim).map(|waiting| &self.classes[waiting.class].key.needs);
        let short = |resource: ResourceIx, units: u64| match self.resources[resource].store {
            Store::Semaphore { .. } => !self.resources[resource].has(units, self.now),
            Store::Bucket(_) => false,
        };
        self.waits_for_sister(claim, other)
            || needs.is_some_and(|needs| {
                needs.iter().any(|(resource, units)| {
                    short(*resource, *units)
                        && self.enclosing(other).any(|(_, takes)| takes.iter().any(|(of, _)| of == resource))
                })
            })
    }

    /// True when `claim` waits for units of an enclosing body that a body around `other` uses, or that `other` is to have before it.
    fn waits_for_sister(&self, claim: ClaimId, other: ClaimId) -> bool {
        let class =
            |id: ClaimId| self.waiting.get(&id).map(|waiting| (&self.classes[waiting.class], waiting.place.call));
        let (Some((ours, our_call)), Some((theirs, their_call))) = (class(claim), class(other)) else { return false };
        ours.key.covered.iter().any(|&(resource, units, holder)| {
            let Some(lease) = self.leases.get(&holder) else { return false };
            let uses =
                |id: ClaimId| self.leases.get(&id).is_some_and(|user| covered_by(&user.covered, resource, holder) > 0);
            let is_short = lease.lent(resource) + units > lease.has(resource);
            (is_short && self.enclosing(other).any(|(id, _)| uses(id)))
                || (their_call < our_call && covered_by(&theirs.key.covered, resource, holder) > 0)
        })
    }

    /// The bodies around a waiting task, from the inside out, with what they hold.
    fn enclosing(&self, task: ClaimId) -> impl Iterator<Item = (ClaimId, &[(ResourceIx, u64)])> {
        let mut at = self.waiting.get(&task).and_then(|waiting| self.classes[waiting.class].key.parent);
        std::iter::from_fn(move || {
            let id = at?;
            let lease = self.leases.get(&id)?;
            at = lease.parent;
            Some((id, &*lease.takes))
        })
    }

    fn tell(&self, circle: &[ClaimId]) -> Vec<InCircle> {
        let name = |resource: &ResourceIx| self.resources[*resource].name.to_string();
        let one = |&task: &ClaimId| {
            let run = self.enclosing(task).last().map_or(task, |(root, _)| root);
            let holds = self.enclosing(task).flat_map(|(_, takes)| takes.iter().map(|(of, _)| name(of))).collect();
            let key = self.waiting.get(&task).map(|waiting| &self.classes[waiting.class].key);
            let open = key.iter().flat_map(|key| key.needs.iter().map(|(of, _)| name(of)));
            let wants = open.chain(key.iter().flat_map(|key| key.covered.iter().map(|(of, ..)| name(of)))).collect();
            InCircle { task, run, holds, wants }
        };
        circle.iter().map(one).collect()
    }

    /// With `promises`, a claim also waits for every claim above it that needs one of its resources. Claims that a lowered total made
    /// unsatisfiable, or that wait for a paused resource, are not counted: raising it lets them go.
    fn reduce(&self, promises: bool) -> Reduction {
        let mut left = self.all_bodies_that_wait_for_nothing_ended(promises);
        loop {
            let ended = left.leases.iter().copied().find(|id| self.can_end(*id, &left));
            if let Some(id) = ended {
                left.leases.remove(&id);
                for (resource, units) in self.leases.get(&id).iter().flat_map(|lease| lease.takes.iter()) {
                    *left.free.entry(*resource).or_default() += i128::from(*units);
                }
                continue;
            }
            let Some((class, rank)) = left.claims.iter().find_map(|(class, queue)| {
                let (rank, id) = queue.first_key_value()?;
                self.can_go(*class, *rank, *id, &left, promises).then_some((*class, *rank))
            }) else {
                return left;
            };
            let Some(queue) = left.claims.get_mut(&class) else {
                return left;
            };
            if let Some(id) = queue.remove(&rank) {
                left.ids.remove(&id);
            }
            if queue.is_empty() {
                left.claims.remove(&class);
            }
        }
    }

    fn all_bodies_that_wait_for_nothing_ended(&self, promises: bool) -> Reduction {
        let counted =
            |class: &ClassIx| (promises || self.classes[*class].key.parent.is_some()) && self.is_satisfiable(*class);
        let claims: BTreeMap<ClassIx, BTreeMap<Rank, ClaimId>> =
            self.classes.iter().filter(|(at, _)| counted(at)).map(|(at, class)| (at, class.queue.clone())).collect();
        let ids = claims.values().flat_map(|queue| queue.values().copied()).collect();
        let mut free: BTreeMap<ResourceIx, i128> =
            self.resources.iter().map(|(at, resource)| (at, i128::from(resource.capacity()))).collect();
        for id in &self.parents {
            for (resource, units) in self.leases.get(id).iter().flat_map(|lease| lease.takes.iter()) {
                *free.entry(*resource).or_default() -= i128::from(*units);
            }
        }
        Reduction { free, leases: self.parents.clone(), claims, ids }
    }

    fn can_end(&self, id: ClaimId, left: &Reduction) -> bool {
        let body = self.leases.get(&id).and_then(|lease| lease.body.as_ref());
        body.is_none_or(|body| body.running.is_disjoint(&left.leases) && body.waiting.is_disjoint(&left.ids))
    }

    fn can_go(&self, class: ClassIx, rank: Rank, id: ClaimId, left: &Reduction, promises: bool) -> bool {
        let key = &self.classes[class].key;
        let enough = |(resource, units): &(ResourceIx, u64)| {
            left.free.get(resource).is_some_and(|free| *free >= i128::from(*units))
        };
        key.needs.iter().all(enough)
            && !(self.is_cover_short(class, rank) && self.siblings_left(class, id, left))
            && !(promises && left.claims.iter().any(|(other, queue)| self.is_above(*other, queue, class, rank)))
    }

    /// True when bodies that cannot end use too much of what a holder has for it, or an earlier claim for that waits.
    fn siblings_left(&self, class: ClassIx, id: ClaimId, left: &Reduction) -> bool {
        let call = |id: &ClaimId| self.waiting.get(id).map(|waiting| waiting.place.call);
        self.classes[class].key.covered.iter().any(|&(resource, units, holder)| {
            let Some(body) = self.leases.get(&holder) else { return false };
            let users = left.leases.iter().filter_map(|lease| self.leases.get(lease));
            let used: u64 = users.map(|user| covered_by(&user.covered, resource, holder)).sum();
            let earlier = |(other, queue): (&ClassIx, &BTreeMap<Rank, ClaimId>)| {
                covered_by(&self.classes[*other].key.covered, resource, holder) > 0
                    && queue.values().any(|other| call(other) < call(&id))
            };
            used + units > body.has(resource) || left.claims.iter().any(earlier)
        })
    }

    fn is_above(&self, other: ClassIx, queue: &BTreeMap<Rank, ClaimId>, class: ClassIx, rank: Rank) -> bool {
        let (theirs, ours) = (&self.classes[other].key.needs, &self.classes[class].key.needs);
        queue.first_key_value().is_some_and(|(first, _)| *first < rank)
            && theirs.iter().any(|(resource, _)| ours.iter().any(|(of, _)| of == resource))
    }
}
