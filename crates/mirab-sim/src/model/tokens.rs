//! Corrections of token buckets, and what is stored of durations and delays.
use super::Model;
use mirab_core::{BucketState, ClaimId, Fence, Learner, Name, Refusal, Settled, Time};

impl Model {
    /// Corrects what a lease was charged.
    ///
    /// # Errors
    /// `InvalidClaim`, `InvalidResource`.
    pub fn settle(
        &mut self,
        now: Time,
        id: ClaimId,
        fence: Fence,
        name: &str,
        actual: u64,
    ) -> Result<Settled, Refusal> {
        let Some(index) = self.leases.iter().position(|l| l.id == id && l.fence == fence) else {
            return Err(Refusal::InvalidClaim { why: "no such lease".into() });
        };
        let none = || Refusal::invalid(name, "took no tokens of it");
        let at = self.now.max(now);
        let mut bucket = self.balance(name).ok_or_else(none)?;
        let charged = self.leases[index].tokens.iter_mut().find(|(taken, _)| taken == name).ok_or_else(none)?;
        let (before, owed) = (bucket.scaled_at(at), i128::from(actual) - i128::from(charged.1));
        bucket.scaled = (before - owed * bucket.scale).clamp(-bucket.most(), bucket.most());
        bucket.at = bucket.at.max(at);
        // Charged is what left the bucket, less any part of a token.
        let left = i128::from(charged.1) * bucket.scale + before - bucket.scaled;
        charged.1 = u64::try_from(left.div_euclid(bucket.scale)).expect("between what was charged and what was told");
        let charged = charged.1;
        self.pass(now);
        let settled = Settled { charged, bucket: self.put(bucket) };
        self.pump();
        Ok(settled)
    }

    /// Nothing that needs this bucket starts before `duration` has passed.
    ///
    /// # Errors
    /// `UnknownResource`, `InvalidResource`.
    pub fn cooldown(&mut self, now: Time, name: &str, duration: u64) -> Result<BucketState, Refusal> {
        self.declaration(name).ok_or_else(|| Refusal::UnknownResource { name: name.into(), near: Vec::new() })?;
        let Some(mut bucket) = self.balance(name) else {
            return Err(Refusal::invalid(name, "no token bucket"));
        };
        self.pass(now);
        bucket.cooling_until = bucket.cooling_until.max(self.now.plus(duration));
        bucket.scaled = bucket.scaled_at(self.now);
        bucket.at = bucket.at.max(self.now);
        let state = self.put(bucket);
        self.pump();
        Ok(state)
    }

    fn put(&mut self, bucket: super::records::Balance) -> BucketState {
        let state = bucket.state(self.now);
        self.balances.retain(|known| known.name != bucket.name);
        self.balances.push(bucket);
        state
    }

    /// The last four durations, oldest first.
    #[must_use]
    pub fn durations(&self, learner: Learner<'_>) -> Vec<u64> {
        match learner {
            Learner::Kind(kind) => self.known(kind),
            Learner::Resource(name) => {
                self.declared.iter().find(|d| d.name == name).map(|d| d.durations.clone()).unwrap_or_default()
            }
        }
    }

    /// Takes stored durations over.
    pub fn restore_durations(&mut self, learner: Learner<'_>, durations: &[u64]) {
        match learner {
            Learner::Kind(kind) => self.kinds.push((kind.into(), durations.to_vec())),
            Learner::Resource(name) => {
                self.declared.iter_mut().filter(|d| d.name == name).for_each(|d| d.durations = durations.to_vec());
            }
        }
    }

    /// The next claim that was delayed by what passed it.
    pub fn poll_delayed(&mut self) -> Option<(ClaimId, Name)> {
        self.delayed.pop_front()
    }

    /// It was delayed before the restart.
    pub fn restore_delay(&mut self, id: ClaimId, name: &str) {
        self.mark(id, name, false);
    }
}
