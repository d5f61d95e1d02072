//! `events`: what happened, in order, never changed.
use super::rows;
use crate::codec::{Fields, bound, number, time};
use mirab_core::ClaimId;
use mirab_flow::{EventRecord, State};
use rusqlite::{Connection, Result, Row, params};

const COLUMNS: &str = "seq, at, run, task, kind, state, reason, cause";
const INSERT: &str =
    "INSERT INTO events (seq, at, run, task, kind, state, reason, cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

pub(crate) fn insert(conn: &Connection, event: &EventRecord) -> Result<()> {
    let values = params![
        number(event.seq),
        time(event.at),
        number(event.run.0),
        event.task.map(|task| number(task.0)),
        event.kind,
        event.state.map(State::as_str),
        event.reason,
        event.cause,
    ];
    conn.prepare_cached(INSERT)?.execute(values).map(drop)
}

pub(crate) fn of_run(conn: &Connection, run: ClaimId, after: u64, limit: u32) -> Result<Vec<EventRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    rows(conn, &sql, params![number(run.0), bound(after), limit], read)
}

pub(crate) fn of_all(conn: &Connection, after: u64, limit: u32) -> Result<Vec<EventRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2");
    rows(conn, &sql, params![bound(after), limit], read)
}

fn read(row: &Row<'_>) -> Result<EventRecord> {
    let mut fields = Fields::of(row);
    Ok(EventRecord {
        seq: fields.number()?,
        at: fields.time()?,
        run: fields.id()?,
        task: fields.optional_id()?,
        kind: fields.plain()?,
        state: fields.optional_word()?,
        reason: fields.plain()?,
        cause: fields.plain()?,
    })
}
