//! Random histories: the gate against the model, the model against itself, and whether a planted fault would be seen.
use mirab_core::Gate;
use mirab_sim::{Model, Subject, run_history};

/// Enough for every build; the millions are for the `soak` binary.
const HISTORIES: u64 = 20_000;

fn play<S: Subject>(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        if let Err(failure) = run_history::<S>(seed) {
            panic!("{failure}");
        }
    }
}

#[test]
fn the_gate_does_what_the_model_says_in_even_thousands() {
    play::<Gate>(0..HISTORIES / 2);
}

#[test]
fn the_gate_does_what_the_model_says_in_odd_thousands() {
    play::<Gate>(HISTORIES / 2..HISTORIES);
}

#[test]
fn the_model_agrees_with_itself_and_drains() {
    play::<Model>(HISTORIES..HISTORIES + 200);
}

#[test]
fn one_seed_gives_one_trace() {
    let traces: Vec<u64> = (0..50).map(|seed| run_history::<Gate>(seed).unwrap()).collect();
    let again: Vec<u64> = (0..50).map(|seed| run_history::<Gate>(seed).unwrap()).collect();
    assert_eq!(traces, again);
    assert!(traces.windows(2).all(|two| two[0] != two[1]));
}
