//! `leases`: what started work holds.
use super::rows;
use crate::codec::{Fields, json, number, time};
use mirab_core::{ClaimId, Fence};
use mirab_flow::LeaseRecord;
use rusqlite::{Connection, Result, Row, params};
use std::sync::LazyLock;

const COLUMNS: &str = "id, fence, kind, takes, covered, priority, place_seq, place_call, place_joined_at, parent, \
                       started_at, worker, request_id, tokens, shortest, longest, passed";
static PUT: LazyLock<String> = LazyLock::new(|| super::upsert("leases", COLUMNS));

pub(crate) fn put(conn: &Connection, lease: &LeaseRecord) -> Result<()> {
    let covered: Vec<_> = lease.covered.iter().map(|(name, units, holder)| (name, units, holder.0)).collect();
    let passed: Vec<_> = lease.passed.iter().map(|(id, name)| (id.0, name)).collect();
    let values = params![
        number(lease.id.0),
        number(lease.fence.0),
        lease.kind,
        json(&lease.takes)?,
        json(&covered)?,
        lease.priority,
        number(lease.place.seq),
        number(lease.place.call),
        time(lease.place.joined_at),
        lease.parent.map(|parent| number(parent.0)),
        time(lease.started_at),
        lease.worker,
        lease.request_id,
        json(&lease.tokens)?,
        number(lease.shortest),
        lease.longest.map(number),
        json(&passed)?,
    ];
    conn.prepare_cached(&PUT)?.execute(values).map(drop)
}

/// Removing what is not there changes nothing.
pub(crate) fn remove(conn: &Connection, id: ClaimId) -> Result<()> {
    conn.prepare_cached("DELETE FROM leases WHERE id = ?")?.execute([number(id.0)]).map(drop)
}

pub(crate) fn all(conn: &Connection) -> Result<Vec<LeaseRecord>> {
    rows(conn, &format!("SELECT {COLUMNS} FROM leases ORDER BY id"), [], read)
}

fn read(row: &Row<'_>) -> Result<LeaseRecord> {
    let mut fields = Fields::of(row);
    Ok(LeaseRecord {
        id: fields.id()?,
        fence: fields.number().map(Fence)?,
        kind: fields.plain()?,
        takes: fields.json()?,
        covered: covered(fields.json()?),
        priority: fields.plain()?,
        place: fields.place()?,
        parent: fields.optional_id()?,
        started_at: fields.time()?,
        worker: fields.plain()?,
        request_id: fields.plain()?,
        tokens: fields.json()?,
        shortest: fields.number()?,
        longest: fields.optional_number()?,
        passed: passed(fields.json()?),
    })
}

fn covered(stored: Vec<(String, u64, u64)>) -> Vec<(String, u64, ClaimId)> {
    stored.into_iter().map(|(name, units, holder)| (name, units, ClaimId(holder))).collect()
}

fn passed(stored: Vec<(u64, String)>) -> Vec<(ClaimId, String)> {
    stored.into_iter().map(|(id, name)| (ClaimId(id), name)).collect()
}
