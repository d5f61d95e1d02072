//! `buckets`: balances of token buckets.
use super::rows;
use crate::codec::{Fields, time};
use mirab_core::BucketState;
use mirab_flow::BucketRecord;
use rusqlite::{Connection, Result, Row, params};
use std::sync::LazyLock;

const COLUMNS: &str = "name, scaled, scale, at, cooling_until";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("buckets", COLUMNS));

pub(crate) fn put(conn: &Connection, bucket: &BucketRecord) -> Result<()> {
    let BucketState { scaled, scale, at, cooling_until } = bucket.state;
    let values = params![bucket.name, scaled.to_string(), scale.to_string(), time(at), time(cooling_until)];
    conn.prepare_cached(&PUT)?.execute(values).map(drop)
}

pub(crate) fn all(conn: &Connection) -> Result<Vec<BucketRecord>> {
    rows(conn, &format!("SELECT {COLUMNS} FROM buckets ORDER BY name"), [], read)
}

fn read(row: &Row<'_>) -> Result<BucketRecord> {
    let mut fields = Fields::of(row);
    Ok(BucketRecord {
        name: fields.plain()?,
        state: BucketState {
            scaled: fields.word()?,
            scale: fields.word()?,
            at: fields.time()?,
            cooling_until: fields.time()?,
        },
    })
}
