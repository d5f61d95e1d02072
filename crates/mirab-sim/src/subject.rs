//! What a history is played on: the gate, the model, or a gate with a planted fault.
use crate::amount::Amount;
use crate::model::Model;
use mirab_core::{
    BucketState, ClaimId, Counters, Explanation, Fence, Gate, GateOptions, Place, Refusal, Release, ResourceConfig,
    ResourceView, Start, StoredLease, Submission, Time, TimeoutReason,
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
    fn next_numbers(&self) -> (u64, u64);
    fn submit(&mut self, now: Time, claim: Submission<'_>) -> Result<Place, Refusal>;
    fn release(&mut self, now: Time, id: ClaimId, fence: Fence) -> Release;
    fn cancel(&mut self, now: Time, id: ClaimId) -> bool;
    fn reprioritise(&mut self, now: Time, id: ClaimId, priority: i32) -> bool;
    fn handle_timeout(&mut self, now: Time);
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

/// Methods that have the same name and arguments in the gate and in the model.
macro_rules! same_interface {
    ($subject:ty) => {
        fn restore_bucket(&mut self, now: Time, name: &str, state: BucketState) -> Result<(), Refusal> {
            <$subject>::restore_bucket(self, now, name, state)
        }
        fn restore_counters(&mut self, next_seq: u64, next_fence: u64) {
            <$subject>::restore_counters(self, next_seq, next_fence);
        }
        fn next_numbers(&self) -> (u64, u64) {
            <$subject>::next_numbers(self)
        }
        fn submit(&mut self, now: Time, claim: Submission<'_>) -> Result<Place, Refusal> {
            <$subject>::submit(self, now, claim)
        }
        fn release(&mut self, now: Time, id: ClaimId, fence: Fence) -> Release {
            <$subject>::release(self, now, id, fence)
        }
        fn cancel(&mut self, now: Time, id: ClaimId) -> bool {
            <$subject>::cancel(self, now, id)
        }
        fn reprioritise(&mut self, now: Time, id: ClaimId, priority: i32) -> bool {
            <$subject>::reprioritise(self, now, id, priority)
        }
        fn handle_timeout(&mut self, now: Time) {
            <$subject>::handle_timeout(self, now);
        }
        fn poll_start(&mut self) -> Option<Start> {
            <$subject>::poll_start(self)
        }
        fn poll_refused(&mut self) -> Option<(ClaimId, Refusal)> {
            <$subject>::poll_refused(self)
        }
        fn poll_timeout(&self) -> Option<(Time, TimeoutReason)> {
            <$subject>::poll_timeout(self)
        }
        fn explain(&self, id: ClaimId) -> Option<Explanation> {
            <$subject>::explain(self, id)
        }
        fn resources(&self) -> Vec<ResourceView> {
            <$subject>::resources(self)
        }
        fn resource(&self, name: &str) -> Option<ResourceView> {
            <$subject>::resource(self, name)
        }
        fn holders(&self, name: &str) -> Vec<(ClaimId, u64, Time)> {
            <$subject>::holders(self, name)
        }
        fn first_waiters(&self, name: &str, limit: usize) -> Vec<ClaimId> {
            <$subject>::first_waiters(self, name, limit)
        }
        fn line(&self, limit: usize) -> Vec<ClaimId> {
            <$subject>::line(self, limit)
        }
        fn waiting(&self) -> u64 {
            <$subject>::waiting(self)
        }
        fn lease(&self, id: ClaimId) -> Option<Fence> {
            <$subject>::lease(self, id)
        }
        fn counters(&self) -> Counters {
            <$subject>::counters(self)
        }
    };
}

impl Subject for Model {
    same_interface!(Model);
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
    same_interface!(Gate);
    fn fresh(aging: Option<u64>) -> Self {
        Gate::new(GateOptions {
            aging,
            shard: String::new(),
        })
    }
    fn declare(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        let config = ResourceConfig {
            name: name.into(),
            limit: amount.limit(),
            shard: "default".into(),
        };
        Gate::declare(self, now, config)
    }
    fn set_limit(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        Gate::set_limit(self, now, name, amount.limit())
    }
    fn restore_lease(&mut self, now: Time, lease: StoredLease<'_>) -> Result<(), Refusal> {
        Gate::restore_lease(self, now, lease)
    }
}
