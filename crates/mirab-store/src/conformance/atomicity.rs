//! All of a group or nothing of it.
use super::samples::{Dice, bucket, counters, event, lease, project, run_in, task};
use super::{Driver, commit, load, stored};
use crate::RunFilter;
use mirab_core::ClaimId;
use mirab_flow::State::{Running, Waiting};
use mirab_flow::{Counters, Fact, Journal};

/// A group with one fact that is refused, wherever it stands, changes nothing, and the next group is stored.
pub fn a_refused_group_leaves_nothing<D: Driver>(driver: &mut D) {
    let mut dice = Dice::new(1);
    let first = [
        Fact::Run(Box::new(run_in(1, Waiting))),
        Fact::Event(event(1, 1, &mut dice)),
        Fact::Lease(lease(1, &mut dice)),
    ];
    let mut journal = stored(driver, &first);
    let before = load(&mut journal);
    let good = [
        Fact::Run(Box::new(run_in(1, Running))),
        Fact::Run(Box::new(run_in(2, Running))),
        Fact::Task(Box::new(task(3, 1, &mut dice))),
        Fact::LeaseEnded(ClaimId(1)),
        Fact::Bucket(bucket(&mut dice)),
        Fact::Project(project(&mut dice)),
        Fact::Counters(counters(&mut dice)),
        Fact::Event(event(2, 1, &mut dice)),
    ];
    for at in 0..=good.len() {
        let mut group = good.to_vec();
        group.insert(at, Fact::Event(event(1, 1, &mut dice)));
        assert!(journal.commit(&group).is_err(), "at {at}");
        assert_eq!(load(&mut journal), before, "at {at}");
        journal = driver.reopen(journal);
        assert_eq!(load(&mut journal), before, "at {at}, opened again");
        let view = driver.view(&journal);
        assert_eq!((view.all_events(0, 10).len(), view.runs(&RunFilter::default()).len()), (1, 1));
    }
    commit(&mut journal, &good);
    assert_eq!(load(&mut driver.reopen(journal)).runs, [run_in(1, Running), run_in(2, Running)]);
}

/// Facts of a group are applied in order.
pub fn the_last_fact_of_a_group_wins<D: Driver>(driver: &mut D) {
    let counters = |next_id| Fact::Counters(Counters { next_id, ..Counters::default() });
    let mut dice = Dice::new(4);
    let group = [
        Fact::Lease(lease(1, &mut dice)),
        Fact::Run(Box::new(run_in(1, Waiting))),
        counters(1),
        Fact::LeaseEnded(ClaimId(1)),
        Fact::Run(Box::new(run_in(1, Running))),
        counters(2),
    ];
    let found = load(&mut stored(driver, &group));
    assert_eq!((found.runs, found.leases.len(), found.counters.next_id), (vec![run_in(1, Running)], 0, 2));
}

/// An empty group is fine.
pub fn nothing_is_a_commit<D: Driver>(driver: &mut D) {
    let mut journal = driver.create();
    let before = load(&mut journal);
    commit(&mut journal, &[]);
    assert_eq!(load(&mut journal), before);
}
