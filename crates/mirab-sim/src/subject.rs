//! What a history is played on: the gate, the model, or a gate with a planted fault.
use crate::amount::Amount;
use crate::model::Model;
use mirab_core::{
    BucketState, ClaimId, Counters, Ended, Explanation, Fence, Gate, GateOptions, Learner, Name, Place, Refusal,
    Release, ResourceConfig, ResourceView, Settled, Start, StoredLease, Submission, Time, TimeoutReason,
};

/// The gate's interface, so that one history and one case serve all that claim to be a gate.
#[expect(missing_docs, reason = "each method is the gate's method of that name")]
pub trait Subject {
    fn fresh(aging: Option<u64>) -> Self;
    fn declare(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal>;
    fn set_limit(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal>;
    fn restore_bucket(&mut self, now: Time, name: &str, state: BucketState) -> Result<(), Refusal>;
    fn restore_lease(&mut self, now: Time, lease: StoredLease<'_>) -> Result<(), Refusal>;
    fn restore_counters(&mut self, next_seq: u64, next_fence: u64);
    fn withhold_starts(&mut self);
    fn resume_starts(&mut self, now: Time);
    fn next_numbers(&self) -> (u64, u64);
    fn submit(&mut self, now: Time, claim: Submission<'_>) -> Result<Place, Refusal>;
    fn release(&mut self, now: Time, id: ClaimId, fence: Fence, ended: Ended) -> Release;
    fn cancel(&mut self, now: Time, id: ClaimId) -> bool;
    fn reprioritise(&mut self, now: Time, id: ClaimId, priority: i32) -> bool;
    fn handle_timeout(&mut self, now: Time);
    fn settle(&mut self, now: Time, id: ClaimId, fence: Fence, name: &str, actual: u64) -> Result<Settled, Refusal>;
    fn cooldown(&mut self, now: Time, name: &str, duration: u64) -> Result<BucketState, Refusal>;
    fn durations(&self, learner: Learner<'_>) -> Vec<u64>;
    fn restore_durations(&mut self, learner: Learner<'_>, durations: &[u64]);
    fn poll_delayed(&mut self) -> Option<(ClaimId, Name)>;
    fn restore_delay(&mut self, id: ClaimId, name: &str);
    fn poll_start(&mut self) -> Option<Start>;
    fn poll_refused(&mut self) -> Option<(ClaimId, Refusal)>;
    fn poll_timeout(&self) -> Option<(Time, TimeoutReason)>;
    fn explain(&self, id: ClaimId) -> Option<Explanation>;
    fn resources(&self) -> Vec<ResourceView>;
    fn resource(&self, name: &str) -> Option<ResourceView>;
    fn holders(&self, name: &str) -> Vec<(ClaimId, u64, Time)>;
    fn first_waiters(&self, name: &str, limit: usize) -> Vec<ClaimId>;
    fn line(&self, limit: usize) -> Vec<ClaimId>;
    fn waiting(&self) -> u64;
    fn lease(&self, id: ClaimId) -> Option<Fence>;
    fn counters(&self) -> Counters;
}

/// Implements what a [`Subject`] tells by asking what is inside; the types of the core's interface must be in scope.
#[macro_export]
macro_rules! same_views {
    ($this:ident => $inner:expr) => {
        fn next_numbers(&$this) -> (u64, u64) {
            $inner.next_numbers()
        }
        fn durations(&$this, learner: Learner<'_>) -> Vec<u64> {
            $inner.durations(learner)
        }
        fn poll_delayed(&mut $this) -> Option<(ClaimId, Name)> {
            $inner.poll_delayed()
        }
        fn poll_start(&mut $this) -> Option<Start> {
            $inner.poll_start()
        }
        fn poll_refused(&mut $this) -> Option<(ClaimId, Refusal)> {
            $inner.poll_refused()
        }
        fn poll_timeout(&$this) -> Option<(Time, TimeoutReason)> {
            $inner.poll_timeout()
        }
        fn explain(&$this, id: ClaimId) -> Option<Explanation> {
            $inner.explain(id)
        }
        fn resources(&$this) -> Vec<ResourceView> {
            $inner.resources()
        }
        fn resource(&$this, name: &str) -> Option<ResourceView> {
            $inner.resource(name)
        }
        fn holders(&$this, name: &str) -> Vec<(ClaimId, u64, Time)> {
            $inner.holders(name)
        }
        fn first_waiters(&$this, name: &str, limit: usize) -> Vec<ClaimId> {
            $inner.first_waiters(name, limit)
        }
        fn line(&$this, limit: usize) -> Vec<ClaimId> {
            $inner.line(limit)
        }
        fn waiting(&$this) -> u64 {
            $inner.waiting()
        }
        fn lease(&$this, id: ClaimId) -> Option<Fence> {
            $inner.lease(id)
        }
        fn counters(&$this) -> Counters {
            $inner.counters()
        }
    };
}

macro_rules! same_commands {
    ($this:ident => $inner:expr) => {
        fn settle(
            &mut $this,
            now: Time,
            id: ClaimId,
            fence: Fence,
            name: &str,
            actual: u64,
        ) -> Result<Settled, Refusal> {
            $inner.settle(now, id, fence, name, actual)
        }
        fn cooldown(&mut $this, now: Time, name: &str, duration: u64) -> Result<BucketState, Refusal> {
            $inner.cooldown(now, name, duration)
        }
        fn restore_durations(&mut $this, learner: Learner<'_>, durations: &[u64]) {
            $inner.restore_durations(learner, durations);
        }
        fn restore_delay(&mut $this, id: ClaimId, name: &str) {
            $inner.restore_delay(id, name);
        }
        fn restore_bucket(&mut $this, now: Time, name: &str, state: BucketState) -> Result<(), Refusal> {
            $inner.restore_bucket(now, name, state)
        }
        fn restore_counters(&mut $this, next_seq: u64, next_fence: u64) {
            $inner.restore_counters(next_seq, next_fence);
        }
        fn withhold_starts(&mut $this) {
            $inner.withhold_starts();
        }
        fn resume_starts(&mut $this, now: Time) {
            $inner.resume_starts(now);
        }
        fn submit(&mut $this, now: Time, claim: Submission<'_>) -> Result<Place, Refusal> {
            $inner.submit(now, claim)
        }
        fn release(&mut $this, now: Time, id: ClaimId, fence: Fence, ended: Ended) -> Release {
            $inner.release(now, id, fence, ended)
        }
        fn cancel(&mut $this, now: Time, id: ClaimId) -> bool {
            $inner.cancel(now, id)
        }
        fn reprioritise(&mut $this, now: Time, id: ClaimId, priority: i32) -> bool {
            $inner.reprioritise(now, id, priority)
        }
        fn handle_timeout(&mut $this, now: Time) {
            $inner.handle_timeout(now);
        }
    };
}

impl Subject for Model {
    same_commands!(self => self);
    same_views!(self => self);
    fn fresh(aging: Option<u64>) -> Self {
        Model::new(aging)
    }
    fn declare(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        Model::declare(self, now, name, amount)
    }
    fn set_limit(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        Model::set_limit(self, now, name, amount)
    }
    fn restore_lease(&mut self, now: Time, lease: StoredLease<'_>) -> Result<(), Refusal> {
        Model::restore_lease(self, now, &lease)
    }
}

impl Subject for Gate {
    same_commands!(self => self);
    same_views!(self => self);
    fn fresh(aging: Option<u64>) -> Self {
        Gate::new(GateOptions { aging, ..GateOptions::default() })
    }
    fn declare(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        let config = ResourceConfig { name: name.into(), limit: amount.limit(), shard: "default".into() };
        Gate::declare(self, now, config)
    }
    fn set_limit(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        Gate::set_limit(self, now, name, amount.limit())
    }
    fn restore_lease(&mut self, now: Time, lease: StoredLease<'_>) -> Result<(), Refusal> {
        Gate::restore_lease(self, now, lease)
    }
}
