//! The suite on both stores of this crate.
use super::Home;
use crate::conformance::{Driver, View};
use crate::{MemoryStore, SqliteStore, conformance_suite};

struct SqliteDriver(Home);

impl Driver for SqliteDriver {
    type Journal = SqliteStore;

    fn create(&mut self) -> SqliteStore {
        self.0 = Home::new();
        self.0.open()
    }

    fn reopen(&mut self, journal: SqliteStore) -> SqliteStore {
        drop(journal);
        self.0.open()
    }

    fn view<'a>(&'a self, journal: &'a SqliteStore) -> Box<dyn View + 'a> {
        Box::new(journal.reader())
    }
}

struct MemoryDriver;

impl Driver for MemoryDriver {
    type Journal = MemoryStore;

    fn create(&mut self) -> MemoryStore {
        MemoryStore::default()
    }

    fn reopen(&mut self, journal: MemoryStore) -> MemoryStore {
        journal
    }

    fn view<'a>(&'a self, journal: &'a MemoryStore) -> Box<dyn View + 'a> {
        Box::new(journal)
    }
}

conformance_suite!(sqlite, SqliteDriver(Home::new()));
conformance_suite!(memory, MemoryDriver);
