//! The life of work, sans-IO: runs, tasks, attempts, retries, overlap.
mod journal;
mod records;
mod state;

pub use journal::Journal;
pub use records::*;
pub use state::{STATES, State};
