//! A scheduler goes on from its file.
use super::{CodecError, Journal, Store};
use crate::cell::TaskCell;
use crate::directory::{Directory, Listed};
use crate::error::Error;
use crate::shard::Shard;
use crate::value::Payload;
use mirab_flow::scheduler::{StoredTask, StoredTasks, TaskEnd, TaskId};
use mirab_store::{Blob, Loaded, TaskJournal, TaskStoreError, TaskWriter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Live tasks, and ended ones with keys, oldest first.
pub(crate) struct Cells {
    live: Vec<Arc<TaskCell>>,
    kept: Vec<Arc<TaskCell>>,
}

type OpenedShard = (StoredTasks, Cells);

/// What is stored of each shard, and the thread that stores from now on.
pub(crate) fn open(
    store: &Store,
    shards: usize,
    directory: &Directory,
) -> Result<(Arc<TaskWriter>, Vec<OpenedShard>), Error> {
    let mut journal = TaskJournal::open(&store.path).map_err(failed)?;
    if let Some(last) = journal.last_shard().map_err(failed)?.map(usize::from).filter(|last| *last >= shards) {
        return Err(Error::InvalidOption(format!(
            "the store has tasks of {} shards, and {shards} are listed: list those that wrote it, in their order",
            last + 1
        )));
    }
    let mut opened = Vec::new();
    for number in 0..shards {
        let loaded = journal.load(u8::try_from(number).unwrap_or(u8::MAX)).map_err(failed)?;
        opened.push(take_up(loaded, directory)?);
    }
    let writer = Arc::new(TaskWriter::start(journal).map_err(|error| crate::builder::no_thread(&error))?);
    Ok((writer, opened))
}

fn failed(error: TaskStoreError) -> Error {
    Error::Store(Arc::new(error))
}

fn take_up(loaded: Loaded, directory: &Directory) -> Result<OpenedShard, Error> {
    let Loaded { stored, mut payloads, results } = loaded;
    let (mut live, mut kept) = (Vec::new(), Vec::new());
    for task in stored.tasks.values() {
        match &task.end {
            None => live.push(Arc::new(live_cell(task, payloads.remove(&task.id), directory)?)),
            Some(end) if task.key.is_some() => {
                if let Some(cell) = ended_cell(task, &end.end, end.attempts, &results, directory)? {
                    kept.push((end.order, Arc::new(cell)));
                }
            }
            Some(_) => {}
        }
    }
    kept.sort_unstable_by_key(|(order, _)| *order);
    let kept = kept.into_iter().map(|(_, cell)| cell).collect();
    Ok((stored, Cells { live, kept }))
}

fn live_cell(task: &StoredTask, payload: Option<Blob>, directory: &Directory) -> Result<TaskCell, Error> {
    let Some(pool) = directory.pools.get(task.spec.pool.as_str()) else {
        return Err(Error::InvalidOption(format!(
            "the store has task {} for pool {:?}, which is not declared: add that pool, with 0 slots if its tasks are to wait",
            task.id.0, task.spec.pool
        )));
    };
    let blob = payload.ok_or_else(|| unreadable("payload", task.id, &"it is not there".into()))?;
    let payload = coder(pool)?.decode_payload(&blob).map_err(|why| unreadable("payload", task.id, &why))?;
    let mut cell = cell(task, pool, Some(payload));
    // Attempts that were lost with their process come on top.
    cell.retries = cell.retries.saturating_add(task.progress.attempts).saturating_add(1);
    Ok(cell)
}

/// `None` of a pool that is not there any more: nobody can submit to it.
fn ended_cell(
    task: &StoredTask,
    end: &TaskEnd,
    attempts: u32,
    results: &BTreeMap<TaskId, Blob>,
    directory: &Directory,
) -> Result<Option<TaskCell>, Error> {
    let Some(pool) = directory.pools.get(task.spec.pool.as_str()) else { return Ok(None) };
    let cell = cell(task, pool, None);
    let value = match (end, results.get(&task.id)) {
        (TaskEnd::Completed, Some(blob)) => {
            Some(coder(pool)?.decode_result(blob).map_err(|why| unreadable("result", task.id, &why))?)
        }
        (TaskEnd::Completed, None) => return Err(unreadable("result", task.id, &"it is not there".into())),
        _ => None,
    };
    cell.note(attempts, value.ok_or(None));
    cell.resolve(end.clone());
    Ok(Some(cell))
}

fn cell(task: &StoredTask, pool: &Arc<Listed>, payload: Option<Payload>) -> TaskCell {
    let key = task.key.as_ref().map(|(key, _)| key.as_str().into());
    let cell = TaskCell::new(task.id, Arc::clone(pool), key, task.spec.retry.retries, payload);
    cell.accept(Ok(()));
    cell.with_coder(pool.coder.clone())
}

fn coder(pool: &Listed) -> Result<&Arc<dyn super::Coder>, Error> {
    pool.coder.as_ref().ok_or_else(|| pool.without_codec())
}

fn unreadable(what: &str, id: TaskId, why: &CodecError) -> Error {
    Error::InvalidOption(format!(
        "the {what} of task {} in the store cannot be read ({why}): start with the types and the codec that wrote it",
        id.0
    ))
}

impl Shard {
    /// What was stored goes on, before anything else happens.
    pub fn go_on(self: &Arc<Self>, cells: Cells, journal: Journal) {
        self.step(|state, _| {
            state.journal = Some(journal);
            state.tasks.extend(cells.live.into_iter().map(|task| (task.id, task)));
            cells.kept.iter().for_each(|task| state.keep(task));
        });
    }
}

impl Listed {
    pub(crate) fn encode(&self, payload: &Payload) -> Result<Blob, Error> {
        coder(self)?.encode_payload(payload).map_err(|why| {
            let name = &self.name;
            Error::InvalidOption(format!(
                "the payload for pool {name:?} cannot be stored: {why}; submit one that its codec writes"
            ))
        })
    }

    pub(crate) fn without_codec(&self) -> Error {
        Error::InvalidOption(format!(
            "pool {:?} does not say how its payloads and results are stored, which a scheduler with a store needs: add .stored::<P, R>() to it",
            self.name
        ))
    }
}
