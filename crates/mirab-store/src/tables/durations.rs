//! `durations`: what kinds of work, and declared resources, took of late.
use super::rows;
use crate::codec::{Fields, json};
use mirab_flow::{DurationsRecord, LearnerKind};
use rusqlite::{Connection, Result, Row, params};

const COLUMNS: &str = "learner, name, recent";
const PUT: &str = "INSERT INTO durations (learner, name, recent) VALUES (?, ?, ?) \
                   ON CONFLICT (learner, name) DO UPDATE SET recent = excluded.recent";

pub(crate) fn put(conn: &Connection, durations: &DurationsRecord) -> Result<()> {
    let values = params![durations.learner.as_str(), durations.name, json(&durations.recent)?];
    conn.prepare_cached(PUT)?.execute(values).map(drop)
}

pub(crate) fn all(conn: &Connection) -> Result<Vec<DurationsRecord>> {
    rows(conn, &format!("SELECT {COLUMNS} FROM durations ORDER BY learner, name"), [], read)
}

fn read(row: &Row<'_>) -> Result<DurationsRecord> {
    let mut fields = Fields::of(row);
    Ok(DurationsRecord { learner: fields.word::<LearnerKind>()?, name: fields.plain()?, recent: fields.json()? })
}
