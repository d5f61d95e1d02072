//! The file of an embedded scheduler: its tasks with what they were given and what they gave, balances of buckets, counters.
mod error;
mod journal;
mod rows;
mod writer;

pub use error::TaskStoreError;
#[cfg(test)]
pub(crate) use journal::MIGRATIONS;
pub use journal::{Loaded, TaskJournal};
pub use writer::TaskWriter;

use mirab_flow::scheduler::{TaskFact, TaskId};

/// A value as bytes, with the name of the codec that reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The codec.
    pub codec: String,
    /// What it wrote.
    pub bytes: Vec<u8>,
}

/// Something to store. What is put together is committed together, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// What a shard's machine says.
    Fact(u8, TaskFact),
    /// What a task is given; goes when the task ends.
    Payload(TaskId, Blob),
    /// What a task gave; goes when the task is forgotten.
    Result(TaskId, Blob),
}
