//! Claims with the same needs and priority form a class: an ordered queue, of which only the head can be the next to start.
use super::resource::ResourceIx;
use crate::ids::{ClaimId, Place};
use crate::rank::Rank;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of a class within its gate.
pub(crate) type ClassIx = u32;

/// Units that an enclosing body holds for a task: resource, units, holder.
pub(crate) type Covered = (ResourceIx, u64, ClaimId);

/// Units of a resource among those that one holder holds for a task.
pub(crate) fn covered_by(covered: &[Covered], resource: ResourceIx, holder: ClaimId) -> u64 {
    covered.iter().filter(|(of, _, by)| *of == resource && *by == holder).map(|(_, units, _)| units).sum()
}

/// What the claims of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    /// What must be taken at the gate, by resource number.
    pub needs: Box<[(ResourceIx, u64)]>,
    /// What enclosing bodies hold for it.
    pub covered: Box<[Covered]>,
    /// The enclosing body.
    pub parent: Option<ClaimId>,
    pub priority: i32,
}

/// Where a class is filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filed {
    /// In the set of classes that this step has to look at.
    Ready,
    /// Under one resource that blocks it: it is short of it, or held back on it.
    On(ResourceIx),
    /// Nowhere: it cannot start as things are (unsatisfiable, paused, or waiting for units of an enclosing body).
    Aside,
}

/// A class of waiting claims.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub key: Arc<ClassKey>,
    pub queue: BTreeMap<Rank, ClaimId>,
    pub filed: Filed,
    /// The rank of the head under which the class is filed and stands among guards.
    pub head: Rank,
    /// True when its head could start as things are, if units came free.
    pub startable: bool,
}

impl Class {
    pub fn head_id(&self) -> ClaimId {
        self.queue.first_key_value().map_or(ClaimId(0), |(_, id)| *id)
    }

    pub fn units(&self, resource: ResourceIx) -> u64 {
        self.key.needs.iter().find(|(of, _)| *of == resource).map_or(0, |(_, units)| *units)
    }
}

/// A claim that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub class: ClassIx,
    pub place: Place,
}
