//! Durable mode: what is accepted is in a file before it is answered or started, and goes on after a restart.
mod codec;
mod journal;
mod open;

pub use codec::{Codec, CodecError, Json};
pub(crate) use codec::{Coder, TypedCoder};
pub(crate) use journal::Journal;
pub(crate) use open::{Cells, open};

use std::path::PathBuf;

/// Where a scheduler keeps its tasks.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) path: PathBuf,
}

/// A SQLite file, made when it is not there. One scheduler has it at a time: a second one is refused with `StoreLocked`.
pub fn sqlite(path: impl Into<PathBuf>) -> Store {
    Store { path: path.into() }
}
