//! Failures that users of other rate limiters met, as cases on a virtual clock: time, arithmetic, heads of line.
use mirab_core::{ClaimId, Ended, Gate, Refusal, SECOND, StoredLease, Submission, Time};
use mirab_sim::{Amount, Model, Subject, World};

type Sim = World<Gate>;

fn submit_many(sim: &mut Sim, prefix: &str, count: usize, needs: &[(&str, u64)]) {
    (0..count).for_each(|k| sim.submit(&format!("{prefix}{k}"), needs, 0));
}

fn starts_at(sim: &Sim) -> Vec<u64> {
    sim.starts.iter().map(|s| s.at.0 / SECOND).collect()
}

#[test]
fn case_a16_who_waits_for_a_token_holds_no_slot_and_survives_a_restart() {
    let declare = |gate: &mut Gate, now: Time| {
        Subject::declare(gate, now, "flow:shop/nightly", Amount::Semaphore(1)).unwrap();
        Subject::declare(gate, now, "api", Amount::bucket(1, 60, 1)).unwrap();
    };
    let needs = [("flow:shop/nightly", 1), ("api", 1)];
    let claim =
        |id, place| Submission { id: ClaimId(id), kind: "nightly", needs: &needs, priority: 0, parent: None, place };
    let mut gate = Gate::fresh(None);
    declare(&mut gate, Time(0));
    gate.submit(Time(0), claim(1, None)).unwrap();
    let place = gate.submit(Time(0), claim(2, None)).unwrap();
    let first = gate.poll_start().unwrap();
    gate.release(Time(SECOND), first.id, first.fence, Ended::ByItself);
    assert_eq!((gate.poll_start(), gate.resource("flow:shop/nightly").unwrap().used), (None, 0));

    let (seq, fence) = gate.next_numbers();
    let mut again = Gate::fresh(None);
    again.withhold_starts();
    declare(&mut again, Time(30 * SECOND));
    again.restore_counters(seq, fence);
    again.restore_bucket(Time(30 * SECOND), "api", first.buckets[0].1).unwrap();
    again.submit(Time(30 * SECOND), claim(2, Some(place))).unwrap();
    again.resume_starts(Time(30 * SECOND));
    assert_eq!(again.poll_start(), None);
    assert_eq!(again.poll_timeout().unwrap().0, Time(60 * SECOND));
    again.handle_timeout(Time(60 * SECOND));
    assert_eq!(again.poll_start().unwrap().id, ClaimId(2));
}

#[test]
fn case_a23_restored_leases_hold_before_anything_starts() {
    let mut gate = Gate::fresh(None);
    gate.withhold_starts();
    Subject::declare(&mut gate, Time(0), "db", Amount::Semaphore(1)).unwrap();
    let waiting = Submission { id: ClaimId(2), kind: "w", needs: &[("db", 1)], priority: 9, parent: None, place: None };
    gate.submit(Time(0), waiting).unwrap();
    let held = StoredLease {
        tokens: &[],
        shortest: 10 * SECOND,
        longest: None,
        passed: &[],
        id: ClaimId(1),
        fence: mirab_core::Fence(7),
        kind: "w",
        takes: &[("db".to_owned(), 1)],
        covered: &[],
        priority: 0,
        parent: None,
        place: mirab_core::Place::default(),
        started_at: Time(0),
    };
    Subject::restore_lease(&mut gate, Time(0), held).unwrap();
    gate.resume_starts(Time(0));
    assert_eq!(gate.poll_start(), None);
    gate.release(Time(1), ClaimId(1), mirab_core::Fence(7), Ended::ByItself);
    assert_eq!(gate.poll_start().unwrap().fence, mirab_core::Fence(8));
}

#[test]
fn case_b8_who_waits_for_a_token_holds_nothing_else() {
    let mut sim = Sim::new();
    sim.semaphores(&[("a", 1)]);
    sim.bucket("tb", 1, 60, 1);
    sim.submit("drains", &[("tb", 1)], 0);
    sim.submit("w", &[("a", 1), ("tb", 1)], 0);
    assert_eq!(sim.used("a"), 0);
    sim.submit("other", &[("a", 1)], 0);
    assert!(sim.holds("other"));
}

#[test]
fn case_c10_a_throttled_key_stalls_no_other_and_the_cancelled_cost_no_token() {
    let mut sim = Sim::new();
    sim.bucket("key:*", 1, 60, 1);
    submit_many(&mut sim, "w", 101, &[("key:k1", 1)]);
    sim.submit("other", &[("key:k2", 1)], 0);
    assert!(sim.holds("other"));
    (1..101).for_each(|k| assert!(sim.cancel(&format!("w{k}"))));
    sim.advance(60 * SECOND);
    sim.submit("later", &[("key:k1", 1)], 0);
    assert_eq!(sim.started_at("later"), Some(60 * SECOND));
}

#[test]
fn case_c12_waiters_of_a_bucket_are_served_in_order() {
    let mut sim = Sim::new();
    sim.bucket("tb", 5, 1, 1);
    submit_many(&mut sim, "w", 101, &[("tb", 1)]);
    sim.advance(60 * SECOND);
    assert_eq!(sim.started(), (0..101).map(|k| format!("w{k}")).collect::<Vec<_>>());
    assert_eq!(sim.started_at("w100"), Some(20 * SECOND));
}

#[test]
fn case_d1_a_clock_that_steps_back_takes_nothing() {
    let mut sim = Sim::new();
    sim.advance(100 * SECOND);
    sim.bucket("tb", 1, 1, 5);
    sim.submit("three", &[("tb", 3)], 0);
    assert_eq!(sim.gate.resource("tb").unwrap().free, 2);
    sim.gate.handle_timeout(Time(89 * SECOND));
    assert_eq!(sim.gate.resource("tb").unwrap().free, 2);
    sim.now = Time(89 * SECOND);
    sim.submit("three more", &[("tb", 3)], 0);
    assert_eq!(sim.gate.poll_timeout().unwrap().0, Time(101 * SECOND));
    sim.now = Time(100 * SECOND);
    sim.advance(101 * SECOND);
    assert!(sim.holds("three more"));
}

#[test]
fn case_d3_a_long_sleep_gives_at_most_the_burst() {
    let mut sim = Sim::new();
    sim.bucket("tb", 10, 1, 4);
    submit_many(&mut sim, "w", 100, &[("tb", 1)]);
    sim.gate.handle_timeout(Time(3_600 * SECOND));
    assert_eq!(std::iter::from_fn(|| sim.gate.poll_start()).count(), 4);
}

#[test]
fn case_d8_more_than_the_burst_is_refused_with_both_numbers() {
    let mut sim = Sim::new();
    sim.bucket("tb", 10, 1, 100);
    let refused = sim.try_submit("w", &[("tb", 101)], 0).unwrap_err();
    assert!(matches!(refused, Refusal::ResourceExceedsCapacity { need: 101, capacity: 100, .. }));
}

#[test]
fn case_d9_one_a_minute_is_one_a_minute_from_the_first() {
    let mut sim = Sim::new();
    sim.bucket("tb", 1, 60, 1);
    submit_many(&mut sim, "w", 3, &[("tb", 1)]);
    sim.advance(300 * SECOND);
    assert_eq!(starts_at(&sim), [0, 60, 120]);
}

#[test]
fn case_d10_a_rate_limited_head_stops_nobody() {
    let mut sim = Sim::new();
    sim.bucket("tb", 1, 60, 1);
    submit_many(&mut sim, "w", 100, &[("tb", 1)]);
    sim.submit("free", &[], 0);
    assert!(sim.holds("free"));
}

#[test]
fn case_d11_a_changed_rate_moves_the_timer_in_the_same_step() {
    let mut sim = Sim::new();
    sim.bucket("tb", 1, 60, 1);
    submit_many(&mut sim, "w", 11, &[("tb", 1)]);
    assert_eq!(sim.gate.poll_timeout().unwrap().0, Time(60 * SECOND));
    Subject::set_limit(&mut sim.gate, sim.now, "tb", Amount::bucket(1, 10, 1)).unwrap();
    assert_eq!(sim.gate.poll_timeout().unwrap().0, Time(10 * SECOND));
}

#[test]
fn case_d15_what_is_over_the_rate_waits_and_is_not_lost() {
    let mut sim = Sim::new();
    sim.bucket("tb", 2, 600, 2);
    submit_many(&mut sim, "w", 100, &[("tb", 1)]);
    assert_eq!((sim.starts.len(), sim.gate.waiting()), (2, 98));
}

#[test]
fn case_d16_each_key_has_its_own_bucket() {
    let mut sim = Sim::new();
    sim.bucket("key:*", 1, 10, 1);
    for key in 0..10 {
        for turn in 0..2 {
            sim.submit(&format!("w{key}/{turn}"), &[(&format!("key:{key}"), 1)], 0);
        }
    }
    assert_eq!(sim.starts.len(), 10);
    sim.advance(10 * SECOND);
    assert_eq!(starts_at(&sim)[10..], [10; 10]);
}

#[test]
fn a_timer_fires_at_most_once_a_grant() {
    let mut sim = Sim::new();
    sim.bucket("tb", 3, 1, 1);
    submit_many(&mut sim, "w", 101, &[("tb", 1)]);
    let mut fires = 0;
    while let Some((at, _)) = sim.gate.poll_timeout() {
        fires += 1;
        sim.gate.handle_timeout(at);
    }
    assert_eq!(fires, 100);
}

/// Four tokens of ten are taken; one comes each second.
fn four_of_ten<S: Subject>() -> World<S> {
    let mut sim = World::<S>::new();
    sim.bucket("tb", 1, 1, 10);
    sim.submit("w", &[("tb", 4)], 0);
    sim
}

/// What each settling left in the bucket, and charged.
fn settled<S: Subject>(sim: &mut World<S>, told: &[u64]) -> Vec<(i64, u64)> {
    let each = told.iter().map(|actual| {
        let charged = sim.settle("w", "tb", *actual).charged;
        (sim.gate.resource("tb").unwrap().free, charged)
    });
    each.collect()
}

fn settling_twice_counts_once<S: Subject>() {
    let mut sim = four_of_ten::<S>();
    assert_eq!(settled(&mut sim, &[1_000, 1_000, 4]), [(-10, 20), (-10, 20), (6, 4)]);
    sim.submit("seven", &[("tb", 7)], 0);
    sim.advance(SECOND);
    assert_eq!(sim.started_at("seven"), Some(SECOND), "ten would have started it at once");
}

fn what_a_full_bucket_cannot_take_is_not_owed_again<S: Subject>() {
    let mut sim = four_of_ten::<S>();
    sim.advance(3 * SECOND);
    assert_eq!(settled(&mut sim, &[0, 4]), [(10, 3), (9, 4)]);
    sim.advance(9 * SECOND);
    assert_eq!(settled(&mut sim, &[0, 4, 6]), [(10, 4), (10, 4), (8, 6)]);
}

#[test]
fn settling_twice_counts_once_in_gate_and_model() {
    settling_twice_counts_once::<Gate>();
    settling_twice_counts_once::<Model>();
}

#[test]
fn what_a_full_bucket_cannot_take_is_not_owed_again_in_gate_and_model() {
    what_a_full_bucket_cannot_take_is_not_owed_again::<Gate>();
    what_a_full_bucket_cannot_take_is_not_owed_again::<Model>();
}

/// A wider limit beside it that can never bind changes nothing; that `mirab check` tells of it is tried on the command.
#[test]
fn case_d23_no_minute_gets_more_than_the_rate_and_the_burst_wherever_it_begins() {
    for burst in [1, 5] {
        let mut sim = Sim::new();
        sim.bucket("minute", 5, 60, burst);
        sim.bucket("hour", 1_000, 3_600, 1_000);
        let mut rng = mirab_sim::Rng::new(burst);
        for n in 0..200 {
            sim.advance(sim.now.0 + rng.below(20 * SECOND));
            sim.submit(&format!("w{n}"), &[("minute", 1), ("hour", 1)], 0);
        }
        sim.advance(4_000 * SECOND);
        let starts: Vec<u64> = sim.starts.iter().map(|start| start.at.0).collect();
        let within =
            |begin: &u64| starts.iter().filter(|at| (*begin..begin + 60 * SECOND).contains(*at)).count() as u64;
        let most = starts.iter().map(within).max().unwrap();
        assert_eq!(starts.len(), 200);
        assert!((5..=5 + burst).contains(&most), "{most} in a minute with a burst of {burst}");
    }
}
