//! Token buckets in exact integer arithmetic: a generic cell rate algorithm (ITU-T I.371, annex A) kept as a balance of tokens.
use crate::rate::Rate;
use crate::time::Time;

/// What a bucket must remember over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketState {
    /// Tokens times [`BucketState::scale`]; negative while tokens are owed.
    pub scaled: i128,
    /// Scaled tokens in one token at the time of writing.
    pub scale: i128,
    /// The instant of that balance.
    pub at: Time,
    /// Nothing starts before: the far side asked for a pause.
    pub cooling_until: Time,
}

/// A token bucket. It starts full.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    burst: u64,
    /// Tokens times `rate.scale()`, at most `burst` of them, at the instant `at`.
    scaled: i128,
    at: Time,
    cooling_until: Time,
}

impl Bucket {
    pub fn full(rate: Rate, burst: u64, now: Time) -> Self {
        Self { rate, burst, scaled: i128::from(burst) * rate.scale(), at: now, cooling_until: Time(0) }
    }

    pub fn rate(&self) -> Rate {
        self.rate
    }

    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// The balance at `now`, which is never above the burst.
    fn scaled_at(&self, now: Time) -> i128 {
        let full = i128::from(self.burst) * self.rate.scale();
        let missing = full - self.scaled;
        let nanos_to_full = ceil_div(missing, self.rate.per_nanosecond());
        let elapsed = i128::from(now.since(self.at));
        if elapsed >= nanos_to_full { full } else { self.scaled + elapsed * self.rate.per_nanosecond() }
    }

    /// Whole tokens that may be taken at `now`, rounded down; none while it cools.
    pub fn tokens(&self, now: Time) -> i64 {
        if now < self.cooling_until {
            return 0;
        }
        i64::try_from(self.scaled_at(now).div_euclid(self.rate.scale())).unwrap_or(i64::MAX)
    }

    /// Takes `units`, which must be there.
    pub fn take(&mut self, units: u64, now: Time) {
        self.scaled = self.scaled_at(now) - i128::from(units) * self.rate.scale();
        self.at = self.at.max(now);
    }

    /// The earliest instant at which `units` are there; never early, even by a nanosecond. `None` when they exceed the burst.
    pub fn time_of(&self, units: u64, now: Time) -> Option<Time> {
        if units > self.burst {
            return None;
        }
        let missing = i128::from(units) * self.rate.scale() - self.scaled_at(now);
        let nanos = ceil_div(missing.max(0), self.rate.per_nanosecond());
        Some(now.plus(u64::try_from(nanos).unwrap_or(u64::MAX)).max(self.cooling_until))
    }

    /// True when `need` tokens will be there at `at` though `units` are taken at `now`; what cannot be taken while it cools is not counted.
    pub fn refills(&self, units: u64, need: u64, at: Time, now: Time) -> bool {
        let scale = self.rate.scale();
        let gained = i128::from(at.since(now)).saturating_mul(self.rate.per_nanosecond());
        let there = if now < self.cooling_until { 0 } else { self.scaled_at(now) };
        let then = (there - i128::from(units) * scale).saturating_add(gained);
        then.min(i128::from(self.burst) * scale) >= i128::from(need) * scale
    }

    /// True when `units` take at least so many nanoseconds to come.
    pub fn takes_longer_to_refill(&self, units: u64, nanos: u128) -> bool {
        let come = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_mul(self.rate.per_nanosecond());
        come <= i128::from(units) * self.rate.scale()
    }

    /// Corrects what was charged: gives back up to the burst, or owes down to minus one burst.
    pub fn settle(&mut self, charged: u64, actual: u64, now: Time) {
        let full = i128::from(self.burst) * self.rate.scale();
        let difference = (i128::from(charged) - i128::from(actual)).saturating_mul(self.rate.scale());
        self.scaled = self.scaled_at(now).saturating_add(difference).clamp(-full, full);
        self.at = self.at.max(now);
    }

    /// Nothing is given before `until`; what was asked for earlier and lasts longer stays.
    pub fn cool(&mut self, until: Time) {
        self.cooling_until = self.cooling_until.max(until);
    }

    /// True when nothing is missing: such a bucket is as good as a new one.
    pub fn is_full(&self, now: Time) -> bool {
        now >= self.cooling_until && self.scaled_at(now) == i128::from(self.burst) * self.rate.scale()
    }

    /// Changes rate and burst: keeps the tokens, cut to between minus one new burst and the new burst.
    pub fn change(&mut self, rate: Rate, burst: u64, now: Time) {
        let state = self.state(now);
        *self = Self { rate, burst, scaled: 0, at: now, cooling_until: Time(0) };
        self.restore(state, now);
    }

    pub fn state(&self, now: Time) -> BucketState {
        // A pause that is over is forgotten.
        let cooling_until = if now < self.cooling_until { self.cooling_until } else { Time(0) };
        let (scaled, scale, at) = (self.scaled_at(now), self.rate.scale(), self.at.max(now));
        BucketState { scaled, scale, at, cooling_until }
    }

    /// Takes a stored balance over, whatever rate it was written under. The time that passed since is credited when the bucket is next
    /// read; a balance from the future (the clock stepped back meanwhile) counts as one of now.
    pub fn restore(&mut self, state: BucketState, now: Time) {
        let full = i128::from(self.burst) * self.rate.scale();
        self.scaled = rescale(state.scaled, state.scale, self.rate.scale()).clamp(-full, full);
        self.at = state.at.min(now);
        self.cooling_until = state.cooling_until;
    }
}

fn ceil_div(a: i128, b: i128) -> i128 {
    a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)
}

/// `value * to / from`, rounded down, without the product leaving an `i128`.
fn rescale(value: i128, from: i128, to: i128) -> i128 {
    if from == to || from <= 0 {
        return value;
    }
    let (whole, rest) = (value.div_euclid(from), value.rem_euclid(from));
    whole.saturating_mul(to).saturating_add(rest.checked_mul(to).map_or(0, |product| product / from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn case_d7_slow_rates_refill() {
        let mut bucket = Bucket::full(Rate::from_decimal(0.001).unwrap(), 1, Time(0));
        bucket.take(1, Time(0));
        assert_eq!(bucket.time_of(1, Time(0)), Some(Time(1_000 * SECOND)));
        assert_eq!((bucket.tokens(Time(1_000 * SECOND - 1)), bucket.tokens(Time(1_000 * SECOND))), (0, 1));
    }

    #[test]
    fn case_d5_fractions_are_kept() {
        let mut bucket = Bucket::full(Rate::from_decimal(1.9).unwrap(), 10, Time(0));
        let mut granted = 0;
        for millisecond in 0..1_000_000 {
            let now = Time(millisecond * 1_000_000);
            while bucket.tokens(now) >= 1 {
                bucket.take(1, now);
                granted += 1;
            }
        }
        assert_eq!(granted, 10 + 1_899);
    }

    #[test]
    fn a_step_back_takes_nothing_and_gives_nothing() {
        let mut bucket = Bucket::full(Rate::per(1, 1).unwrap(), 5, Time(100 * SECOND));
        bucket.take(3, Time(100 * SECOND));
        assert_eq!(bucket.tokens(Time(89 * SECOND)), 2);
        bucket.take(1, Time(89 * SECOND));
        assert_eq!(bucket.tokens(Time(101 * SECOND)), 2);
    }

    #[test]
    fn a_changed_rate_keeps_the_tokens() {
        let mut bucket = Bucket::full(Rate::per(1, 1).unwrap(), 10, Time(0));
        bucket.take(4, Time(0));
        bucket.change(Rate::per(1, 7).unwrap(), 5, Time(0));
        assert_eq!(bucket.tokens(Time(0)), 5);
        bucket.take(5, Time(0));
        assert_eq!(bucket.time_of(1, Time(0)), Some(Time(7 * SECOND)));
    }
}
