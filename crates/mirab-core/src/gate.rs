//! Placeholder until the gate's parts land in this change series.
use crate::api::*;
use crate::{BucketState, ClaimId, Fence, Limit, Place, Refusal, ResourceConfig, Time};
/// Options of a gate.
#[derive(Clone, Debug, Default)]
pub struct GateOptions { /// Nanoseconds of waiting that one point of priority is worth; `None`: order by priority alone.
 pub aging: Option<u64>, /// The shard it serves; empty means `default`.
 pub shard: String }
/// The gate.
#[derive(Default)]
pub struct Gate {}
#[allow(missing_docs, unused_variables)]
impl Gate {
    pub fn new(options: GateOptions) -> Self { Self {} }
    pub fn declare(&mut self, now: Time, config: ResourceConfig) -> Result<(), Refusal> { loop {} }
    pub fn set_limit(&mut self, now: Time, name: &str, limit: Limit) -> Result<(), Refusal> { loop {} }
    pub fn restore_bucket(&mut self, now: Time, name: &str, state: BucketState) -> Result<(), Refusal> { loop {} }
    pub fn restore_lease(&mut self, now: Time, lease: StoredLease<'_>) -> Result<(), Refusal> { loop {} }
    pub fn restore_counters(&mut self, next_seq: u64, next_fence: u64) {}
    pub fn next_numbers(&self) -> (u64, u64) { (0,0) }
    pub fn submit(&mut self, now: Time, claim: Submission<'_>) -> Result<Place, Refusal> { loop {} }
    pub fn release(&mut self, now: Time, id: ClaimId, fence: Fence) -> Release { loop {} }
    pub fn cancel(&mut self, now: Time, id: ClaimId) -> bool { loop {} }
    pub fn reprioritise(&mut self, now: Time, id: ClaimId, priority: i32) -> bool { loop {} }
    pub fn handle_timeout(&mut self, now: Time) {}
    pub fn poll_start(&mut self) -> Option<Start> { None }
    pub fn poll_refused(&mut self) -> Option<(ClaimId, Refusal)> { None }
    pub fn poll_timeout(&self) -> Option<(Time, TimeoutReason)> { None }
    pub fn explain(&self, id: ClaimId) -> Option<Explanation> { None }
    pub fn resources(&self) -> Vec<ResourceView> { vec![] }
    pub fn resource(&self, name: &str) -> Option<ResourceView> { None }
    pub fn is_declared(&self, name: &str) -> bool { false }
    pub fn holders(&self, name: &str) -> Vec<(ClaimId, u64, Time)> { vec![] }
    pub fn first_waiters(&self, name: &str, limit: usize) -> Vec<ClaimId> { vec![] }
    pub fn line(&self, limit: usize) -> Vec<ClaimId> { vec![] }
    pub fn waiting(&self) -> u64 { 0 }
    pub fn lease(&self, id: ClaimId) -> Option<Fence> { None }
    pub fn counters(&self) -> Counters { Counters::default() }
}
