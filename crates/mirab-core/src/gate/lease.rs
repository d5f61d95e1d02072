//! Leases: admitted claims, and what runs and waits below them.
use super::class::{ClassIx, ClassKey, Held};
use super::resource::ResourceIx;
use crate::ids::{ClaimId, Fence, Place};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of a lease within its gate.
pub(crate) type LeaseIx = u32;

/// An admitted claim. It is moved with every start and release: what most leases do not have is kept apart.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub id: ClaimId,
    pub fence: Fence,
    /// What its claim asked for.
    pub key: Arc<ClassKey>,
    pub place: Place,
    pub span: Span,
    pub more: Option<Box<More>>,
}

/// What most leases do not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct More {
    /// Semaphore units held; `None` for all of its key's needs.
    pub held: Option<Held>,
    /// Tokens it took, as they were settled since.
    pub tokens: Vec<(ResourceIx, u64)>,
    /// Waiting claims that it passed by starting, and on which resource.
    pub passed: Vec<(ClaimId, ResourceIx)>,
    /// What runs and waits inside.
    pub body: Body,
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

impl More {
    /// `None` where there is nothing to keep.
    pub fn of(
        held: Option<Held>,
        tokens: Vec<(ResourceIx, u64)>,
        passed: Vec<(ClaimId, ResourceIx)>,
    ) -> Option<Box<Self>> {
        let is_plain = held.is_none() && tokens.is_empty() && passed.is_empty();
        (!is_plain).then(|| Box::new(Self { held, tokens, passed, body: Body::default() }))
    }
}

impl Lease {
    /// Semaphore units held.
    pub fn takes(&self) -> &[(ResourceIx, u64)] {
        self.more.as_ref().and_then(|more| more.held.as_deref()).unwrap_or(&self.key.needs)
    }

    /// Tokens it took, as they were settled since.
    pub fn tokens(&self) -> &[(ResourceIx, u64)] {
        self.more.as_ref().map(|more| more.tokens.as_slice()).unwrap_or_default()
    }

    pub fn tokens_mut(&mut self) -> &mut [(ResourceIx, u64)] {
        self.more.as_mut().map(|more| more.tokens.as_mut_slice()).unwrap_or_default()
    }

    /// Waiting claims that it passed by starting, and on which resource.
    pub fn passed(&self) -> &[(ClaimId, ResourceIx)] {
        self.more.as_ref().map(|more| more.passed.as_slice()).unwrap_or_default()
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
        self.body().and_then(|body| body.lent.get(&resource)).copied().unwrap_or(0)
    }

    /// What runs and waits inside; `None` where nothing ever did.
    pub fn body(&self) -> Option<&Body> {
        self.more.as_ref().map(|more| &more.body)
    }

    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.more.get_or_insert_default().body
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
