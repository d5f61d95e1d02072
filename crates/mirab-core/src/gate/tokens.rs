//! Corrections of token buckets by those who use them.
use super::Gate;
use crate::api::Settled;
use crate::bucket::BucketState;
use crate::config::Limit;
use crate::ids::{ClaimId, Fence};
use crate::refusal::Refusal;
use crate::time::Time;

impl Gate {
    /// Corrects what a lease was charged for tokens of a bucket, once the true cost is known: the difference is given back, up to the
    /// burst, or owed, down to minus one burst. The next correction is held against what this one charged.
    ///
    /// # Errors
    /// `InvalidClaim` when there is no such lease, `InvalidResource` when it took no tokens of that name.
    pub fn settle(
        &mut self,
        now: Time,
        id: ClaimId,
        fence: Fence,
        name: &str,
        actual: u64,
    ) -> Result<Settled, Refusal> {
        if self.lease(id) != Some(fence) {
            return Err(Refusal::InvalidClaim { why: format!("claim {} holds no lease with fence {}", id.0, fence.0) });
        }
        let none =
            || Refusal::invalid(name, "this work took no tokens of it, expected a token bucket that it asked for");
        let at = *self.by_name.get(name).ok_or_else(none)?;
        let now = self.now.max(now);
        let Self { resources, leases, claims, .. } = self;
        let bucket = resources[at].bucket_mut().ok_or_else(none)?;
        let lease = claims.get(&id).and_then(|claim| Some(&mut leases[claim.lease()?]));
        let tokens = lease.and_then(|lease| lease.tokens_mut().iter_mut().find(|(of, _)| *of == at));
        let (_, charged) = tokens.ok_or_else(none)?;
        *charged = bucket.settle(*charged, actual, now);
        let settled = Settled { charged: *charged, bucket: bucket.state(now) };
        self.advance(now);
        self.touch(at);
        self.pump();
        Ok(settled)
    }

    /// The far side asked for a pause: nothing that needs this bucket starts before `duration` nanoseconds have passed. Its capacity
    /// is unchanged, and a longer pause that was asked for before stays. Gives the state, to be stored.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceOnOtherShard`, or `InvalidResource` when it is no token bucket.
    pub fn cooldown(&mut self, now: Time, name: &str, duration: u64) -> Result<BucketState, Refusal> {
        if !matches!(self.resolve(name)?.limit, Limit::TokenBucket { .. }) {
            return Err(Refusal::invalid(name, "only a token bucket can cool down, this is a semaphore"));
        }
        self.advance(now);
        let (at, now) = (self.number(name), self.now);
        let bucket = self.resources[at].bucket_mut().map(|bucket| {
            bucket.cool(now.plus(duration));
            bucket.state(now)
        });
        self.touch(at);
        self.pump();
        bucket.ok_or_else(|| self.unknown(name))
    }

    /// When a bucket is full, if nothing is taken of it.
    #[must_use]
    pub fn bucket_full_at(&self, name: &str) -> Option<Time> {
        let bucket = self.resources[*self.by_name.get(name)?].bucket()?;
        bucket.time_of(bucket.burst(), self.now)
    }

    /// The state of a bucket, to be stored; `None` for what is no bucket, or an instance of a pattern that nobody has used of late.
    #[must_use]
    pub fn bucket_state(&self, name: &str) -> Option<BucketState> {
        let at = self.by_name.get(name)?;
        self.resources[*at].bucket().map(|bucket| bucket.state(self.now))
    }
}
