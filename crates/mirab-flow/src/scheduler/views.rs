//! What the machine knows, for who asks.
use super::TaskMachine;
use super::record::{Shape, Stage};
use super::spec::{PoolSpec, TaskCounts, TaskId, TaskState, TaskStatus};
use super::waits::Quantiles;
use mirab_core::{Counters, Explanation, ResourceView};

/// All that is going on in a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSnapshot {
    /// By name.
    pub pools: Vec<PoolSnapshot>,
    /// By name, declared ones and those in use.
    pub resources: Vec<ResourceSnapshot>,
    /// Tasks so far.
    pub counts: TaskCounts,
    /// Starts while a better-ranked task of the same pool could have started (0).
    pub priority_inversions: u64,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// Its limits.
    pub spec: PoolSpec,
    /// Tasks that wait: for their time, for others, or in line.
    pub waiting: u64,
    /// Attempts that execute.
    pub running: u64,
    /// Nanoseconds in line of those that started.
    pub waits: Quantiles,
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceSnapshot {
    /// As the gate enforces it.
    pub view: ResourceView,
    /// Nanoseconds in line of those that needed it (of all keys of a pattern together) and started.
    pub waits: Quantiles,
}

impl TaskMachine {
    /// Where a task stands; `None` for one that is not known or not remembered.
    #[must_use]
    pub fn status(&self, id: TaskId) -> Option<TaskStatus> {
        if let Some(ended) = self.ended.get(id) {
            let (attempts, priority, end) = (ended.attempts, ended.priority, Some(ended.end.clone()));
            return Some(TaskStatus { state: TaskState::Ended, attempts, priority, due_at: None, end });
        }
        let record = self.tasks.get(id)?;
        let (state, due_at) = match record.stage {
            Stage::Blocked(_) => (TaskState::Blocked, None),
            Stage::Due(at) if record.attempts > 0 => (TaskState::AwaitingRetry, Some(at)),
            Stage::Due(at) => (TaskState::Scheduled, Some(at)),
            Stage::Queued(_) => (TaskState::Queued, None),
            Stage::Running(_) => (TaskState::Running, None),
            Stage::Stopping(..) => (TaskState::Stopping, None),
        };
        Some(TaskStatus { state, attempts: record.attempts, priority: record.priority, due_at, end: None })
    }

    /// Why a task waits in line; `None` for one that does not.
    #[must_use]
    pub fn explain(&self, id: TaskId) -> Option<Explanation> {
        self.gate.explain(id.claim())
    }

    /// How many tasks of all rank ahead of one in line, plus one; `None` for one that is not in line.
    #[must_use]
    pub fn position(&self, id: TaskId) -> Option<u64> {
        self.gate.position(id.claim())
    }

    /// All that is going on.
    #[must_use]
    pub fn snapshot(&self) -> MachineSnapshot {
        let pools = self.pools.values().map(|pool| PoolSnapshot {
            spec: pool.spec.clone(),
            waiting: pool.queued,
            running: pool.running,
            waits: pool.waits.quantiles(),
        });
        let mine = self.gate.resources().into_iter().filter(|view| !view.name.starts_with("pool:"));
        let resources = mine.map(|view| {
            let waits = self.waits.get(&view.declared_as).map(super::waits::Waits::quantiles).unwrap_or_default();
            ResourceSnapshot { view, waits }
        });
        let Counters { priority_inversions, .. } = self.gate.counters();
        MachineSnapshot {
            pools: pools.collect(),
            resources: resources.collect(),
            counts: self.counts,
            priority_inversions,
        }
    }

    /// True when no task waits, executes, or is still to come.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Live tasks, in the order of their ids.
    pub fn live(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.ids()
    }

    /// A task started after so many nanoseconds in line.
    pub(super) fn count_start(&mut self, shape: &Shape, waited: u64) {
        if let Some(pool) = self.pools.get_mut(shape.spec.pool.as_str()) {
            pool.waits.add(waited);
            pool.queued -= 1;
            pool.running += 1;
        }
        for (name, _) in &shape.needs[1..] {
            if let Some(waits) = self.waits.get_mut(name) {
                waits.add(waited);
                continue;
            }
            let declared = self.gate.resolve(name).ok().and_then(|found| self.waits.get_mut(&found.declared_as));
            if let Some(waits) = declared {
                waits.add(waited);
            }
        }
    }
}
