//! Token buckets.
use super::samples::{Dice, bucket};
use super::{Driver, commit, load, stored};
use mirab_core::{BucketState, Time};
use mirab_flow::{BucketRecord, Fact};

fn named(name: &str, seed: u64) -> BucketRecord {
    BucketRecord { name: name.to_owned(), ..bucket(&mut Dice::new(seed)) }
}

/// All 128 bits of a balance are kept; buckets come in order of name.
pub fn come_back_whole<D: Driver>(driver: &mut D) {
    let extreme = |name: &str, scaled| {
        let state = BucketState { scaled, scale: i128::MAX, at: Time(u64::MAX), cooling_until: Time(u64::MAX) };
        BucketRecord { name: name.to_owned(), state }
    };
    let buckets = [extreme("", 0), extreme("api", i128::MIN), extreme("ğ", i128::MAX)];
    let mut facts: Vec<_> = buckets.iter().cloned().map(Fact::Bucket).collect();
    facts.reverse();
    assert_eq!(load(&mut stored(driver, &facts)).buckets, buckets);
}

/// The last balance counts.
pub fn are_replaced<D: Driver>(driver: &mut D) {
    let mut journal = stored(driver, &[Fact::Bucket(named("api", 1)), Fact::Bucket(named("disk", 2))]);
    commit(&mut journal, &[Fact::Bucket(named("api", 3))]);
    assert_eq!(load(&mut driver.reopen(journal)).buckets, [named("api", 3), named("disk", 2)]);
}
