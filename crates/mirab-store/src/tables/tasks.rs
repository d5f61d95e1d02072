//! `task_runs`: the tasks inside runs.
use super::{rows, runs};
use crate::codec::{Fields, failure, json, number, place, time};
use mirab_core::ClaimId;
use mirab_flow::TaskRecord;
use rusqlite::{Connection, Result, Row, params};
use std::sync::LazyLock;

const COLUMNS: &str = "id, run, run_attempt, key, name, needs, parent, state, attempt, retries, retry_delay, place_seq, \
                       place_call, place_joined_at, created_at, due_at, started_at, ended_at, error_kind, \
                       error_message, error_traceback, delayed";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("task_runs", COLUMNS));

pub(crate) fn put(conn: &Connection, task: &TaskRecord) -> Result<()> {
    let (place_seq, place_call, place_joined_at) = place(task.place);
    let (error_kind, error_message, error_traceback) = failure(task.error.as_ref());
    let values = params![
        number(task.id.0),
        number(task.run.0),
        task.run_attempt,
        task.key,
        task.name,
        json(&task.needs)?,
        number(task.parent.0),
        task.state.as_str(),
        task.attempt,
        task.retries,
        number(task.retry_delay),
        place_seq,
        place_call,
        place_joined_at,
        time(task.created_at),
        time(task.due_at),
        task.started_at.map(time),
        task.ended_at.map(time),
        error_kind,
        error_message,
        error_traceback,
        json(&task.delayed)?,
    ];
    conn.prepare_cached(&PUT)?.execute(values).map(drop)
}

pub(crate) fn of_run(conn: &Connection, run: ClaimId) -> Result<Vec<TaskRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM task_runs WHERE run = ? ORDER BY id");
    rows(conn, &sql, [number(run.0)], read)
}

/// Tasks of live runs, of the latest attempt of each. Sorted here: SQLite would have to sort the whole rows, too.
pub(crate) fn live(conn: &Connection) -> Result<Vec<TaskRecord>> {
    let mut tasks = rows(conn, &live_sql(), [], read)?;
    tasks.sort_by_key(|task| task.id);
    Ok(tasks)
}

/// The live runs lead (`CROSS JOIN` keeps SQLite from starting with the tasks), so what has ended is never looked at.
pub(crate) fn live_sql() -> String {
    let columns: Vec<String> = COLUMNS.split(", ").map(|column| format!("task.{column}")).collect();
    format!(
        "SELECT {} FROM (SELECT id, attempt FROM runs WHERE {}) AS live CROSS JOIN task_runs AS task \
         WHERE task.run = live.id AND task.run_attempt = live.attempt",
        columns.join(", "),
        runs::LIVE
    )
}

fn read(row: &Row<'_>) -> Result<TaskRecord> {
    let mut fields = Fields::of(row);
    Ok(TaskRecord {
        id: fields.id()?,
        run: fields.id()?,
        run_attempt: fields.plain()?,
        key: fields.plain()?,
        name: fields.plain()?,
        needs: fields.json()?,
        parent: fields.id()?,
        state: fields.word()?,
        attempt: fields.plain()?,
        retries: fields.plain()?,
        retry_delay: fields.number()?,
        place: fields.optional_place()?,
        created_at: fields.time()?,
        due_at: fields.time()?,
        started_at: fields.optional_time()?,
        ended_at: fields.optional_time()?,
        error: fields.failure()?,
        delayed: fields.json()?,
    })
}
