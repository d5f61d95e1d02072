//! The one order of a gate.
use crate::ids::Place;

/// Where a claim stands in the one order of all claims of a gate; the smaller goes first.
///
/// Two wide numbers instead of four narrow ones: they are compared with two instructions each, millions of times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Minus the priority, or with ageing the instant of joining minus what the priority is worth.
    key: i128,
    /// Sequence number, then order of call.
    order: u128,
}

impl Rank {
    pub fn new(priority: i32, place: Place, aging: Option<u64>) -> Self {
        let key = match aging {
            None => -i128::from(priority),
            Some(worth) => i128::from(place.joined_at.0) - i128::from(priority) * i128::from(worth),
        };
        Self { key, order: u128::from(place.seq) << 64 | u128::from(place.call) }
    }
}

/// Where a claim stands among claims of the same priority: all of the rank that can differ there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    /// The instant of joining, with ageing; else 0.
    joined_at: u64,
    seq: u64,
    call: u64,
}

impl Seat {
    pub fn new(place: Place, aging: Option<u64>) -> Self {
        Self { joined_at: aging.map_or(0, |_| place.joined_at.0), seq: place.seq, call: place.call }
    }

    /// The rank of one that sits here.
    pub fn rank(self, priority: i32, aging: Option<u64>) -> Rank {
        let joined_at = crate::time::Time(self.joined_at);
        Rank::new(priority, Place { seq: self.seq, call: self.call, joined_at }, aging)
    }
}
