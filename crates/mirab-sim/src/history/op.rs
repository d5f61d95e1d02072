//! The steps of a history.
use crate::amount::Amount;
use mirab_core::ClaimId;

/// One step. Each can be played whatever came before it, so that a history stays one when steps are left out.
#[derive(Clone, Debug)]
pub enum Op {
    /// A claim, or a task in the body `parent`.
    Submit {
        /// Its id.
        id: ClaimId,
        /// Units by name, in the order asked for; a name may come twice.
        needs: Vec<(String, u64)>,
        /// Higher first.
        priority: i32,
        /// The enclosing body.
        parent: Option<ClaimId>,
        /// What durations are learned by.
        kind: &'static str,
    },
    /// The body of a lease ends. Left out while bodies inside it hold leases, as a host would.
    Release(ClaimId),
    /// The body of a lease is stopped: its duration teaches nothing.
    Stop(ClaimId),
    /// The true cost of tokens becomes known.
    Settle(ClaimId, String, u64),
    /// The far side asks for a pause, in nanoseconds.
    Cooldown(String, u64),
    /// A late report: releases with a fence that is not the lease's.
    ReleaseStale(ClaimId),
    /// A waiting claim is cancelled.
    Cancel(ClaimId),
    /// Its priority is edited.
    Reprioritise(ClaimId, i32),
    /// A total, rate or burst is changed.
    SetLimit(String, Amount),
    /// The host's clock moves on, by nanoseconds, and calls the gate.
    Tick(u64),
    /// The host's clock moves on, and the host comes late: it calls the gate only with its next step.
    Sleep(u64),
    /// The host's clock steps back.
    StepBack(u64),
    /// The host sleeps until the instant the gate asked for.
    Wake,
    /// The host ends, and starts again from what it had stored, nanoseconds later; perhaps with one limit edited in its config.
    Restart(u64, Option<(String, Amount)>),
}

/// Where a history starts, and what happens then.
#[derive(Clone, Debug)]
pub struct History {
    /// The seed it comes from.
    pub seed: u64,
    /// Nanoseconds that a point of priority is worth.
    pub aging: Option<u64>,
    /// Names and patterns.
    pub declared: Vec<(String, Amount)>,
    /// The steps.
    pub ops: Vec<Op>,
}
