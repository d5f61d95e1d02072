//! Why the store refused.
use std::io;
use std::path::PathBuf;

/// Why a store could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file could not be made.
    #[error("the store {} cannot be created: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A later version of the program wrote the store; this one would not know what it reads.
    #[error(
        "the store {} has version {found}, this program knows versions up to {known}: \
         use the mirab that wrote it, or another home",
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
    #[error("the store failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl StoreError {
    /// True when there is no space left: the same commit can succeed once there is.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Sqlite(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull))
    }
}
