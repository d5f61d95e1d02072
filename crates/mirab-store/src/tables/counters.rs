//! `counters`: the one row of numbers that are never given twice.
use crate::codec::{Fields, number};
use mirab_flow::Counters;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::sync::LazyLock;

const COLUMNS: &str = "next_id, next_seq, next_fence, next_event";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("counters", &format!("id, {COLUMNS}")));

pub(crate) fn put(conn: &Connection, counters: Counters) -> Result<()> {
    let Counters { next_id, next_seq, next_fence, next_event } = counters;
    let values = params![0, number(next_id), number(next_seq), number(next_fence), number(next_event)];
    conn.prepare_cached(&PUT)?.execute(values).map(drop)
}

/// A new store has not given any number yet.
pub(crate) fn get(conn: &Connection) -> Result<Counters> {
    let sql = format!("SELECT {COLUMNS} FROM counters WHERE id = 0");
    Ok(conn.query_row(&sql, [], read).optional()?.unwrap_or_default())
}

fn read(row: &Row<'_>) -> Result<Counters> {
    let mut fields = Fields::of(row);
    Ok(Counters {
        next_id: fields.number()?,
        next_seq: fields.number()?,
        next_fence: fields.number()?,
        next_event: fields.number()?,
    })
}
