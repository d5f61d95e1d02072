//! One shard's tasks and gate.
use super::effects::{effect_tuple, event_tuple};
use super::seconds::{nanos, seconds, time};
use super::spec::Spec;
use super::views;
use crate::failure::raise;
use mirab_core::{Fence, GateOptions, Refusal, ResourceConfig};
use mirab_flow::scheduler::{
    Admission, Again, MachineOptions, On, PoolSpec, TaskError, TaskId, TaskMachine, TaskOutcome,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// One shard's tasks and gate. Every call takes the event loop's time, and leaves effects to poll.
#[pyclass(module = "mirab._native")]
pub struct Machine {
    machine: TaskMachine,
}

#[pymethods]
impl Machine {
    #[new]
    fn new(shard: String, number: u8, aging: Option<f64>, assumed_duration: f64, retained: usize) -> Self {
        let gate = GateOptions { aging: aging.map(nanos), assumed_duration: nanos(assumed_duration), shard };
        Self { machine: TaskMachine::new(MachineOptions { gate, shard_number: number, retained, durable: false }) }
    }

    fn set_semaphore(&mut self, py: Python<'_>, now: f64, name: &str, permits: u64, shard: &str) -> PyResult<()> {
        let config = ResourceConfig::semaphore(name, permits).in_shard(shard);
        self.machine.set_resource(time(now), config).map_err(|refusal| refused(py, &refusal))
    }

    /// `limit` is rate and burst.
    fn set_bucket(&mut self, py: Python<'_>, now: f64, name: &str, limit: (f64, u64), shard: &str) -> PyResult<()> {
        let config = ResourceConfig::token_bucket(name, limit.0, limit.1).map(|config| config.in_shard(shard));
        let set = config.and_then(|config| self.machine.set_resource(time(now), config));
        set.map_err(|refusal| refused(py, &refusal))
    }

    fn remove_resource(&mut self, py: Python<'_>, now: f64, name: &str) -> PyResult<()> {
        self.machine.remove_resource(time(now), name).map_err(|refusal| refused(py, &refusal))
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
        self.machine.set_pool(time(now), spec).map_err(|error| rejected(py, &error))
    }

    fn remove_pool(&mut self, py: Python<'_>, now: f64, name: &str) -> PyResult<()> {
        self.machine.remove_pool(time(now), name).map_err(|error| rejected(py, &error))
    }

    /// The id of a task that needs nothing but what its spec says.
    fn submit(&mut self, py: Python<'_>, now: f64, spec: &Spec, priority: i32) -> PyResult<u64> {
        let admission = Admission { priority, ..Admission::default() };
        let submitted = self.machine.submit(time(now), &spec.task, admission);
        submitted.map(|submitted| submitted.id.0).map_err(|error| rejected(py, &error))
    }

    /// The id of a task, and whether it is a new one. `times` are now, not before, and to start by; `after` are ids, each with `"success"`, `"failure"` or `"completion"`.
    fn submit_with(
        &mut self,
        py: Python<'_>,
        times: (f64, Option<f64>, Option<f64>),
        spec: &Spec,
        priority: i32,
        key: Option<String>,
        after: Vec<(u64, String)>,
    ) -> PyResult<(u64, bool)> {
        let after = after.into_iter().map(|(id, on)| Ok((TaskId(id), on_of(&on)?))).collect::<PyResult<_>>()?;
        let (now, not_before, start_by) = times;
        let (not_before, start_by) = (not_before.map(time), start_by.map(time));
        // Payloads are compared by the host, which has them.
        let admission = Admission { priority, key, digest: 0, not_before, start_by, after };
        let submitted = self.machine.submit(time(now), &spec.task, admission);
        submitted.map(|submitted| (submitted.id.0, submitted.is_new)).map_err(|error| rejected(py, &error))
    }

    /// The body of an attempt returned.
    fn completed(&mut self, now: f64, id: u64, fence: u64) -> bool {
        self.machine.finish(time(now), TaskId(id), Fence(fence), TaskOutcome::Success, 0)
    }

    /// It failed. `again` are the seconds after which it is tried again; `None` as its retries say, below zero not at all.
    fn failed(&mut self, now: f64, id: u64, fence: u64, message: String, again: Option<f64>, random: u64) -> bool {
        let again = match again {
            None => Again::ByPolicy,
            Some(pause) if pause < 0.0 => Again::Never,
            Some(pause) => Again::After(nanos(pause)),
        };
        let outcome = TaskOutcome::Failure { message, again };
        self.machine.finish(time(now), TaskId(id), Fence(fence), outcome, random)
    }

    /// It was stopped.
    fn stopped(&mut self, now: f64, id: u64, fence: u64, random: u64) -> bool {
        self.machine.finish(time(now), TaskId(id), Fence(fence), TaskOutcome::Stopped, random)
    }

    fn cancel(&mut self, now: f64, id: u64) -> bool {
        self.machine.cancel(time(now), TaskId(id))
    }

    fn reprioritise(&mut self, now: f64, id: u64, priority: i32) -> bool {
        self.machine.reprioritise(time(now), TaskId(id), priority)
    }

    fn settle(&mut self, py: Python<'_>, now: f64, id: u64, fence: u64, resource: &str, actual: u64) -> PyResult<()> {
        let settled = self.machine.settle(time(now), TaskId(id), Fence(fence), resource, actual);
        settled.map_err(|refusal| refused(py, &refusal))
    }

    fn cooldown(&mut self, py: Python<'_>, now: f64, resource: &str, pause: f64) -> PyResult<()> {
        let state = self.machine.cooldown(time(now), resource, nanos(pause));
        state.map(|_| ()).map_err(|refusal| refused(py, &refusal))
    }

    fn handle_timeout(&mut self, now: f64) {
        self.machine.handle_timeout(time(now));
    }

    /// When to call `handle_timeout`, if nothing happens before.
    fn timeout(&self) -> Option<f64> {
        self.machine.poll_timeout().map(|at| seconds(at.0))
    }

    /// What is to be carried out, in order; `None` when there is nothing.
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyTuple>>>> {
        let Some(first) = self.machine.poll_effect() else { return Ok(None) };
        let mut effects = vec![effect_tuple(py, first)?];
        while let Some(effect) = self.machine.poll_effect() {
            effects.push(effect_tuple(py, effect)?);
        }
        Ok(Some(effects))
    }

    fn watch(&mut self, on: bool) {
        self.machine.watch(on);
    }

    /// What has happened since the last call, while somebody watches.
    fn events<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        std::iter::from_fn(|| self.machine.poll_event()).map(|event| event_tuple(py, event)).collect()
    }

    fn status(&self, id: u64) -> Option<String> {
        self.machine.status(TaskId(id)).map(|status| views::status(status).to_string())
    }

    fn explain(&self, id: u64) -> Option<String> {
        let position = self.machine.position(TaskId(id));
        self.machine.explain(TaskId(id)).map(|told| views::explanation(&told, position).to_string())
    }

    fn snapshot(&self) -> String {
        views::snapshot(&self.machine.snapshot()).to_string()
    }
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
