//! The SQL, one file a table. Statements of the writer are prepared once and kept.
pub(crate) mod buckets;
pub(crate) mod counters;
pub(crate) mod durations;
pub(crate) mod events;
pub(crate) mod leases;
pub(crate) mod projects;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod tasks;
pub(crate) mod totals;

use mirab_flow::{Fact, Stored};
use rusqlite::{Connection, Params, Result, Row};

/// Writes one fact, inside the transaction of its group.
pub(crate) fn put(conn: &Connection, fact: &Fact) -> Result<()> {
    match fact {
        Fact::Project(project) => projects::put(conn, project),
        Fact::Run(run) => runs::put(conn, run),
        Fact::Task(task) => tasks::put(conn, task),
        Fact::Lease(lease) => leases::put(conn, lease),
        Fact::LeaseEnded(id) => leases::remove(conn, *id),
        Fact::Event(event) => events::insert(conn, event),
        Fact::Bucket(bucket) => buckets::put(conn, bucket),
        Fact::Durations(durations) => durations::put(conn, durations),
        Fact::Total(name, most) => totals::put(conn, name, *most),
        Fact::Setting(key, value) => settings::put(conn, key, value),
        Fact::Counters(counters) => counters::put(conn, *counters),
    }
}

/// Everything that is still alive.
pub(crate) fn load(conn: &Connection) -> Result<Stored> {
    Ok(Stored {
        counters: counters::get(conn)?,
        projects: projects::all(conn)?,
        runs: runs::live(conn)?,
        tasks: tasks::live(conn)?,
        leases: leases::all(conn)?,
        buckets: buckets::all(conn)?,
        durations: durations::all(conn)?,
        totals: totals::all(conn)?,
        settings: settings::all(conn)?,
        keys: runs::keys(conn)?,
    })
}

/// The statement that inserts a row, or replaces the one with the same first column. Not `INSERT OR REPLACE`: that would
/// also delete a row that is in the way of any other unique index.
fn upsert(table: &str, columns: &str) -> String {
    let names: Vec<&str> = columns.split(", ").collect();
    let marks = vec!["?"; names.len()].join(", ");
    let changes: Vec<String> = names[1..].iter().map(|name| format!("{name} = excluded.{name}")).collect();
    let (key, changes) = (names[0], changes.join(", "));
    format!("INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {changes}")
}

fn rows<T>(conn: &Connection, sql: &str, params: impl Params, read: fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}
