//! Opening files, and reading them from other threads.
use super::Home;
use crate::conformance::samples::run_in;
use crate::{RunFilter, SqliteStore, StoreError};
use mirab_core::ClaimId;
use mirab_flow::{Fact, Journal, State};

fn run(id: u64) -> Fact {
    Fact::Run(Box::new(run_in(id, State::Waiting)))
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let mut store = home.open();
    store.commit(&[run(1)]).unwrap();
    let files: Vec<_> = home.path().parent().unwrap().read_dir().unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 3, "the store, its log and its index");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn a_store_of_a_later_version_is_refused_and_not_touched() {
    let home = Home::new();
    drop(home.open());
    rusqlite::Connection::open(home.path()).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = std::fs::read(home.path()).unwrap();
    let error = SqliteStore::open(home.path()).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("use the mirab that wrote it"), "{error}");
    assert_eq!(std::fs::read(home.path()).unwrap(), before);
}

#[test]
fn what_is_no_store_is_refused() {
    let home = Home::new();
    std::fs::write(home.path(), "no database, but long enough to look at".repeat(100)).unwrap();
    assert!(matches!(SqliteStore::open(home.path()), Err(StoreError::Sqlite(_))));
    let error = SqliteStore::open(home.path().join("below a file")).unwrap_err();
    assert!(matches!(error, StoreError::Create { .. }), "{error}");
}

#[test]
fn a_value_that_is_not_ours_is_an_error_that_names_its_column() {
    let home = Home::new();
    let mut store = home.open();
    store.commit(&[run(1)]).unwrap();
    let other = rusqlite::Connection::open(home.path()).unwrap();
    other.execute_batch("UPDATE runs SET state = 'Done'").unwrap();
    let error = store.reader().run(ClaimId(1)).unwrap_err().to_string();
    assert!(error.contains("\"Done\" is no state") && error.contains("index: 9"), "{error}");
}

#[test]
fn readers_of_many_threads_see_whole_groups_while_the_store_is_written() {
    let home = Home::new();
    let mut store = home.open();
    let reader = store.reader();
    std::thread::scope(|threads| {
        for _ in 0..8 {
            let reader = reader.clone();
            threads.spawn(move || {
                let mut seen = 0;
                while seen < 100 {
                    let runs = reader.runs(&RunFilter { limit: 1_000, ..RunFilter::default() }).unwrap().len();
                    assert!(runs >= seen && runs.is_multiple_of(2), "{seen} then {runs}");
                    seen = runs;
                }
            });
        }
        for pair in 0..50 {
            store.commit(&[run(2 * pair + 1), run(2 * pair + 2)]).unwrap();
        }
    });
}
