//! The life of tasks in pools: one [`TaskMachine`] for each shard of an embedded scheduler. The hosts (tokio, asyncio) pass time and inputs
//! in and carry effects out.
//!
//! ```
//! use mirab_core::{ResourceConfig, SECOND, Time};
//! use mirab_flow::scheduler::*;
//! let mut machine = TaskMachine::new(MachineOptions::default());
//! machine.set_resource(Time(0), ResourceConfig::semaphore("gpu", 1)).unwrap();
//! machine.set_pool(Time(0), PoolSpec::new("llm", 8)).unwrap();
//! let spec = TaskSpec { resources: vec![("gpu".into(), 1)], ..TaskSpec::new("llm") };
//! let first = machine.submit(Time(0), &spec, Admission::default()).unwrap();
//! let second = machine.submit(Time(0), &spec, Admission::default()).unwrap();
//! let Some(TaskEffect::Start(start)) = machine.poll_effect() else { panic!("it may start") };
//! assert_eq!((start.id, machine.poll_effect().is_none()), (first.id, true));
//! machine.finish(Time(SECOND), start.id, start.fence, TaskOutcome::Success, 0);
//! assert_eq!(machine.poll_effect(), Some(TaskEffect::Ended { id: first.id, end: TaskEnd::Completed }));
//! assert!(matches!(machine.poll_effect(), Some(TaskEffect::Start(start)) if start.id == second.id));
//! ```
mod by_id;
mod ended;
mod error;
mod facts;
mod finish;
mod limits;
mod notes;
mod record;
mod restore;
mod spec;
mod submit;
mod timing;
mod views;
mod waits;

pub use error::TaskError;
pub use facts::{MachineCounters, Progress, StoredEnd, StoredStage, StoredTask, StoredTasks, TaskFact};
pub use restore::Limits;
pub use spec::*;
pub use views::{MachineSnapshot, PoolSnapshot, ResourceSnapshot};
pub use waits::Quantiles;

use by_id::ById;
use ended::Ended;
use limits::PoolRecord;
use mirab_core::{Gate, GateOptions, Time};
use notes::Notes;
use record::{Record, Shapes};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use timing::Alarm;
use waits::Waits;

/// Options of a [`TaskMachine`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineOptions {
    /// Of its gate; its shard is the machine's.
    pub gate: GateOptions,
    /// Number of the shard among those of its scheduler: it stands in the top 8 bits of every [`TaskId`].
    pub shard_number: u8,
    /// So many ended tasks are remembered, for their keys, for tasks that come after them, and for who asks how they ended.
    pub retained: usize,
    /// Keeps facts of what changes, for a host that stores them (see [`TaskMachine::take_facts`]).
    pub durable: bool,
}

impl Default for MachineOptions {
    fn default() -> Self {
        Self { gate: GateOptions::default(), shard_number: 0, retained: 10_000, durable: false }
    }
}

/// Tasks of one shard, from submission to their end, and the gate that they pass.
///
/// Commands take the time, and leave effects to poll. No command waits.
#[derive(Debug)]
pub struct TaskMachine {
    options: MachineOptions,
    gate: Gate,
    next_id: u64,
    pools: BTreeMap<Arc<str>, PoolRecord>,
    tasks: ById<Record>,
    shapes: Shapes,
    /// Live and remembered tasks by their keys.
    keys: BTreeMap<Arc<str>, TaskId>,
    ended: Ended,
    alarms: BTreeSet<(Time, TaskId, Alarm)>,
    /// How long tasks waited, by declared resource.
    waits: BTreeMap<String, Waits>,
    effects: VecDeque<TaskEffect>,
    /// `None` while nobody watches.
    events: Option<VecDeque<TaskEvent>>,
    counts: TaskCounts,
    /// Of a durable machine.
    notes: Option<Notes>,
}

impl TaskMachine {
    /// A machine without pools and resources.
    #[must_use]
    pub fn new(options: MachineOptions) -> Self {
        Self {
            gate: Gate::new(options.gate.clone()),
            ended: Ended::new(options.retained),
            notes: options.durable.then(Notes::default),
            options,
            next_id: 1,
            pools: BTreeMap::new(),
            tasks: ById::default(),
            shapes: Shapes::default(),
            keys: BTreeMap::new(),
            alarms: BTreeSet::new(),
            waits: BTreeMap::new(),
            effects: VecDeque::new(),
            events: None,
            counts: TaskCounts::default(),
        }
    }

    /// The next thing to carry out, in order.
    pub fn poll_effect(&mut self) -> Option<TaskEffect> {
        self.effects.pop_front()
    }

    /// Keeps events from now on, or no more. They are kept until they are polled: the host bounds what it hands on.
    pub fn watch(&mut self, on: bool) {
        self.events = on.then(VecDeque::new);
    }

    /// The next event, while somebody watches.
    pub fn poll_event(&mut self) -> Option<TaskEvent> {
        self.events.as_mut()?.pop_front()
    }

    fn tell(&mut self, now: Time, id: TaskId, what: What) {
        if let Some(events) = self.events.as_mut() {
            events.push_back(TaskEvent { at: now, id, what });
        }
    }
}
