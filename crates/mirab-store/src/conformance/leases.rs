//! Leases.
use super::samples::{Dice, lease};
use super::{Driver, commit, load, stored};
use mirab_core::ClaimId;
use mirab_flow::{Fact, LeaseRecord};

fn facts(leases: &[LeaseRecord]) -> Vec<Fact> {
    leases.iter().cloned().map(Fact::Lease).collect()
}

/// Every field has the value it was given last, in order of id.
pub fn come_back_whole<D: Driver>(driver: &mut D) {
    let leases = |seed| (1..200).map(|id| lease(id, &mut Dice::new(id * seed))).collect::<Vec<_>>();
    let mut first = facts(&leases(3));
    first.reverse();
    let mut journal = stored(driver, &first);
    commit(&mut journal, &facts(&leases(7)));
    assert_eq!(load(&mut driver.reopen(journal)).leases, leases(7));
}

/// A lease that has ended is gone; ending it again changes nothing.
pub fn end_once<D: Driver>(driver: &mut D) {
    let leases = [1, 2, 3].map(|id| lease(id, &mut Dice::new(id)));
    let mut journal = stored(driver, &facts(&leases));
    for _ in 0..2 {
        commit(&mut journal, &[Fact::LeaseEnded(ClaimId(2))]);
        journal = driver.reopen(journal);
        assert_eq!(load(&mut journal).leases, [leases[0].clone(), leases[2].clone()]);
    }
}
