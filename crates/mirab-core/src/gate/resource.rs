//! One resource: its limit, who holds it, and who waits for it.
use super::declare::DeclaredIx;
use super::holders::Holders;
use super::line::Line;
use crate::api::Name;
use crate::bucket::Bucket;
use crate::config::Limit;
use crate::time::Time;

/// Number of a resource within its gate.
pub(crate) type ResourceIx = u32;

/// A limit with its state.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// So many units may be held.
    Semaphore(u64),
    /// Units are consumed. Boxed: a resource that is held is as small as can be.
    Bucket(Box<Bucket>),
}

impl Store {
    fn new(limit: Limit, now: Time) -> Self {
        match limit {
            Limit::Semaphore { permits } => Store::Semaphore(permits),
            Limit::TokenBucket { rate, burst } => Store::Bucket(Box::new(Bucket::full(rate, burst, now))),
        }
    }
}

/// A resource of the gate.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub name: Name,
    /// The declaration it goes by: its own, or that of a pattern.
    pub declared: DeclaredIx,
    /// Leases that are about it without holding units of it here: they took tokens, or use what an enclosing body holds.
    pub users: u32,
    pub store: Store,
    pub holders: Holders,
    /// `None` while nobody waits for it.
    pub line: Option<Box<Line>>,
    /// True while this step has to look for claims that it may let start.
    pub touched: bool,
    /// True while this step has to set its timer anew.
    pub changed: bool,
    pub is_pool: bool,
}

impl Resource {
    pub fn new(name: Name, declared: DeclaredIx, limit: Limit, now: Time) -> Self {
        let is_pool = name.starts_with("pool:");
        let (store, holders) = (Store::new(limit, now), Holders::default());
        Self { name, declared, users: 0, store, holders, line: None, touched: false, changed: false, is_pool }
    }

    /// Free units, whole tokens of a bucket; negative after a total was lowered below its use.
    pub fn free(&self, now: Time) -> i64 {
        match &self.store {
            Store::Semaphore(permits) => match permits.checked_sub(self.holders.sum()) {
                Some(free) => i64::try_from(free).unwrap_or(i64::MAX),
                None => i64::try_from(self.holders.sum() - permits).map_or(i64::MIN, |over| -over),
            },
            Store::Bucket(bucket) => bucket.tokens(now),
        }
    }

    /// Free units as a claim can take them.
    #[inline]
    pub fn whole_free(&self, now: Time) -> u64 {
        match &self.store {
            Store::Semaphore(permits) => permits.saturating_sub(self.holders.sum()),
            Store::Bucket(bucket) => u64::try_from(bucket.tokens(now)).unwrap_or(0),
        }
    }

    /// True when `units` are free.
    #[inline]
    pub fn has(&self, units: u64, now: Time) -> bool {
        self.whole_free(now) >= units
    }

    #[inline]
    pub fn capacity(&self) -> u64 {
        match &self.store {
            Store::Semaphore(permits) => *permits,
            Store::Bucket(bucket) => bucket.burst(),
        }
    }

    #[inline]
    pub fn bucket(&self) -> Option<&Bucket> {
        match &self.store {
            Store::Semaphore(_) => None,
            Store::Bucket(bucket) => Some(bucket),
        }
    }

    #[inline]
    pub fn bucket_mut(&mut self) -> Option<&mut Bucket> {
        match &mut self.store {
            Store::Semaphore(_) => None,
            Store::Bucket(bucket) => Some(bucket),
        }
    }

    pub fn limit(&self) -> Limit {
        match &self.store {
            Store::Semaphore(permits) => Limit::Semaphore { permits: *permits },
            Store::Bucket(bucket) => Limit::TokenBucket { rate: bucket.rate(), burst: bucket.burst() },
        }
    }

    /// True when it became another kind of limit.
    pub fn set_limit(&mut self, limit: Limit, now: Time) -> bool {
        match (&mut self.store, limit) {
            (Store::Semaphore(permits), Limit::Semaphore { permits: new }) => *permits = new,
            (Store::Bucket(bucket), Limit::TokenBucket { rate, burst }) => bucket.change(rate, burst, now),
            // Another kind is another limit: nothing of the old one can be kept but its holders.
            (store, limit) => {
                *store = Store::new(limit, now);
                return true;
            }
        }
        false
    }

    /// When so many units are expected to be free; `None`: never, as things are.
    pub fn time_of(&self, units: u64, now: Time) -> Option<Time> {
        match &self.store {
            Store::Bucket(bucket) => bucket.time_of(units, now),
            Store::Semaphore(permits) if units > *permits => None,
            Store::Semaphore(_) => match self.missing(units, now) {
                0 => Some(now),
                missing => self.holders.time_of(missing, now),
            },
        }
    }

    /// When so many units are free for certain; `None` where that cannot be said.
    pub fn sure_time_of(&self, units: u64, now: Time) -> Option<Time> {
        match &self.store {
            Store::Bucket(bucket) => bucket.time_of(units, now),
            Store::Semaphore(_) => match self.missing(units, now) {
                0 => Some(now),
                missing => self.holders.sure_time_of(missing, now),
            },
        }
    }

    fn missing(&self, units: u64, now: Time) -> u64 {
        u64::try_from(i128::from(units) - i128::from(self.free(now))).unwrap_or(0)
    }

    /// Units of a semaphore that are expected to be free at an instant that is not before `now`.
    pub fn free_at(&self, at: Time, now: Time) -> i128 {
        i128::from(self.free(now)) + i128::from(self.holders.freed_by(at, now))
    }

    /// True for what nobody holds, uses or waits for.
    pub fn is_unused(&self) -> bool {
        self.holders.len() == 0 && self.users == 0 && self.line.is_none()
    }
}
