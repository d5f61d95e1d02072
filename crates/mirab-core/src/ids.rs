//! Names of things by number.
use crate::time::Time;

/// Names a claim; chosen by the host, unique among the claims that wait or hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u64);

/// Fence number of a lease: grows with every start, so that a report of an older attempt can be told and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A place in the line, given when work joins it and kept for life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Sequence number in the line.
    pub seq: u64,
    /// Order of call inside a run; 0 for work that is in no run.
    pub call: u64,
    /// When it joined the line.
    pub joined_at: Time,
}
