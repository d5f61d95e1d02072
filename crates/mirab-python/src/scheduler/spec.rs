//! What alike tasks have in common, converted once for all of them.
use super::seconds::nanos;
use mirab_flow::scheduler::{Retry, TaskSpec};
use pyo3::prelude::*;

/// What alike tasks have in common.
#[pyclass(frozen, module = "mirab._native")]
pub struct Spec {
    pub(super) task: TaskSpec,
}

#[pymethods]
impl Spec {
    #[new]
    #[pyo3(signature = (pool, kind, resources, tags, timeout, retries, retry_delay, retry_max_delay))]
    #[expect(clippy::too_many_arguments, reason = "one for each field; Python passes them by position")]
    fn new(
        pool: String,
        kind: String,
        resources: Vec<(String, u64)>,
        tags: Vec<String>,
        timeout: Option<f64>,
        retries: u32,
        retry_delay: f64,
        retry_max_delay: f64,
    ) -> Self {
        let retry = Retry { retries, base: nanos(retry_delay), cap: nanos(retry_max_delay) };
        Self { task: TaskSpec { pool, kind, resources, tags, timeout: timeout.map(nanos), retry } }
    }
}
