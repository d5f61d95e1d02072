//! Random histories, cut after every group: what is read after a restart is exactly what was committed.
use super::Home;
use crate::conformance::samples::{
    Dice, bucket, counters, durations, event, lease, project, run, setting, task, total,
};
use crate::{MemoryStore, RunFilter, SqliteStore};
use mirab_core::ClaimId;
use mirab_flow::{Fact, Journal};
use proptest::collection::vec;
use proptest::prelude::*;

/// Ids from a small range, so that records are replaced, keys are doubled and events collide.
const IDS: u64 = 12;

fn fact() -> impl Strategy<Value = Fact> {
    (0..11_u8, 0..IDS, any::<u64>(), 1..40_u64).prop_map(|(kind, id, seed, seq)| {
        let mut dice = Dice::new(seed);
        match kind {
            0 => Fact::Project(project(&mut dice)),
            1 => Fact::Run(Box::new(run(id, &mut dice))),
            2 => Fact::Task(Box::new(task(id, seed % IDS, &mut dice))),
            3 => Fact::Lease(lease(id, &mut dice)),
            4 => Fact::LeaseEnded(ClaimId(id)),
            5 => Fact::Event(event(seq, id, &mut dice)),
            6 => Fact::Bucket(bucket(&mut dice)),
            7 => Fact::Durations(durations(&mut dice)),
            8 => {
                let (name, most) = total(&mut dice);
                Fact::Total(name, most)
            }
            9 => {
                let (key, value) = setting(&mut dice);
                Fact::Setting(key, value)
            }
            _ => Fact::Counters(counters(&mut dice)),
        }
    })
}

fn compare(sqlite: &mut SqliteStore, memory: &mut MemoryStore) {
    let (reader, all) = (sqlite.reader(), RunFilter::default());
    assert_eq!(sqlite.load().unwrap(), memory.load().unwrap());
    assert_eq!(reader.runs(&all).unwrap(), memory.runs(&all));
    assert_eq!(reader.count_by_state().unwrap(), memory.count_by_state());
    assert_eq!(reader.all_events(0, 100).unwrap(), memory.all_events(0, 100));
    for id in (0..IDS).map(ClaimId) {
        assert_eq!(reader.tasks(id).unwrap(), memory.tasks(id));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reopened_file_holds_what_the_twin_holds(groups in vec(vec(fact(), 0..8), 1..12)) {
        let home = Home::new();
        let mut memory = MemoryStore::default();
        for group in groups {
            let (ours, twin) = (home.open().commit(&group), memory.commit(&group));
            prop_assert_eq!(ours.is_ok(), twin.is_ok(), "{:?} but {:?}", ours, twin);
            compare(&mut home.open(), &mut memory);
        }
    }
}
