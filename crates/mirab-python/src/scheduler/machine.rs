//! One shard's tasks and gate.
use super::effects::{effect_tuple, event_tuple};
use super::restored::{Restored, ended, live};
use super::seconds::{Clock, nanos};
use super::spec::Spec;
use super::store::{Journal, Store};
use super::views;
use crate::failure::raise;
use mirab_core::{Fence, GateOptions, Refusal, ResourceConfig};
use mirab_flow::scheduler::{
    Admission, Again, Limits, MachineOptions, On, PoolSpec, TaskError, TaskId, TaskMachine, TaskOutcome,
};
use mirab_store::{Blob, Loaded};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// One shard's tasks and gate. Every call takes the event loop's time, and leaves effects to poll.
#[pyclass(module = "mirab._native")]
pub struct Machine {
    machine: TaskMachine,
    options: MachineOptions,
    clock: Clock,
    /// Of a durable scheduler, until it ends.
    journal: Option<Journal>,
}

#[pymethods]
impl Machine {
    #[new]
    fn new(shard: String, number: u8, aging: Option<f64>, assumed_duration: f64, retained: usize) -> Self {
        let gate = GateOptions { aging: aging.map(nanos), assumed_duration: nanos(assumed_duration), shard };
        let options = MachineOptions { gate, shard_number: number, retained, durable: false };
        Self { machine: TaskMachine::new(options.clone()), options, clock: Clock::default(), journal: None }
    }

    fn set_semaphore(&mut self, py: Python<'_>, now: f64, name: &str, permits: u64, shard: &str) -> PyResult<()> {
        let config = ResourceConfig::semaphore(name, permits).in_shard(shard);
        self.machine.set_resource(self.clock.time(now), config).map_err(|refusal| refused(py, &refusal))
    }

    /// `limit` is rate and burst.
    fn set_bucket(&mut self, py: Python<'_>, now: f64, name: &str, limit: (f64, u64), shard: &str) -> PyResult<()> {
        let config = ResourceConfig::token_bucket(name, limit.0, limit.1).map(|config| config.in_shard(shard));
        let set = config.and_then(|config| self.machine.set_resource(self.clock.time(now), config));
        set.map_err(|refusal| refused(py, &refusal))
    }

    fn remove_resource(&mut self, py: Python<'_>, now: f64, name: &str) -> PyResult<()> {
        self.machine.remove_resource(self.clock.time(now), name).map_err(|refusal| refused(py, &refusal))
    }

    fn set_pool(
        &mut self,
        py: Python<'_>,
        now: f64,
        name: String,
        slots: u64,
        max_queued: Option<u64>,
    ) -> PyResult<()> {
        let spec = PoolSpec { name, slots, max_queued };
        self.machine.set_pool(self.clock.time(now), spec).map_err(|error| rejected(py, &error))
    }

    fn remove_pool(&mut self, py: Python<'_>, now: f64, name: &str) -> PyResult<()> {
        self.machine.remove_pool(self.clock.time(now), name).map_err(|error| rejected(py, &error))
    }

    /// The id of a task that needs nothing but what its spec says.
    fn submit(&mut self, py: Python<'_>, now: f64, spec: &Spec, priority: i32) -> PyResult<u64> {
        let admission = Admission { priority, ..Admission::default() };
        let submitted = self.machine.submit(self.clock.time(now), &spec.task, admission);
        submitted.map(|submitted| submitted.id.0).map_err(|error| rejected(py, &error))
    }

    /// The id of a task, and whether it is a new one. `times` are now, not before, and to start by; `key` is one with a
    /// digest of the payload; `after` are ids, each with `"success"`, `"failure"` or `"completion"`.
    fn submit_with(
        &mut self,
        py: Python<'_>,
        times: (f64, Option<f64>, Option<f64>),
        spec: &Spec,
        priority: i32,
        key: Option<(String, u64)>,
        after: Vec<(u64, String)>,
    ) -> PyResult<(u64, bool)> {
        let after = after.into_iter().map(|(id, on)| Ok((TaskId(id), on_of(&on)?))).collect::<PyResult<_>>()?;
        let (now, not_before, start_by) = times;
        let (not_before, start_by) = (not_before.map(|at| self.clock.time(at)), start_by.map(|at| self.clock.time(at)));
        let (key, digest) = key.map_or((None, 0), |(key, digest)| (Some(key), digest));
        let admission = Admission { priority, key, digest, not_before, start_by, after };
        let submitted = self.machine.submit(self.clock.time(now), &spec.task, admission);
        submitted.map(|submitted| (submitted.id.0, submitted.is_new)).map_err(|error| rejected(py, &error))
    }

    /// Takes up what is stored for it, with the resources (name, permits or rate and burst, shard) and pools (name, slots, most queued) that are
    /// declared. Gives live tasks, and ended ones with keys (see [`Restored`]).
    fn restore<'py>(
        &mut self,
        py: Python<'py>,
        now: f64,
        store: &Store,
        resources: Vec<Declared>,
        pools: Vec<(String, u64, Option<u64>)>,
    ) -> PyResult<Restored<'py>> {
        let Loaded { stored, payloads, results } = store.load(py, self.options.shard_number)?;
        let found = (live(py, &stored, &payloads), ended(py, &stored, &results));
        let resources = resources.into_iter().map(config).collect::<Result<_, _>>();
        let pools = pools.into_iter().map(|(name, slots, max_queued)| PoolSpec { name, slots, max_queued }).collect();
        let limits = Limits { resources: resources.map_err(|refusal| refused(py, &refusal))?, pools };
        self.options.durable = true;
        self.clock = Clock::since_epoch(now);
        let restored = TaskMachine::restore(self.options.clone(), &limits, stored, self.clock.time(now));
        self.machine = restored.map_err(|error| rejected(py, &error))?;
        Ok(found)
    }

    /// What happens from here on is stored, until that is ended with `None`.
    fn store_in(&mut self, store: Option<&Store>) {
        self.journal = store.and_then(|store| store.journal(self.options.shard_number));
    }

    fn put_payload(&mut self, id: u64, codec: String, bytes: Vec<u8>) {
        if let Some(journal) = &mut self.journal {
            journal.payload(TaskId(id), Blob { codec, bytes });
        }
    }

    fn put_result(&mut self, id: u64, codec: String, bytes: Vec<u8>) {
        if let Some(journal) = &mut self.journal {
            journal.result(TaskId(id), Blob { codec, bytes });
        }
    }

    /// Commits what has changed, under a number that the store tells once it is done. False when there is nothing to tell of.
    fn commit(&mut self, number: u64, waits: bool) -> bool {
        let facts = self.machine.take_facts();
        self.journal.as_mut().is_some_and(|journal| journal.commit(facts, number, waits))
    }

    /// The body of an attempt returned.
    fn completed(&mut self, now: f64, id: u64, fence: u64) -> bool {
        self.machine.finish(self.clock.time(now), TaskId(id), Fence(fence), TaskOutcome::Success, 0)
    }

    /// It failed. `again` are the seconds after which it is tried again; `None` as its retries say, below zero not at all.
    fn failed(&mut self, now: f64, id: u64, fence: u64, message: String, again: Option<f64>, random: u64) -> bool {
        let again = match again {
            None => Again::ByPolicy,
            Some(pause) if pause < 0.0 => Again::Never,
            Some(pause) => Again::After(nanos(pause)),
        };
        let outcome = TaskOutcome::Failure { message, again };
        self.machine.finish(self.clock.time(now), TaskId(id), Fence(fence), outcome, random)
    }

    /// It was stopped.
    fn stopped(&mut self, now: f64, id: u64, fence: u64, random: u64) -> bool {
        self.machine.finish(self.clock.time(now), TaskId(id), Fence(fence), TaskOutcome::Stopped, random)
    }

    fn cancel(&mut self, now: f64, id: u64) -> bool {
        self.machine.cancel(self.clock.time(now), TaskId(id))
    }

    fn reprioritise(&mut self, now: f64, id: u64, priority: i32) -> bool {
        self.machine.reprioritise(self.clock.time(now), TaskId(id), priority)
    }

    fn settle(&mut self, py: Python<'_>, now: f64, id: u64, fence: u64, resource: &str, actual: u64) -> PyResult<()> {
        let settled = self.machine.settle(self.clock.time(now), TaskId(id), Fence(fence), resource, actual);
        settled.map_err(|refusal| match refusal {
            Refusal::InvalidClaim { .. } => {
                raise(py, "StaleLease", "the attempt has ended: settle before its executor returns")
            }
            refusal => refused(py, &refusal),
        })
    }

    fn cooldown(&mut self, py: Python<'_>, now: f64, resource: &str, pause: f64) -> PyResult<()> {
        let state = self.machine.cooldown(self.clock.time(now), resource, nanos(pause));
        state.map(|_| ()).map_err(|refusal| refused(py, &refusal))
    }

    fn handle_timeout(&mut self, now: f64) {
        self.machine.handle_timeout(self.clock.time(now));
    }

    /// When to call `handle_timeout`, if nothing happens before.
    fn timeout(&self) -> Option<f64> {
        self.machine.poll_timeout().map(|at| self.clock.seconds(at))
    }

    /// What is to be carried out, in order; `None` when there is nothing.
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyTuple>>>> {
        let Some(first) = self.machine.poll_effect() else { return Ok(None) };
        let mut effects = vec![effect_tuple(py, self.clock, first)?];
        while let Some(effect) = self.machine.poll_effect() {
            effects.push(effect_tuple(py, self.clock, effect)?);
        }
        Ok(Some(effects))
    }

    fn watch(&mut self, on: bool) {
        self.machine.watch(on);
    }

    /// What has happened since the last call, while somebody watches.
    fn events<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        std::iter::from_fn(|| self.machine.poll_event()).map(|event| event_tuple(py, self.clock, event)).collect()
    }

    fn status(&self, id: u64) -> Option<String> {
        self.machine.status(TaskId(id)).map(|status| views::status(self.clock, status).to_string())
    }

    fn explain(&self, id: u64) -> Option<String> {
        let position = self.machine.position(TaskId(id));
        self.machine.explain(TaskId(id)).map(|told| views::explanation(self.clock, &told, position).to_string())
    }

    fn snapshot(&self) -> String {
        views::snapshot(&self.machine.snapshot()).to_string()
    }
}

/// A resource as the host declares it: name, permits of a semaphore, else rate and burst of a token bucket, and shard.
type Declared = (String, Option<u64>, (f64, u64), String);

fn config((name, permits, (rate, burst), shard): Declared) -> Result<ResourceConfig, Refusal> {
    let config = match permits {
        Some(permits) => ResourceConfig::semaphore(&name, permits),
        None => ResourceConfig::token_bucket(&name, rate, burst)?,
    };
    Ok(config.in_shard(&shard))
}

fn on_of(word: &str) -> PyResult<On> {
    match word {
        "success" => Ok(On::Success),
        "failure" => Ok(On::Failure),
        "completion" => Ok(On::Completion),
        _ => Err(PyValueError::new_err(format!("on={word:?}: expected \"success\", \"failure\" or \"completion\""))),
    }
}

fn refused(py: Python<'_>, refusal: &Refusal) -> PyErr {
    raise(py, refusal.code(), &refusal.to_string())
}

fn rejected(py: Python<'_>, error: &TaskError) -> PyErr {
    raise(py, error.code(), &error.to_string())
}
