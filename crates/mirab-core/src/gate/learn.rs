//! Durations are learned by kind, and by resource for kinds that are not known yet.
use super::Gate;
use crate::api::Learner;
use std::collections::BTreeMap;

/// Shorter durations count as this.
const LEAST: u64 = 1_000_000;

/// How many durations are remembered.
const REMEMBERED: usize = 4;

/// The durations of late, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(Vec<u64>);

impl Recent {
    fn push(&mut self, duration: u64) {
        if self.0.len() == REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(duration.max(LEAST));
    }
}

/// What was learned.
#[derive(Clone, Debug, Default)]
pub(super) struct Learned {
    kinds: BTreeMap<String, Recent>,
    resources: BTreeMap<String, Recent>,
}

impl Learned {
    fn of(&self, learner: Learner<'_>) -> Option<&Recent> {
        match learner {
            Learner::Kind(name) => self.kinds.get(name),
            Learner::Resource(name) => self.resources.get(name),
        }
    }
}

impl Gate {
    /// The last durations of a kind or on a declared name or pattern, in nanoseconds, oldest first, at most four: to be stored when a
    /// lease that ended by itself is released.
    #[must_use]
    pub fn durations(&self, learner: Learner<'_>) -> Vec<u64> {
        self.learned.of(learner).map(|recent| recent.0.clone()).unwrap_or_default()
    }

    /// Takes stored durations over, oldest first; the last four count.
    pub fn restore_durations(&mut self, learner: Learner<'_>, durations: &[u64]) {
        let (of, name) = match learner {
            Learner::Kind(name) => (&mut self.learned.kinds, name),
            Learner::Resource(name) => (&mut self.learned.resources, name),
        };
        let recent = of.entry(name.into()).or_default();
        *recent = Recent::default();
        durations.iter().for_each(|duration| recent.push(*duration));
    }
}
