//! Task runs.
use super::samples::{Dice, run_in, task};
use super::{Driver, load, stored};
use mirab_core::ClaimId;
use mirab_flow::State::{Completed, Running};
use mirab_flow::{Fact, RunRecord, TaskRecord};

fn facts(tasks: &[TaskRecord]) -> Vec<Fact> {
    tasks.iter().cloned().map(|task| Fact::Task(Box::new(task))).collect()
}

/// Every field has the value it was given, and the last record of an id is the one that counts.
pub fn come_back_whole<D: Driver>(driver: &mut D) {
    let tasks = |seed| (10..200).map(|id| task(id, 1, &mut Dice::new(id * seed))).collect::<Vec<_>>();
    let journal = stored(driver, &[facts(&tasks(3)), facts(&tasks(7))].concat());
    assert_eq!(driver.view(&journal).tasks(ClaimId(1)), tasks(7));
}

/// A start reads what the latest attempt of a live run called, ended or not, in order of id.
pub fn only_those_of_the_latest_attempt_are_loaded<D: Driver>(driver: &mut D) {
    let of = |id, run, run_attempt, state| TaskRecord { run_attempt, state, ..task(id, run, &mut Dice::new(id)) };
    let runs = [
        RunRecord { attempt: 2, ..run_in(1, Running) },
        RunRecord { attempt: 1, ..run_in(2, Completed) },
        RunRecord { attempt: 1, ..run_in(3, Running) },
    ];
    let (old, ended, live, other) =
        (of(10, 1, 1, Running), of(13, 1, 2, Completed), of(12, 1, 2, Running), of(11, 3, 1, Running));
    let tasks = [old, ended.clone(), live.clone(), other.clone(), of(14, 2, 1, Completed)];
    let runs = runs.map(|run| Fact::Run(Box::new(run)));
    let mut journal = stored(driver, &[runs.to_vec(), facts(&tasks)].concat());
    assert_eq!(load(&mut journal).tasks, [other, live, ended]);
}

/// A reader sees the tasks of all attempts of one run.
pub fn are_read_by_run<D: Driver>(driver: &mut D) {
    let tasks: Vec<_> = [(5, 1), (3, 2), (4, 1)].map(|(id, run)| task(id, run, &mut Dice::new(id))).to_vec();
    let journal = stored(driver, &facts(&tasks));
    let view = driver.view(&journal);
    assert_eq!(view.tasks(ClaimId(1)), [tasks[2].clone(), tasks[0].clone()]);
    assert_eq!(view.tasks(ClaimId(9)), []);
}
