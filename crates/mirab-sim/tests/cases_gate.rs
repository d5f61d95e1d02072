//! Failures that users of other schedulers met, as cases on a virtual clock: leaks, order, names, limits that change.
use mirab_core::{ClaimId, Ended, Fence, Gate, Refusal, Release, SECOND, Time, check_declared, check_requested};
use mirab_sim::{Arrival, Rng, World, stream};

type Sim = World<Gate>;

fn sim(totals: &[(&str, u64)]) -> Sim {
    let mut sim = Sim::new();
    sim.semaphores(totals);
    sim
}

fn submit_many(sim: &mut Sim, prefix: &str, count: usize, needs: &[(&str, u64)], priority: i32) {
    (0..count).for_each(|k| sim.submit(&format!("{prefix}{k}"), needs, priority));
}

fn code(refused: Result<mirab_core::Place, Refusal>) -> &'static str {
    refused.expect_err("refused").code()
}

#[test]
fn case_a3_nothing_is_left_after_10_000_random_steps() {
    let names = ["a", "b", "c"];
    let mut sim = sim(&names.map(|name| (name, 5)));
    let mut rng = Rng::new(3);
    for step in 0..10_000 {
        let id = format!("w{step}");
        let some = format!("w{}", rng.below(step + 1));
        match rng.below(3) {
            0 => sim.submit(&id, &[(names[usize::try_from(rng.below(3)).unwrap()], rng.between(1, 5))], 0),
            _ if sim.starts.is_empty() => sim.submit(&id, &[], 0),
            1 => {
                sim.submit(&id, &[("a", 1)], 0);
                sim.cancel(&id);
            }
            _ => {
                sim.submit(&id, &[], 0);
                sim.end(&some);
            }
        }
    }
    for step in 0..10_000 {
        sim.cancel(&format!("w{step}"));
        sim.end(&format!("w{step}"));
    }
    for name in names {
        let shown = sim.gate.resource(name).unwrap();
        assert_eq!((sim.used(name), sim.gate.holders(name).len(), shown.free, shown.waiters), (0, 0, 5, 0));
    }
}

#[test]
fn case_a10_a_step_is_not_blocked_by_its_own_runs_slot() {
    let mut sim = sim(&[("db", 1)]);
    sim.submit("run", &[("db", 1)], 0);
    sim.call("task", "run", &[("db", 1)]).unwrap();
    sim.call("inner", "task", &[("db", 1)]).unwrap();
    assert!(sim.holds("task") && sim.holds("inner"));
    assert_eq!(sim.used("db"), 1);
}

#[test]
fn case_a15_a_blocked_redelivery_gives_back_nothing() {
    let mut sim = sim(&[("db", 1)]);
    sim.submit("first", &[("db", 1)], 0);
    sim.submit("again", &[("db", 1)], 0);
    assert_eq!(sim.end("again"), Release::Double);
    assert_eq!(sim.gate.release(sim.now, sim.id("first"), Fence(99), Ended::ByItself), Release::Double);
    assert_eq!(sim.used("db"), 1);
    assert!(sim.holds("first") && sim.waits("again"));
}

#[test]
fn case_a20_a_lease_keeps_what_it_took() {
    let mut sim = sim(&[("db", 5)]);
    sim.submit("run", &[("db", 1)], 0);
    let claim = mirab_core::Submission {
        id: sim.id("run"),
        kind: "redeployed",
        needs: &[("db", 5)],
        priority: 0,
        parent: None,
        place: None,
    };
    assert_eq!(code(sim.gate.submit(sim.now, claim)), "InvalidClaim");
    sim.set_permits("db", 2);
    assert_eq!(sim.used("db"), 1);
    sim.end("run");
    assert_eq!((sim.used("db"), sim.gate.resource("db").unwrap().free), (0, 2));
}

#[test]
fn case_b10_two_large_claims_strictly_alternate() {
    let mut sim = sim(&[("db", 2)]);
    for round in 0..20 {
        sim.submit(&format!("r{round}"), &[("db", 2)], 0);
    }
    for round in 0..20 {
        assert_eq!((sim.used("db"), sim.gate.holders("db").len()), (2, 1));
        sim.end(&format!("r{round}"));
    }
    assert_eq!(sim.used("db"), 0);
}

#[test]
fn case_c1_a_full_pool_hides_no_other() {
    let mut sim = sim(&[("a", 1), ("b", 20)]);
    sim.submit("holder", &[("a", 1)], 0);
    submit_many(&mut sim, "a", 1_000, &[("a", 1)], 2);
    submit_many(&mut sim, "b", 100, &[("b", 1)], 1);
    assert_eq!((sim.starts.len(), sim.used("b")), (21, 20));
}

#[test]
fn case_c2_a_large_request_starts_at_4_s_and_6_unit_seconds_are_idle() {
    let mut sim = sim(&[("db", 4)]);
    let one = |id: String, at, needs, priority, hold| Arrival { at: Time(at), id, needs, priority, hold };
    let mut work = stream("db", SECOND / 10, SECOND / 4, 60 * SECOND, SECOND);
    work.extend((1..=4).map(|k| one(format!("h{k}"), 0, vec![("db", 1)], 0, k * SECOND)));
    work.push(one("big".into(), SECOND / 2, vec![("db", 4)], 10, SECOND));
    let holds = |id: &str| work.iter().find(|a| a.id == id).map_or(0, |a| a.hold);
    sim.drive(work.clone(), 4 * SECOND);
    assert_eq!(sim.started_at("big"), Some(4 * SECOND));
    let before = sim.starts.iter().filter(|s| s.at.0 < 4 * SECOND);
    let busy: u64 = before.map(|s| holds(sim.name(s.id)).min(4 * SECOND - s.at.0)).sum();
    assert_eq!(16 * SECOND - busy, 6 * SECOND);
}

#[test]
fn case_c7_work_without_needs_passes_5_000_blocked() {
    let mut sim = sim(&[("gate", 1)]);
    submit_many(&mut sim, "w", 5_001, &[("gate", 1)], 0);
    sim.submit("free", &[], 0);
    assert!(sim.holds("free"));
}

#[test]
fn case_c9_a_busy_key_hides_no_other() {
    let mut sim = sim(&[("key:*", 1)]);
    submit_many(&mut sim, "w", 10_001, &[("key:k1", 1)], 0);
    sim.submit("other", &[("key:k2", 1)], 0);
    assert!(sim.holds("other"));
}

#[test]
fn case_c18_priority_goes_before_a_backfill() {
    let mut sim = sim(&[("pool:engines", 1)]);
    submit_many(&mut sim, "backfill", 1_001, &[("pool:engines", 1)], 0);
    sim.submit("urgent", &[("pool:engines", 1)], 5);
    sim.end("backfill0");
    assert!(sim.holds("urgent"));
}

#[test]
fn case_c19_priority_orders_all_waiters_of_a_resource() {
    let mut sim = sim(&[("lock", 1)]);
    sim.submit("holder", &[("lock", 1)], 0);
    let mut rng = Rng::new(19);
    let mut expected: Vec<(i64, u64)> = Vec::new();
    for k in 0..500 {
        let priority = i32::try_from(rng.below(8)).unwrap();
        sim.submit(&format!("w{k}"), &[("lock", 1)], priority);
        expected.push((-i64::from(priority), k));
    }
    expected.sort_unstable();
    sim.end("holder");
    for (_, k) in expected {
        assert!(sim.holds(&format!("w{k}")), "w{k} is next");
        sim.end(&format!("w{k}"));
    }
}

#[test]
fn case_e1_an_unknown_name_is_refused_with_the_nearest() {
    let mut sim = sim(&[("db", 1)]);
    match sim.try_submit("w", &[("dbb", 1)], 0) {
        Err(Refusal::UnknownResource { name, near }) => {
            assert_eq!((name.as_str(), near), ("dbb", vec!["db".to_owned()]))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn case_e2_more_than_the_total_is_refused_and_told_when_lowered_later() {
    let mut sim = sim(&[("db", 2)]);
    let refused = sim.try_submit("nine", &[("db", 9)], 0).unwrap_err();
    assert!(matches!(refused, Refusal::ResourceExceedsCapacity { need: 9, capacity: 2, held_by_run: false, .. }));
    sim.submit("holder", &[("db", 1)], 0);
    sim.submit("w", &[("db", 2)], 0);
    sim.submit("small", &[("db", 1)], -1);
    assert!(sim.waits("small"));
    sim.set_permits("db", 1);
    assert!(sim.gate.explain(sim.id("w")).unwrap().unsatisfiable);
    sim.end("holder");
    assert!(sim.holds("small"), "what can never start protects nothing");
    sim.set_permits("db", 3);
    assert!(sim.holds("w"));
}

#[test]
fn case_e3_a_total_lowered_below_use_starts_nothing() {
    let mut sim = sim(&[("db", 6)]);
    submit_many(&mut sim, "w", 3, &[("db", 3)], 0);
    assert_eq!(sim.starts.len(), 2);
    sim.set_permits("db", 3);
    assert_eq!(sim.gate.resource("db").unwrap().free, -3);
    sim.end("w0");
    assert!(sim.waits("w2"));
    sim.end("w1");
    assert!(sim.holds("w2"));
}

#[test]
fn case_e7_odd_names_are_made_read_and_used() {
    let mut sim = Sim::new();
    for name in ["a/b", "a b", "%2F", "ünïcode", "日本", "🙂", "..", "cafe\u{301}"] {
        let (declared, requested) = (check_declared(name).unwrap(), check_requested(name).unwrap());
        sim.semaphores(&[(&declared, 1)]);
        sim.submit(name, &[(&requested, 1)], 0);
        assert!(sim.holds(name), "{name}");
        assert_eq!(sim.used(&requested), 1);
        sim.end(name);
        assert_eq!(sim.used(&requested), 0);
    }
    assert!(sim.gate.resource("caf\u{e9}").is_some(), "composed and decomposed are one name");
    for bad in ["", "\n", &"x".repeat(300)] {
        assert_eq!(check_declared(bad).unwrap_err().code(), "InvalidResource");
        assert_eq!(check_requested(bad).unwrap_err().code(), "InvalidResource");
    }
}

#[test]
fn case_i7_one_freed_unit_wakes_one_of_10_000() {
    let mut sim = sim(&[("r", 1)]);
    sim.submit("holder", &[("r", 1)], 0);
    for k in 0..10_000 {
        sim.submit(&format!("w{k}"), &[("r", 1)], k % 50);
    }
    let (before, starts) = (sim.gate.counters(), sim.starts.len());
    sim.end("holder");
    assert_eq!(sim.starts.len(), starts + 1);
    assert!(sim.gate.counters().evaluations - before.evaluations <= 3);
}

#[test]
fn case_i8_nothing_waits_that_could_run() {
    let mut sim = sim(&[("pool:engines", 3), ("db", 2), ("gpu", 1)]);
    let mut rng = Rng::new(8);
    for k in 0..400 {
        let all = [("pool:engines", 1), ("db", rng.between(1, 2)), ("gpu", 1)];
        sim.submit(&format!("w{k}"), &all[..usize::try_from(rng.between(1, 3)).unwrap()], 0);
        if rng.chance(45) {
            let holders = sim.gate.holders("pool:engines");
            let name = sim.name(rng.pick(&holders).unwrap().0).to_owned();
            sim.end(&name);
        }
        for id in sim.gate.line(usize::MAX) {
            let blocked = sim.gate.explain(id).unwrap().blocked_on;
            let real = blocked.iter().any(|b| b.free < i64::try_from(b.need).unwrap() || !b.behind.is_empty());
            assert!(real, "{} could run", sim.name(id));
        }
    }
}

#[test]
fn case_r4_a_request_above_the_total_is_refused() {
    assert_eq!(code(sim(&[("db", 1)]).try_submit("w", &[("db", 2)], 0)), "ResourceExceedsCapacity");
}

#[test]
fn case_r5_two_units_of_an_undeclared_name_are_refused() {
    assert_eq!(code(sim(&[("db", 1)]).try_submit("w", &[("gpu", 2)], 0)), "UnknownResource");
}

#[test]
fn case_r6_a_task_re_enters_what_its_flow_holds() {
    let mut sim = sim(&[("r", 1)]);
    sim.submit("flow", &[("r", 1)], 0);
    sim.call("task", "flow", &[("r", 1)]).unwrap();
    assert!(sim.holds("task"));
    assert_eq!(code(sim.call("more", "flow", &[("r", 2)])), "ResourceExceedsCapacity");
}

#[test]
fn case_s1_a_large_request_starts_within_one_hold_at_any_load() {
    for every in [SECOND / 2, SECOND / 10] {
        let mut sim = sim(&[("gpu", 10)]);
        let mut work = stream("gpu", 0, every, 30 * SECOND, SECOND);
        let needs = vec![("gpu", 10)];
        work.push(Arrival { at: Time(5 * SECOND + 1), id: "big".into(), needs, priority: 3, hold: SECOND });
        sim.drive(work, 30 * SECOND);
        assert!(sim.started_at("big").unwrap() <= 6 * SECOND + 1);
    }
}

#[test]
fn case_s4_a_critical_claim_is_next_not_last() {
    let mut sim = sim(&[("permit", 1)]);
    submit_many(&mut sim, "low", 1_001, &[("permit", 1)], 0);
    sim.submit("critical", &[("permit", 1)], 9);
    assert_eq!(sim.gate.line(1), [sim.id("critical")]);
    sim.end("low0");
    assert!(sim.holds("critical"));
}

#[test]
fn case_s6_a_unit_that_its_first_waiter_cannot_use_goes_on() {
    let mut sim = sim(&[("r", 1), ("s", 1)]);
    sim.submit("hr", &[("r", 1)], 0);
    sim.submit("hs", &[("s", 1)], 0);
    sim.submit("w1", &[("r", 1), ("s", 1)], 0);
    sim.submit("w2", &[("r", 1)], 0);
    sim.end("hr");
    assert!(sim.holds("w2") && sim.waits("w1"));
    sim.cancel("w1");
    sim.end("w2");
    sim.submit("w3", &[("r", 1)], 0);
    assert!(sim.holds("w3"));
    assert_eq!(sim.gate.waiting(), 0);
}

#[test]
fn case_s7_units_pass_a_claim_whose_pool_is_full() {
    let mut sim = sim(&[("r", 1), ("pool:a", 1), ("pool:b", 1)]);
    sim.submit("full", &[("pool:a", 1)], 0);
    sim.submit("holder", &[("r", 1)], 0);
    sim.submit("w1", &[("r", 1), ("pool:a", 1)], 0);
    sim.submit("w2", &[("r", 1), ("pool:b", 1)], 0);
    sim.submit("w3", &[("r", 1), ("pool:b", 1)], 0);
    sim.end("holder");
    assert!(sim.holds("w2"));
    sim.cancel("w1");
    sim.end("w2");
    assert!(sim.holds("w3"));
}

#[test]
fn case_s9_a_claim_that_found_another_need_short_keeps_its_place() {
    let mut sim = sim(&[("r", 1), ("s", 1)]);
    sim.submit("hr", &[("r", 1)], 0);
    sim.submit("hs", &[("s", 1)], 0);
    sim.submit("early", &[("r", 1), ("s", 1)], 0);
    sim.submit("late", &[("r", 1), ("s", 1)], 0);
    sim.end("hr");
    sim.submit("between", &[("r", 1)], 0);
    sim.end("hs");
    assert!(sim.waits("early") && sim.waits("late"));
    sim.end("between");
    assert!(sim.holds("early") && sim.waits("late"));
}

#[test]
fn case_s11_a_name_given_twice_is_summed() {
    let refused = sim(&[("db", 3)]).try_submit("w", &[("db", 2), ("db", 2)], 0).unwrap_err();
    assert!(matches!(refused, Refusal::ResourceExceedsCapacity { need: 4, capacity: 3, .. }));
}

#[test]
fn case_s16_999_parked_are_999_waiting_each_with_its_reason() {
    let mut sim = sim(&[("db", 1), ("pool:engines", 5_000)]);
    submit_many(&mut sim, "w", 1_000, &[("pool:engines", 1), ("db", 1)], 0);
    let waiters = |name: &str| sim.gate.resource(name).unwrap().waiters;
    assert_eq!((sim.gate.waiting(), waiters("db"), waiters("pool:engines")), (999, 999, 999));
    for id in sim.gate.line(usize::MAX) {
        let blocked = sim.gate.explain(id).unwrap().blocked_on;
        assert_eq!(blocked.len(), 1);
        assert_eq!((blocked[0].resource.as_str(), blocked[0].holders[0].0), ("db", ClaimId(1)));
    }
}
