//! The gate with the work that goes through it: runs, their tasks, leases and flows.
//!
//! Each command takes the time, changes memory, and collects facts and effects that [`Orchestrator::take_step`] hands out. One file
//! holds one command or a few that belong together; `settle` turns what the gate decided into changes of state.
mod cancel;
mod create;
mod departed;
mod facts;
mod flows;
mod learned;
mod lease;
mod limits;
mod lost;
mod priority;
mod queries;
mod reasons;
mod report;
mod restore;
mod settle;
mod tasks;
mod timeouts;
mod tokens;
mod undeclared;

use crate::flow_spec::FlowSpec;
use crate::records::{Counters, LearnerKind, LeaseRecord, ProjectRecord};
use crate::run::Run;
use crate::step::Step;
use crate::task_run::TaskRun;
use crate::timers::Timers;
use mirab_core::{ClaimId, Fence, Gate, ResourceConfig, SECOND, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use create::{Created, NewRun};
pub use lease::{Leased, TakeLease};
pub use tasks::{NewTask, Outcome, TaskStatus};

/// The only pool of this version.
pub const POOL: &str = "default";
/// The resource that its slots are.
pub const DEFAULT_POOL: &str = "pool:default";
/// A lease lives so long after its last heartbeat, in nanoseconds.
pub const LEASE_LIFE: u64 = 15 * SECOND;
/// An offered run must be taken up within so many nanoseconds.
pub const HAND_OFF: u64 = 5 * SECOND;
/// The host has so many nanoseconds to say that the worker of a silent lease is gone.
pub const KILL_GRACE: u64 = 5 * SECOND;
/// Key of the stored setting that says how many slots the pool has.
pub const SLOTS_SETTING: &str = "max_engines";

/// What the host decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Declared resources and patterns by name, without the product's own.
    pub resources: BTreeMap<String, ResourceConfig>,
    /// Nanoseconds of waiting that one point of priority is worth; `None`: order by priority alone.
    pub aging: Option<u64>,
    /// Nanoseconds that work of a kind that is not known yet is expected to take; `None`: 10 s.
    pub assumed_duration: Option<u64>,
    /// Slots of the pool, unless a setting was stored.
    pub slots: u64,
    /// True when `slots` outranks a stored setting, as a flag does.
    pub slots_are_fixed: bool,
    /// The most slots that the pool may have.
    pub max_slots: u64,
    /// A body that was asked to stop has so many nanoseconds until its worker is killed.
    pub cancel_grace: u64,
}

/// What is declared in memory only: machines that are rebuilt from the store get it as it was when something was stored last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    /// With the limits as they are now.
    pub options: Options,
    /// All flows, by project and name.
    pub flows: BTreeMap<(String, String), FlowSpec>,
    /// Projects whose flows were set.
    pub discovered: BTreeSet<String>,
}

/// All live work, and the gate that decides what may start.
pub struct Orchestrator {
    /// Shared with the driver, and copied when it changes.
    declared: Arc<Declarations>,
    gate: Gate,
    /// The latest instant that was given: time does not run backwards here.
    now: Time,
    next_id: u64,
    next_event: u64,
    /// As they were stored last.
    stored_counters: Counters,
    projects: BTreeMap<String, ProjectRecord>,
    runs: BTreeMap<ClaimId, Run>,
    tasks: BTreeMap<ClaimId, TaskRun>,
    leases: BTreeMap<ClaimId, LeaseRecord>,
    /// The run that each worker has.
    workers: BTreeMap<String, ClaimId>,
    /// Leases without heartbeats: fenced, but they hold their units until their body is known to be gone.
    silent: BTreeSet<ClaimId>,
    /// Offered runs by project, in the order in which the gate admitted them (fences grow).
    offers: BTreeMap<String, BTreeSet<(Fence, ClaimId)>>,
    /// Live runs by project and flow.
    by_flow: BTreeMap<(String, String), BTreeSet<ClaimId>>,
    /// Runs by idempotency key, ended ones too.
    keys: BTreeMap<String, ClaimId>,
    /// Scheduled runs that are due, of projects whose flows, and so whose overlap policies, are not known yet.
    due_unknown: BTreeSet<ClaimId>,
    /// Waiting runs that are not in line, because their project is not served: no engine could take them up.
    parked: BTreeSet<ClaimId>,
    /// Joined the line in this step: looked at for a first shortage once the gate has decided.
    joined: Vec<ClaimId>,
    /// Kinds and declared names whose durations have changed in this step.
    learned: BTreeSet<(LearnerKind, String)>,
    /// The last total above 0 of declared names, as they were stored.
    totals: BTreeMap<String, u64>,
    departed: departed::Departed,
    undeclared: undeclared::Undeclared,
    timers: Timers,
    step: Step,
}

impl Orchestrator {
    /// Takes the time over, unless it is earlier than one that was given before.
    pub(crate) fn advance(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// Takes out all facts and effects since the last time.
    pub fn take_step(&mut self) -> Step {
        self.tell_learned();
        let counters = self.counters();
        if counters != self.stored_counters {
            self.stored_counters = counters;
            self.step.facts.push(crate::records::Fact::Counters(counters));
        }
        std::mem::take(&mut self.step)
    }

    /// The numbers that come next.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (next_seq, next_fence) = self.gate.next_numbers();
        Counters { next_id: self.next_id, next_seq, next_fence, next_event: self.next_event }
    }

    /// What must be given to a new orchestrator besides what is stored.
    #[must_use]
    pub fn declarations(&self) -> Arc<Declarations> {
        Arc::clone(&self.declared)
    }

    /// The gate, for reading.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    fn new_id(&mut self) -> ClaimId {
        let id = ClaimId(self.next_id);
        self.next_id += 1;
        id
    }
}
