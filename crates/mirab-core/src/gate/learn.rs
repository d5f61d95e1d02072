//! Durations are learned by kind, and by declared name for kinds that are not known yet.
use super::Gate;
use super::class::ClassKey;
use crate::api::{Learner, Name};

/// Number of a kind within its gate.
pub(crate) type KindIx = u32;

/// Shorter durations count as this, in nanoseconds.
const LEAST: u64 = 1_000_000;

/// How many durations are remembered.
const REMEMBERED: usize = 4;

/// The durations of late, oldest first; 0 where there is none yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent([u64; REMEMBERED]);

/// What is known of a kind.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    name: Name,
    recent: Recent,
}

impl Recent {
    pub fn push(&mut self, duration: u64) {
        let [_, kept @ ..] = self.0;
        self.0[..kept.len()].copy_from_slice(&kept);
        self.0[kept.len()] = duration.max(LEAST);
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied().filter(|duration| *duration > 0)
    }

    /// The shortest and the longest; `None` where nothing is known.
    pub fn range(&self) -> Option<(u64, u64)> {
        let longest = *self.0.iter().max()?;
        let shortest = self.iter().min()?;
        Some((shortest, longest))
    }
}

impl Gate {
    /// The last durations of a kind or on a declared name or pattern, in nanoseconds, oldest first, at most four: to be stored when a
    /// lease that ended by itself is released.
    #[must_use]
    pub fn durations(&self, learner: Learner<'_>) -> Vec<u64> {
        let recent = match learner {
            Learner::Kind(name) => self.kind_by_name.get(name).map(|kind| self.kinds[*kind as usize].recent),
            Learner::Resource(name) => self.declared_by_name.get(name).map(|at| self.declared[*at].recent),
        };
        recent.iter().flat_map(Recent::iter).collect()
    }

    /// Takes stored durations over, oldest first; the last four count. A name that is not declared is passed over.
    pub fn restore_durations(&mut self, learner: Learner<'_>, durations: &[u64]) {
        let recent = match learner {
            Learner::Kind(name) => {
                let kind = self.kind(name);
                &mut self.kinds[kind as usize].recent
            }
            Learner::Resource(name) => match self.declared_by_name.get(name) {
                Some(at) => &mut self.declared[*at].recent,
                None => return,
            },
        };
        *recent = Recent::default();
        durations.iter().for_each(|duration| recent.push(*duration));
    }

    pub(super) fn is_kind(&self, kind: KindIx, name: &str) -> bool {
        self.kinds.get(kind as usize).is_some_and(|kind| *kind.name == *name)
    }

    /// The number of a kind, new or known.
    pub(super) fn kind(&mut self, name: &str) -> KindIx {
        if let Some(kind) = self.kind_by_name.get(name) {
            return *kind;
        }
        let kind = u32::try_from(self.kinds.len()).expect("fewer than 2^32 kinds");
        let name = Name::from(name);
        self.kind_by_name.insert(Name::clone(&name), kind);
        self.kinds.push(Kind { name, recent: Recent::default() });
        kind
    }

    pub(super) fn learn(&mut self, key: &ClassKey, duration: u64) {
        self.kinds[key.kind as usize].recent.push(duration);
        for resource in key.resources() {
            let declared = self.resources[resource].declared;
            self.declared[declared].recent.push(duration);
        }
    }

    /// The shortest and longest of the last durations of its kind.
    pub(super) fn known(&self, key: &ClassKey) -> Option<(u64, u64)> {
        self.kinds[key.kind as usize].recent.range()
    }

    /// The same; where there are none, what is assumed.
    pub(super) fn recent(&self, key: &ClassKey) -> (u64, u64) {
        self.known(key).unwrap_or_else(|| self.assumed(key))
    }

    /// What is assumed of a kind that is not known: the durations of its resources, else what the options say.
    pub(super) fn assumed(&self, key: &ClassKey) -> (u64, u64) {
        let others = key.resources().filter_map(|at| self.declared[self.resources[at].declared].recent.range());
        let assumed = self.options.assumed_duration;
        others.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((assumed, assumed))
    }
}
