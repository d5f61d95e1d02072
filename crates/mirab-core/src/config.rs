//! How a resource is declared.
use crate::rate::Rate;
use crate::refusal::Refusal;

/// The shard of everything that names none.
pub const DEFAULT_SHARD: &str = "default";

/// What kind of limit a resource is, and how much of it there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most `permits` units are held at once; 0 pauses the resource.
    Semaphore {
        /// Units in all.
        permits: u64,
    },
    /// Units are consumed and refill at `rate` up to `burst`.
    TokenBucket {
        /// Units per second.
        rate: Rate,
        /// Most units that can gather.
        burst: u64,
    },
}

impl Limit {
    /// The most that one claim may ask for: `permits` or `burst`.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        match *self {
            Limit::Semaphore { permits } => permits,
            Limit::TokenBucket { burst, .. } => burst,
        }
    }

    /// Can it be counted exactly?
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Limit::Semaphore { .. } => Ok(()),
            Limit::TokenBucket { rate, burst } => rate.check_burst(*burst),
        }
    }
}

/// A declared resource or pattern.
///
/// ```
/// use mirab_core::ResourceConfig;
/// assert_eq!(ResourceConfig::semaphore("gpu", 4).name, "gpu");
/// assert!(ResourceConfig::token_bucket("api", 50.0, 100).is_ok());
/// assert_eq!(ResourceConfig::token_bucket("api", 0.0, 100).unwrap_err().code(), "InvalidResource");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceConfig {
    /// Its name, or a pattern with one `*`: each matching name gets its own limit.
    pub name: String,
    /// Kind and amount.
    pub limit: Limit,
    /// The shard whose work may use it.
    pub shard: String,
}

impl ResourceConfig {
    /// At most `permits` units held at once.
    #[must_use]
    pub fn semaphore(name: &str, permits: u64) -> Self {
        Self { name: name.into(), limit: Limit::Semaphore { permits }, shard: DEFAULT_SHARD.into() }
    }

    /// Units are consumed; they refill at `rate` per second up to `burst`.
    ///
    /// # Errors
    /// `InvalidResource` when the rate is not positive and finite, or the burst is 0 or too large to count exactly.
    pub fn token_bucket(name: &str, rate: f64, burst: u64) -> Result<Self, Refusal> {
        let rate = Rate::from_decimal(rate).map_err(|why| Refusal::invalid(name, why))?;
        rate.check_burst(burst).map_err(|why| Refusal::invalid(name, why))?;
        Ok(Self { name: name.into(), limit: Limit::TokenBucket { rate, burst }, shard: DEFAULT_SHARD.into() })
    }

    /// The same in another shard.
    #[must_use]
    pub fn in_shard(mut self, shard: &str) -> Self {
        self.shard = shard.into();
        self
    }
}
