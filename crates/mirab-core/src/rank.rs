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
