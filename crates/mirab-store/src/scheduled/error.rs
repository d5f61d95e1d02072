//! Why the file of a scheduler cannot be used.
use std::io;
use std::path::PathBuf;

/// Why the file of a scheduler could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum TaskStoreError {
    /// Another process, or another scheduler of this one, has it.
    #[error(
        "the store {} is in use by another scheduler or program: end that one first, or give each scheduler a file of its own",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file could not be made.
    #[error("the store {} cannot be created: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} is no store of a scheduler: {found}; expected a file that a scheduler made, or none", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A later version wrote it.
    #[error(
        "the store {} has version {found}, this program knows versions up to {known}: use the mirab that wrote it, or another file",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: usize,
        /// The latest version that this program knows.
        known: usize,
    },
    /// What SQLite said.
    #[error("the store could not be written or read: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl TaskStoreError {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Locked { .. } => "StoreLocked",
            _ => "StoreUnavailable",
        }
    }
}
