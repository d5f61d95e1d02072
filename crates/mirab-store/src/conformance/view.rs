//! What readers see, the same for every driver.
use crate::{MemoryStore, Reader, RunFilter};
use mirab_core::ClaimId;
use mirab_flow::{EventRecord, RunRecord, State, TaskRecord};
use std::collections::BTreeMap;

/// The reads of a store; each panics when the store cannot be read.
pub trait View {
    /// The run of this id.
    fn run(&self, id: ClaimId) -> Option<RunRecord>;
    /// The run that was created with this key.
    fn run_by_key(&self, key: &str) -> Option<RunRecord>;
    /// The runs that the filter asks for, newest first.
    fn runs(&self, filter: &RunFilter) -> Vec<RunRecord>;
    /// How many runs stand in each state.
    fn count_by_state(&self) -> BTreeMap<State, u64>;
    /// The tasks of a run, by id.
    fn tasks(&self, run: ClaimId) -> Vec<TaskRecord>;
    /// The next events of a run.
    fn events(&self, run: ClaimId, after_seq: u64, limit: u32) -> Vec<EventRecord>;
    /// The next events of all runs.
    fn all_events(&self, after_seq: u64, limit: u32) -> Vec<EventRecord>;
}

impl View for Reader {
    fn run(&self, id: ClaimId) -> Option<RunRecord> {
        Reader::run(self, id).unwrap()
    }

    fn run_by_key(&self, key: &str) -> Option<RunRecord> {
        Reader::run_by_key(self, key).unwrap()
    }

    fn runs(&self, filter: &RunFilter) -> Vec<RunRecord> {
        Reader::runs(self, filter).unwrap()
    }

    fn count_by_state(&self) -> BTreeMap<State, u64> {
        Reader::count_by_state(self).unwrap()
    }

    fn tasks(&self, run: ClaimId) -> Vec<TaskRecord> {
        Reader::tasks(self, run).unwrap()
    }

    fn events(&self, run: ClaimId, after_seq: u64, limit: u32) -> Vec<EventRecord> {
        Reader::events(self, run, after_seq, limit).unwrap()
    }

    fn all_events(&self, after_seq: u64, limit: u32) -> Vec<EventRecord> {
        Reader::all_events(self, after_seq, limit).unwrap()
    }
}

impl View for &MemoryStore {
    fn run(&self, id: ClaimId) -> Option<RunRecord> {
        MemoryStore::run(self, id).cloned()
    }

    fn run_by_key(&self, key: &str) -> Option<RunRecord> {
        MemoryStore::run_by_key(self, key).cloned()
    }

    fn runs(&self, filter: &RunFilter) -> Vec<RunRecord> {
        MemoryStore::runs(self, filter)
    }

    fn count_by_state(&self) -> BTreeMap<State, u64> {
        MemoryStore::count_by_state(self)
    }

    fn tasks(&self, run: ClaimId) -> Vec<TaskRecord> {
        MemoryStore::tasks(self, run)
    }

    fn events(&self, run: ClaimId, after_seq: u64, limit: u32) -> Vec<EventRecord> {
        MemoryStore::events(self, run, after_seq, limit)
    }

    fn all_events(&self, after_seq: u64, limit: u32) -> Vec<EventRecord> {
        MemoryStore::all_events(self, after_seq, limit)
    }
}
