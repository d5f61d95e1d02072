//! Leases: admitted claims, and what runs and waits below them.
use super::class::{ClassIx, ClassKey, Held};
use super::resource::ResourceIx;
use crate::ids::{ClaimId, Fence, Place};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of a lease within its gate.
pub(crate) type LeaseIx = u32;

/// An admitted claim.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub id: ClaimId,
    pub fence: Fence,
    /// What its claim asked for.
    pub key: Arc<ClassKey>,
    /// Semaphore units held; `None` for all of its key's needs, as mostly.
    pub held: Option<Held>,
    /// Tokens it took, as they were settled since.
    pub tokens: Vec<(ResourceIx, u64)>,
    pub place: Place,
    pub span: Span,
    /// Waiting claims that it passed by starting, and on which resource.
    pub passed: Vec<(ClaimId, ResourceIx)>,
    /// `None` while it has no tasks: most leases never have any.
    pub body: Option<Box<Body>>,
}

/// When a body started, and how long it was expected to take when it did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub started_at: Time,
    pub shortest: u64,
    /// `None` for a kind that was unknown.
    pub longest: Option<u64>,
}

/// What a body has inside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    /// Leases of tasks called in it.
    pub running: BTreeSet<ClaimId>,
    /// Tasks called in it that wait.
    pub waiting: BTreeSet<ClaimId>,
    /// Units of it that bodies inside use now.
    pub lent: BTreeMap<ResourceIx, u64>,
    /// Waiting classes that want units of it.
    pub borrowers: BTreeSet<ClassIx>,
}

impl Lease {
    /// Semaphore units held.
    pub fn takes(&self) -> &[(ResourceIx, u64)] {
        self.held.as_deref().unwrap_or(&self.key.needs)
    }

    pub fn taken(&self, resource: ResourceIx) -> u64 {
        self.takes().iter().find(|(of, _)| *of == resource).map_or(0, |(_, units)| *units)
    }

    /// Units that its body may use: those it took, and those that an enclosing body holds for it.
    pub fn has(&self, resource: ResourceIx) -> u64 {
        let covered = self.key.covered.iter().filter(|(of, ..)| *of == resource).map(|(_, units, _)| units);
        self.taken(resource) + covered.sum::<u64>()
    }

    pub fn lent(&self, resource: ResourceIx) -> u64 {
        self.body.as_ref().and_then(|body| body.lent.get(&resource)).copied().unwrap_or(0)
    }

    pub fn body_mut(&mut self) -> &mut Body {
        self.body.get_or_insert_default()
    }
}

impl Span {
    /// After its kind's shortest duration; up to twice that: at any moment; later: when its time has doubled once more.
    pub fn expected_end(&self, now: Time) -> Time {
        self.end_key(now).max(now)
    }

    /// The same where it lies ahead; an instant that has passed for a body that may end at any moment.
    pub fn end_key(&self, now: Time) -> Time {
        let age = now.since(self.started_at);
        if age < self.shortest.saturating_mul(2) {
            return self.started_at.plus(self.shortest);
        }
        self.next_doubling(now)
    }

    /// The next instant at which its time has doubled: then it is expected to run on.
    pub fn next_doubling(&self, now: Time) -> Time {
        let age = now.since(self.started_at);
        let mut time = self.shortest.max(1).saturating_mul(2);
        while time <= age && time < u64::MAX {
            time = time.saturating_mul(2);
        }
        self.started_at.plus(time)
    }

    /// When it has ended for certain, if nothing runs a quarter longer than its kind did of late. For an unknown kind that is its start:
    /// as good as never, for instants that have passed count for nothing.
    pub fn sure_end(&self) -> Time {
        let longest = self.longest.map_or(0, |longest| u128::from(longest) * 5 / 4);
        self.started_at.plus(u64::try_from(longest).unwrap_or(u64::MAX))
    }
}
