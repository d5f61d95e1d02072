//! Runs that hold while their tasks wait can lock each other. Found by reduction over counting units, as in R. C. Holt, "Some
//! deadlock properties of computer systems" (1972): let every body that waits for nothing end, again and again; who is left is in a
//! circle or behind one.
use super::Gate;
use super::class::{Class, ClassIx, covered_by};
use super::resource::ResourceIx;
use crate::ids::ClaimId;
use crate::rank::{Rank, Seat};
use crate::refusal::{InCircle, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// What is left while bodies end, one after the other.
struct Reduction {
    /// Units that bodies hold which cannot end, by resource.
    used: BTreeMap<ResourceIx, u64>,
    /// Leases with something inside.
    leases: BTreeSet<ClaimId>,
    /// Waiting tasks, best rank first.
    tasks: Vec<Task>,
}

/// A waiting task.
#[derive(Clone, Copy)]
struct Task {
    rank: Rank,
    id: ClaimId,
    class: ClassIx,
    call: u64,
}

/// The line above the tasks, while it is gone through from the best rank on: a claim waits for every claim above it that needs one of
/// its resources and cannot go itself.
#[derive(Default)]
struct Above {
    /// Resources that a claim which cannot go needs.
    blocked: BTreeSet<ResourceIx>,
    /// Classes in no run of which all claims up to here can go, by the resources they need.
    passing: BTreeMap<ResourceIx, Vec<ClassIx>>,
    /// Where the first claim of a class stands that is to be looked at.
    heads: BTreeSet<(Rank, ClassIx)>,
}

impl Gate {
    /// Tasks inside a run that only a promise holds back, while the promised claim waits, through any chain, for that very run: the
    /// best-ranked of them starts all the same.
    pub(super) fn given_way(&mut self) -> Option<(ClassIx, Seat)> {
        if self.held_tasks.is_empty() {
            return None;
        }
        let stuck = self.reduce(true);
        let held = |task: &&Task| {
            let class = &self.classes[task.class];
            // Units of an enclosing body are had in the order of call, so there nobody but the head may go.
            self.held_tasks.contains(&task.class) && (task.rank == class.head || class.key.covered.is_empty())
        };
        let task = stuck.tasks.iter().find(held)?;
        let place = self.waiting_of(task.id)?.place;
        Some((task.class, Seat::new(place, self.options.aging)))
    }

    /// Refuses the newest task in a circle of leases, until there is no circle.
    pub(super) fn refuse_circles(&mut self) {
        if self.withheld {
            return;
        }
        loop {
            let circle = self.circle();
            let Some(&newest) = circle.iter().max_by_key(|id| self.waiting_of(**id).map(|waiting| waiting.place.call))
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
        let mut left: Vec<ClaimId> = self.reduce(false).tasks.into_iter().map(|task| task.id).collect();
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
        let needs = self.waiting_of(claim).map(|waiting| &self.classes[waiting.class].key.needs);
        let short = |resource: ResourceIx, units: u64| {
            self.resources[resource].bucket().is_none() && !self.resources[resource].has(units, self.now)
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
        let class = |id: ClaimId| self.waiting_of(id).map(|waiting| (&self.classes[waiting.class], waiting.place.call));
        let (Some((ours, our_call)), Some((theirs, their_call))) = (class(claim), class(other)) else { return false };
        ours.key.covered.iter().any(|&(resource, units, holder)| {
            let Some(lease) = self.lease_of(holder) else { return false };
            let uses =
                |id: ClaimId| self.lease_of(id).is_some_and(|user| covered_by(&user.key.covered, resource, holder) > 0);
            let is_short = lease.lent(resource) + units > lease.has(resource);
            (is_short && self.enclosing(other).any(|(id, _)| uses(id)))
                || (their_call < our_call && covered_by(&theirs.key.covered, resource, holder) > 0)
        })
    }

    /// The bodies around a waiting task, from the inside out, with what they hold.
    fn enclosing(&self, task: ClaimId) -> impl Iterator<Item = (ClaimId, &[(ResourceIx, u64)])> {
        let mut at = self.waiting_of(task).and_then(|waiting| self.classes[waiting.class].key.parent);
        std::iter::from_fn(move || {
            let id = at?;
            let lease = self.lease_of(id)?;
            at = lease.key.parent;
            Some((id, lease.takes()))
        })
    }

    fn tell(&self, circle: &[ClaimId]) -> Vec<InCircle> {
        let name = |resource: &ResourceIx| self.resources[*resource].name.to_string();
        let one = |&task: &ClaimId| {
            let run = self.enclosing(task).last().map_or(task, |(root, _)| root);
            let holds = self.enclosing(task).flat_map(|(_, takes)| takes.iter().map(|(of, _)| name(of))).collect();
            let key = self.waiting_of(task).map(|waiting| &self.classes[waiting.class].key);
            let open = key.iter().flat_map(|key| key.needs.iter().map(|(of, _)| name(of)));
            let wants = open.chain(key.iter().flat_map(|key| key.covered.iter().map(|(of, ..)| name(of)))).collect();
            InCircle { task, run, holds, wants }
        };
        circle.iter().map(one).collect()
    }

    /// With `line`, a claim also waits for every claim above it that needs one of its resources. Claims that a lowered total made
    /// unsatisfiable, or that wait for a paused resource, are not counted: raising it lets them go.
    fn reduce(&self, line: bool) -> Reduction {
        let mut left = self.with_all_that_wait_for_nothing_ended();
        loop {
            let before = (left.leases.len(), left.tasks.len());
            self.end_bodies(&mut left);
            self.let_go(&mut left, line);
            if before == (left.leases.len(), left.tasks.len()) {
                return left;
            }
        }
    }

    fn with_all_that_wait_for_nothing_ended(&self) -> Reduction {
        let mut left = Reduction { used: BTreeMap::new(), leases: self.parents.clone(), tasks: Vec::new() };
        for lease in self.parents.iter().filter_map(|id| self.lease_of(*id)) {
            for (resource, units) in lease.takes().iter() {
                *left.used.entry(*resource).or_default() += units;
            }
            for &id in lease.body().into_iter().flat_map(|body| &body.waiting) {
                let Some(waiting) = self.waiting_of(id) else { continue };
                if self.is_satisfiable(waiting.class) {
                    let (rank, class, call) = (self.rank(waiting), waiting.class, waiting.place.call);
                    left.tasks.push(Task { rank, id, class, call });
                }
            }
        }
        left.tasks.sort_unstable_by_key(|task| task.rank);
        left
    }

    /// Bodies with nothing inside that waits end, and give their units back.
    fn end_bodies(&self, left: &mut Reduction) {
        let waiting: BTreeSet<ClaimId> = left.tasks.iter().map(|task| task.id).collect();
        let can_end = |id: &ClaimId, leases: &BTreeSet<ClaimId>| {
            let body = self.lease_of(*id).and_then(|lease| lease.body());
            body.is_none_or(|body| body.running.is_disjoint(leases) && body.waiting.is_disjoint(&waiting))
        };
        while let Some(id) = left.leases.iter().copied().find(|id| can_end(id, &left.leases)) {
            left.leases.remove(&id);
            for (resource, units) in self.lease_of(id).iter().flat_map(|lease| lease.takes().iter()) {
                *left.used.entry(*resource).or_default() -= units;
            }
        }
    }

    /// Tasks that can go now, by rank, leave the line. One that goes frees nothing, so once from the best rank on is enough.
    fn let_go(&self, left: &mut Reduction, line: bool) {
        let mut above = Above::default();
        if line {
            self.let_others_go(&mut above);
        }
        let all = std::mem::take(&mut left.tasks);
        for task in &all {
            self.pass_down_to(task.rank, &mut above, left);
            let needs = &self.classes[task.class].key.needs;
            let free = self.enough(task.class, left) && !self.waits_for_siblings(task, left);
            if free && !(line && needs.iter().any(|(resource, _)| above.blocked.contains(resource))) {
                continue;
            }
            left.tasks.push(*task);
            if line {
                self.block(task.class, task.rank, &mut above);
            }
        }
    }

    /// All classes of claims in no run.
    fn let_others_go(&self, above: &mut Above) {
        let waits = |class: &Class| class.key.parent.is_none() && !class.queue.is_empty();
        let others = self.classes.iter().filter(|(at, class)| waits(class) && self.is_satisfiable(*at));
        above.heads = others.map(|(at, class)| (class.head, at)).collect();
    }

    /// Goes through the claims in no run that rank above `rank`.
    fn pass_down_to(&self, rank: Rank, above: &mut Above, left: &Reduction) {
        while let Some(&(head, class)) = above.heads.first()
            && head < rank
        {
            above.heads.pop_first();
            let needs = &self.classes[class].key.needs;
            if !self.enough(class, left) || needs.iter().any(|(resource, _)| above.blocked.contains(resource)) {
                self.block(class, head, above);
                continue;
            }
            // The whole class goes, up to the first claim after something that cannot go and needs the same.
            for (resource, _) in needs {
                above.passing.entry(*resource).or_default().push(class);
            }
        }
    }

    /// A claim that cannot go keeps all below it from its resources.
    fn block(&self, class: ClassIx, rank: Rank, above: &mut Above) {
        for (resource, _) in &self.classes[class].key.needs {
            if !above.blocked.insert(*resource) {
                continue;
            }
            for other in above.passing.remove(resource).unwrap_or_default() {
                let class = &self.classes[other];
                let seat = |seat: &Seat| seat.rank(class.key.priority, self.options.aging);
                if let Some(next) = class.queue.first_where(|at| seat(at) > rank) {
                    above.heads.insert((seat(&next), other));
                }
            }
        }
    }

    /// Is enough free for a class once all that can end has ended? Tokens come by themselves.
    fn enough(&self, class: ClassIx, left: &Reduction) -> bool {
        self.classes[class].key.needs.iter().all(|(resource, units)| {
            let free = i128::from(self.resources[*resource].capacity())
                - i128::from(left.used.get(resource).copied().unwrap_or(0));
            free >= i128::from(*units)
        })
    }

    /// True when bodies that cannot end use too much of what a holder has for it, or an earlier claim for that waits.
    fn waits_for_siblings(&self, task: &Task, left: &Reduction) -> bool {
        let key = &self.classes[task.class].key;
        key.covered.iter().any(|&(resource, units, holder)| {
            let Some(body) = self.lease_of(holder) else { return false };
            let users = left.leases.iter().filter_map(|lease| self.lease_of(*lease));
            let used: u64 = users.map(|user| covered_by(&user.key.covered, resource, holder)).sum();
            let earlier = |other: &Task| {
                other.call < task.call && covered_by(&self.classes[other.class].key.covered, resource, holder) > 0
            };
            used + units > body.has(resource) || left.tasks.iter().any(earlier)
        })
    }
}
