//! The SQL. Statements are prepared once and kept.
use super::{Blob, Entry, Loaded};
use crate::codec::{Fields, json, number, place, time};
use mirab_core::{BucketState, Time};
use mirab_flow::scheduler::{
    MachineCounters, On, Progress, Retry, StoredEnd, StoredStage, StoredTask, TaskCounts, TaskEnd, TaskFact, TaskId,
    TaskSpec,
};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, Result, Row, params};
use std::collections::BTreeMap;

const TASK: &str = "id, pool, kind, resources, tags, timeout, retries, retry_base, retry_cap, key, digest, after, not_before, stage, \
     stage_at, priority, attempts, lost, place_seq, place_call, place_joined_at, start_by, delayed";
const END: &str = "end_order, end, end_message, end_attempts, end_priority";
const COUNTERS: &str =
    "next_id, next_seq, next_fence, submitted, started, retried, completed, failed, cancelled, expired, skipped";

/// The last shard that has live tasks.
pub(super) fn last_shard(conn: &Connection) -> Result<Option<u8>> {
    let mut ids = conn.prepare("SELECT id FROM tasks WHERE end IS NULL")?;
    let shards = ids.query_map([], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned() >> 56) as u8))?;
    shards.into_iter().try_fold(None, |last, shard| Ok(last.max(Some(shard?))))
}

pub(super) fn put(conn: &Connection, entry: &Entry) -> Result<()> {
    match entry {
        Entry::Fact(shard, fact) => put_fact(conn, *shard, fact),
        Entry::Payload(id, blob) => put_blob(conn, "INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)", *id, blob),
        Entry::Result(id, blob) => put_blob(conn, "INSERT OR REPLACE INTO results VALUES (?, ?, ?)", *id, blob),
    }
}

fn put_fact(conn: &Connection, shard: u8, fact: &TaskFact) -> Result<()> {
    match fact {
        TaskFact::Accepted(task) => insert(conn, task),
        TaskFact::Changed(id, progress) => change(conn, *id, progress),
        TaskFact::Ended(id, end) => set_end(conn, *id, end),
        TaskFact::Forgotten(id) => {
            delete(conn, "DELETE FROM tasks WHERE id = ?", *id)?;
            delete(conn, "DELETE FROM results WHERE task = ?", *id)
        }
        TaskFact::Bucket(name, state) => put_bucket(conn, shard, name, *state),
        TaskFact::BucketForgotten(name) => conn
            .prepare_cached("DELETE FROM buckets WHERE shard = ? AND name = ?")?
            .execute(params![shard, name])
            .map(drop),
        TaskFact::Counters(counters) => put_counters(conn, shard, *counters),
    }
}

fn put_blob(conn: &Connection, sql: &str, id: TaskId, blob: &Blob) -> Result<()> {
    conn.prepare_cached(sql)?.execute(params![number(id.0), blob.codec, blob.bytes]).map(drop)
}

fn delete(conn: &Connection, sql: &str, id: TaskId) -> Result<()> {
    conn.prepare_cached(sql)?.execute([number(id.0)]).map(drop)
}

fn insert(conn: &Connection, task: &StoredTask) -> Result<()> {
    let (spec, at) = (&task.spec, &task.progress);
    let after: Vec<(u64, &str)> = task.after.iter().map(|(id, on)| (id.0, on_word(*on))).collect();
    let (stage, stage_at) = stage_columns(at.stage);
    let (seq, call, joined_at) = place(at.place);
    let sql = "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL)";
    let values = params![
        number(task.id.0),
        spec.pool,
        spec.kind,
        json(&spec.resources)?,
        json(&spec.tags)?,
        spec.timeout.map(number),
        spec.retry.retries,
        number(spec.retry.base),
        number(spec.retry.cap),
        task.key.as_ref().map(|(key, _)| key),
        task.key.as_ref().map(|(_, digest)| number(*digest)),
        list(&after)?,
        task.not_before.map(time),
        stage,
        stage_at,
        at.priority,
        at.attempts,
        at.lost,
        seq,
        call,
        joined_at,
        at.start_by.map(time),
        list(&at.delayed)?,
    ];
    conn.prepare_cached(sql)?.execute(values).map(drop)
}

fn change(conn: &Connection, id: TaskId, at: &Progress) -> Result<()> {
    let (stage, stage_at) = stage_columns(at.stage);
    let (seq, call, joined_at) = place(at.place);
    let sql = "UPDATE tasks SET stage = ?2, stage_at = ?3, priority = ?4, attempts = ?5, lost = ?6, place_seq = ?7, place_call = ?8, \
               place_joined_at = ?9, start_by = ?10, delayed = ?11 WHERE id = ?1";
    let (start_by, delayed) = (at.start_by.map(time), list(&at.delayed)?);
    let id = number(id.0);
    let values =
        params![id, stage, stage_at, at.priority, at.attempts, at.lost, seq, call, joined_at, start_by, delayed];
    conn.prepare_cached(sql)?.execute(values).map(drop)
}

fn set_end(conn: &Connection, id: TaskId, end: &StoredEnd) -> Result<()> {
    let (word, message) = match &end.end {
        TaskEnd::Completed => ("Completed", None),
        TaskEnd::Failed { message, timed_out: false } => ("Failed", Some(message)),
        TaskEnd::Failed { message, timed_out: true } => ("TimedOut", Some(message)),
        TaskEnd::Cancelled => ("Cancelled", None),
        TaskEnd::Expired => ("Expired", None),
        TaskEnd::Skipped { reason } => ("Skipped", Some(reason)),
    };
    let sql = "UPDATE tasks SET end_order = ?2, end = ?3, end_message = ?4, end_attempts = ?5, end_priority = ?6 WHERE id = ?1";
    let values = params![number(id.0), number(end.order), word, message, end.attempts, end.priority];
    conn.prepare_cached(sql)?.execute(values)?;
    delete(conn, "DELETE FROM payloads WHERE task = ?", id)
}

fn put_bucket(conn: &Connection, shard: u8, name: &str, state: BucketState) -> Result<()> {
    let BucketState { scaled, scale, at, cooling_until } = state;
    let values = params![shard, name, scaled.to_string(), scale.to_string(), time(at), time(cooling_until)];
    conn.prepare_cached("INSERT OR REPLACE INTO buckets VALUES (?, ?, ?, ?, ?, ?)")?.execute(values).map(drop)
}

fn put_counters(conn: &Connection, shard: u8, counters: MachineCounters) -> Result<()> {
    let MachineCounters { next_id, next_seq, next_fence, counts } = counters;
    let TaskCounts { submitted, started, retried, completed, failed, cancelled, expired, skipped } = counts;
    let numbers = [
        u64::from(shard),
        next_id,
        next_seq,
        next_fence,
        submitted,
        started,
        retried,
        completed,
        failed,
        cancelled,
        expired,
        skipped,
    ];
    let sql = "INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    conn.prepare_cached(sql)?.execute(numbers.map(number)).map(drop)
}

pub(super) fn load(conn: &Connection, shard: u8) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    // Ids of a shard lie together, also where the sign bit is set.
    let first = number(u64::from(shard) << 56);
    let ids = [first, first | ((1 << 56) - 1)];
    let mut tasks = conn.prepare(&format!("SELECT {TASK}, {END} FROM tasks WHERE id BETWEEN ? AND ?"))?;
    for task in tasks.query_map(ids, read_task)? {
        let task = task?;
        loaded.stored.tasks.insert(task.id, task);
    }
    loaded.payloads = blobs(conn, "SELECT task, codec, bytes FROM payloads WHERE task BETWEEN ? AND ?", ids)?;
    loaded.results = blobs(conn, "SELECT task, codec, bytes FROM results WHERE task BETWEEN ? AND ?", ids)?;
    let mut buckets = conn.prepare("SELECT name, scaled, scale, at, cooling_until FROM buckets WHERE shard = ?")?;
    loaded.stored.buckets = buckets.query_map([shard], read_bucket)?.collect::<Result<_>>()?;
    let mut counters = conn.prepare(&format!("SELECT {COUNTERS} FROM counters WHERE shard = ?"))?;
    if let Some(found) = counters.query_map([shard], read_counters)?.next() {
        loaded.stored.counters = found?;
    }
    Ok(loaded)
}

fn blobs(conn: &Connection, sql: &str, ids: [i64; 2]) -> Result<BTreeMap<TaskId, Blob>> {
    let read = |row: &Row<'_>| {
        let mut fields = Fields::of(row);
        Ok((TaskId(fields.number()?), Blob { codec: fields.plain()?, bytes: fields.plain()? }))
    };
    conn.prepare(sql)?.query_map(ids, read)?.collect()
}

fn read_bucket(row: &Row<'_>) -> Result<(String, BucketState)> {
    let mut fields = Fields::of(row);
    let name = fields.plain()?;
    let (scaled, scale) = (fields.word()?, fields.word()?);
    Ok((name, BucketState { scaled, scale, at: fields.time()?, cooling_until: fields.time()? }))
}

fn read_counters(row: &Row<'_>) -> Result<MachineCounters> {
    let mut fields = Fields::of(row);
    Ok(MachineCounters {
        next_id: fields.number()?,
        next_seq: fields.number()?,
        next_fence: fields.number()?,
        counts: TaskCounts {
            submitted: fields.number()?,
            started: fields.number()?,
            retried: fields.number()?,
            completed: fields.number()?,
            failed: fields.number()?,
            cancelled: fields.number()?,
            expired: fields.number()?,
            skipped: fields.number()?,
        },
    })
}

fn read_task(row: &Row<'_>) -> Result<StoredTask> {
    let mut fields = Fields::of(row);
    let id = TaskId(fields.number()?);
    let spec = TaskSpec {
        pool: fields.plain()?,
        kind: fields.plain()?,
        resources: fields.json()?,
        tags: fields.json()?,
        timeout: fields.optional_number()?,
        retry: Retry { retries: fields.plain()?, base: fields.number()?, cap: fields.number()? },
    };
    let (key, digest) = (fields.plain::<Option<String>>()?, fields.optional_number()?);
    let after: Vec<(u64, String)> = fields.optional_json()?.unwrap_or_default();
    let after = after.into_iter().map(|(id, on)| Ok((TaskId(id), read_on(&on)?))).collect::<Result<_>>()?;
    let not_before = fields.optional_time()?;
    let progress = read_progress(&mut fields)?;
    Ok(StoredTask { id, spec, key: key.zip(digest), after, not_before, progress, end: read_end(&mut fields)? })
}

fn read_progress(fields: &mut Fields<'_, '_>) -> Result<Progress> {
    let (word, at): (String, _) = (fields.plain()?, fields.optional_time()?);
    Ok(Progress {
        stage: read_stage(&word, at)?,
        priority: fields.plain()?,
        attempts: fields.plain()?,
        lost: fields.plain()?,
        place: fields.optional_place()?,
        start_by: fields.optional_time()?,
        delayed: fields.optional_json()?.unwrap_or_default(),
    })
}

fn read_end(fields: &mut Fields<'_, '_>) -> Result<Option<StoredEnd>> {
    let Some(order) = fields.optional_number()? else { return Ok(None) };
    let (word, message): (String, Option<String>) = (fields.plain()?, fields.plain()?);
    let message = message.unwrap_or_default();
    let end = match word.as_str() {
        "Completed" => TaskEnd::Completed,
        "Failed" => TaskEnd::Failed { message, timed_out: false },
        "TimedOut" => TaskEnd::Failed { message, timed_out: true },
        "Cancelled" => TaskEnd::Cancelled,
        "Expired" => TaskEnd::Expired,
        "Skipped" => TaskEnd::Skipped { reason: message },
        _ => return Err(unknown(&word)),
    };
    Ok(Some(StoredEnd { order, end, attempts: fields.plain()?, priority: fields.plain()? }))
}

fn stage_columns(stage: StoredStage) -> (&'static str, Option<i64>) {
    match stage {
        StoredStage::Blocked => ("Blocked", None),
        StoredStage::Due(at) => ("Due", Some(time(at))),
        StoredStage::Queued(since) => ("Queued", Some(time(since))),
        StoredStage::Running => ("Running", None),
        StoredStage::Cancelling => ("Cancelling", None),
    }
}

fn read_stage(word: &str, at: Option<Time>) -> Result<StoredStage> {
    match (word, at) {
        ("Blocked", _) => Ok(StoredStage::Blocked),
        ("Due", Some(at)) => Ok(StoredStage::Due(at)),
        ("Queued", Some(since)) => Ok(StoredStage::Queued(since)),
        ("Running", _) => Ok(StoredStage::Running),
        ("Cancelling", _) => Ok(StoredStage::Cancelling),
        _ => Err(unknown(word)),
    }
}

fn on_word(on: On) -> &'static str {
    match on {
        On::Success => "success",
        On::Failure => "failure",
        On::Completion => "completion",
    }
}

fn read_on(word: &str) -> Result<On> {
    [On::Success, On::Failure, On::Completion].into_iter().find(|on| on_word(*on) == word).ok_or_else(|| unknown(word))
}

/// Most tasks have none of it.
fn list<T: serde::Serialize>(items: &[T]) -> Result<Option<String>> {
    if items.is_empty() { Ok(None) } else { json(&items).map(Some) }
}

/// A column holds what this program did not write.
fn unknown(word: &str) -> Error {
    Error::FromSqlConversionFailure(0, Type::Text, format!("{word:?} is no word of this column").into())
}
