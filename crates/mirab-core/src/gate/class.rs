//! Claims with the same needs, kind and priority form a class: an ordered queue, of which only the head can be the next to start.
use super::learn::KindIx;
use super::lease::LeaseIx;
use super::queue::SortedQueue;
use super::resource::ResourceIx;
use crate::api::Units;
use crate::ids::{ClaimId, Place};
use crate::rank::{Rank, Seat};
use std::sync::Arc;

/// Number of a class within its gate.
pub(crate) type ClassIx = u32;

/// Units by resource, shared by a class and its leases.
pub(crate) type Held = Arc<[(ResourceIx, u64)]>;

/// Units that an enclosing body holds for a task: resource, units, holder.
pub(crate) type Covered = (ResourceIx, u64, ClaimId);

/// Units of a resource among those that one holder holds for a task.
pub(crate) fn covered_by(covered: &[Covered], resource: ResourceIx, holder: ClaimId) -> u64 {
    covered.iter().filter(|(of, _, by)| *of == resource && *by == holder).map(|(_, units, _)| units).sum()
}

/// What the claims of a class have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    /// What must be taken at the gate, by resource number.
    pub needs: Vec<(ResourceIx, u64)>,
    /// What enclosing bodies hold for it.
    pub covered: Vec<Covered>,
    /// The enclosing body.
    pub parent: Option<ClaimId>,
    pub priority: i32,
    pub kind: KindIx,
}

impl ClassKey {
    pub fn units(&self, resource: ResourceIx) -> Option<u64> {
        self.needs.iter().find(|(of, _)| *of == resource).map(|(_, units)| *units)
    }

    /// All resources it is about, taken or covered.
    pub fn resources(&self) -> impl Iterator<Item = ResourceIx> {
        self.needs.iter().map(|(of, _)| *of).chain(self.covered.iter().map(|(of, ..)| *of))
    }
}

/// Where a class is filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filed {
    /// In the set of classes that this step has to look at.
    Ready,
    /// Under one resource that it is short of, in that slot.
    Short(ResourceIx, u32),
    /// Among those that fit, but may not pass a protected claim on this resource.
    Held(ResourceIx),
    /// Nowhere: it cannot start as things are (unsatisfiable, paused, or waiting for units of an enclosing body).
    Aside,
}

/// A class of waiting claims.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub key: Arc<ClassKey>,
    /// What is held of semaphores once started; `None` for all of its needs, as mostly.
    pub held: Option<Held>,
    /// The same by name.
    pub takes: Units,
    pub queue: SortedQueue<Seat, ClaimId>,
    /// No seat of the queue is above it. The end of a long queue is far from what a step looks at: with this it need not be read.
    pub newest: Option<Seat>,
    pub filed: Filed,
    /// The rank of the head under which the class is filed.
    pub head: Rank,
    /// True while it is among those that are kept though nobody waits (see [`super::idle`]).
    pub kept: bool,
}

impl Class {
    pub fn head_id(&self) -> ClaimId {
        self.queue.first().map_or(ClaimId(0), |(_, id)| id)
    }

    /// A claim joins. True when it is the head now.
    pub fn enqueue(&mut self, seat: Seat, id: ClaimId) -> bool {
        if self.newest.is_none_or(|newest| newest < seat) {
            self.newest = Some(seat);
            let is_first = self.queue.is_empty();
            self.queue.push_last(seat, id);
            return is_first;
        }
        self.queue.insert(seat, id);
        self.queue.first().is_some_and(|(first, _)| first == seat)
    }

    pub fn units(&self, resource: ResourceIx) -> u64 {
        self.key.units(resource).unwrap_or(0)
    }

    /// True when its head could start as things are, if units came free.
    pub fn is_startable(&self) -> bool {
        self.filed != Filed::Aside
    }
}

/// A claim that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub place: Place,
    /// Starts that came before it joined have smaller fences.
    pub joined: u64,
    pub class: ClassIx,
}

/// What is known of a claim by its id. The fields of a [`Waiting`] stand here by themselves: so it takes no more room than that.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Claim {
    Waits { place: Place, joined: u64, class: ClassIx },
    Holds(LeaseIx),
}

impl Claim {
    pub fn waiting(self) -> Option<Waiting> {
        match self {
            Claim::Waits { place, joined, class } => Some(Waiting { place, joined, class }),
            Claim::Holds(_) => None,
        }
    }

    pub fn lease(self) -> Option<LeaseIx> {
        match self {
            Claim::Waits { .. } => None,
            Claim::Holds(lease) => Some(lease),
        }
    }
}
