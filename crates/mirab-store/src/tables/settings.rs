//! `settings`: values by key.
use super::rows;
use rusqlite::{Connection, Result, params};
use std::sync::LazyLock;

const COLUMNS: &str = "key, value";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("settings", COLUMNS));

pub(crate) fn put(conn: &Connection, key: &str, value: &str) -> Result<()> {
    conn.prepare_cached(&PUT)?.execute(params![key, value]).map(drop)
}

pub(crate) fn all(conn: &Connection) -> Result<Vec<(String, String)>> {
    let sql = format!("SELECT {COLUMNS} FROM settings ORDER BY key");
    rows(conn, &sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
}
