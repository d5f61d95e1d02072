//! Instants as the host gives them.

/// An instant: nanoseconds since an epoch that the host chooses (the server: the Unix epoch).
///
/// The core never reads a clock. A gate takes the latest instant it was ever given as now: a clock that steps back is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

impl Time {
    /// The instant `nanos` nanoseconds later; stops at the end of time instead of wrapping.
    #[must_use]
    pub fn plus(self, nanos: u64) -> Time {
        Time(self.0.saturating_add(nanos))
    }

    /// Nanoseconds since `earlier`; 0 when that is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
