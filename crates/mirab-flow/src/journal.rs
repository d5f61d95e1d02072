//! The seam to the store.
use crate::records::{Fact, Stored};
use std::fmt::Display;

/// Keeps facts. Internal: implemented by `mirab-store` and by doubles that are held to the same conformance suite.
pub trait Journal {
    /// Why a commit or a load failed.
    type Error: Display;

    /// Commits all or none of the facts, durably.
    ///
    /// # Errors
    /// When they could not be committed; then none is stored.
    fn commit(&mut self, facts: &[Fact]) -> Result<(), Self::Error>;

    /// Reads everything that is still alive.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn load(&mut self) -> Result<Stored, Self::Error>;
}
