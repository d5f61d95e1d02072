//! The shape of the tables, as numbered steps up and down. The version of a file is its `user_version`.
use crate::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

pub(crate) struct Migration {
    pub up: &'static str,
    pub down: &'static str,
}

/// Step `n` leads from version `n` to version `n + 1`. A step that was released is never edited.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        up: include_str!("../migrations/0001_init.up.sql"),
        down: include_str!("../migrations/0001_init.down.sql"),
    },
    Migration {
        up: include_str!("../migrations/0002_gate.up.sql"),
        down: include_str!("../migrations/0002_gate.down.sql"),
    },
];

/// Refuses a store of a later version, before anything in it is touched.
pub(crate) fn check(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(conn)?;
    let known = MIGRATIONS.len();
    if found > known {
        return Err(StoreError::Newer { path: path.to_path_buf(), found, known });
    }
    Ok(())
}

/// Goes up or down to the version, each step in a transaction of its own.
pub(crate) fn migrate(conn: &mut Connection, steps: &[Migration], target: usize) -> rusqlite::Result<()> {
    loop {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let at = version(&tx)?;
        let (sql, next) = match at.cmp(&target) {
            std::cmp::Ordering::Less => (steps[at].up, at + 1),
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => (steps[at - 1].down, at - 1),
        };
        tx.execute_batch(sql)?;
        tx.execute_batch(&format!("PRAGMA user_version = {next}"))?;
        tx.commit()?;
    }
}

pub(crate) fn version(conn: &Connection) -> rusqlite::Result<usize> {
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
        for steps in [MIGRATIONS, crate::scheduled::MIGRATIONS] {
            let latest = steps.len();
            let mut conn = Connection::open_in_memory().unwrap();
            let mut schemas = vec![schema(&conn)];
            for target in 1..=latest {
                migrate(&mut conn, steps, target).unwrap();
                schemas.push(schema(&conn));
            }
            for target in (0..latest).rev() {
                migrate(&mut conn, steps, target).unwrap();
                assert_eq!(schema(&conn), schemas[target], "down to {target}");
            }
            migrate(&mut conn, steps, latest).unwrap();
            assert_eq!((schema(&conn), version(&conn).unwrap()), (schemas[latest].clone(), latest));
            migrate(&mut conn, steps, latest).unwrap();
        }
    }

    #[test]
    fn a_step_that_fails_leaves_the_version_before() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE counters (mine)").unwrap();
        let before = schema(&conn);
        assert!(migrate(&mut conn, MIGRATIONS, MIGRATIONS.len()).is_err());
        assert_eq!((schema(&conn), version(&conn).unwrap()), (before, 0));
    }
}
