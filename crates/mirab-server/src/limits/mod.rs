//! Limits that change while work runs: in the files that declare them, and in the same step for the work.
//!
//! The file is written first, then the change is made: a crash between the two leaves a change that nobody was told of and that counts from
//! the next start, never one that was told and is lost. Whatever cannot be done is taken back in the files and for the work.
mod difference;
mod files;
#[cfg(test)]
mod files_tests;
mod live;
mod offline;
mod wanted;

pub(crate) use live::Limits;
pub use offline::{Offline, OfflineError};
pub(crate) use wanted::{EditError, Wanted};
