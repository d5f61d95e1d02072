//! The gate as plain lists: what the fast gate must do, in the form that is easiest to believe. Slow and obvious on purpose.
//!
//! Every answer is found by looking at all claims and all leases. There is no index, no cache and no second count.
mod circle;
mod promises;
mod records;
mod rules;
mod tokens;
mod views;

use crate::amount::Amount;
use mirab_core::{
    BucketState, ClaimId, Counters, Ended, Fence, Name, Place, Refusal, Release, SECOND, Start, StoredLease,
    Submission, Time,
};
use records::{Balance, Claim, Declared, Lease, Started};
use std::collections::VecDeque;

/// The reference model, with the interface of the gate.
#[derive(Clone, Debug, Default)]
pub struct Model {
    aging: Option<u64>,
    now: Time,
    declared: Vec<Declared>,
    balances: Vec<Balance>,
    waiting: Vec<Claim>,
    leases: Vec<Lease>,
    next_seq: u64,
    next_fence: u64,
    started: VecDeque<Start>,
    refused: VecDeque<(ClaimId, Refusal)>,
    counters: Counters,
    restoring: bool,
    assumed: u64,
    kinds: Vec<(String, Vec<u64>)>,
    delayed: VecDeque<(ClaimId, Name)>,
    /// Every start: which names it took, its rank, its fence.
    history: Vec<Started>,
}

impl Model {
    /// With `aging`, each point of priority is worth that many nanoseconds of waiting.
    #[must_use]
    pub fn new(aging: Option<u64>) -> Self {
        Self { aging, next_fence: 1, assumed: 10 * SECOND, ..Self::default() }
    }

    /// Time passes; a clock that steps back is ignored.
    fn pass(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    pub(in crate::model) fn declaration(&self, name: &str) -> Option<&Declared> {
        let matching = self.declared.iter().filter_map(|d| Some((d.match_of(name)?, d)));
        matching.max_by_key(|(quality, _)| *quality).map(|(_, d)| d)
    }

    pub(in crate::model) fn is_bucket(&self, name: &str) -> bool {
        matches!(self.amount(name), Amount::Bucket { .. })
    }

    /// Declares a resource or a pattern, once.
    ///
    /// # Errors
    /// `InvalidResource` when it is declared already.
    pub fn declare(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        self.pass(now);
        if self.declared.iter().any(|d| d.name == name) {
            return Err(Refusal::invalid(name, "declared twice"));
        }
        self.declared.push(Declared::new(name, amount));
        if !name.contains('*') {
            self.keep_balance(name);
        }
        Ok(())
    }

    /// Changes a declared total, rate or burst.
    ///
    /// # Errors
    /// `UnknownResource`.
    pub fn set_limit(&mut self, now: Time, name: &str, amount: Amount) -> Result<(), Refusal> {
        self.pass(now);
        self.forget_full_instances();
        let Some(declared) = self.declared.iter_mut().find(|d| d.name == name) else {
            return Err(unknown(name));
        };
        declared.amount = amount;
        if amount.capacity() > 0 {
            declared.last_positive = amount.capacity();
        }
        self.change_balances(name, amount);
        self.pump();
        self.refuse_circles();
        Ok(())
    }

    /// From now on this bucket has its own tokens.
    fn keep_balance(&mut self, name: &str) {
        if self.balances.iter().all(|b| b.name != name) {
            self.balances.extend(self.balance(name));
        }
    }

    /// An instance of a pattern that nobody waits for and that is full is as good as a new one, and is a new one.
    fn forget_full_instances(&mut self) {
        let declared = &self.declared;
        let (waiting, now) = (&self.waiting, self.now);
        let wanted = |name: &str| waiting.iter().any(|c| c.needs.iter().any(|(needed, _)| needed == name));
        let used = |name: &str| self.leases.iter().any(|l| l.tokens.iter().any(|(taken, _)| taken == name));
        self.balances.retain(|b| {
            let is_full = b.scaled_at(now) == b.most() && now >= b.cooling_until;
            declared.iter().any(|d| d.name == b.name) || wanted(&b.name) || used(&b.name) || !is_full
        });
    }

    fn change_balances(&mut self, declared_as: &str, amount: Amount) {
        let mut balances = std::mem::take(&mut self.balances);
        for old in &mut balances {
            let same = self.declaration(&old.name).is_some_and(|d| d.name == declared_as);
            if let Some(mut new) = Balance::full(&old.name, amount, self.now).filter(|_| same) {
                new.keep(old.scaled_at(self.now), old.scale, self.now, old.cooling_until);
                *old = new;
            }
        }
        self.balances = balances;
    }

    /// A bucket that was declared before, with the balance that was stored.
    ///
    /// # Errors
    /// `UnknownResource`.
    pub fn restore_bucket(&mut self, now: Time, name: &str, state: BucketState) -> Result<(), Refusal> {
        self.pass(now);
        let Some(mut bucket) = Balance::full(name, self.amount(name), self.now) else {
            return Err(unknown(name));
        };
        bucket.keep(state.scaled, state.scale, state.at.min(self.now), state.cooling_until);
        self.balances.retain(|b| b.name != name);
        self.balances.push(bucket);
        Ok(())
    }

    /// A lease that was stored, enclosing bodies first.
    ///
    /// # Errors
    /// `InvalidClaim` when the id is in use or the enclosing body holds nothing.
    pub fn restore_lease(&mut self, now: Time, lease: &StoredLease<'_>) -> Result<(), Refusal> {
        self.pass(now);
        self.check_ids(lease.id, lease.parent)?;
        self.leases.push(Lease {
            id: lease.id,
            fence: lease.fence,
            priority: lease.priority,
            parent: lease.parent,
            place: lease.place,
            started_at: lease.started_at,
            takes: lease.takes.to_vec(),
            covered: lease.covered.to_vec(),
            kind: lease.kind.into(),
            needs: names_of(lease),
            tokens: lease.tokens.to_vec(),
            shortest: lease.shortest,
            longest: lease.longest,
            passed: lease.passed.to_vec(),
        });
        lease.tokens.iter().for_each(|(name, _)| self.keep_balance(name));
        Ok(())
    }

    /// Withholds all starts, so that no claim overtakes one that is restored after it.
    pub fn withhold_starts(&mut self) {
        self.restoring = true;
    }

    /// Lets start what may start. Totals may have been lowered meanwhile.
    pub fn resume_starts(&mut self, now: Time) {
        self.restoring = false;
        self.pass(now);
        self.start_what_may();
        self.refuse_circles();
    }

    /// Numbers go on where they were.
    pub fn restore_counters(&mut self, next_seq: u64, next_fence: u64) {
        self.next_seq = self.next_seq.max(next_seq);
        self.next_fence = self.next_fence.max(next_fence);
    }

    fn check_ids(&self, id: ClaimId, parent: Option<ClaimId>) -> Result<(), Refusal> {
        let taken = self.waiting.iter().any(|c| c.id == id) || self.leases.iter().any(|l| l.id == id);
        let orphan = parent.is_some_and(|parent| self.leases.iter().all(|l| l.id != parent));
        match (taken, orphan) {
            (true, _) => Err(Refusal::InvalidClaim { why: format!("{id:?} waits or holds already") }),
            (_, true) => Err(Refusal::InvalidClaim { why: format!("the enclosing body of {id:?} holds nothing") }),
            _ => Ok(()),
        }
    }

    /// Joins the line, and starts at once where it may.
    ///
    /// # Errors
    /// A refused claim changes nothing.
    pub fn submit(&mut self, now: Time, s: Submission<'_>) -> Result<Place, Refusal> {
        self.check_ids(s.id, s.parent)?;
        let needs = summed(s.needs);
        for (name, units) in &needs {
            self.check_need(name, *units, s.parent, s.place.is_some())?;
        }
        self.pass(now);
        needs.iter().for_each(|(name, _)| self.keep_balance(name));
        let (priority, place) = self.join(&s);
        let (strict, joined) = (Vec::new(), self.next_fence);
        self.waiting.push(Claim {
            id: s.id,
            needs,
            priority,
            parent: s.parent,
            place,
            kind: s.kind.into(),
            strict,
            joined,
        });
        self.pump();
        if s.parent.is_some() && self.waiting.iter().any(|c| c.id == s.id) {
            self.refuse_circles();
        }
        Ok(place)
    }

    /// Work that had its place before is not refused for a total that was lowered since: it waits for it to be raised.
    fn check_need(&self, name: &str, need: u64, parent: Option<ClaimId>, accepted: bool) -> Result<(), Refusal> {
        let declared = self.declaration(name).ok_or_else(|| unknown(name))?;
        if need == 0 {
            return Err(Refusal::invalid(name, "0 units"));
        }
        let held = self.coverer(parent, name).map(|l| l.has(name));
        let capacity = held.unwrap_or(if accepted { u64::MAX } else { declared.last_positive });
        if need > capacity {
            let name = name.into();
            return Err(Refusal::ResourceExceedsCapacity { name, need, capacity, held_by_run: held.is_some() });
        }
        Ok(())
    }

    fn join(&mut self, s: &Submission<'_>) -> (i32, Place) {
        let parent = s.parent.and_then(|id| self.leases.iter().find(|l| l.id == id));
        let fresh = match parent {
            Some(body) => Place { call: self.next_seq, ..body.place },
            None => Place { seq: self.next_seq, call: 0, joined_at: self.now },
        };
        let priority = parent.map_or(s.priority, |body| body.priority);
        let place = s.place.unwrap_or(fresh);
        self.next_seq = self.next_seq.max(place.seq.saturating_add(1)).max(place.call.saturating_add(1));
        (priority, place)
    }

    /// Gives everything back, once. Tasks that wait below the body have nobody left to run for.
    pub fn release(&mut self, now: Time, id: ClaimId, fence: Fence, ended: Ended) -> Release {
        self.pass(now);
        let Some(index) = self.leases.iter().position(|l| l.id == id && l.fence == fence) else {
            self.counters.double_releases += 1;
            self.pump();
            return Release::Double;
        };
        let lease = self.leases.remove(index);
        if ended == Ended::ByItself {
            self.learn(&lease);
        }
        self.refuse_inside(id);
        self.pump();
        Release::Done
    }

    fn refuse_inside(&mut self, body: ClaimId) {
        let inside = self.waiting.iter().filter(|c| self.is_inside(c.parent, body));
        let mut orphans: Vec<ClaimId> = inside.map(|c| c.id).collect();
        orphans.sort_unstable();
        for id in orphans {
            self.waiting.retain(|c| c.id != id);
            let why = "the enclosing body has ended".into();
            self.refused.push_back((id, Refusal::InvalidClaim { why }));
        }
    }

    /// Takes a waiting claim out of the line.
    pub fn cancel(&mut self, now: Time, id: ClaimId) -> bool {
        self.pass(now);
        let before = self.waiting.len();
        self.waiting.retain(|c| c.id != id);
        let left = self.waiting.len() < before;
        self.pump();
        left
    }

    /// Changes the priority of a waiting claim; a task inside a run keeps its run's.
    pub fn reprioritise(&mut self, now: Time, id: ClaimId, priority: i32) -> bool {
        self.pass(now);
        let claim = self.waiting.iter_mut().find(|c| c.id == id && c.parent.is_none());
        let found = claim.map(|c| c.priority = priority).is_some();
        self.pump();
        found
    }

    /// Time alone may let some waiter start.
    pub fn handle_timeout(&mut self, now: Time) {
        self.pass(now);
        self.pump();
    }

    /// Takes tokens of a bucket, and tells what is left; `None` for a semaphore.
    pub(in crate::model) fn take_tokens(&mut self, name: &str, units: u64) -> Option<BucketState> {
        let mut bucket = self.balance(name)?;
        bucket.scaled = bucket.scaled_at(self.now) - i128::from(units) * bucket.scale;
        bucket.at = bucket.at.max(self.now);
        let state = bucket.state(self.now);
        self.balances.retain(|b| b.name != name);
        self.balances.push(bucket);
        Some(state)
    }
}

/// All that a stored lease asked for, as far as it is stored.
fn names_of(lease: &StoredLease<'_>) -> Vec<String> {
    let held = lease.takes.iter().chain(lease.tokens).map(|(name, _)| name.clone());
    held.chain(lease.covered.iter().map(|(name, ..)| name.clone())).collect()
}

fn unknown(name: &str) -> Refusal {
    Refusal::UnknownResource { name: name.into(), near: Vec::new() }
}

/// A name given twice is summed.
fn summed(needs: &[(&str, u64)]) -> Vec<(String, u64)> {
    let mut out: Vec<(String, u64)> = Vec::new();
    for (name, units) in needs {
        match out.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(*units),
            None => out.push(((*name).into(), *units)),
        }
    }
    out
}
