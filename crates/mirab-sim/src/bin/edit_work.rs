//! A fixed number of edits of a line, for `bench/instructions`: `edit-work cancel|priority DEPTH`, counted in [`counted_edits`].
//!
//! Everybody waits for one name at 8 priorities, so that the queues that are edited are as long as they can be, and nearly all edits
//! are far from both ends.
use mirab_core::{ClaimId, Gate, ResourceConfig, Submission, Time};
use mirab_sim::Rng;

const PRIORITIES: u64 = 8;
const EDITS: usize = 500;

fn any_priority(rng: &mut Rng) -> i32 {
    i32::try_from(rng.below(PRIORITIES)).unwrap_or(0)
}

/// The first one holds the name, `depth` wait.
fn line_of(depth: u64, rng: &mut Rng) -> Gate {
    let mut gate = Gate::default();
    gate.declare(Time(0), ResourceConfig::semaphore("db", 1)).expect("a plain name");
    for id in 0..=depth {
        let priority = any_priority(rng);
        let claim = Submission { id: ClaimId(id), kind: "k", needs: &[("db", 1)], priority, parent: None, place: None };
        gate.submit(Time(id), claim).expect("a known name");
    }
    gate.poll_start().expect("it is free");
    gate
}

#[inline(never)]
fn counted_edits(chosen: &[(ClaimId, i32)], mut edit: impl FnMut(ClaimId, i32) -> bool) {
    for (id, priority) in chosen {
        assert!(edit(*id, *priority), "{id:?} waits");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, depth] = arguments.as_slice() else { panic!("usage: edit-work cancel|priority DEPTH") };
    let depth: u64 = depth.parse().expect("a number of waiting claims");
    let mut rng = Rng::new(7);
    let mut gate = line_of(depth, &mut rng);
    let mut waiting: Vec<u64> = (1..=depth).collect();
    let mut choose = || {
        let at = usize::try_from(rng.below(waiting.len() as u64)).unwrap_or(0);
        (ClaimId(waiting.swap_remove(at)), any_priority(&mut rng))
    };
    let chosen: Vec<(ClaimId, i32)> = (0..EDITS).map(|_| choose()).collect();
    let now = Time(depth);
    match what.as_str() {
        "cancel" => counted_edits(&chosen, |id, _| gate.cancel(now, id)),
        _ => counted_edits(&chosen, |id, priority| gate.reprioritise(now, id, priority)),
    }
}
