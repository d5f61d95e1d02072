//! The file of a durable scheduler. Its commits are told through a socket that the event loop watches, so that the thread that commits never
//! waits for the interpreter.
use crate::failure::raise;
use mirab_flow::scheduler::{TaskFact, TaskId};
use mirab_store::{Blob, Entry, Loaded, TaskJournal, TaskStoreError, TaskWriter};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of a commit, and code and text of the error where nothing of it is stored.
type Outcome = (u64, Option<(&'static str, String)>);

/// One file; for all shards of a scheduler.
#[pyclass(frozen, module = "mirab._native")]
pub struct Store {
    state: Mutex<State>,
    told: Arc<Told>,
    reader: UnixStream,
}

enum State {
    Read(TaskJournal),
    Written(Arc<TaskWriter>),
    Closed,
}

/// Commits that are done.
struct Told {
    outcomes: Mutex<VecDeque<Outcome>>,
    wake: UnixStream,
}

impl Told {
    fn tell(&self, number: u64, result: Result<(), Arc<TaskStoreError>>) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = outcomes.is_empty();
        outcomes.push_back((number, result.err().map(|error| (error.code(), error.to_string()))));
        drop(outcomes);
        if is_first {
            // Full, it wakes the loop as well; closed, nobody is there to be woken.
            let _ = (&self.wake).write(&[1]);
        }
    }
}

#[pymethods]
impl Store {
    /// Opens or makes the file.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let journal = py.detach(|| TaskJournal::open(path)).map_err(|error| failed(py, &error))?;
        let (reader, wake) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let told = Arc::new(Told { outcomes: Mutex::default(), wake });
        Ok(Self { state: Mutex::new(State::Read(journal)), told, reader })
    }

    /// The last shard that has live tasks.
    fn last_shard(&self, py: Python<'_>) -> PyResult<Option<u8>> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Read(journal) => journal.last_shard().map_err(|error| failed(py, &error)),
            _ => Ok(None),
        }
    }

    /// From here on it is written; what was stored has been read.
    fn start(&self) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = match std::mem::replace(&mut *state, State::Closed) {
            State::Read(journal) => State::Written(Arc::new(TaskWriter::start(journal)?)),
            other => other,
        };
        Ok(())
    }

    /// Readable when there is something to poll.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Commits that are done, in their order.
    fn poll(&self) -> Vec<Outcome> {
        while (&self.reader).read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        self.told.outcomes.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Waits until all is committed; then another scheduler can have the file.
    fn close(&self, py: Python<'_>) {
        let state = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Closed);
        py.detach(|| drop(state));
    }
}

impl Store {
    /// What is stored of one shard. Once it is written, nothing is read.
    pub(super) fn load(&self, py: Python<'_>, shard: u8) -> PyResult<Loaded> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Read(journal) = &mut *state else { return Ok(Loaded::default()) };
        py.detach(|| journal.load(shard)).map_err(|error| failed(py, &error))
    }

    /// What writes a shard's facts; `None` unless the store was started.
    pub(super) fn journal(&self, shard: u8) -> Option<Journal> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Written(writer) => {
                let (writer, told) = (Arc::clone(writer), Arc::clone(&self.told));
                Some(Journal { writer, told, shard, entries: Vec::new() })
            }
            _ => None,
        }
    }
}

/// The store, as one shard writes it.
pub(super) struct Journal {
    writer: Arc<TaskWriter>,
    told: Arc<Told>,
    shard: u8,
    /// To be committed with the next facts.
    entries: Vec<Entry>,
}

impl Journal {
    pub fn payload(&mut self, id: TaskId, blob: Blob) {
        self.entries.push(Entry::Payload(id, blob));
    }

    pub fn result(&mut self, id: TaskId, blob: Blob) {
        self.entries.push(Entry::Result(id, blob));
    }

    /// Commits what a step has left. False when there is nothing to tell of: nothing to store, and nothing that `waits` for it.
    pub fn commit(&mut self, facts: Vec<TaskFact>, number: u64, waits: bool) -> bool {
        let mut entries = std::mem::take(&mut self.entries);
        entries.extend(facts.into_iter().map(|fact| Entry::Fact(self.shard, fact)));
        if entries.is_empty() && !waits {
            return false;
        }
        let told = Arc::clone(&self.told);
        self.writer.put(entries, move |result| told.tell(number, result));
        true
    }
}

fn failed(py: Python<'_>, error: &TaskStoreError) -> PyErr {
    raise(py, error.code(), &error.to_string())
}
