//! What promises cost and keep, over mixed loads: `cargo run --release -p mirab-sim --bin mixed-loads -- [loads of each sort]`.
use mirab_sim::load::{Durations, Load, play, play_without_promises};

const JOBS: u64 = 400;

fn main() {
    let loads = std::env::args().nth(1).map_or(10, |count| count.parse().expect("a number of loads"));
    println!(
        "| durations | load | use with / without promises | started within 1 % of the longest hold | error p50, p90 | longest wait |"
    );
    println!("|---|---|---|---|---|---|");
    for durations in [Durations::Steady, Durations::Noisy, Durations::Lying] {
        for percent in [20, 50, 80, 95] {
            row(durations, percent, false, loads);
        }
        row(durations, 80, true, loads);
    }
}

/// Errors and waits are told in longest holds of the load.
fn row(durations: Durations, percent: u64, tasks: bool, loads: u64) {
    let (mut with, mut without, mut errors, mut worst) = (0, 0, Vec::new(), 0.0f64);
    for seed in 0..loads {
        let load = Load::of(seed * 31 + percent, percent, durations, tasks, JOBS);
        let outcome = play(&load);
        let longest = outcome.longest_hold() as f64;
        let longest_wait = outcome.waits.iter().map(|(wait, _)| *wait).max().unwrap_or(0);
        with += outcome.use_ppm;
        // With tasks inside it would hang.
        without += if tasks { 0 } else { play_without_promises(&load) };
        errors.extend(outcome.promise_errors.iter().map(|error| *error as f64 / longest));
        worst = worst.max(longest_wait as f64 / longest);
    }
    errors.sort_by(f64::total_cmp);
    let at = |percent: usize| errors.get(errors.len() * percent / 100).copied().unwrap_or(0.0);
    let exact = errors.iter().filter(|error| **error <= 0.01).count() * 100 / errors.len().max(1);
    let name = if tasks { ", tasks inside" } else { "" };
    let cost = if tasks { String::new() } else { format!("{:.3}", with as f64 / without as f64) };
    println!(
        "| {durations:?}{name} | {percent} % | {cost} | {exact} % of {} | {:.2}, {:.2} | {worst:.1} longest holds |",
        errors.len(),
        at(50),
        at(90)
    );
}
