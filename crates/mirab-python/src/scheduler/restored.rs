//! Stored tasks, as the host takes them up.
use super::effects::end_parts;
use mirab_flow::scheduler::{StoredTask, StoredTasks, TaskId};
use mirab_store::Blob;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

/// Codec and bytes.
type Stored<'py> = Option<(String, Bound<'py, PyBytes>)>;

/// Id, pool, key and payload.
type Live<'py> = (u64, String, Option<String>, Stored<'py>);

/// Id, pool, key, how it ended (the word, why, and whether it was its timeout), and its result.
type Ended<'py> = (u64, String, Option<String>, (&'static str, Option<String>, bool), Stored<'py>);

/// Live tasks, and ended ones with keys, oldest first.
pub type Restored<'py> = (Vec<Live<'py>>, Vec<Ended<'py>>);

pub fn live<'py>(py: Python<'py>, stored: &StoredTasks, payloads: &BTreeMap<TaskId, Blob>) -> Vec<Live<'py>> {
    let live = stored.tasks.values().filter(|task| task.end.is_none());
    live.map(|task| (task.id.0, task.spec.pool.clone(), key(task), blob(py, payloads.get(&task.id)))).collect()
}

pub fn ended<'py>(py: Python<'py>, stored: &StoredTasks, results: &BTreeMap<TaskId, Blob>) -> Vec<Ended<'py>> {
    let mut ended: Vec<_> = stored.tasks.values().filter_map(|task| Some((task.end.as_ref()?, task))).collect();
    ended.sort_unstable_by_key(|(end, _)| end.order);
    let with_key = ended.into_iter().filter(|(_, task)| task.key.is_some());
    with_key
        .map(|(end, task)| {
            let result = blob(py, results.get(&task.id));
            (task.id.0, task.spec.pool.clone(), key(task), end_parts(end.end.clone()), result)
        })
        .collect()
}

fn key(task: &StoredTask) -> Option<String> {
    task.key.as_ref().map(|(key, _)| key.clone())
}

fn blob<'py>(py: Python<'py>, blob: Option<&Blob>) -> Stored<'py> {
    blob.map(|blob| (blob.codec.clone(), PyBytes::new(py, &blob.bytes)))
}
