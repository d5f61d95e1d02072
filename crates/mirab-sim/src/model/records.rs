//! What the model keeps: plain lists of plain records.
use crate::amount::Amount;
use mirab_core::{BucketState, ClaimId, Fence, Name, Place, Start, Time, is_reserved};

/// A declared name or pattern.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub name: String,
    pub amount: Amount,
    /// The last total above 0, against which submissions are checked while it is paused.
    pub last_positive: u64,
    /// The last four durations of what needed it.
    pub durations: Vec<u64>,
}

impl Declared {
    pub fn new(name: &str, amount: Amount) -> Self {
        let last_positive = if amount.capacity() == 0 { u64::MAX } else { amount.capacity() };
        Self { name: name.into(), amount, last_positive, durations: Vec::new() }
    }

    /// How well it matches, best highest: exact, then longest prefix, then longest suffix.
    pub fn match_of(&self, name: &str) -> Option<(bool, usize, usize)> {
        if self.name == name {
            return Some((true, 0, 0));
        }
        let (prefix, suffix) = self.name.split_once('*')?;
        // The product's own names match no pattern, and tags only a pattern of tags.
        let kin = !is_reserved(name) && name.starts_with("tag:") == prefix.starts_with("tag:");
        let longer = name.len() > prefix.len() + suffix.len();
        let matches = kin && longer && name.starts_with(prefix) && name.ends_with(suffix);
        matches.then_some((false, prefix.len(), suffix.len()))
    }
}

/// The tokens of one bucket, counted in the `1 / scale`-th part of a token: in one nanosecond come exactly `units` of them.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    pub name: String,
    pub units: i128,
    pub scale: i128,
    pub burst: u64,
    pub scaled: i128,
    pub at: Time,
    /// Nothing starts before.
    pub cooling_until: Time,
}

impl Balance {
    pub fn full(name: &str, amount: Amount, now: Time) -> Option<Self> {
        let Amount::Bucket { units, seconds, burst } = amount else {
            return None;
        };
        let scale = i128::from(seconds) * 1_000_000_000;
        let scaled = i128::from(burst) * scale;
        Some(Self {
            name: name.into(),
            units: i128::from(units),
            scale,
            burst,
            scaled,
            at: now,
            cooling_until: Time(0),
        })
    }

    pub fn most(&self) -> i128 {
        i128::from(self.burst) * self.scale
    }

    pub fn scaled_at(&self, now: Time) -> i128 {
        (self.scaled + i128::from(now.since(self.at)) * self.units).min(self.most())
    }

    /// The earliest instant at which `units` are there; `None` when they exceed the burst.
    pub fn time_of(&self, units: u64, now: Time) -> Option<Time> {
        let missing = i128::from(units) * self.scale - self.scaled_at(now);
        let nanos = missing.max(0).div_euclid(self.units) + i128::from(missing.max(0) % self.units != 0);
        let at = now.plus(u64::try_from(nanos).unwrap_or(u64::MAX));
        (units <= self.burst).then(|| at.max(self.cooling_until))
    }

    /// As it is stored; a pause that is over is forgotten.
    pub fn state(&self, now: Time) -> BucketState {
        let cooling_until = if self.cooling_until > now { self.cooling_until } else { Time(0) };
        BucketState { scaled: self.scaled, scale: self.scale, at: self.at, cooling_until }
    }

    /// Keeps `scaled` tokens that were counted with another scale, rounded down to this one's.
    pub fn keep(&mut self, scaled: i128, scale: i128, at: Time, cooling_until: Time) {
        self.cooling_until = cooling_until;
        self.scaled = (scaled * self.scale).div_euclid(scale).clamp(-self.most(), self.most());
        self.at = at;
    }
}

/// A claim that waits.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub id: ClaimId,
    pub needs: Vec<(String, u64)>,
    pub priority: i32,
    pub parent: Option<ClaimId>,
    pub place: Place,
    /// What durations are learned by.
    pub kind: String,
    /// Resources on which it was delayed once.
    pub strict: Vec<String>,
    /// The fence that the next start had when it joined.
    pub joined: u64,
}

/// A claim that was admitted.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub id: ClaimId,
    pub fence: Fence,
    pub priority: i32,
    pub parent: Option<ClaimId>,
    pub place: Place,
    pub started_at: Time,
    pub takes: Vec<(String, u64)>,
    pub covered: Vec<(String, u64, ClaimId)>,
    pub kind: String,
    /// Every name it asked for.
    pub needs: Vec<String>,
    /// Tokens it took, as they were settled since.
    pub tokens: Vec<(String, u64)>,
    pub shortest: u64,
    pub longest: Option<u64>,
    pub passed: Vec<(ClaimId, String)>,
}

impl Lease {
    /// What the gate tells of its start.
    pub fn told(&self, buckets: Vec<(Name, BucketState)>) -> Start {
        let units = |of: &[(String, u64)]| -> Vec<(Name, u64)> {
            of.iter().map(|(name, units)| (name.as_str().into(), *units)).collect()
        };
        Start {
            id: self.id,
            fence: self.fence,
            at: self.started_at,
            takes: units(&self.takes).into(),
            covered: self.covered.iter().map(|(name, units, by)| (name.as_str().into(), *units, *by)).collect(),
            tokens: units(&self.tokens),
            buckets,
            shortest: self.shortest,
            longest: self.longest,
            passed: self.passed.iter().map(|(id, name)| (*id, name.as_str().into())).collect(),
        }
    }

    /// Units of `name` it took at the gate.
    pub fn taken(&self, name: &str) -> u64 {
        self.takes.iter().filter(|(taken, _)| taken == name).map(|(_, units)| units).sum()
    }

    /// Units of `name` that tasks inside it may use: those it took, and those it uses of an enclosing body.
    pub fn has(&self, name: &str) -> u64 {
        let shared = self.covered.iter().filter(|(used, ..)| used == name).map(|(_, units, _)| units);
        self.taken(name) + shared.sum::<u64>()
    }

    /// Units of `name` that it uses of what `holder` has.
    pub fn uses(&self, holder: ClaimId, name: &str) -> u64 {
        self.covered.iter().filter(|(used, _, by)| used == name && *by == holder).map(|(_, units, _)| units).sum()
    }
}

/// A start, for those that it passed.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub id: ClaimId,
    pub names: Vec<String>,
    pub rank: (i128, u64, u64),
    pub fence: u64,
}
