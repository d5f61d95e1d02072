//! The file, and the one connection that has it.
use super::{Blob, Entry, TaskStoreError, rows};
use crate::migrations::{self, Migration};
use crate::sqlite::create;
use mirab_flow::scheduler::{StoredTasks, TaskId};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Step `n` leads from version `n` to version `n + 1`. A step that was released is never edited.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    up: include_str!("../../migrations/scheduled/0001_init.up.sql"),
    down: include_str!("../../migrations/scheduled/0001_init.down.sql"),
}];

/// Marks files of schedulers among SQLite's: "Mrbs".
const APPLICATION: i64 = 0x4D72_6273;

/// The store of an embedded scheduler in a SQLite file. While it is open, nobody else can open it, also not to read; the operating system
/// takes care that a process that was killed has nothing open.
#[derive(Debug)]
pub struct TaskJournal {
    conn: Connection,
    path: PathBuf,
}

/// What is stored of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// For its machine.
    pub stored: StoredTasks,
    /// What live tasks are given.
    pub payloads: BTreeMap<TaskId, Blob>,
    /// What ended tasks gave, of those that are remembered and gave something.
    pub results: BTreeMap<TaskId, Blob>,
}

impl TaskJournal {
    /// Opens the file, or makes one that only its owner can read, and brings its tables up to date.
    ///
    /// # Errors
    /// When another scheduler has it, and when it cannot be made or read, is something else, or was written by a later version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TaskStoreError> {
        let path = path.as_ref().to_path_buf();
        create(&path).map_err(|source| TaskStoreError::Create { path: path.clone(), source })?;
        let conn = open(&path).map_err(|error| told(&path, error))?;
        check(&conn, &path)?;
        let mut this = Self { conn, path };
        this.prepare().map_err(|error| told(&this.path, error))?;
        Ok(this)
    }

    fn prepare(&mut self) -> rusqlite::Result<()> {
        // FULL: a commit is on the disk when it returns, because effects follow it.
        self.conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        self.conn.set_prepared_statement_cache_capacity(32);
        self.conn.execute_batch(&format!("PRAGMA application_id = {APPLICATION}"))?;
        migrations::migrate(&mut self.conn, MIGRATIONS, MIGRATIONS.len())
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Commits all of it, or nothing. When it returns, it is on the disk.
    ///
    /// # Errors
    /// What SQLite said: then nothing was stored.
    pub fn commit<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> Result<(), TaskStoreError> {
        // Dropped on the way out of an error, a transaction rolls back.
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for entry in entries {
            rows::put(&tx, entry)?;
        }
        Ok(tx.commit()?)
    }

    /// The last shard that has live tasks: a scheduler with fewer shards would leave them where they are.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn last_shard(&self) -> Result<Option<u8>, TaskStoreError> {
        Ok(rows::last_shard(&self.conn)?)
    }

    /// All that is stored of a shard.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn load(&mut self, shard: u8) -> Result<Loaded, TaskStoreError> {
        let tx = self.conn.transaction()?;
        Ok(rows::load(&tx, shard)?)
    }
}

/// Takes the lock at once and for as long as the connection lives: it is the process's own, and does not pass to its children.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(std::time::Duration::ZERO)?;
    conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;")?;
    Ok(conn)
}

/// Before anything in it is touched.
fn check(conn: &Connection, path: &Path) -> Result<(), TaskStoreError> {
    let path = path.to_path_buf();
    let application: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if application != APPLICATION && (application != 0 || tables > 0) {
        return Err(TaskStoreError::Foreign { path, found: "it is a SQLite database of another program" });
    }
    let (found, known) = (migrations::version(conn)?, MIGRATIONS.len());
    if found > known {
        return Err(TaskStoreError::Newer { path, found, known });
    }
    Ok(())
}

fn told(path: &Path, error: rusqlite::Error) -> TaskStoreError {
    let path = path.to_path_buf();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => TaskStoreError::Locked { path },
        Some(ErrorCode::NotADatabase) => TaskStoreError::Foreign { path, found: "it is not a SQLite database" },
        _ => TaskStoreError::Sqlite(error),
    }
}
