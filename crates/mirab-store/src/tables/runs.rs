//! `runs`: runs of flows.
use super::rows;
use crate::codec::{Fields, bound, failure, json, number, place, time};
use crate::filter::RunFilter;
use mirab_core::ClaimId;
use mirab_flow::{RunRecord, State};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const COLUMNS: &str = "id, project, flow, file, function, params, priority, tags, needs, state, message, attempt, \
                       failures, crashes, retries, retry_delay, crash_retries, place_seq, place_call, place_joined_at, \
                       created_at, due_at, started_at, ended_at, result, error_kind, error_message, error_traceback, \
                       idempotency_key, delayed";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("runs", COLUMNS));

/// Not terminal. Word for word the condition of the index `runs_live`, or SQLite would not use it.
pub(crate) const LIVE: &str = "state NOT IN ('Completed', 'Failed', 'Cancelled', 'Crashed', 'Skipped')";

pub(crate) fn put(conn: &Connection, run: &RunRecord) -> Result<()> {
    let (place_seq, place_call, place_joined_at) = place(run.place);
    let (error_kind, error_message, error_traceback) = failure(run.error.as_ref());
    let values = params![
        number(run.id.0),
        run.project,
        run.flow,
        run.file,
        run.function,
        json(&run.params)?,
        run.priority,
        json(&run.tags)?,
        json(&run.needs)?,
        run.state.as_str(),
        run.message,
        run.attempt,
        run.failures,
        run.crashes,
        run.retries,
        number(run.retry_delay),
        run.crash_retries,
        place_seq,
        place_call,
        place_joined_at,
        time(run.created_at),
        time(run.due_at),
        run.started_at.map(time),
        run.ended_at.map(time),
        run.result.as_ref().map(json).transpose()?,
        error_kind,
        error_message,
        error_traceback,
        run.idempotency_key,
        json(&run.delayed)?,
    ];
    conn.prepare_cached(&PUT)?.execute(values).map(drop)
}

pub(crate) fn live(conn: &Connection) -> Result<Vec<RunRecord>> {
    rows(conn, &live_sql(), [], read)
}

pub(crate) fn live_sql() -> String {
    format!("SELECT {COLUMNS} FROM runs WHERE {LIVE} ORDER BY id")
}

pub(crate) fn keys(conn: &Connection) -> Result<Vec<(String, ClaimId)>> {
    let sql = "SELECT idempotency_key, id FROM runs WHERE idempotency_key IS NOT NULL ORDER BY idempotency_key";
    rows(conn, sql, [], |row| {
        let mut fields = Fields::of(row);
        Ok((fields.plain()?, fields.id()?))
    })
}

pub(crate) fn by_id(conn: &Connection, id: ClaimId) -> Result<Option<RunRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?");
    conn.prepare_cached(&sql)?.query_row([number(id.0)], read).optional()
}

pub(crate) fn by_key(conn: &Connection, key: &str) -> Result<Option<RunRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE idempotency_key = ?");
    conn.prepare_cached(&sql)?.query_row([key], read).optional()
}

pub(crate) fn count_by_state(conn: &Connection) -> Result<BTreeMap<State, u64>> {
    let counts = rows(conn, "SELECT state, count(*) FROM runs GROUP BY state", [], |row| {
        let mut fields = Fields::of(row);
        Ok((fields.word()?, fields.number()?))
    })?;
    Ok(counts.into_iter().collect())
}

pub(crate) fn list(conn: &Connection, filter: &RunFilter) -> Result<Vec<RunRecord>> {
    let before = filter.before.map(|before| bound(before.0));
    rows(conn, &list_sql(filter), params![filter.project, filter.flow, before, filter.limit], read)
}

/// Walks an index from its end and stops at the limit, whatever is asked for: nothing is sorted. Many states are one walk
/// each, merged by id.
pub(crate) fn list_sql(filter: &RunFilter) -> String {
    let mut states = filter.states.clone();
    states.sort_unstable();
    states.dedup();
    let narrowed = narrowing(filter, by_flow(filter));
    let walks: Vec<String> = if states.is_empty() {
        vec![narrowed]
    } else if by_flow(filter) {
        let words: Vec<String> = states.iter().map(|state| format!("'{state}'")).collect();
        vec![format!("{narrowed} AND +state IN ({})", words.join(", "))]
    } else {
        states.iter().map(|state| format!("{narrowed} AND state = '{state}'")).collect()
    };
    let walks: Vec<String> =
        walks.iter().map(|condition| format!("SELECT {COLUMNS} FROM runs WHERE {condition}")).collect();
    format!("{} ORDER BY id DESC LIMIT ?4", walks.join(" UNION ALL "))
}

/// The runs of one flow are fewer than those of a terminal state, and more than the live ones.
fn by_flow(filter: &RunFilter) -> bool {
    let all_live = !filter.states.is_empty() && !filter.states.iter().any(|state| state.is_terminal());
    filter.project.is_some() && filter.flow.is_some() && !all_live
}

/// A `+` keeps SQLite from an index by that column, whose order is not the order asked for.
fn narrowing(filter: &RunFilter, by_flow: bool) -> String {
    let plus = if by_flow { "" } else { "+" };
    let mut condition = String::from("TRUE");
    if filter.project.is_some() {
        condition += &format!(" AND {plus}project = ?1");
    }
    if filter.flow.is_some() {
        condition += &format!(" AND {plus}flow = ?2");
    }
    if filter.before.is_some() {
        condition += " AND id < ?3";
    }
    condition
}

fn read(row: &Row<'_>) -> Result<RunRecord> {
    let mut fields = Fields::of(row);
    Ok(RunRecord {
        id: fields.id()?,
        project: fields.plain()?,
        flow: fields.plain()?,
        file: fields.plain()?,
        function: fields.plain()?,
        params: fields.json()?,
        priority: fields.plain()?,
        tags: fields.json()?,
        needs: fields.json()?,
        state: fields.word()?,
        message: fields.plain()?,
        attempt: fields.plain()?,
        failures: fields.plain()?,
        crashes: fields.plain()?,
        retries: fields.plain()?,
        retry_delay: fields.number()?,
        crash_retries: fields.plain()?,
        place: fields.optional_place()?,
        created_at: fields.time()?,
        due_at: fields.time()?,
        started_at: fields.optional_time()?,
        ended_at: fields.optional_time()?,
        result: fields.optional_json()?,
        error: fields.failure()?,
        idempotency_key: fields.plain()?,
        delayed: fields.json()?,
    })
}
