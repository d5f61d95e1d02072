//! One number for all that happened in a history.
use std::fmt::Debug;

/// FNV-1a over what was added, as written by `Debug`.
#[derive(Clone, Debug)]
pub struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    /// Adds an event.
    pub fn add(&mut self, event: &impl Debug) {
        for byte in format!("{event:?}\n").bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The number.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.0
    }
}
