//! No claim waits longer than its resources can be held, whatever the durations are.
use mirab_sim::load::{Durations, Load, play};

/// Counted from when no higher-ranked claim waits for any of its resources: the longest hold of each, and one delay on each.
#[test]
fn waits_are_bounded_over_forty_loads() {
    for seed in 0..40 {
        for (durations, tasks) in
            [(Durations::Steady, false), (Durations::Noisy, false), (Durations::Lying, false), (Durations::Noisy, true)]
        {
            let load = Load::of(seed, [20, 50, 80, 95][usize::try_from(seed % 4).unwrap()], durations, tasks, 120);
            let outcome = play(&load);
            for (wait, resources) in &outcome.waits {
                let bound = outcome.bound(resources);
                assert!(
                    *wait <= bound,
                    "seed {seed}, {durations:?}, tasks {tasks}: {wait} of {bound} ns for resources {resources:?}"
                );
            }
        }
    }
}
