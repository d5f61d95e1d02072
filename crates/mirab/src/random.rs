//! Numbers by chance, for the pauses between attempts.
use std::hash::{BuildHasher, RandomState};

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub fn by_chance() -> Self {
        Self(RandomState::new().hash_one(0))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
