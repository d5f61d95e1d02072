//! Tests that need a file.
mod columns;
mod drivers;
mod full;
mod histories;
mod killed;
mod opening;
mod plans;
mod scheduled;
mod scheduled_killed;

use crate::SqliteStore;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder for one test, gone with it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store.sqlite")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path()).unwrap()
    }
}
