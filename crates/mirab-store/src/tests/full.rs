//! A full disk, and a memory store that is told to fail.
use super::Home;
use crate::conformance::samples::run_in;
use crate::{MemoryError, MemoryStore, SqliteStore};
use mirab_flow::{Fact, Journal, RunRecord, State};
use serde_json::json;

/// A run that needs many pages.
fn large(id: u64) -> Fact {
    let result = Some(json!("x".repeat(100_000)));
    Fact::Run(Box::new(RunRecord { result, ..run_in(id, State::Waiting) }))
}

fn ids(store: &mut SqliteStore) -> Vec<u64> {
    store.load().unwrap().runs.iter().map(|run| run.id.0).collect()
}

#[test]
fn a_full_disk_refuses_the_whole_group_and_goes_on_with_new_space() {
    let home = Home::new();
    let mut store = home.open();
    store.commit(&[large(1)]).unwrap();
    store.limit_pages(Some(1));
    for _ in 0..3 {
        let error = store.commit(&[Fact::Run(Box::new(run_in(2, State::Waiting))), large(3)]).unwrap_err();
        assert!(error.is_full(), "{error}");
        assert_eq!(error.to_string(), "the store failed: database or disk is full");
        assert_eq!(ids(&mut store), [1]);
    }
    store.limit_pages(None);
    store.commit(&[large(3)]).unwrap();
    drop(store);
    assert_eq!(ids(&mut home.open()), [1, 3]);
}

#[test]
fn another_thread_can_fill_the_disk() {
    let home = Home::new();
    let mut store = home.open();
    let limit = store.page_limit();
    let pages = limit.clone();
    std::thread::spawn(move || pages.set(Some(1))).join().unwrap();
    assert!(store.commit(&[large(1)]).unwrap_err().is_full());
    limit.set(None);
    store.commit(&[large(1)]).unwrap();
}

#[test]
fn a_memory_store_fails_as_often_as_it_is_told() {
    let mut store = MemoryStore::default();
    store.fail_next(2);
    for _ in 0..2 {
        assert_eq!(store.commit(&[large(1)]), Err(MemoryError::Told));
        assert_eq!(store.load().unwrap().runs, []);
    }
    store.commit(&[large(1)]).unwrap();
}
