//! The gate: one for each shard. Every start of work goes through it.
//!
//! Its parts: `declare` (resources and limits), `submit` (claims that join, leave or move), `release` (leases that end),
//! `pump` (what may start now), `circle` (runs that wait for each other), `explain` (why something waits).
mod circle;
mod class;
mod declare;
mod explain;
mod learn;
mod lease;
mod pump;
mod release;
mod resource;
mod restore;
mod submit;

use crate::api::{Counters, Name, Start, TimeoutReason};
use crate::config::DEFAULT_SHARD;
use crate::ids::{ClaimId, Fence};
use crate::lookup::Lookup;
use crate::rank::Rank;
use crate::refusal::Refusal;
use crate::slab::Slab;
use crate::time::{SECOND, Time};
use class::{Class, ClassIx, ClassKey, Waiting};
use lease::Lease;
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
    next_seq: u64,
    next_fence: u64,
    resources: Slab<Resource>,
    by_name: Lookup<String, ResourceIx>,
    patterns: BTreeMap<String, declare::Declared>,
    /// Names declared for another shard, with that shard.
    elsewhere: BTreeMap<String, String>,
    classes: Slab<Class>,
    by_key: Lookup<Arc<ClassKey>, ClassIx>,
    waiting: Lookup<ClaimId, Waiting>,
    leases: Lookup<ClaimId, Lease>,
    /// Leases that have something running or waiting inside.
    parents: BTreeSet<ClaimId>,
    /// Classes whose head is to be decided on in this step.
    ready: BTreeSet<(Rank, ClassIx)>,
    /// Resources that this step has to look at.
    touched: Vec<ResourceIx>,
    /// Classes of tasks that were held back, though nothing was short, when last decided on.
    held_tasks: BTreeSet<ClassIx>,
    timers: BTreeSet<(Time, ResourceIx)>,
    /// Bucket instances of patterns that nobody uses, by the instant at which they are full again.
    idle: BTreeSet<(Time, ResourceIx)>,
    /// True while no claim may start, whatever is free.
    withheld: bool,
    starts: VecDeque<Start>,
    refused: VecDeque<(ClaimId, Refusal)>,
    delayed: VecDeque<(ClaimId, Name)>,
    learned: learn::Learned,
    counters: Counters,
}

impl Gate {
    /// An empty gate.
    #[must_use]
    pub fn new(options: GateOptions) -> Self {
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
        let &(at, resource) = self.timers.first()?;
        Some((at, TimeoutReason::Tokens { resource: self.resources[resource].name.to_string() }))
    }

    /// Lets start what time alone allows.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.pump();
    }

    /// Claims that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// The fence of a live lease.
    #[must_use]
    pub fn lease(&self, id: ClaimId) -> Option<Fence> {
        self.leases.get(&id).map(|lease| lease.fence)
    }

    /// Counters that only grow.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The rank of a waiting claim.
    fn rank(&self, waiting: &Waiting) -> Rank {
        Rank::new(self.classes[waiting.class].key.priority, waiting.place, self.options.aging)
    }

    /// Takes the time over. Buckets whose instant has come are looked at in this step; a late call gives what is there now, not what
    /// an earlier call would have given besides: in no interval more than the burst and what the rate allows.
    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(&(at, resource)) = self.timers.first()
            && at <= self.now
        {
            self.timers.pop_first();
            self.resources[resource].timer = None;
            self.touch(resource);
        }
    }

    /// Marks a resource to be looked at in this step.
    fn touch(&mut self, resource: ResourceIx) {
        if !self.resources[resource].touched {
            self.resources[resource].touched = true;
            self.touched.push(resource);
        }
    }
}
