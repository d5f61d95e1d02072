//! The gate: one for each shard. Every start of work goes through it.
//!
//! Its parts: `declare` (resources and limits), `tokens` (corrections of buckets), `submit` (claims that join, leave or move), `release`
//! (leases that end), `pump` and `start` (what may start now), `guard` (who may pass whom), `delay` (who was passed), `learn` (durations),
//! `timers` (when to look again), `circle` (runs that wait for each other), `explain` and `views` (why something waits).
mod blocks;
mod circle;
mod class;
mod declare;
mod delay;
mod explain;
mod guard;
mod holders;
mod idle;
mod learn;
mod lease;
mod line;
mod pump;
mod queue;
mod release;
mod resource;
mod restore;
mod start;
mod submit;
mod timers;
mod tokens;
mod tournament;
mod views;

use crate::api::{Counters, Name, Start, TimeoutReason};
use crate::config::DEFAULT_SHARD;
use crate::ids::{ClaimId, Fence};
use crate::lookup::{Lookup, NearLookup};
use crate::rank::{Head, Rank};
use crate::refusal::Refusal;
use crate::slab::Slab;
use crate::time::{SECOND, Time};
use class::{Claim, Class, ClassIx, ClassKey, Waiting};
use declare::{Declared, DeclaredIx};
use lease::{Lease, LeaseIx};
use resource::{Resource, ResourceIx};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Options of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateOptions {
    /// Nanoseconds of waiting that one point of priority is worth; `None`: order by priority alone.
    pub aging: Option<u64>,
    /// Nanoseconds that work of an unknown kind is expected to take, where nothing is known of its resources either.
    pub assumed_duration: u64,
    /// The shard it serves.
    pub shard: String,
}

impl Default for GateOptions {
    fn default() -> Self {
        Self { aging: None, assumed_duration: 10 * SECOND, shard: DEFAULT_SHARD.into() }
    }
}

/// Decides what may start now, what waits, in which order and why.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    options: GateOptions,
    /// The latest instant it was given: time never runs backwards.
    now: Time,
    /// Grows with every change that a decision may rest on.
    stamp: u64,
    next_seq: u64,
    next_fence: u64,
    declared: Slab<Declared>,
    declared_by_name: Lookup<Name, DeclaredIx>,
    /// Declared patterns in name order.
    patterns: BTreeMap<Name, DeclaredIx>,
    /// Names declared for another shard, with that shard.
    elsewhere: BTreeMap<String, String>,
    resources: Slab<Resource>,
    by_name: Lookup<Name, ResourceIx>,
    kinds: Vec<learn::Kind>,
    kind_by_name: Lookup<Name, learn::KindIx>,
    classes: Slab<Class>,
    by_key: Lookup<Arc<ClassKey>, ClassIx>,
    /// The key of the claim being submitted; its memory serves the next one.
    asked: ClassKey,
    /// The resource that was asked for last at each place of a request.
    asked_at: Vec<ResourceIx>,
    /// Claims that wait or hold.
    claims: NearLookup<ClaimId, Claim>,
    /// How many of them wait.
    waiting: u64,
    leases: Slab<Lease>,
    /// Leases that have something running or waiting inside.
    parents: BTreeSet<ClaimId>,
    delays: NearLookup<ClaimId, delay::Delay>,
    /// Claims that were passed in this step.
    newly_passed: Vec<ClaimId>,
    /// The best of those that are filed under each resource that they are short of.
    tops: tournament::Tournament,
    orders_read: views::OrdersRead,
    /// Classes whose head is to be decided on in this step.
    ready: BTreeSet<Head>,
    /// Classes that fit and are held back, best first.
    held: BTreeSet<Head>,
    /// Resources where so many are held back that others, which fit as well, are not looked at.
    crowded: BTreeSet<ResourceIx>,
    /// Classes of tasks among those held back.
    held_tasks: BTreeSet<ClassIx>,
    /// What the claim that was decided on last passes by starting.
    passing: Vec<(ClaimId, ResourceIx)>,
    /// True when nobody who could start as things are ranks above that claim.
    is_first: bool,
    /// Resources of which more may be free: this step has to look for claims there.
    touched: Vec<ResourceIx>,
    /// Buckets whose timers this step has to set anew.
    changed: Vec<ResourceIx>,
    /// Classes in which nobody waits, oldest first: they are kept for the next claim of their kind.
    kept: VecDeque<ClassIx>,
    timers: BTreeSet<(Time, ResourceIx)>,
    /// Buckets that are asked for different amounts: whom they protect, and so their timers, can change with any step.
    mixed: BTreeSet<ResourceIx>,
    overruns: timers::Overruns,
    /// Bucket instances of patterns that nobody uses, by the instant at which they are full again.
    idle: BTreeSet<(Time, ResourceIx)>,
    /// True while no claim may start, whatever is free.
    withheld: bool,
    starts: VecDeque<Start>,
    refused: VecDeque<(ClaimId, Refusal)>,
    delayed: VecDeque<(ClaimId, Name)>,
    counters: Counters,
}

impl Gate {
    /// An empty gate.
    #[must_use]
    pub fn new(mut options: GateOptions) -> Self {
        // Ranks hold 63 bits of it: 292 years.
        options.aging = options.aging.map(|aging| aging.min(i64::MAX as u64));
        Self { options, ..Self::default() }
    }

    /// The next admitted claim, in the order of starting.
    pub fn poll_start(&mut self) -> Option<Start> {
        self.starts.pop_front()
    }

    /// The next waiting claim that the gate refused: its wait would have closed a circle, or its run has ended.
    pub fn poll_refused(&mut self) -> Option<(ClaimId, Refusal)> {
        self.refused.pop_front()
    }

    /// The next waiting claim that could have started but for what passed it on a resource: nothing passes it there any more. To be
    /// stored with the work (see [`Gate::restore_delay`]).
    pub fn poll_delayed(&mut self) -> Option<(ClaimId, Name)> {
        self.delayed.pop_front()
    }

    /// When to call [`Gate::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Time, TimeoutReason)> {
        let tokens = self.timers.first().copied();
        match (tokens, self.overruns.next()) {
            (Some((at, _)), Some(overrun)) if overrun < at => Some((overrun, TimeoutReason::Overrun)),
            (Some((at, resource)), _) => {
                Some((at, TimeoutReason::Tokens { resource: self.resources[resource].name.to_string() }))
            }
            (None, overrun) => overrun.map(|at| (at, TimeoutReason::Overrun)),
        }
    }

    /// Lets start what time alone allows.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.pump();
    }

    /// Claims that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The fence of a live lease.
    #[must_use]
    pub fn lease(&self, id: ClaimId) -> Option<Fence> {
        self.lease_of(id).map(|lease| lease.fence)
    }

    /// Counters that only grow.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn lease_of(&self, id: ClaimId) -> Option<&Lease> {
        self.lease_ix(id).map(|at| &self.leases[at])
    }

    fn lease_of_mut(&mut self, id: ClaimId) -> Option<&mut Lease> {
        let at = self.lease_ix(id)?;
        Some(&mut self.leases[at])
    }

    fn lease_ix(&self, id: ClaimId) -> Option<LeaseIx> {
        self.claims.get(&id)?.lease()
    }

    fn waiting_of(&self, id: ClaimId) -> Option<Waiting> {
        self.claims.get(&id)?.waiting()
    }

    /// The rank of a waiting claim.
    fn rank(&self, waiting: Waiting) -> Rank {
        Rank::new(self.classes[waiting.class].key.priority, waiting.place, self.options.aging)
    }

    /// Takes the time over. Buckets whose instant has come are looked at in this step; a late call gives what is there now, not what
    /// an earlier call would have given besides: in no interval more than the burst and what the rate allows.
    fn advance(&mut self, now: Time) {
        self.stamp += 1;
        self.forget_orders();
        self.now = self.now.max(now);
        while let Some(&(at, resource)) = self.timers.first()
            && at <= self.now
        {
            self.timers.pop_first();
            if let Some(line) = self.resources[resource].line.as_mut() {
                line.timer = None;
            }
            self.touch(resource);
        }
    }

    /// More of a resource may be free: this step has to look for claims there.
    fn touch(&mut self, resource: ResourceIx) {
        if !self.resources[resource].touched {
            self.resources[resource].touched = true;
            self.touched.push(resource);
        }
    }
}
