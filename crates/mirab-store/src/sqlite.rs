//! The one writer of a store file.
use crate::error::StoreError;
use crate::limit::PageLimit;
use crate::reader::Reader;
use crate::{migrations, tables};
use mirab_flow::{Fact, Journal, Stored};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for somebody who looks at the file with another program and holds its lock.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// A store in a SQLite file. Whoever opens it sees to it that it is the only writer.
#[derive(Debug)]
pub struct SqliteStore {
    conn: Connection,
    path: PathBuf,
    limit: PageLimit,
    limited_to: u32,
}

impl SqliteStore {
    /// Opens the file, or makes one that only its owner can read, and brings its tables up to date.
    ///
    /// # Errors
    /// When the file cannot be made or read, is no store, or was written by a later version of the program.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_path_buf();
        create(&path).map_err(|source| StoreError::Create { path: path.clone(), source })?;
        let mut conn =
            Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        conn.busy_timeout(BUSY)?;
        migrations::check(&conn, &path)?;
        // FULL: a commit is on the disk when it returns, because effects follow it.
        conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        conn.set_prepared_statement_cache_capacity(32);
        migrations::migrate(&mut conn, migrations::MIGRATIONS, migrations::MIGRATIONS.len())?;
        let limit = PageLimit::default();
        Ok(Self { conn, path, limited_to: limit.get(), limit })
    }

    /// Reads what is committed to this file, from any thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(&self.path)
    }

    /// For tests of what happens when the disk is full; see [`PageLimit`].
    pub fn limit_pages(&self, pages: Option<u32>) {
        self.limit.set(pages);
    }

    /// The same limit for whoever has given the store to another thread.
    #[must_use]
    pub fn page_limit(&self) -> PageLimit {
        self.limit.clone()
    }

    fn apply_limit(&mut self) -> rusqlite::Result<()> {
        let pages = self.limit.get();
        if pages != self.limited_to {
            self.conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            self.limited_to = pages;
        }
        Ok(())
    }
}

impl Journal for SqliteStore {
    type Error = StoreError;

    fn commit(&mut self, facts: &[Fact]) -> Result<(), StoreError> {
        if facts.is_empty() {
            return Ok(());
        }
        self.apply_limit()?;
        // Dropped on the way out of an error, a transaction rolls back.
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for fact in facts {
            tables::put(&tx, fact)?;
        }
        Ok(tx.commit()?)
    }

    fn load(&mut self) -> Result<Stored, StoreError> {
        let tx = self.conn.transaction()?;
        Ok(tables::load(&tx)?)
    }
}

/// SQLite gives its log and its index the mode of the file.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
