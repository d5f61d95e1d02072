//! A gate that is built again, as a host does it: declared as paused semaphores first, then as what they are.
use mirab_core::{ClaimId, Ended, Gate, Limit, Rate, ResourceConfig, SECOND, Start, Submission, Time};

fn submit(gate: &mut Gate, now: Time, id: u64, needs: &[(&str, u64)], parent: Option<u64>) {
    let parent = parent.map(ClaimId);
    let claim = Submission { id: ClaimId(id), kind: "work", needs, priority: 0, parent, place: None };
    gate.submit(now, claim).expect("known names within capacity");
}

/// A claim for `needs` that waited over a restart starts; `api` is a bucket of 1 per second, burst 5.
fn restored(declared: &str, needs: &[(&str, u64)]) -> (Gate, Start) {
    let mut gate = Gate::default();
    gate.withhold_starts();
    gate.declare(Time(0), ResourceConfig::semaphore(declared, 0)).unwrap();
    submit(&mut gate, Time(0), 1, needs, None);
    let limit = Limit::TokenBucket { rate: Rate::per(1, 1).unwrap(), burst: 5 };
    gate.set_limit(Time(0), declared, limit).unwrap();
    gate.resume_starts(Time(0));
    let start = gate.poll_start().expect("a full bucket");
    (gate, start)
}

#[test]
fn tokens_are_consumed_and_never_held_or_shared_with_tasks() {
    let (mut gate, start) = restored("api", &[("api", 1)]);
    assert!(start.takes.is_empty() && start.buckets.len() == 1);
    submit(&mut gate, Time(0), 2, &[("api", 1)], Some(1));
    let task = gate.poll_start().expect("there are tokens");
    assert!(task.covered.is_empty() && task.buckets.len() == 1);
    assert_eq!(gate.resource("api").unwrap().free, 3);
}

#[test]
fn an_instance_that_is_full_again_may_go_before_its_consumer_ends() {
    let (mut gate, start) = restored("api:*", &[("api:x", 1)]);
    gate.handle_timeout(Time(60 * SECOND));
    submit(&mut gate, Time(60 * SECOND), 2, &[("api:y", 1)], None);
    gate.release(Time(61 * SECOND), start.id, start.fence, Ended::ByItself);
    assert!(gate.resource("api:x").is_none());
}
