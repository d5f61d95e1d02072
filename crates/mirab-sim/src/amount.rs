//! Limits as the simulation writes them down: the rate as two whole numbers, so that the model counts without the core's help.
use mirab_core::{Limit, Rate};

/// What kind of limit a resource is, and how much of it there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// `permits` units at once; 0 pauses.
    Semaphore(u64),
    /// `units` every `seconds`, in lowest terms, up to `burst`.
    Bucket {
        /// Tokens that come ...
        units: u64,
        /// ... in so many seconds.
        seconds: u64,
        /// Most that can gather.
        burst: u64,
    },
}

impl Amount {
    /// A bucket; the fraction is brought to lowest terms.
    #[must_use]
    pub fn bucket(units: u64, seconds: u64, burst: u64) -> Self {
        let divisor = (1..=units.min(seconds))
            .rev()
            .find(|d| units.is_multiple_of(*d) && seconds.is_multiple_of(*d))
            .unwrap_or(1);
        Amount::Bucket { units: units / divisor, seconds: seconds / divisor, burst }
    }

    /// The most that one claim may ask for.
    #[must_use]
    pub fn capacity(self) -> u64 {
        match self {
            Amount::Semaphore(permits) => permits,
            Amount::Bucket { burst, .. } => burst,
        }
    }

    /// The same as the core writes it.
    ///
    /// # Panics
    /// When the rate is not positive.
    #[must_use]
    pub fn limit(self) -> Limit {
        match self {
            Amount::Semaphore(permits) => Limit::Semaphore { permits },
            Amount::Bucket { units, seconds, burst } => {
                Limit::TokenBucket { rate: Rate::per(units, seconds).expect("a positive rate"), burst }
            }
        }
    }
}
