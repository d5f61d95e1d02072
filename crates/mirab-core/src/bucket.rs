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

    /// Corrects what was charged: gives back up to the burst, or owes down to minus one burst. Tells what is charged from now on: what
    /// was cut moved no tokens, so the next correction must not count on it. It lies between `charged` and `actual`; where the cut leaves
    /// a part of a token, it is rounded down, lest that part be given back without having been taken.
    pub fn settle(&mut self, charged: u64, actual: u64, now: Time) -> u64 {
        let (scale, before) = (self.rate.scale(), self.scaled_at(now));
        let full = i128::from(self.burst) * scale;
        let difference = (i128::from(charged) - i128::from(actual)).saturating_mul(scale);
        self.scaled = before.saturating_add(difference).clamp(-full, full);
        self.at = self.at.max(now);
        let taken = (before - self.scaled).div_euclid(scale);
        u64::try_from(i128::from(charged) + taken).unwrap_or(charged)
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

    /// Takes tokens one by one, each as soon as it is there, and holds every instant against a count of whole nanoseconds and their parts.
    /// The burst is 2: with 1, the part of a nanosecond by which a grant is late would overflow and be lost.
    fn grants_without_drift(units: u64, seconds: u64, grants: u64) {
        let mut bucket = Bucket::full(Rate::per(units, seconds).unwrap(), 2, Time(0));
        bucket.take(2, Time(0));
        let (apart, rest) = (seconds * SECOND / units, seconds * SECOND % units);
        let (mut now, mut whole, mut part) = (Time(0), 0, 0);
        for grant in 2..grants {
            (whole, part) = (whole + apart, part + rest);
            if part >= units {
                (whole, part) = (whole + 1, part - units);
            }
            now = bucket.time_of(1, now).unwrap();
            assert_eq!(now, Time(whole + u64::from(part > 0)), "grant {grant} at {units} in {seconds} s");
            bucket.take(1, now);
        }
        assert_eq!(bucket.tokens(now), 0);
    }

    #[test]
    fn ten_million_grants_do_not_drift() {
        grants_without_drift(7, 11, 10_000_000);
        grants_without_drift(1_000_000, 1, 1_000_000);
        grants_without_drift(1, 604_800, 30_000);
    }

    #[test]
    #[ignore = "half a minute: `make soak` runs it"]
    fn a_billion_grants_do_not_drift() {
        grants_without_drift(7, 11, 1_000_000_000);
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

    /// Ten tokens of which four were taken, and so many of its thirds of a token have come since.
    fn taken_from(thirds: u64) -> (Bucket, Time) {
        let mut bucket = Bucket::full(Rate::per(1, 3).unwrap(), 10, Time(0));
        bucket.take(4, Time(0));
        (bucket, Time(thirds * SECOND))
    }

    /// Settles one after the other; tells what was charged after each.
    fn settled(bucket: &mut Bucket, now: Time, told: &[u64]) -> Vec<u64> {
        let each = told.iter().scan(4, |charged, actual| {
            *charged = bucket.settle(*charged, *actual, now);
            Some(*charged)
        });
        each.collect()
    }

    #[test]
    fn what_was_cut_at_the_debt_is_not_given_back() {
        let (mut bucket, now) = taken_from(0);
        assert_eq!((settled(&mut bucket, now, &[1_000]), bucket.tokens(now)), (vec![20], -10));
        assert_eq!((bucket.settle(20, 1_000, now), bucket.tokens(now)), (20, -10), "no more can be owed");
        assert_eq!((bucket.settle(20, 4, now), bucket.tokens(now)), (4, 6));
        assert_eq!(bucket.settle(4, u64::MAX, now), 20);
    }

    #[test]
    fn what_was_cut_at_the_burst_is_not_owed_again() {
        let (mut bucket, now) = taken_from(12);
        assert_eq!((settled(&mut bucket, now, &[0]), bucket.tokens(now)), (vec![4], 10), "nothing was missing");
        assert_eq!((bucket.settle(4, 4, now), bucket.tokens(now)), (4, 10));
        assert_eq!((bucket.settle(4, 6, now), bucket.tokens(now)), (6, 8));
        let (mut bucket, now) = taken_from(9);
        assert_eq!((settled(&mut bucket, now, &[0, 4]), bucket.tokens(now)), (vec![3, 4], 9));
    }

    #[test]
    fn a_part_of_a_token_that_a_cut_leaves_is_never_given_back_twice() {
        let (mut bucket, now) = taken_from(1);
        assert_eq!(settled(&mut bucket, now, &[1_000]), [20], "of 20 and a third");
        let (mut bucket, now) = taken_from(11);
        assert_eq!(settled(&mut bucket, now, &[0]), [3], "a third was given back");
    }

    #[test]
    fn no_order_of_settles_makes_tokens_or_loses_more_than_parts() {
        const TOLD: [u64; 8] = [0, 1, 3, 4, 5, 14, 20, 1_000];
        for (thirds, first) in (0..14).flat_map(|thirds| TOLD.map(|first| (thirds, first))) {
            for (second, third) in TOLD.iter().flat_map(|second| TOLD.map(|third| (*second, third))) {
                let (mut bucket, now) = taken_from(thirds);
                let scale = bucket.rate.scale();
                let mut sum = bucket.scaled_at(now) + 4 * scale;
                let mut charged = 4;
                for actual in [first, second, third, 4] {
                    let was = charged;
                    charged = bucket.settle(charged, actual, now);
                    assert!((was.min(actual)..=was.max(actual)).contains(&charged), "{was} told {actual}: {charged}");
                    let lost = sum - bucket.scaled - i128::from(charged) * scale;
                    assert!((0..scale).contains(&lost), "{thirds} thirds, {first}, {second}, {third}: {lost}");
                    assert!(lost == 0 || bucket.scaled.abs() == 10 * scale, "only where it was cut");
                    sum -= lost;
                }
            }
        }
    }
}
