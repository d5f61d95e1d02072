//! A `mirab.toml` for an embedded scheduler.
use super::seconds::seconds;
use crate::failure::raise;
use mirab_config::{ConfigError, ConfigFile, Role};
use mirab_core::Limit;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Name, permits of a semaphore, rate and burst of a token bucket, shard.
type Resource = (String, Option<u64>, f64, u64, String);

/// Name, slots, most queued, priority, shard, and where it is declared.
type Pool = (String, Option<u64>, Option<u64>, Option<i32>, Option<String>, String);

/// Seconds of `aging` and `assumed_duration`, resources, pools.
type Config = (Option<f64>, Option<f64>, Vec<Resource>, Vec<Pool>);

/// Reads the file; raises `InvalidConfig`.
#[pyfunction]
pub fn read_config(py: Python<'_>, path: PathBuf) -> PyResult<Config> {
    let read: Result<ConfigFile, ConfigError> = py.detach(|| ConfigFile::read_file(&path, Role::Embedded));
    let file = read.map_err(|error| raise(py, "InvalidConfig", &error.to_string()))?;
    let resources = file.resources.into_iter().map(|declared| {
        let config = declared.config;
        let (permits, rate, burst) = match config.limit {
            Limit::Semaphore { permits } => (Some(permits), 0.0, 0),
            Limit::TokenBucket { rate, burst } => (None, rate.as_f64(), burst),
        };
        (config.name, permits, rate, burst, config.shard)
    });
    let pools = file.pools.into_iter().map(|pool| {
        let place = pool.place.to_string();
        (pool.name, pool.slots, pool.max_queued, pool.priority, pool.shard, place)
    });
    let (aging, assumed) = (file.aging.map(seconds), file.assumed_duration.map(seconds));
    Ok((aging, assumed, resources.collect(), pools.collect()))
}
