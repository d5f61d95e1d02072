//! Leases: admitted claims, and what runs and waits below them.
use super::class::{ClassIx, Covered};
use super::resource::ResourceIx;
use crate::api::Name;
use crate::ids::{ClaimId, Fence, Place};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An admitted claim.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub fence: Fence,
    /// Semaphore units held.
    pub takes: Arc<[(ResourceIx, u64)]>,
    /// Units of enclosing bodies that it uses.
    pub covered: Box<[Covered]>,
    /// Tokens it took, as they were settled since.
    pub tokens: Vec<(Name, u64)>,
    pub parent: Option<ClaimId>,
    pub priority: i32,
    pub place: Place,
    pub started_at: Time,
    /// `None` while it has no tasks: most leases never have any.
    pub body: Option<Box<Body>>,
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
    pub fn takes(&self, resource: ResourceIx) -> Option<u64> {
        self.takes.iter().find(|(of, _)| *of == resource).map(|(_, units)| *units)
    }

    /// Units that its body may use: those it took, and those that an enclosing body holds for it.
    pub fn has(&self, resource: ResourceIx) -> u64 {
        let covered = self.covered.iter().filter(|(of, ..)| *of == resource).map(|(_, units, _)| units);
        self.takes(resource).unwrap_or(0) + covered.sum::<u64>()
    }

    pub fn lent(&self, resource: ResourceIx) -> u64 {
        self.body.as_ref().and_then(|body| body.lent.get(&resource)).copied().unwrap_or(0)
    }

    pub fn body_mut(&mut self) -> &mut Body {
        self.body.get_or_insert_default()
    }
}
