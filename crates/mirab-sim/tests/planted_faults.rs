//! A gate with a fault must be told from one without: otherwise the comparison proves nothing.
use mirab_core::{
    BucketState, ClaimId, Counters, Ended, Explanation, Fence, Learner, Name, Place, Refusal, Release, ResourceView,
    Settled, Start, StoredLease, Submission, Time, TimeoutReason,
};
use mirab_sim::{Amount, Model, Subject, run_history, same_views};

const FORGETS_THE_PARENT: u8 = 0;
const IGNORES_FENCES: u8 = 1;
const LOWERS_LATER_PRIORITIES: u8 = 2;
const FILLS_BUCKETS_AT_RESTART: u8 = 3;
const SLEEPS_THROUGH_TIMERS: u8 = 4;
const FORGETS_LEASES_AT_RESTART: u8 = 5;
const CANCELS_NOTHING: u8 = 6;
const KNOWS_NO_KINDS: u8 = 7;
const LEARNS_FROM_WHAT_WAS_STOPPED: u8 = 8;
const FORGETS_DELAYS_AT_RESTART: u8 = 9;
const SETTLES_TWICE_AS_MUCH: u8 = 10;
const COOLS_NOTHING: u8 = 11;
const TAKES_ALL_FOR_ONE_PRIORITY: u8 = 12;
const FORGETS_DURATIONS_AT_RESTART: u8 = 13;
const CHARGES_WHAT_IS_TOLD: u8 = 14;

/// The model with one fault, by number.
struct Faulty<const FAULT: u8>(Model);

impl<const FAULT: u8> Subject for Faulty<FAULT> {
    same_views!(self => self.0);

    fn settle(&mut self, now: Time, id: ClaimId, fence: Fence, name: &str, actual: u64) -> Result<Settled, Refusal> {
        let actual = if FAULT == SETTLES_TWICE_AS_MUCH { actual * 2 } else { actual };
        let settled = self.0.settle(now, id, fence, name, actual)?;
        Ok(if FAULT == CHARGES_WHAT_IS_TOLD { Settled { charged: actual, ..settled } } else { settled })
    }
    fn cooldown(&mut self, now: Time, name: &str, duration: u64) -> Result<BucketState, Refusal> {
        self.0.cooldown(now, name, if FAULT == COOLS_NOTHING { 0 } else { duration })
    }
    fn restore_delay(&mut self, id: ClaimId, name: &str) {
        if FAULT != FORGETS_DELAYS_AT_RESTART {
            self.0.restore_delay(id, name);
        }
    }
    fn restore_durations(&mut self, learner: Learner<'_>, durations: &[u64]) {
        if FAULT != FORGETS_DURATIONS_AT_RESTART {
            self.0.restore_durations(learner, durations);
        }
    }

    fn fresh(aging: Option<u64>) -> Self {
        Self(Model::new(aging))
    }
    fn declare(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        self.0.declare(now, name, amount)
    }
    fn set_limit(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        self.0.set_limit(now, name, amount)
    }
    fn restore_bucket(&mut self, now: Time, name: &str, state: BucketState) -> Result<(), Refusal> {
        if FAULT == FILLS_BUCKETS_AT_RESTART { Ok(()) } else { self.0.restore_bucket(now, name, state) }
    }
    fn restore_lease(&mut self, now: Time, lease: StoredLease<'_>) -> Result<(), Refusal> {
        if FAULT == FORGETS_LEASES_AT_RESTART { Ok(()) } else { self.0.restore_lease(now, &lease) }
    }
    fn restore_counters(&mut self, next_seq: u64, next_fence: u64) {
        self.0.restore_counters(next_seq, next_fence);
    }
    fn withhold_starts(&mut self) {
        self.0.withhold_starts();
    }
    fn resume_starts(&mut self, now: Time) {
        self.0.resume_starts(now);
    }
    fn submit(&mut self, now: Time, mut claim: Submission<'_>) -> Result<Place, Refusal> {
        match FAULT {
            FORGETS_THE_PARENT => claim.parent = None,
            KNOWS_NO_KINDS => claim.kind = "one for all",
            TAKES_ALL_FOR_ONE_PRIORITY => claim.priority = 0,
            _ => {}
        }
        self.0.submit(now, claim)
    }
    fn release(&mut self, now: Time, id: ClaimId, fence: Fence, ended: Ended) -> Release {
        let fence = if FAULT == IGNORES_FENCES { self.0.lease(id).unwrap_or(fence) } else { fence };
        let ended = if FAULT == LEARNS_FROM_WHAT_WAS_STOPPED { Ended::ByItself } else { ended };
        self.0.release(now, id, fence, ended)
    }
    fn cancel(&mut self, now: Time, id: ClaimId) -> bool {
        FAULT != CANCELS_NOTHING && self.0.cancel(now, id)
    }
    fn reprioritise(&mut self, now: Time, id: ClaimId, priority: i32) -> bool {
        let priority = if FAULT == LOWERS_LATER_PRIORITIES { priority.saturating_sub(1) } else { priority };
        self.0.reprioritise(now, id, priority)
    }
    fn handle_timeout(&mut self, now: Time) {
        if FAULT != SLEEPS_THROUGH_TIMERS {
            self.0.handle_timeout(now);
        }
    }
}

/// The fault is seen within some thousand histories, and told in few steps.
fn is_seen<const FAULT: u8>() {
    let failure = (0..5_000).find_map(|seed| run_history::<Faulty<FAULT>>(seed).err());
    let failure = failure.unwrap_or_else(|| panic!("fault {FAULT} was not seen"));
    assert!(failure.history.ops.len() <= 8, "{failure}");
}

#[test]
fn every_planted_fault_is_seen_and_told_in_few_steps() {
    is_seen::<FORGETS_THE_PARENT>();
    is_seen::<IGNORES_FENCES>();
    is_seen::<LOWERS_LATER_PRIORITIES>();
    is_seen::<FILLS_BUCKETS_AT_RESTART>();
    is_seen::<SLEEPS_THROUGH_TIMERS>();
    is_seen::<FORGETS_LEASES_AT_RESTART>();
    is_seen::<CANCELS_NOTHING>();
    is_seen::<KNOWS_NO_KINDS>();
    is_seen::<LEARNS_FROM_WHAT_WAS_STOPPED>();
    is_seen::<FORGETS_DELAYS_AT_RESTART>();
    is_seen::<SETTLES_TWICE_AS_MUCH>();
    is_seen::<COOLS_NOTHING>();
    is_seen::<TAKES_ALL_FOR_ONE_PRIORITY>();
    is_seen::<FORGETS_DURATIONS_AT_RESTART>();
    is_seen::<CHARGES_WHAT_IS_TOLD>();
}
