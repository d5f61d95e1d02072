//! Moves between shards, bodies that end in an odd order, numbers at their ends.
use mirab_core::{ClaimId, Ended, Gate, Limit, Place, Rate, ResourceConfig, Submission, Time};

fn with(permits: u64) -> Gate {
    let mut gate = Gate::default();
    gate.declare(Time(0), ResourceConfig::semaphore("a", permits)).unwrap();
    gate
}

fn claim<'a>(id: u64, needs: &'a [(&'a str, u64)], parent: Option<u64>) -> Submission<'a> {
    Submission { id: ClaimId(id), kind: "k", needs, priority: 0, parent: parent.map(ClaimId), place: None }
}

#[test]
fn a_name_goes_to_another_shard_once_nobody_uses_it_here_and_comes_back() {
    let mut gate = with(1);
    let there = |permits| ResourceConfig::semaphore("a", permits).in_shard("eu");
    gate.submit(Time(0), claim(1, &[("a", 1)], None)).unwrap();
    gate.submit(Time(0), claim(2, &[("a", 1)], None)).unwrap();
    let refused = gate.declare(Time(0), there(1)).unwrap_err();
    assert_eq!((refused.code(), gate.waiting()), ("ResourceInUse", 1));
    for _ in 0..2 {
        let start = gate.poll_start().unwrap();
        gate.release(Time(1), start.id, start.fence, Ended::ByItself);
    }
    gate.declare(Time(2), there(1)).unwrap();
    assert_eq!(gate.submit(Time(2), claim(3, &[("a", 1)], None)).unwrap_err().code(), "ResourceOnOtherShard");
    assert!(gate.resource("a").is_none());
    gate.declare(Time(2), ResourceConfig::semaphore("a", 2)).unwrap();
    gate.submit(Time(2), claim(3, &[("a", 2)], None)).unwrap();
    assert_eq!((gate.poll_start().map(|start| start.id), gate.waiting()), (Some(ClaimId(3)), 0));
    assert_eq!(gate.remove(Time(3), "a").unwrap_err().code(), "ResourceInUse");
}

#[test]
fn what_waits_inside_at_any_depth_is_refused_when_an_outer_body_ends_first() {
    let mut gate = with(2);
    let all = [("a", 2)];
    gate.submit(Time(0), claim(1, &all, None)).unwrap();
    gate.submit(Time(0), claim(2, &[], Some(1))).unwrap();
    gate.submit(Time(0), claim(3, &all, Some(2))).unwrap();
    gate.submit(Time(0), claim(4, &all, Some(2))).unwrap();
    assert_eq!((gate.waiting(), gate.explain(ClaimId(4)).unwrap().blocked_on.len()), (1, 1));
    gate.release(Time(1), ClaimId(1), gate.lease(ClaimId(1)).unwrap(), Ended::Stopped);
    let (id, refusal) = gate.poll_refused().unwrap();
    assert_eq!((id, refusal.code(), gate.waiting()), (ClaimId(4), "InvalidClaim", 0));
    for id in [3, 2].map(ClaimId) {
        gate.release(Time(2), id, gate.lease(id).unwrap(), Ended::Stopped);
    }
    assert_eq!(gate.resource("a").map(|view| (view.used, view.free)), Some((0, 2)));
}

#[test]
fn numbers_at_their_ends_break_nothing() {
    let mut gate = with(1);
    let place = Some(Place { seq: u64::MAX, call: u64::MAX, joined_at: Time(0) });
    gate.submit(Time(0), Submission { place, ..claim(1, &[("a", 1)], None) }).unwrap();
    gate.restore_counters(u64::MAX, u64::MAX);
    gate.submit(Time(0), claim(2, &[("a", 1)], None)).unwrap();
    assert_eq!(gate.poll_start().map(|start| start.id), Some(ClaimId(1)));
    // A bucket whose tokens cannot be counted is refused wherever it comes in, and one that is empty at the end of time goes on.
    let limit = Limit::TokenBucket { rate: Rate::per(1, u64::MAX).unwrap(), burst: u64::MAX };
    let huge = ResourceConfig { limit, ..ResourceConfig::semaphore("b:*", 1) };
    assert_eq!(gate.declare(Time(0), huge).unwrap_err().code(), "InvalidResource");
    assert_eq!(gate.set_limit(Time(0), "a", limit).unwrap_err().code(), "InvalidResource");
    gate.declare(Time(0), ResourceConfig::token_bucket("b:*", 0.000_001, 10).unwrap()).unwrap();
    gate.submit(Time(u64::MAX - 5), claim(3, &[("b:1", 10)], None)).unwrap();
    let start = gate.poll_start().unwrap();
    gate.release(Time(u64::MAX - 5), start.id, start.fence, Ended::ByItself);
    gate.handle_timeout(Time(u64::MAX));
    assert_eq!(gate.resource("b:1").map(|view| view.free), Some(0));
}
