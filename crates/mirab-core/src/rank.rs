//! The one order of a gate.
use crate::ids::Place;

/// Where a claim stands in the one order of all claims of a gate; the smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Minus the priority, or with ageing the instant of joining minus what the priority is worth: an `i128` in two halves, which
    /// need no alignment of 16 bytes in the trees of a million claims.
    key: (i64, u64),
    seq: u64,
    call: u64,
}

impl Rank {
    pub fn new(priority: i32, place: Place, aging: Option<u64>) -> Self {
        let key = match aging {
            None => -i128::from(priority),
            Some(worth) => i128::from(place.joined_at.0) - i128::from(priority) * i128::from(worth),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the two halves of the key")]
        let key = ((key >> 64) as i64, key as u64);
        Self { key, seq: place.seq, call: place.call }
    }
}
