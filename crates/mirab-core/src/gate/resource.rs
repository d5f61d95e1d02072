//! One resource: its limit, who holds it, and the classes that wait and need it.
use super::class::ClassIx;
use crate::api::Name;
use crate::bucket::Bucket;
use crate::config::Limit;
use crate::ids::ClaimId;
use crate::rank::Rank;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Number of a resource within its gate.
pub(crate) type ResourceIx = u32;

/// A limit with its state.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// Units are held.
    Semaphore {
        permits: u64,
        /// The last total above 0, against which submissions are checked while it is paused.
        last_positive: u64,
    },
    /// Units are consumed.
    Bucket(Bucket),
}

/// The leases that hold units. Its sum is a property of the entries: nothing else can change it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    by_age: BTreeMap<(Time, ClaimId), u64>,
    sum: u64,
}

impl Holders {
    pub fn insert(&mut self, since: Time, id: ClaimId, units: u64) {
        self.by_age.insert((since, id), units);
        self.sum += units;
    }

    pub fn remove(&mut self, since: Time, id: ClaimId) {
        if let Some(units) = self.by_age.remove(&(since, id)) {
            self.sum -= units;
        }
    }

    pub fn sum(&self) -> u64 {
        self.sum
    }

    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Oldest first: claim, units, since when.
    pub fn iter(&self) -> impl Iterator<Item = (ClaimId, u64, Time)> {
        self.by_age.iter().map(|(&(since, id), &units)| (id, units, since))
    }
}

/// All waiting classes that ask for the same number of units of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// So many.
    pub units: u64,
    /// Every class that asks for so many.
    pub members: BTreeSet<ClassIx>,
    /// Those that are filed here because this resource blocks them, in the order of their heads.
    pub filed: BTreeSet<(Rank, ClassIx)>,
    /// The heads of all that could start as things are, wherever they are filed: the first is what may protect this resource. Kept
    /// only where something asks for fewer units than this shelf, for only such claims can be held back by it.
    pub guards: Option<BTreeSet<(Rank, ClassIx)>>,
}

/// Shelves in the order of their units: mostly one, seldom more than a few.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelves(Vec<Shelf>);

impl Shelves {
    fn find(&self, units: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&units, |shelf| shelf.units)
    }

    pub fn get_mut(&mut self, units: u64) -> Option<&mut Shelf> {
        self.find(units).ok().map(|at| &mut self.0[at])
    }

    pub fn get_or_add(&mut self, units: u64) -> &mut Shelf {
        let at = self.find(units).unwrap_or_else(|at| {
            self.0.insert(at, Shelf { units, members: BTreeSet::new(), filed: BTreeSet::new(), guards: None });
            at
        });
        &mut self.0[at]
    }

    pub fn remove(&mut self, units: u64) {
        if let Ok(at) = self.find(units) {
            self.0.remove(at);
        }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Shelf> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Shelf> {
        self.0.iter_mut()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that ask for at most `units`, and those that ask for more.
    fn split(&self, units: u64) -> (&[Shelf], &[Shelf]) {
        self.0.split_at(self.0.partition_point(|shelf| shelf.units <= units))
    }
}

/// A resource of the gate.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub name: Name,
    /// The pattern it is an instance of.
    pub pattern: Option<String>,
    pub store: Store,
    pub holders: Holders,
    /// By units asked for.
    pub shelves: Shelves,
    /// When its timer is set to fire (buckets only).
    pub timer: Option<Time>,
    /// True while this step has to look for claims that it may let start.
    pub touched: bool,
}

impl Resource {
    pub fn new(name: Name, pattern: Option<String>, limit: Limit, now: Time) -> Self {
        let store = match limit {
            Limit::Semaphore { permits } => {
                // Declared at 0, any amount may wait for it.
                Store::Semaphore { permits, last_positive: if permits == 0 { u64::MAX } else { permits } }
            }
            Limit::TokenBucket { rate, burst } => Store::Bucket(Bucket::full(rate, burst, now)),
        };
        Self {
            name,
            pattern,
            store,
            holders: Holders::default(),
            shelves: Shelves::default(),
            timer: None,
            touched: false,
        }
    }

    /// Free units, whole tokens of a bucket; negative after a total was lowered below its use.
    pub fn free(&self, now: Time) -> i64 {
        match &self.store {
            Store::Semaphore { permits, .. } => {
                let free = i128::from(*permits) - i128::from(self.holders.sum());
                i64::try_from(free).unwrap_or(if free < 0 { i64::MIN } else { i64::MAX })
            }
            Store::Bucket(bucket) => bucket.tokens(now),
        }
    }

    /// True when `units` are free.
    pub fn has(&self, units: u64, now: Time) -> bool {
        u64::try_from(self.free(now)).is_ok_and(|free| free >= units)
    }

    pub fn capacity(&self) -> u64 {
        match &self.store {
            Store::Semaphore { permits, .. } => *permits,
            Store::Bucket(bucket) => bucket.burst(),
        }
    }

    /// The most that a new claim may ask for.
    pub fn most(&self) -> u64 {
        match &self.store {
            Store::Semaphore { last_positive, .. } => *last_positive,
            Store::Bucket(bucket) => bucket.burst(),
        }
    }

    pub fn limit(&self) -> Limit {
        match &self.store {
            Store::Semaphore { permits, .. } => Limit::Semaphore { permits: *permits },
            Store::Bucket(bucket) => Limit::TokenBucket { rate: bucket.rate(), burst: bucket.burst() },
        }
    }

    pub fn set_limit(&mut self, limit: Limit, now: Time) {
        match (&mut self.store, limit) {
            (Store::Semaphore { permits, last_positive }, Limit::Semaphore { permits: new }) => {
                *permits = new;
                *last_positive = if new == 0 { *last_positive } else { new };
            }
            (Store::Bucket(bucket), Limit::TokenBucket { rate, burst }) => bucket.change(rate, burst, now),
            // Another kind is another limit: nothing of the old one can be kept but its holders.
            (store, limit) => *store = Resource::new(Name::default(), None, limit, now).store,
        }
    }

    /// The best-ranked waiting claim that could start as things are but is short of this resource: nothing below it may take from it.
    pub fn guard(&self, now: Time) -> Option<(Rank, ClassIx)> {
        let (_, short) = self.shelves.split(self.whole_free(now));
        short.iter().filter_map(|shelf| shelf.guards.as_ref()?.first().copied()).min()
    }

    /// The best-ranked class filed here that this resource no longer blocks.
    pub fn candidate(&self, now: Time) -> Option<(Rank, ClassIx)> {
        let best = self.fitting(now).iter().filter_map(|shelf| shelf.filed.first().copied()).min()?;
        match self.guard(now) {
            Some(guard) if guard < best => None,
            _ => Some(best),
        }
    }

    /// The shelves of those that ask for no more than is free.
    pub fn fitting(&self, now: Time) -> &[Shelf] {
        self.shelves.split(self.whole_free(now)).0
    }

    fn whole_free(&self, now: Time) -> u64 {
        u64::try_from(self.free(now)).unwrap_or(0)
    }

    /// The next instant at which the tokens reach what some waiting class asks for.
    pub fn next_tokens(&self, now: Time) -> Option<Time> {
        let Store::Bucket(bucket) = &self.store else { return None };
        let (_, short) = self.shelves.split(self.whole_free(now));
        bucket.time_of(short.first()?.units, now)
    }

    pub fn is_pool(&self) -> bool {
        self.name.starts_with("pool:")
    }

    /// True for an instance of a pattern that nobody holds or waits for, and that is as good as new.
    pub fn is_idle(&self) -> bool {
        self.pattern.is_some() && self.holders.len() == 0 && self.shelves.is_empty()
    }
}
