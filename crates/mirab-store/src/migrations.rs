//! The shape of the tables, as numbered steps up and down. The version of a file is its `user_version`.
use crate::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

struct Migration {
    up: &'static str,
    down: &'static str,
}

/// Step `n` leads from version `n` to version `n + 1`. A step that was released is never edited.
const MIGRATIONS: &[Migration] = &[
    Migration {
        up: include_str!("../migrations/0001_init.up.sql"),
        down: include_str!("../migrations/0001_init.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/0002_gate.up.sql"),
        down: include_str!("../migrations/0002_gate.down.sql"),
    },
];

/// The version that this program reads and writes.
pub(crate) const LATEST: usize = MIGRATIONS.len();

/// Refuses a store of a later version, before anything in it is touched.
pub(crate) fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(conn)?;
    if found > LATEST {
        return Err(StoreError::Newer { path: path.to_path_buf(), found, known: LATEST });
    }
    Ok(())
}

/// Goes up or down to the version, each step in a transaction of its own.
pub(crate) fn migrate(conn: &mut Connection, target: usize) -> rusqlite::Result<()> {
    loop {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let at = version(&tx)?;
        let (sql, next) = match at.cmp(&target) {
            std::cmp::Ordering::Less => (MIGRATIONS[at].up, at + 1),
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => (MIGRATIONS[at - 1].down, at - 1),
        };
        tx.execute_batch(sql)?;
        tx.execute_batch(&format!("PRAGMA user_version = {next}"))?;
        tx.commit()?;
    }
}

fn version(conn: &Connection) -> rusqlite::Result<usize> {
    conn.query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0)).map(|version| version as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(conn: &Connection) -> Vec<String> {
        let mut statement = conn.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn every_step_goes_up_and_down_and_up() {
        let mut conn = Connection::open_in_memory().unwrap();
        let mut schemas = vec![schema(&conn)];
        for target in 1..=LATEST {
            migrate(&mut conn, target).unwrap();
            schemas.push(schema(&conn));
        }
        for target in (0..LATEST).rev() {
            migrate(&mut conn, target).unwrap();
            assert_eq!(schema(&conn), schemas[target], "down to {target}");
        }
        migrate(&mut conn, LATEST).unwrap();
        assert_eq!((schema(&conn), version(&conn).unwrap()), (schemas[LATEST].clone(), LATEST));
        migrate(&mut conn, LATEST).unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE counters (mine)").unwrap();
        let before = schema(&conn);
        assert!(migrate(&mut conn, LATEST).is_err());
        assert_eq!((schema(&conn), version(&conn).unwrap()), (before, 0));
    }
}
