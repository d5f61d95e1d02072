//! A disk that is full when a test says so.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The largest page number that SQLite allows for.
const UNLIMITED: u32 = u32::MAX - 1;

/// Limits the size of a store that another thread writes. Clones share the limit.
///
/// SQLite itself then refuses to grow the file, so the error, the rollback and the way back are those of a full disk.
/// A commit that fits into pages the file already has still succeeds, as it does on a full disk: to be refused, it has
/// to bring more than a page or two.
#[derive(Clone, Debug)]
pub struct PageLimit(Arc<AtomicU32>);

impl Default for PageLimit {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(UNLIMITED)))
    }
}

impl PageLimit {
    /// From the next commit on, the file has at most so many pages; `None` lifts the limit. A limit below the present size
    /// lets it stay as large as it is.
    pub fn set(&self, pages: Option<u32>) {
        self.0.store(pages.unwrap_or(UNLIMITED).clamp(1, UNLIMITED), Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}
