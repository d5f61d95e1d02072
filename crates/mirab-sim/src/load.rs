//! Mixed loads: work of several kinds that comes at random and shares one to three resources.
mod play;

use crate::rng::Rng;
use mirab_core::SECOND;
use std::collections::BTreeSet;

pub use play::{Outcome, play, play_without_promises};

/// How honest durations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durations {
    /// A kind always takes as long.
    Steady,
    /// Between half and one and a half times as long.
    Noisy,
    /// One in ten takes ten times as long, one in ten a tenth.
    Lying,
}

/// A kind of work.
#[derive(Clone, Debug)]
struct Kind {
    needs: Vec<(usize, u64)>,
    mean: u64,
    priority: i32,
}

/// A piece of work.
#[derive(Clone, Debug)]
pub struct Job {
    /// When it comes.
    pub at: u64,
    kind: usize,
    hold: u64,
    /// What a task inside it needs besides, and for how long.
    task: Option<(usize, u64, u64)>,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Total of each resource.
    pub totals: Vec<u64>,
    /// In the order of coming.
    pub jobs: Vec<Job>,
    kinds: Vec<Kind>,
}

const NAMES: [&str; 3] = ["r0", "r1", "r2"];
const KINDS: [&str; 6] = ["k0", "k1", "k2", "k3", "k4", "k5"];

impl Load {
    /// The load of a seed: `percent` of the busiest resource are asked for over time.
    #[must_use]
    pub fn of(seed: u64, percent: u64, durations: Durations, tasks: bool, jobs: u64) -> Self {
        let mut rng = Rng::new(seed);
        let totals: Vec<u64> = (0..rng.between(1, 3)).map(|_| rng.between(2, 10)).collect();
        let kinds: Vec<Kind> = (0..rng.between(2, 6)).map(|_| kind(&mut rng, &totals)).collect();
        // What one job uses of each resource on average, in units times nanoseconds for each unit there is.
        let used = |r: usize| -> u64 {
            let of_kind =
                |k: &Kind| k.needs.iter().filter(|(at, _)| *at == r).map(|(_, units)| units * k.mean).sum::<u64>();
            kinds.iter().map(of_kind).sum::<u64>() / kinds.len() as u64 / totals[r]
        };
        let busiest = (0..totals.len()).map(used).max().unwrap_or(SECOND).max(1);
        let gap = busiest * 100 / percent;
        let mut at = 0;
        let jobs = (0..jobs).map(|_| {
            at += rng.below(2 * gap);
            let kind = usize::try_from(rng.below(kinds.len() as u64)).unwrap_or(0);
            let hold = vary(&mut rng, kinds[kind].mean, durations);
            let held: BTreeSet<usize> = kinds[kind].needs.iter().map(|(r, _)| *r).collect();
            let other = (0..totals.len()).find(|r| !held.contains(r));
            let task = other.filter(|_| tasks && rng.chance(30)).map(|r| (r, rng.between(1, totals[r]), hold / 2));
            Job { at, kind, hold, task }
        });
        Self { jobs: jobs.collect(), totals, kinds }
    }

    fn needs(&self, job: &Job) -> Vec<(&'static str, u64)> {
        self.kinds[job.kind].needs.iter().map(|(r, units)| (NAMES[*r], *units)).collect()
    }

    /// Units times nanoseconds of all jobs, in parts of a million of what there is during `span`.
    fn use_in(&self, span: u64) -> u64 {
        let job = |job: &Job| {
            let units: u64 = self.kinds[job.kind].needs.iter().map(|(_, units)| *units).sum();
            u128::from(units) * u128::from(job.hold)
        };
        let all: u128 = self.jobs.iter().map(job).sum();
        let there = u128::from(self.totals.iter().sum::<u64>()) * u128::from(span.max(1));
        u64::try_from(all * 1_000_000 / there).unwrap_or(0)
    }
}

fn kind(rng: &mut Rng, totals: &[u64]) -> Kind {
    let mut needs: Vec<(usize, u64)> = Vec::new();
    for (r, total) in totals.iter().enumerate() {
        if needs.is_empty() || rng.chance(40) {
            let units = if rng.chance(60) { 1 } else { rng.between(1, *total) };
            needs.push((r, units));
        }
    }
    let mean = rng.between(1, 20) * SECOND;
    Kind { needs, mean, priority: *rng.pick(&[0, 0, 0, 5]).unwrap_or(&0) }
}

fn vary(rng: &mut Rng, mean: u64, durations: Durations) -> u64 {
    match (durations, rng.below(10)) {
        (Durations::Steady, _) => mean,
        (Durations::Noisy, _) => rng.between(mean / 2, mean * 3 / 2),
        (Durations::Lying, 0) => mean * 10,
        (Durations::Lying, 1) => mean / 10,
        (Durations::Lying, _) => mean,
    }
}
