//! `projects`: the served directories.
use super::rows;
use mirab_flow::ProjectRecord;
use rusqlite::{Connection, Result, Row, params};
use std::sync::LazyLock;

const COLUMNS: &str = "name, path";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("projects", COLUMNS));

pub(crate) fn put(conn: &Connection, project: &ProjectRecord) -> Result<()> {
    conn.prepare_cached(&PUT)?.execute(params![project.name, project.path]).map(drop)
}

pub(crate) fn all(conn: &Connection) -> Result<Vec<ProjectRecord>> {
    rows(conn, &format!("SELECT {COLUMNS} FROM projects ORDER BY name"), [], read)
}

fn read(row: &Row<'_>) -> Result<ProjectRecord> {
    Ok(ProjectRecord { name: row.get(0)?, path: row.get(1)? })
}
