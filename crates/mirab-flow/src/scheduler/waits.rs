//! How long things waited, told as quantiles.

/// Steps within each doubling of a duration.
const STEPS: usize = 4;

/// Counts of durations by size: four steps a doubling, so that a quantile is at most a quarter too large.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    /// By step; as long as the longest wait asks for.
    counts: Vec<u64>,
    total: u64,
}

/// Quantiles of waiting times, in nanoseconds: at most a quarter above the true ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many waited.
    pub count: u64,
    /// Half of them no longer than this.
    pub p50: u64,
    /// 90 of 100.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
}

impl Waits {
    pub fn add(&mut self, nanoseconds: u64) {
        let step = step_of(nanoseconds);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.total += 1;
    }

    pub fn quantiles(&self) -> Quantiles {
        let [p50, p90, p99] = [50, 90, 99].map(|percent| self.at(percent));
        Quantiles { count: self.total, p50, p90, p99 }
    }

    /// The longest duration of the step in which that share is reached.
    fn at(&self, percent: u64) -> u64 {
        let wanted = (u128::from(self.total) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let step = self.counts.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        });
        step.filter(|_| self.total > 0).map_or(0, last_of)
    }
}

/// Durations below 4 have a step of their own each; above, the step follows from the three highest bits.
fn step_of(nanoseconds: u64) -> usize {
    if nanoseconds < STEPS as u64 {
        return nanoseconds as usize;
    }
    let doublings = nanoseconds.ilog2() as usize;
    let within = (nanoseconds >> (doublings - 2)) as usize & (STEPS - 1);
    STEPS * (doublings - 1) + within
}

/// The longest duration of a step.
fn last_of(step: usize) -> u64 {
    if step < STEPS {
        return step as u64;
    }
    let (doublings, within) = (step / STEPS + 1, (step % STEPS) as u128);
    let next = (STEPS as u128 + within + 1) << (doublings - 2);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_quarter_too_large_and_never_too_small() {
        let durations = (0..64).flat_map(|bits| [1u64 << bits, (1 << bits) + (1 << bits) / 3, u64::MAX >> (63 - bits)]);
        for duration in durations.chain(0..100) {
            let last = last_of(step_of(duration));
            assert!(last >= duration && u128::from(last - duration) * 4 <= u128::from(duration), "{duration}: {last}");
        }
        let mut waits = Waits::default();
        assert_eq!(waits.quantiles(), Quantiles::default());
        (1..=100).for_each(|n| waits.add(n * 1_000));
        let Quantiles { count, p50, p90, p99 } = waits.quantiles();
        assert_eq!(count, 100);
        for (told, truth) in [(p50, 50_000), (p90, 90_000), (p99, 99_000)] {
            assert!((truth..=truth * 5 / 4).contains(&told), "{told} for {truth}");
        }
    }
}
