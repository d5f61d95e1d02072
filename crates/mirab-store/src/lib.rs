//! The store: facts committed by one writer, read by many.
//!
//! [`SqliteStore`] is the one writer of a file and implements [`mirab_flow::Journal`]: a step's facts are committed
//! together and fsynced, or none of them is. [`Reader`] reads what is committed, from any thread. [`MemoryStore`] is the
//! twin for simulations and tests, held to the same suite.
//!
//! [`TaskJournal`] is the file of an embedded scheduler that is durable, [`TaskWriter`] the thread that commits to it.
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

mod codec;
mod error;
mod filter;
mod limit;
mod memory;
mod migrations;
mod reader;
mod scheduled;
mod sqlite;
mod tables;
#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use filter::RunFilter;
pub use limit::PageLimit;
pub use memory::{MemoryError, MemoryStore};
pub use reader::Reader;
pub use scheduled::{Blob, Entry, Loaded, TaskJournal, TaskStoreError, TaskWriter};
pub use sqlite::SqliteStore;
