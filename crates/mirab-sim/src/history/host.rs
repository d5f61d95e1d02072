//! What a host would have stored: the facts from which a gate is built again after a restart.
use super::op::{History, Op};
use crate::amount::Amount;
use crate::model::Model;
use crate::subject::Subject;
use mirab_core::{BucketState, ClaimId, Fence, Learner, Place, Refusal, Settled, Start, StoredLease, Submission, Time};

/// A claim that waits.
#[derive(Clone, Debug)]
pub struct HostClaim {
    /// Its id.
    pub id: ClaimId,
    /// What it asked for, each name once.
    pub needs: Vec<(String, u64)>,
    /// Its priority as last edited.
    pub priority: i32,
    /// The enclosing body.
    pub parent: Option<ClaimId>,
    /// The place it was given.
    pub place: Place,
    /// What durations are learned by.
    pub kind: String,
    /// Where it was delayed once.
    pub delayed_on: Vec<String>,
}

/// A claim that was admitted.
#[derive(Clone, Debug)]
pub struct HostLease {
    /// Its id.
    pub id: ClaimId,
    /// Its fence number.
    pub fence: Fence,
    /// The claim as it waited.
    pub claim: HostClaim,
    /// Units it holds.
    pub takes: Vec<(String, u64)>,
    /// Units of enclosing bodies that it uses.
    pub covered: Vec<(String, u64, ClaimId)>,
    /// When it started.
    pub started_at: Time,
    /// Tokens it took, as they were settled since.
    pub tokens: Vec<(String, u64)>,
    /// What was expected of it when it started.
    pub expected: (u64, Option<u64>),
    /// What it passed.
    pub passed: Vec<(ClaimId, String)>,
}

/// The stored facts.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Names and patterns with their present limits.
    pub declared: Vec<(String, Amount)>,
    /// Claims that wait, in the order in which they came.
    pub waiting: Vec<HostClaim>,
    /// Leases, in order of their starts.
    pub leases: Vec<HostLease>,
    /// Buckets as of the last start that took tokens.
    pub buckets: Vec<(String, BucketState)>,
    /// Learned durations by kind.
    pub kinds: Vec<(String, Vec<u64>)>,
    /// Learned durations by declared name.
    pub on_resources: Vec<(String, Vec<u64>)>,
    /// Every claim that is over.
    pub ended: Vec<ClaimId>,
    /// The latest start since the last restart, over which a clock may have stepped back.
    pub latest_start: Time,
    /// True once a bucket was edited, or was last read at another instant: then stored tokens are not those of the gate.
    pub tokens_differ: bool,
}

impl Host {
    /// Before the first step.
    #[must_use]
    pub fn new(history: &History) -> Self {
        Self { declared: history.declared.clone(), ..Self::default() }
    }

    /// The lease of a claim.
    #[must_use]
    pub fn lease(&self, id: ClaimId) -> Option<&HostLease> {
        self.leases.iter().find(|l| l.id == id)
    }

    /// Units of a resource that leases hold.
    #[must_use]
    pub fn used(&self, name: &str) -> u64 {
        let takes = self.leases.iter().flat_map(|l| &l.takes);
        takes.filter(|(taken, _)| taken == name).map(|(_, units)| units).sum()
    }

    /// True when some body around holds units of the name.
    #[must_use]
    pub fn is_covered(&self, parent: Option<ClaimId>, name: &str) -> bool {
        let Some(body) = parent.and_then(|id| self.lease(id)) else { return false };
        let has =
            body.takes.iter().any(|(taken, _)| taken == name) || body.covered.iter().any(|(used, ..)| used == name);
        has || self.is_covered(body.claim.parent, name)
    }

    /// A submission was accepted.
    pub fn accept(&mut self, op: &Op, place: Place) {
        let Op::Submit { id, needs, priority, parent, kind } = op else { return };
        let mut summed: Vec<(String, u64)> = Vec::new();
        for (name, units) in needs {
            match summed.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += units,
                None => summed.push((name.clone(), *units)),
            }
        }
        let priority = parent.and_then(|id| self.lease(id)).map_or(*priority, |body| body.claim.priority);
        self.ended.retain(|ended| ended != id);
        self.waiting.push(HostClaim {
            id: *id,
            needs: summed,
            priority,
            parent: *parent,
            place,
            kind: (*kind).into(),
            delayed_on: Vec::new(),
        });
    }

    /// Tokens of a bucket that a lease is charged.
    #[must_use]
    pub fn charged(&self, id: ClaimId, name: &str) -> Option<u64> {
        let mut tokens = self.lease(id)?.tokens.iter();
        tokens.find(|(taken, _)| taken == name).map(|(_, units)| *units)
    }

    /// A bucket as it was stored last.
    #[must_use]
    pub fn bucket(&self, name: &str) -> Option<BucketState> {
        self.buckets.iter().find(|(known, _)| known == name).map(|(_, state)| *state)
    }

    /// The scaled balance at `at` of a bucket that was stored before, under its present limit.
    #[must_use]
    pub fn balance(&self, name: &str, stored: BucketState, at: Time) -> i128 {
        let of =
            |declared: &str| declared.strip_suffix('*').map_or(declared == name, |prefix| name.starts_with(prefix));
        let limit = self.declared.iter().find(|(declared, _)| of(declared)).map(|(_, amount)| *amount);
        let Some(Amount::Bucket { units, burst, .. }) = limit else { return stored.scaled };
        let most = i128::from(burst) * stored.scale;
        let come = i128::from(at.since(stored.at)) * i128::from(units);
        (stored.scaled.clamp(-most, most) + come).min(most)
    }

    /// A claim was admitted.
    pub fn start(&mut self, start: &Start) {
        let Some(index) = self.waiting.iter().position(|c| c.id == start.id) else { return };
        let claim = self.waiting.remove(index);
        for (name, state) in &start.buckets {
            self.buckets.retain(|(known, _)| **known != **name);
            self.buckets.push((name.to_string(), *state));
        }
        self.latest_start = start.at;
        let Start { id, fence, at: started_at, .. } = *start;
        let takes = start.takes.iter().map(|(name, units)| (name.to_string(), *units)).collect();
        let covered = start.covered.iter().map(|(name, units, holder)| (name.to_string(), *units, *holder)).collect();
        let tokens = start.tokens.iter().map(|(name, units)| (name.to_string(), *units)).collect();
        let passed = start.passed.iter().map(|(id, name)| (*id, name.to_string())).collect();
        let expected = (start.shortest, start.longest);
        self.leases.push(HostLease { id, fence, claim, takes, covered, started_at, tokens, expected, passed });
    }

    /// A claim is over: its body ended, or it was cancelled or refused.
    pub fn end(&mut self, id: ClaimId) {
        self.waiting.retain(|c| c.id != id);
        self.leases.retain(|l| l.id != id);
        self.ended.push(id);
    }

    /// A body ended by itself: what was learned is stored.
    pub fn learn(&mut self, lease: &HostLease, model: &Model) {
        let put = |stored: &mut Vec<(String, Vec<u64>)>, name: &str, durations: Vec<u64>| {
            stored.retain(|(known, _)| known != name);
            stored.push((name.into(), durations));
        };
        put(&mut self.kinds, &lease.claim.kind, model.durations(Learner::Kind(&lease.claim.kind)));
        for (name, _) in &self.declared {
            put(&mut self.on_resources, name, model.durations(Learner::Resource(name)));
        }
    }

    /// A bucket was corrected.
    pub fn put_bucket(&mut self, name: &str, state: BucketState) {
        self.buckets.retain(|(known, _)| known != name);
        self.buckets.push((name.into(), state));
    }

    /// A lease told the true cost of its tokens.
    pub fn settle(&mut self, id: ClaimId, name: &str, settled: Settled) {
        let leases = self.leases.iter_mut().filter(|l| l.id == id);
        let tokens = leases.flat_map(|l| l.tokens.iter_mut()).filter(|(taken, _)| taken == name);
        tokens.for_each(|(_, units)| *units = settled.charged);
        self.put_bucket(name, settled.bucket);
    }

    /// A waiting claim was delayed by what passed it.
    pub fn delay(&mut self, id: ClaimId, name: &str) {
        self.waiting.iter_mut().filter(|c| c.id == id).for_each(|c| c.delayed_on.push(name.into()));
    }

    /// A limit was changed.
    pub fn set_limit(&mut self, name: &str, amount: Amount) {
        self.tokens_differ |= matches!(amount, Amount::Bucket { .. });
        for (_, old) in self.declared.iter_mut().filter(|(known, _)| known == name) {
            *old = amount;
        }
    }

    /// Builds a gate from what is stored; claims join again in the order in which they came. Tells which were refused.
    ///
    /// # Panics
    /// When stored facts are refused.
    pub fn rebuild<S: Subject>(
        &self,
        aging: Option<u64>,
        now: Time,
        numbers: (u64, u64),
    ) -> (S, Vec<(ClaimId, Refusal)>) {
        let mut gate = S::fresh(aging);
        gate.withhold_starts();
        for (name, amount) in &self.declared {
            gate.declare(now, name, *amount).expect("declared before");
        }
        gate.restore_counters(numbers.0, numbers.1);
        for (kind, durations) in &self.kinds {
            gate.restore_durations(Learner::Kind(kind), durations);
        }
        for (name, durations) in &self.on_resources {
            gate.restore_durations(Learner::Resource(name), durations);
        }
        for (name, state) in &self.buckets {
            gate.restore_bucket(now, name, *state).expect("a stored bucket");
        }
        for lease in &self.leases {
            gate.restore_lease(now, lease.stored()).expect("a stored lease");
        }
        let mut refused = Vec::new();
        for claim in &self.waiting {
            let needs: Vec<(&str, u64)> = claim.needs.iter().map(|(name, units)| (name.as_str(), *units)).collect();
            let (place, priority, parent) = (Some(claim.place), claim.priority, claim.parent);
            let again = Submission { id: claim.id, kind: &claim.kind, needs: &needs, priority, parent, place };
            refused.extend(gate.submit(now, again).err().map(|refusal| (claim.id, refusal)));
            claim.delayed_on.iter().for_each(|name| gate.restore_delay(claim.id, name));
        }
        gate.resume_starts(now);
        (gate, refused)
    }
}

impl HostLease {
    fn stored(&self) -> StoredLease<'_> {
        StoredLease {
            id: self.id,
            fence: self.fence,
            kind: &self.claim.kind,
            takes: &self.takes,
            covered: &self.covered,
            priority: self.claim.priority,
            parent: self.claim.parent,
            place: self.claim.place,
            tokens: &self.tokens,
            shortest: self.expected.0,
            longest: self.expected.1,
            passed: &self.passed,
            started_at: self.started_at,
        }
    }
}
