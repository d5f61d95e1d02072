//! Events.
use super::samples::{Dice, event};
use super::{Driver, stored};
use mirab_core::ClaimId;
use mirab_flow::{EventRecord, Fact, Journal};

fn samples(count: u64) -> Vec<EventRecord> {
    (1..=count).map(|seq| event(seq, seq % 3, &mut Dice::new(seq))).collect()
}

fn facts(events: &[EventRecord]) -> Vec<Fact> {
    events.iter().cloned().map(Fact::Event).collect()
}

/// Every field has the value it was given, in order of sequence number.
pub fn come_back_whole<D: Driver>(driver: &mut D) {
    let mut events = samples(200);
    events.reverse();
    let journal = stored(driver, &facts(&events));
    events.reverse();
    let view = driver.view(&journal);
    assert_eq!(view.all_events(0, 1_000), events);
    events.retain(|event| event.run == ClaimId(1));
    assert_eq!(view.events(ClaimId(1), 0, 1_000), events);
}

/// Reading on from the last event seen gives each event once.
pub fn are_paged_without_a_gap<D: Driver>(driver: &mut D) {
    let journal = stored(driver, &facts(&samples(50)));
    let view = driver.view(&journal);
    let (mut seen, mut last) = (Vec::new(), 0);
    while let Some(page) = Some(view.events(ClaimId(2), last, 3)).filter(|page| !page.is_empty()) {
        assert!(page.len() <= 3);
        last = page[page.len() - 1].seq;
        seen.extend(page);
    }
    let expected: Vec<_> = samples(50).into_iter().filter(|event| event.run == ClaimId(2)).collect();
    assert_eq!(seen, expected);
    assert_eq!(view.events(ClaimId(2), u64::MAX, 3), []);
    assert_eq!(view.all_events(48, 10), samples(50)[48..]);
}

/// What happened has happened: a number is used once.
pub fn are_never_replaced<D: Driver>(driver: &mut D) {
    let mut journal = stored(driver, &facts(&samples(1)));
    let again = event(1, 2, &mut Dice::new(9));
    assert!(journal.commit(&facts(&[again])).is_err());
    assert_eq!(driver.view(&journal).all_events(0, 10), samples(1));
}
