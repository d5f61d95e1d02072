//! The worker runtime as a Python class. Values cross as JSON text, in the words of the HTTP protocol.
use crate::failure;
use mirab_client::{ClientError, Home, OnStop, Reported, RunningLease, Stop, Worker};
use mirab_wire::{ClaimRequest, Failure, Outcome};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Takes one lease after the other and speaks for the one that executes.
#[pyclass(frozen, module = "mirab._native")]
pub struct Engine {
    worker: Worker,
    on_stop: OnStop,
    running: Mutex<Option<Arc<RunningLease>>>,
}

#[derive(Deserialize)]
struct CompleteReport {
    result: Option<Value>,
}

#[derive(Deserialize)]
struct FailReport {
    error: Failure,
    cancelled: bool,
}

#[derive(Deserialize)]
struct TaskEnd {
    claim: u64,
    outcome: Outcome,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Settled {
    claim: Option<u64>,
    resource: String,
    actual: u64,
}

#[derive(Deserialize)]
struct Pause {
    claim: Option<u64>,
    resource: String,
    seconds: f64,
}

#[pymethods]
impl Engine {
    /// `on_stop` is called with `"cancel"` or `"stale"` from a native thread, at most once for a lease.
    #[new]
    fn new(home: PathBuf, worker: &str, project: &str, pool: &str, on_stop: Py<PyAny>) -> Self {
        let worker = Worker::new(Home::at(home), worker, project, pool);
        let on_stop: OnStop = Arc::new(move |stop| call_on_stop(&on_stop, stop));
        Self { worker, on_stop, running: Mutex::default() }
    }

    /// Waits for the next lease; `None` when this engine is to end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let taken = py.detach(|| {
            let lease = self.worker.next(Arc::clone(&self.on_stop))?.map(Arc::new);
            self.put(lease.clone());
            Ok(lease)
        });
        let lease = taken.map_err(|error| raise(py, &error))?;
        Ok(lease.map(|lease| to_json(lease.lease())))
    }

    /// Reports `{"result": ...}`. False: the lease was lost and nothing was stored.
    fn complete(&self, py: Python<'_>, json: &str) -> PyResult<bool> {
        let report: CompleteReport = from_json(json)?;
        self.report(py, |lease| lease.complete(report.result))
    }

    /// Reports `{"error": {...}, "cancelled": bool}`. False: the lease was lost and nothing was stored.
    fn fail(&self, py: Python<'_>, json: &str) -> PyResult<bool> {
        let report: FailReport = from_json(json)?;
        self.report(py, |lease| lease.fail(report.error, report.cancelled))
    }

    /// Gives a lost lease up without a word.
    fn abandon(&self, py: Python<'_>) {
        py.detach(|| {
            if let Some(lease) = self.put(None) {
                lease.abandon();
            }
        });
    }

    /// Waits until a task may start; takes a claim request without fence and wait, gives the claim.
    fn claim(&self, py: Python<'_>, json: &str) -> PyResult<String> {
        let mut request: Value = from_json(json)?;
        // The lease fills its own fence in; the field only has to be there to be read.
        request["fence"] = 0.into();
        let request: ClaimRequest = serde_json::from_value(request).map_err(|error| bad_json(&error))?;
        let lease = self.lease()?;
        let claim = py.detach(|| lease.claim(request)).map_err(|error| raise(py, &error))?;
        Ok(to_json(&claim))
    }

    /// Reports `{"claim": id, "outcome": ..., "error": ...}`; gives `{"retry_in_s": ...}`.
    fn end_claim(&self, py: Python<'_>, json: &str) -> PyResult<String> {
        let end: TaskEnd = from_json(json)?;
        let lease = self.lease()?;
        let answer = py.detach(|| lease.end_claim(end.claim, end.outcome, end.error));
        Ok(to_json(&answer.map_err(|error| raise(py, &error))?))
    }

    /// Says `{"claim": id or null, "resource": name, "actual": units}`.
    fn settle(&self, py: Python<'_>, json: &str) -> PyResult<()> {
        let Settled { claim, resource, actual } = from_json(json)?;
        let lease = self.lease()?;
        py.detach(|| lease.settle(claim, &resource, actual)).map_err(|error| raise(py, &error))
    }

    /// Says `{"claim": id or null, "resource": name, "seconds": number}`.
    fn cooldown(&self, py: Python<'_>, json: &str) -> PyResult<()> {
        let Pause { claim, resource, seconds } = from_json(json)?;
        let lease = self.lease()?;
        py.detach(|| lease.cooldown(claim, &resource, seconds)).map_err(|error| raise(py, &error))
    }
}

impl Engine {
    /// Reports with the interpreter's lock let go, since the heartbeat thread may be calling `on_stop` meanwhile.
    fn report<F>(&self, py: Python<'_>, report: F) -> PyResult<bool>
    where
        F: FnOnce(&RunningLease) -> mirab_client::Result<Reported> + Send,
    {
        let lease = self.lease()?;
        let reported = py.detach(|| {
            let reported = report(&lease)?;
            self.put(None);
            Ok(reported)
        });
        Ok(reported.map_err(|error| raise(py, &error))? == Reported::Accepted)
    }

    fn lease(&self) -> PyResult<Arc<RunningLease>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        running.ok_or_else(|| PyValueError::new_err("this engine executes no run now: call next() first"))
    }

    fn put(&self, lease: Option<Arc<RunningLease>>) -> Option<Arc<RunningLease>> {
        std::mem::replace(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner), lease)
    }
}

fn call_on_stop(on_stop: &Py<PyAny>, stop: Stop) {
    let word = match stop {
        Stop::Cancel => "cancel",
        Stop::Stale => "stale",
    };
    Python::attach(|py| {
        if let Err(error) = on_stop.call1(py, (word,)) {
            error.print(py);
        }
    });
}

fn raise(py: Python<'_>, error: &ClientError) -> PyErr {
    failure::raise(py, error.code(), &error.to_string())
}

fn from_json<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| bad_json(&error))
}

fn bad_json(error: &serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("this is not what the engine protocol expects: {error}"))
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("wire types are JSON")
}
