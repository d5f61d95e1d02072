//! What goes into the gate and what comes out of it, as plain data.
use crate::bucket::BucketState;
use crate::config::Limit;
use crate::ids::{ClaimId, Fence, Place};
use crate::time::Time;

/// Name of a resource, shared with the gate instead of copied with every start.
pub type Name = std::sync::Arc<str>;

/// Units by resource name, shared with the gate.
pub type Units = std::sync::Arc<[(Name, u64)]>;

/// A request to start: it waits until all it needs is free, and then holds it until it is released.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Chosen by the host; must neither wait nor hold.
    pub id: ClaimId,
    /// What durations are learned by: the flow, or pool and kind of task. Kinds are remembered for ever: a bounded set.
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
    pub takes: Units,
    /// Units of its run that it uses, by name and holder: they count for its siblings only.
    pub covered: Vec<(Name, u64, ClaimId)>,
    /// Tokens it took: they do not come back when it ends.
    pub tokens: Vec<(Name, u64)>,
    /// The buckets it took them from, with what is left: to be stored with the start.
    pub buckets: Vec<(Name, BucketState)>,
    /// In so many nanoseconds it may end, as far as is known now: to be stored with the lease.
    pub shortest: u64,
    /// So many nanoseconds its kind took at the longest of late; `None` for a kind that is not known yet. Stored with the lease.
    pub longest: Option<u64>,
    /// Waiting claims that it passed by starting now, and on which resource: to be stored with the lease.
    pub passed: Vec<(ClaimId, Name)>,
}

/// What a correction of tokens came to: both are to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Tokens that the lease is charged from now on. This is not the true cost where the difference was cut: at minus one burst, or
    /// because the bucket was full.
    pub charged: u64,
    /// The bucket's state.
    pub bucket: BucketState,
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
    /// Tokens it took, as they were settled since.
    pub tokens: &'a [(String, u64)],
    /// See [`Start::shortest`].
    pub shortest: u64,
    /// See [`Start::longest`].
    pub longest: Option<u64>,
    /// See [`Start::passed`].
    pub passed: &'a [(ClaimId, String)],
    /// Its claim's priority.
    pub priority: i32,
    /// The enclosing body's lease, restored before.
    pub parent: Option<ClaimId>,
    /// Its claim's place.
    pub place: Place,
    /// When it started.
    pub started_at: Time,
}

/// How an attempt came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its body returned or failed: its duration is learned.
    ByItself,
    /// It was cancelled, timed out, paused or lost: nothing is learned.
    Stopped,
}

/// What durations are learned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learner<'a> {
    /// The kind of the claim.
    Kind(&'a str),
    /// A declared name or pattern that the claim needed.
    Resource(&'a str),
}

/// Which declaration of a name wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The name asked for.
    pub name: String,
    /// The declared name or pattern that wins.
    pub declared_as: String,
    /// Its limit, which `name` has for itself.
    pub limit: Limit,
    /// Why it wins.
    pub why: Match,
    /// Other patterns that match, the nearest first, and why.
    pub losers: Vec<(String, Match)>,
}

/// How a declaration matches a name; the greatest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// A pattern, with the characters before and after its `*`: the longest prefix wins, then the longest suffix.
    Pattern {
        /// Characters before the `*`.
        prefix: usize,
        /// Characters after the `*`.
        suffix: usize,
    },
    /// The very name.
    Exact,
}

/// When a protected claim is expected to start.
///
/// The range is what was seen of late, no quantile: with four durations remembered of a kind, a fifth of the same random sort lies between
/// the shortest and the longest in three of five cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The promised instant.
    pub at: Time,
    /// If every holder takes as long as its kind's shortest duration of late.
    pub earliest: Time,
    /// If every holder takes as long as its kind's longest duration of late; `None` where a kind is unknown or a holder overruns.
    pub latest: Option<Time>,
    /// The resource that decides it; `None` when nothing is short.
    pub decided_by: Option<String>,
    /// Holders it rests on whose kinds are known, and those whose are not.
    pub known: u64,
    /// See `known`.
    pub assumed: u64,
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
    /// Work that fits is held back, and what is expected of the holders changes.
    Overrun,
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
    /// When it is expected to start, if it is protected on some resource.
    pub promise: Option<Promise>,
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
    /// Higher-ranked claims that must not be passed on this resource, where that is (also) why it waits; at most two.
    pub behind: Vec<ClaimId>,
    /// How many waiting claims that need this resource rank ahead of it, at most [`AHEAD_LIMIT`].
    pub ahead: u64,
    /// When enough tokens will have come, for a bucket.
    pub tokens_at: Option<Time>,
    /// Claims that rank below it and started while it waited, among the last [`STARTS_REMEMBERED`] starts of this resource.
    pub passed_by: Vec<ClaimId>,
}

/// So many starts of each resource are remembered.
pub const STARTS_REMEMBERED: usize = 256;

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
