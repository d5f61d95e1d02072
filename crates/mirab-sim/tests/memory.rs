//! What waiting costs, in bytes that are in use: alone in its program, for every allocation counts.
use mirab_core::{ClaimId, Ended, Gate, ResourceConfig, Submission, Time};
use mirab_sim::allocations::{Counting, in_use};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Who waits for tokens costs under 200 bytes, and is looked at when its own tokens have come, not before.
#[test]
fn case_d24_a_hundred_thousand_wait_for_tokens_in_little_memory() {
    const WAITING: u64 = 100_000;
    let mut gate = Gate::default();
    gate.declare(Time(0), ResourceConfig::token_bucket("api", 10.0, 1).unwrap()).unwrap();
    let submit = |gate: &mut Gate, id| {
        let claim =
            Submission { id: ClaimId(id), kind: "k", needs: &[("api", 1)], priority: 0, parent: None, place: None };
        gate.submit(Time(0), claim).unwrap();
    };
    submit(&mut gate, 0);
    let first = gate.poll_start().unwrap();
    gate.release(Time(0), first.id, first.fence, Ended::ByItself);
    let before = in_use();
    (1..=WAITING).for_each(|id| submit(&mut gate, id));
    let each = (in_use() - before) / WAITING;
    assert!((1..200).contains(&each), "{each} bytes for each who waits");
    let counters = gate.counters();
    for id in 1..=1_000 {
        let (at, _) = gate.poll_timeout().unwrap();
        gate.handle_timeout(at);
        let start = gate.poll_start().unwrap();
        assert_eq!((start.id, gate.poll_start()), (ClaimId(id), None));
        gate.release(at, start.id, start.fence, Ended::ByItself);
    }
    assert_eq!(gate.counters().evaluations - counters.evaluations, 1_000, "none is looked at and put back");
}
