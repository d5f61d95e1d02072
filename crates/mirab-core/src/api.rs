//! What goes into the gate and what comes out of it, as plain data.
use crate::bucket::BucketState;
use crate::config::Limit;
use crate::ids::{ClaimId, Fence, Place};
use crate::time::Time;

/// Name of a resource, shared with the gate instead of copied with every start.
pub type Name = std::sync::Arc<str>;

/// A request to start: it waits until all it needs is free, and then holds it until it is released.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Chosen by the host; must neither wait nor hold.
    pub id: ClaimId,
    /// What durations will be learned by: the flow, or pool and kind of task. Not read yet.
    pub kind: &'a str,
    /// Units by resource name. A name given twice is summed.
    pub needs: &'a [(&'a str, u64)],
    /// Higher first. Ignored for a task inside a run, which has its run's rank.
    pub priority: i32,
    /// The lease of the enclosing body, for a task inside a run.
    pub parent: Option<ClaimId>,
    /// Its place from an earlier time in the line; `None` for new work. With a place, a need above a total that was lowered since waits
    /// instead of being refused.
    pub place: Option<Place>,
}

/// A claim was admitted: it holds a lease from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The claim, whose id is the lease's id as well.
    pub id: ClaimId,
    /// Fence number of the lease.
    pub fence: Fence,
    /// When.
    pub at: Time,
    /// Semaphore units it holds from now on (without what its run holds for it).
    pub takes: Vec<(Name, u64)>,
    /// Units of its run that it uses, by name and holder: they count for its siblings only.
    pub covered: Vec<(Name, u64, ClaimId)>,
    /// Buckets it took tokens from, with what is left: to be stored with the start.
    pub buckets: Vec<(Name, BucketState)>,
}

/// A lease as it was stored, to be held again after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLease<'a> {
    /// The claim.
    pub id: ClaimId,
    /// Its fence number.
    pub fence: Fence,
    /// Kind of its claim.
    pub kind: &'a str,
    /// Units as they were taken.
    pub takes: &'a [(String, u64)],
    /// Units of enclosing bodies that it uses.
    pub covered: &'a [(String, u64, ClaimId)],
    /// Its claim's priority.
    pub priority: i32,
    /// The enclosing body's lease, restored before.
    pub parent: Option<ClaimId>,
    /// Its claim's place.
    pub place: Place,
    /// When it started.
    pub started_at: Time,
}

/// What a release did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The units are free again.
    Done,
    /// There was no such lease, or it has another fence: nothing changed; counted in [`Counters::double_releases`].
    Double,
}

/// Why the gate wants to be called at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeoutReason {
    /// Enough tokens for a waiter will have come.
    Tokens {
        /// The bucket.
        resource: String,
    },
}

/// Counters that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Claims admitted.
    pub starts: u64,
    /// Releases that changed nothing.
    pub double_releases: u64,
    /// Candidates looked at to decide a start.
    pub evaluations: u64,
    /// Starts while a better-ranked claim that waits for the same pool could have started (0).
    pub priority_inversions: u64,
}

/// Why a claim waits, from the very state the gate decides with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The claim.
    pub id: ClaimId,
    /// Every resource it is short of or held back on, in the order of its needs.
    pub blocked_on: Vec<Blocked>,
    /// True when a lowered total no longer allows it at all.
    pub unsatisfiable: bool,
}

/// Why one resource does not let a claim start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The resource.
    pub resource: String,
    /// Units it needs.
    pub need: u64,
    /// Units free now (whole tokens of a bucket); negative after a total was lowered below its use. When an enclosing body covers
    /// the name: what is free of its units.
    pub free: i64,
    /// `permits`, `burst`, or what the enclosing body holds.
    pub capacity: u64,
    /// Leases that hold units, oldest first, at most five: claim, units, since when.
    pub holders: Vec<(ClaimId, u64, Time)>,
    /// How many leases hold units.
    pub holders_total: u64,
    /// The higher-ranked claim that is short of this resource and must not be passed on it, where that is (also) why it waits.
    pub behind: Option<ClaimId>,
    /// How many waiting claims that need this resource rank ahead of it, at most [`AHEAD_LIMIT`].
    pub ahead: u64,
    /// When enough tokens will have come, for a bucket.
    pub tokens_at: Option<Time>,
}

/// Up to here [`Blocked::ahead`] is exact.
pub const AHEAD_LIMIT: u64 = 1_000;

/// A resource as the gate enforces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceView {
    /// Its name.
    pub name: String,
    /// Its limit.
    pub limit: Limit,
    /// Units held: the sum of its leases.
    pub used: u64,
    /// Free units; whole tokens for a bucket; negative after a total was lowered below its use.
    pub free: i64,
    /// Claims that wait and need it.
    pub waiters: u64,
    /// The declaration it comes from: its own name or a pattern.
    pub declared_as: String,
}
