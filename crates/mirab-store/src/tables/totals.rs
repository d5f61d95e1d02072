//! `totals`: the last total above 0 of each declared name, for the time when it is paused.
use super::rows;
use crate::codec::{Fields, number};
use rusqlite::{Connection, Result, params};
use std::sync::LazyLock;

const COLUMNS: &str = "name, most";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("totals", COLUMNS));

pub(crate) fn put(conn: &Connection, name: &str, most: u64) -> Result<()> {
    conn.prepare_cached(&PUT)?.execute(params![name, number(most)]).map(drop)
}

pub(crate) fn all(conn: &Connection) -> Result<Vec<(String, u64)>> {
    rows(conn, &format!("SELECT {COLUMNS} FROM totals ORDER BY name"), [], |row| {
        let mut fields = Fields::of(row);
        Ok((fields.plain()?, fields.number()?))
    })
}
