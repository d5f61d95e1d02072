//! Durations and totals.
use super::samples::Dice;
use super::{Driver, commit, load, samples, stored};
use mirab_flow::{DurationsRecord, Fact, LearnerKind};

fn record(learner: LearnerKind, name: &str, recent: &[u64]) -> DurationsRecord {
    DurationsRecord { learner, name: name.to_owned(), recent: recent.to_vec() }
}

/// A kind and a resource of one name are two; each has its last durations, oldest first.
pub fn durations_come_back<D: Driver>(driver: &mut D) {
    let (kind, resource) = (LearnerKind::Kind, LearnerKind::Resource);
    let facts = [
        Fact::Durations(record(resource, "db", &[7])),
        Fact::Durations(record(kind, "db", &[u64::MAX, 0])),
        Fact::Durations(record(kind, "a'b", &[])),
    ];
    let mut journal = stored(driver, &facts);
    commit(&mut journal, &[Fact::Durations(record(resource, "db", &[7, 8]))]);
    let expected = [record(kind, "a'b", &[]), record(kind, "db", &[u64::MAX, 0]), record(resource, "db", &[7, 8])];
    assert_eq!(load(&mut driver.reopen(journal)).durations, expected);
}

/// The last total of each name counts, in order of name.
pub fn totals_are_replaced<D: Driver>(driver: &mut D) {
    let total = |name: &str, most| Fact::Total(name.to_owned(), most);
    let mut journal = stored(driver, &[total("gpu", 2), total("db", u64::MAX)]);
    commit(&mut journal, &[total("gpu", 4)]);
    assert_eq!(load(&mut driver.reopen(journal)).totals, [("db".to_owned(), u64::MAX), ("gpu".to_owned(), 4)]);
}

/// Whatever is drawn comes back.
pub fn come_back_whole<D: Driver>(driver: &mut D) {
    for seed in 0..50 {
        let dice = &mut Dice::new(seed);
        let (durations, (name, most)) = (samples::durations(dice), samples::total(dice));
        let found = load(&mut stored(driver, &[Fact::Durations(durations.clone()), Fact::Total(name.clone(), most)]));
        assert_eq!((found.durations, found.totals), (vec![durations], vec![(name, most)]));
    }
}
