//! Runs.
use super::samples::{Dice, run, run_in};
use super::{Driver, commit, load, stored};
use crate::RunFilter;
use mirab_core::ClaimId;
use mirab_flow::State::{Completed, Failed, Running, Waiting};
use mirab_flow::{Fact, Journal, RunRecord, STATES, State};
use std::collections::BTreeMap;

fn facts(runs: &[RunRecord]) -> Vec<Fact> {
    runs.iter().cloned().map(|run| Fact::Run(Box::new(run))).collect()
}

fn ids(runs: &[RunRecord]) -> Vec<u64> {
    runs.iter().map(|run| run.id.0).collect()
}

/// Runs 1, 2, 3 ... in these states.
fn in_states(states: &[State]) -> Vec<RunRecord> {
    (1..).zip(states).map(|(id, state)| run_in(id, *state)).collect()
}

/// Every field has the value it was given.
pub fn come_back_whole<D: Driver>(driver: &mut D) {
    let runs: Vec<_> = (1..200).map(|id| RunRecord { idempotency_key: None, ..run(id, &mut Dice::new(id)) }).collect();
    let journal = stored(driver, &facts(&runs));
    for run in runs {
        assert_eq!(driver.view(&journal).run(run.id), Some(run));
    }
    assert_eq!(driver.view(&journal).run(ClaimId(999)), None);
    assert_eq!(driver.view(&journal).run(ClaimId(u64::MAX)), None);
}

/// A later record of the same id takes the place of all of the first.
pub fn are_replaced<D: Driver>(driver: &mut D) {
    let (first, second) = (run(1, &mut Dice::new(1)), run(1, &mut Dice::new(2)));
    let mut journal = stored(driver, &facts(&[first]));
    commit(&mut journal, &facts(std::slice::from_ref(&second)));
    let journal = driver.reopen(journal);
    assert_eq!(driver.view(&journal).runs(&RunFilter::default()), [second]);
}

/// A start reads the runs that are still alive, in order of id, and the keys of all.
pub fn ended_ones_are_not_loaded<D: Driver>(driver: &mut D) {
    let mut runs: Vec<_> = in_states(&STATES.map(|(state, _)| state));
    runs.iter_mut().for_each(|run| run.idempotency_key = Some(format!("{:03}", 100 - run.id.0)));
    runs.reverse();
    let found = load(&mut stored(driver, &facts(&runs)));
    runs.reverse();
    let keys: Vec<_> = runs.iter().rev().map(|run| (run.idempotency_key.clone().unwrap(), run.id)).collect();
    assert_eq!(found.keys, keys);
    runs.retain(|run| !run.state.is_terminal());
    assert_eq!(found.runs, runs);
}

/// The newest come first, and no more of them than asked for.
pub fn are_listed_newest_first<D: Driver>(driver: &mut D) {
    let journal = stored(driver, &facts(&in_states(&[Waiting, Failed, Running, Completed])));
    let view = driver.view(&journal);
    assert_eq!(ids(&view.runs(&RunFilter::default())), [4, 3, 2, 1]);
    assert_eq!(ids(&view.runs(&RunFilter { limit: 3, ..RunFilter::default() })), [4, 3, 2]);
    assert_eq!(ids(&view.runs(&RunFilter { limit: 0, ..RunFilter::default() })), [0; 0]);
}

/// Every combination of narrowings gives what a plain walk over all runs gives.
pub fn are_narrowed<D: Driver>(driver: &mut D) {
    let runs: Vec<_> =
        (1..60).map(|id| RunRecord { idempotency_key: None, ..run(id, &mut Dice::new(id / 2)) }).collect();
    let journal = stored(driver, &facts(&runs));
    let view = driver.view(&journal);
    let projects: Vec<_> = runs.iter().map(|run| Some(run.project.clone())).chain([None]).collect();
    let flows: Vec<_> = runs.iter().map(|run| Some(run.flow.clone())).chain([None]).collect();
    for states in [vec![], vec![Running], vec![Completed, Waiting, Completed], vec![Running, Waiting]] {
        for (project, flow) in projects.iter().flat_map(|project| flows.iter().map(move |flow| (project, flow))) {
            let (states, project, flow) = (states.clone(), project.clone(), flow.clone());
            let filter = RunFilter { states, project, flow, limit: 4, before: Some(ClaimId(50)) };
            let expected: Vec<_> = runs.iter().rev().filter(|run| filter.matches(run)).take(4).cloned().collect();
            assert_eq!(view.runs(&filter), expected, "{filter:?}");
        }
    }
}

/// The last run of a page leads to the next page.
pub fn are_paged<D: Driver>(driver: &mut D) {
    let journal = stored(driver, &facts(&in_states(&[Waiting, Failed, Waiting, Waiting, Failed, Waiting])));
    let page = |before| {
        let filter = RunFilter { states: vec![Waiting, Failed], limit: 4, before, ..RunFilter::default() };
        ids(&driver.view(&journal).runs(&filter))
    };
    assert_eq!(page(Some(ClaimId(u64::MAX))), [6, 5, 4, 3]);
    assert_eq!(page(None), [6, 5, 4, 3]);
    assert_eq!(page(Some(ClaimId(3))), [2, 1]);
    assert_eq!(page(Some(ClaimId(1))), [0; 0]);
}

/// A key names one run for ever, also after it has ended; a second run with it is refused.
pub fn are_found_by_key<D: Driver>(driver: &mut D) {
    let keyed = |id, state| RunRecord { idempotency_key: Some("once".to_owned()), ..run_in(id, state) };
    let mut journal = stored(driver, &facts(&[run_in(1, Waiting), keyed(2, Waiting), run_in(3, Waiting)]));
    commit(&mut journal, &facts(&[keyed(2, Completed)]));
    assert!(journal.commit(&facts(&[keyed(4, Waiting)])).is_err());
    let journal = driver.reopen(journal);
    let view = driver.view(&journal);
    assert_eq!(view.run_by_key("once"), Some(keyed(2, Completed)));
    assert_eq!((view.run_by_key("never"), view.run(ClaimId(4))), (None, None));
}

/// Each state that has runs is counted.
pub fn are_counted_by_state<D: Driver>(driver: &mut D) {
    let journal = stored(driver, &facts(&in_states(&[Waiting, Failed, Waiting])));
    assert_eq!(driver.view(&journal).count_by_state(), BTreeMap::from([(Waiting, 2), (Failed, 1)]));
}
