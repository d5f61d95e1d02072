//! Reads what is committed, from any thread, beside the writer.
use crate::error::StoreError;
use crate::filter::RunFilter;
use crate::sqlite::BUSY;
use crate::tables::{events, runs, tasks};
use mirab_core::ClaimId;
use mirab_flow::{EventRecord, RunRecord, State, TaskRecord};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections that are kept for the next reader; more are opened while more read at once.
const KEPT: usize = 4;

/// A pool of read-only connections. Clones share it. Each call is one statement, so it sees one state of the store; it
/// blocks for as long as the disk takes.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Reader {
    /// Reads the store in this file, which a writer has made. Opens nothing yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(Arc::new(Pool { path: path.to_path_buf(), idle: Mutex::default() }))
    }

    /// The run of this id.
    ///
    /// # Errors
    /// When the store cannot be read, as for every method here.
    pub fn run(&self, id: ClaimId) -> Result<Option<RunRecord>, StoreError> {
        self.with(|conn| runs::by_id(conn, id))
    }

    /// The run that was created with this idempotency key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn run_by_key(&self, key: &str) -> Result<Option<RunRecord>, StoreError> {
        self.with(|conn| runs::by_key(conn, key))
    }

    /// The runs that the filter asks for, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        self.with(|conn| runs::list(conn, filter))
    }

    /// How many runs stand in each state; states without runs are left out.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn count_by_state(&self) -> Result<BTreeMap<State, u64>, StoreError> {
        self.with(runs::count_by_state)
    }

    /// All tasks of a run, of all its attempts, by id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn tasks(&self, run: ClaimId) -> Result<Vec<TaskRecord>, StoreError> {
        self.with(|conn| tasks::of_run(conn, run))
    }

    /// The next events of a run after a sequence number, oldest first. Pages follow one another without a gap.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn events(&self, run: ClaimId, after_seq: u64, limit: u32) -> Result<Vec<EventRecord>, StoreError> {
        self.with(|conn| events::of_run(conn, run, after_seq, limit))
    }

    /// The next events of all runs after a sequence number, oldest first. Pages follow one another without a gap.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn all_events(&self, after_seq: u64, limit: u32) -> Result<Vec<EventRecord>, StoreError> {
        self.with(|conn| events::of_all(conn, after_seq, limit))
    }

    /// A connection that failed is closed instead of kept.
    fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let kept = self.idle().pop();
        let conn = kept.map_or_else(|| self.connect(), Ok)?;
        let answer = read(&conn)?;
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push(conn);
        }
        Ok(answer)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.0.path, flags)?;
        conn.busy_timeout(BUSY)?;
        conn.execute_batch("PRAGMA query_only = ON")?;
        Ok(conn)
    }
}
