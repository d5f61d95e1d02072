//! Balances of token buckets whose declaration is gone, or is that of a semaphore now: one that comes back goes on from there. A file that
//! is empty for a moment, or a name that is deleted and declared anew, fills no bucket for nothing.
use super::Orchestrator;
use mirab_core::{BucketState, Refusal, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A balance with the instant at which it would be full; `None` when its rate is not known any more, after a restart.
type Kept = (BucketState, Option<Time>);

/// Balances by name, until they would be full.
#[derive(Debug, Default)]
pub(super) struct Departed {
    by_name: BTreeMap<String, Kept>,
    ends: BTreeSet<(Time, String)>,
}

impl Departed {
    pub fn keep(&mut self, name: String, (state, full_at): Kept) {
        self.forget(&name);
        self.ends.extend(full_at.map(|at| (at, name.clone())));
        self.by_name.insert(name, (state, full_at));
    }

    fn forget(&mut self, name: &str) {
        if let Some((_, Some(at))) = self.by_name.remove(name) {
            self.ends.remove(&(at, name.to_owned()));
        }
    }

    /// What would be full by now is as good as a new one.
    fn forget_full(&mut self, now: Time) {
        while self.ends.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, name)) = self.ends.pop_first() {
                self.by_name.remove(&name);
            }
        }
    }

    /// Those that a declared name or pattern may bring back.
    fn of(&self, declared: &str) -> Vec<(String, BucketState)> {
        let prefix = declared.split('*').next().unwrap_or_default();
        let is_meant = |name: &str| declared.contains('*') || name == declared;
        let from = self.by_name.range(prefix.to_owned()..).take_while(|(name, _)| name.starts_with(prefix));
        from.filter(|(name, _)| is_meant(name)).map(|(name, (state, _))| (name.clone(), *state)).collect()
    }
}

impl Orchestrator {
    /// Makes a change of what a declared name or pattern stands for. Balances that it takes away are kept, those that it brings back are
    /// there before anything starts by it.
    pub(super) fn change_declared(
        &mut self,
        now: Time,
        declared: &str,
        change: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.departed.forget_full(now);
        let balances = self.balances_of(declared);
        let back = self.departed.of(declared);
        let is_withheld = !back.is_empty();
        if is_withheld {
            self.gate.withhold_starts();
        }
        let changed = change(self);
        if changed.is_ok() {
            back.into_iter().for_each(|(name, state)| self.bring_back(now, &name, state));
            balances.into_iter().for_each(|(name, kept)| self.keep_or_hand_on(now, name, kept));
        }
        if is_withheld {
            self.gate.resume_starts(now);
        }
        changed
    }

    /// What is missing from the buckets that go by a declaration, or by this very name.
    fn balances_of(&self, declared: &str) -> Vec<(String, Kept)> {
        let names = match declared.contains('*') {
            true => self.gate.resources_of(declared).into_iter().map(|resource| resource.name).collect(),
            false => vec![declared.to_owned()],
        };
        let with_balance = |name: String| {
            let kept = (self.gate.bucket_state(&name)?, self.gate.bucket_full_at(&name));
            Some((name, kept))
        };
        names.into_iter().filter_map(with_balance).collect()
    }

    /// A bucket that is no bucket any more leaves its balance; where a pattern stands for its name now, that goes on with it.
    fn keep_or_hand_on(&mut self, now: Time, name: String, kept: Kept) {
        let is_full = kept.1.is_some_and(|at| at <= now);
        if !is_full && self.gate.bucket_state(&name).is_none() {
            self.departed.keep(name.clone(), kept);
            self.bring_back(now, &name, kept.0);
        }
    }

    /// Takes a balance over that was kept, where the name stands for a bucket again.
    fn bring_back(&mut self, now: Time, name: &str, state: BucketState) {
        if self.gate.restore_bucket(now, name, state).is_ok()
            && let Some(state) = self.gate.bucket_state(name)
        {
            self.departed.forget(name);
            self.tell_bucket(name, state);
        }
    }
}
