//! Pools and resources, changed while work runs.
use super::TaskMachine;
use super::error::TaskError;
use super::spec::{On, PoolSpec, TaskEnd, TaskId};
use super::waits::Waits;
use mirab_core::{Refusal, ResourceConfig, Time, check_declared, near_names};
use std::sync::Arc;

/// A pool.
#[derive(Debug)]
pub(super) struct PoolRecord {
    pub spec: PoolSpec,
    /// Tasks that wait for their time, for others, or in line.
    pub queued: u64,
    /// Attempts that execute.
    pub running: u64,
    pub waits: Waits,
}

/// The name of a pool's slots in the gate.
pub(super) fn slot_name(pool: &str) -> String {
    format!("pool:{pool}")
}

/// Why a task can never come after one that ended like that; `None` if it can.
pub(super) fn is_broken(id: TaskId, on: On, end: &TaskEnd) -> Option<String> {
    let (ended, well) = match end {
        TaskEnd::Completed => ("Completed", on != On::Failure),
        TaskEnd::Failed { .. } => ("Failed", on != On::Success),
        TaskEnd::Cancelled => ("Cancelled", on == On::Completion),
        TaskEnd::Expired => ("Expired", on == On::Completion),
        TaskEnd::Skipped { .. } => ("Skipped", on == On::Completion),
    };
    let wanted = if on == On::Failure { "fail" } else { "complete" };
    (!well).then(|| format!("task {}, which was to {wanted} before, ended {ended}", id.0))
}

impl TaskMachine {
    /// Declares a resource or pattern, or gives a declared one another limit; takes effect in this step.
    ///
    /// # Errors
    /// `InvalidResource` for a name that cannot be declared.
    pub fn set_resource(&mut self, now: Time, mut config: ResourceConfig) -> Result<(), Refusal> {
        config.name = check_declared(&config.name)?;
        let (name, is_here) = (config.name.clone(), config.shard == self.options.gate.shard);
        self.gate.declare(now, config)?;
        if is_here {
            self.note_limit(&name);
            self.waits.entry(name).or_default();
        }
        self.drain(now);
        Ok(())
    }

    /// Takes a resource away.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceInUse` while it is held or waited for, `InvalidResource` for the product's own names.
    pub fn remove_resource(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        let name = check_declared(name)?;
        self.gate.remove(now, &name)?;
        self.waits.remove(&name);
        self.note_removal();
        self.drain(now);
        Ok(())
    }

    /// Adds a pool, or changes one; takes effect in this step.
    ///
    /// # Errors
    /// `InvalidResource` for a name that no pool can have.
    pub fn set_pool(&mut self, now: Time, spec: PoolSpec) -> Result<(), TaskError> {
        let name = check_declared(&spec.name)?;
        if name != spec.name || name.contains('*') {
            let why = "expected a name without `*` and without space around it".into();
            return Err(TaskError::InvalidPool { name: spec.name, why });
        }
        self.gate.declare(
            now,
            ResourceConfig::semaphore(&slot_name(&name), spec.slots).in_shard(&self.options.gate.shard),
        )?;
        match self.pools.get_mut(name.as_str()) {
            Some(pool) => pool.spec = spec,
            None => {
                let pool = PoolRecord { spec, queued: 0, running: 0, waits: Waits::default() };
                self.pools.insert(Arc::from(name), pool);
            }
        }
        self.drain(now);
        Ok(())
    }

    /// Takes a pool away.
    ///
    /// # Errors
    /// `UnknownPool`, `ResourceInUse` while a task waits for it or runs in it.
    pub fn remove_pool(&mut self, now: Time, name: &str) -> Result<(), TaskError> {
        let Some(pool) = self.pools.get(name) else { return Err(self.unknown_pool(name)) };
        if pool.queued + pool.running > 0 {
            return Err(TaskError::PoolInUse { name: name.into(), waiting: pool.queued, running: pool.running });
        }
        self.gate.remove(now, &slot_name(name))?;
        self.pools.remove(name);
        self.shapes.forget(name);
        Ok(())
    }

    pub(super) fn check_room(&self, name: &str) -> Result<(), TaskError> {
        let Some(pool) = self.pools.get(name) else { return Err(self.unknown_pool(name)) };
        match pool.spec.max_queued {
            Some(max_queued) if pool.queued >= max_queued => {
                Err(TaskError::QueueFull { pool: name.into(), queued: pool.queued, max_queued })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn unknown_pool(&self, name: &str) -> TaskError {
        let names = || self.pools.keys().map(|pool| &**pool);
        let near = near_names(name, names());
        let known = if near.is_empty() { names().take(10).map(str::to_owned).collect() } else { near };
        TaskError::UnknownPool { name: name.into(), known }
    }

    /// The pool of a live task: it is there as long as the task.
    pub(super) fn pool_of(&mut self, id: TaskId) -> &mut PoolRecord {
        let pool = self.tasks.get(id).and_then(|record| self.pools.get_mut(record.shape.spec.pool.as_str()));
        pool.expect("a pool is not taken away while it has tasks")
    }
}
