//! What a host would have stored: the facts from which a gate is built again after a restart.
use super::op::{History, Op};
use crate::amount::Amount;
use crate::subject::Subject;
use mirab_core::{BucketState, ClaimId, Fence, Place, Refusal, Start, StoredLease, Submission, Time};

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
        let Op::Submit { id, needs, priority, parent } = op else { return };
        let mut summed: Vec<(String, u64)> = Vec::new();
        for (name, units) in needs {
            match summed.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += units,
                None => summed.push((name.clone(), *units)),
            }
        }
        let priority = parent.and_then(|id| self.lease(id)).map_or(*priority, |body| body.claim.priority);
        self.ended.retain(|ended| ended != id);
        self.waiting.push(HostClaim { id: *id, needs: summed, priority, parent: *parent, place });
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
        self.leases.push(HostLease { id, fence, claim, takes, covered, started_at });
    }

    /// A claim is over: its body ended, or it was cancelled or refused.
    pub fn end(&mut self, id: ClaimId) {
        self.waiting.retain(|c| c.id != id);
        self.leases.retain(|l| l.id != id);
        self.ended.push(id);
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
            let again = Submission { id: claim.id, kind: "work", needs: &needs, priority, parent, place };
            refused.extend(gate.submit(now, again).err().map(|refusal| (claim.id, refusal)));
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
            kind: "work",
            takes: &self.takes,
            covered: &self.covered,
            priority: self.claim.priority,
            parent: self.claim.parent,
            place: self.claim.place,
            tokens: &[],
            shortest: 10_000_000_000,
            longest: None,
            passed: &[],
            started_at: self.started_at,
        }
    }
}
