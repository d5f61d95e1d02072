//! The cases that settle the rules, on the model and on the gate.
use mirab_core::{Gate, SECOND};
use mirab_sim::{Arrival, Model, Subject, World, stream};

macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod the_model {
            $(#[test] fn $case() { super::$case::<super::Model>(); })*
        }
        mod the_gate {
            $(#[test] fn $case() { super::$case::<super::Gate>(); })*
        }
    };
}

on_both!(
    case_c2_a_large_request_starts_when_the_last_holder_ends,
    case_s1_a_large_request_waits_for_one_hold_at_most,
    case_s2_important_claims_behind_a_large_one_wait_for_it_alone,
    case_s3_a_large_request_for_tokens_waits_for_one_refill,
    a_bucket_keeps_the_order,
    a_blocked_head_hides_nobody,
    tasks_share_what_their_run_holds_in_order_of_call,
    case_r7_the_newest_task_of_a_circle_is_refused,
    a_circle_through_shared_units_is_seen,
    the_line_gives_way_to_a_task_of_the_run_it_waits_for,
    lowering_a_total_refuses_the_newest_in_the_circle_not_the_bystander,
    a_paused_resource_is_checked_against_its_last_total,
    case_e3_a_total_below_its_use_takes_nothing_back,
    case_e9_the_exact_name_wins_then_the_longest_prefix_then_the_longest_suffix,
);

fn arrival(at: u64, id: &str, needs: &[(&'static str, u64)], priority: i32, hold: u64) -> Arrival {
    Arrival { at: mirab_core::Time(at), id: id.into(), needs: needs.to_vec(), priority, hold }
}

fn case_c2_a_large_request_starts_when_the_last_holder_ends<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("db", 4)]);
    let mut work = stream("db", SECOND / 10, SECOND / 4, 60 * SECOND, SECOND);
    work.extend((1..=4).map(|k| arrival(0, &format!("h{k}"), &[("db", 1)], 0, k * SECOND)));
    work.push(arrival(SECOND / 2, "big", &[("db", 4)], 10, SECOND));
    sim.drive(work, 10 * SECOND);
    assert_eq!(sim.started_at("big"), Some(4 * SECOND));
}

fn case_s1_a_large_request_waits_for_one_hold_at_most<S: Subject>() {
    for every in [SECOND / 10, SECOND / 2] {
        let mut sim = World::<S>::new();
        sim.semaphores(&[("gpu", 10)]);
        let mut work = stream("gpu", 0, every, 20 * SECOND, SECOND);
        work.push(arrival(5 * SECOND + 1, "big", &[("gpu", 10)], 3, SECOND));
        sim.drive(work, 20 * SECOND);
        assert!(sim.started_at("big").unwrap() <= 6 * SECOND + 1);
    }
}

fn case_s2_important_claims_behind_a_large_one_wait_for_it_alone<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("gpu", 10)]);
    let mut work = stream("gpu", 0, SECOND / 12, 20 * SECOND, SECOND);
    work.push(arrival(5 * SECOND + 1, "big", &[("gpu", 10)], 3, SECOND));
    work.extend((0..5).map(|k| arrival(5 * SECOND + 2 + k, &format!("vip{k}"), &[("gpu", 1)], 3, SECOND)));
    sim.drive(work, 20 * SECOND);
    for k in 0..5 {
        assert!(sim.started_at(&format!("vip{k}")).unwrap() <= 7 * SECOND + 1);
    }
}

fn case_s3_a_large_request_for_tokens_waits_for_one_refill<S: Subject>() {
    for per_second in [9, 10, 11] {
        let mut sim = World::<S>::new();
        sim.bucket("api", 10, 1, 10);
        let mut work = stream("api", 0, SECOND / per_second, 30 * SECOND, 0);
        work.push(arrival(20 * SECOND + 1, "big", &[("api", 10)], 3, 0));
        sim.drive(work, 30 * SECOND);
        assert!(sim.started_at("big").unwrap() <= 21 * SECOND + 1);
    }
}

fn a_bucket_keeps_the_order<S: Subject>() {
    for rate in [3, 100] {
        let mut sim = World::<S>::new();
        sim.bucket("api", rate, 1, 1);
        let ids: Vec<String> = (0..60).map(|k| format!("{k:03}")).collect();
        ids.iter().for_each(|id| sim.submit(id, &[("api", 1)], 0));
        sim.advance(120 * SECOND / rate);
        assert_eq!(sim.started(), ids);
    }
}

fn a_blocked_head_hides_nobody<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("pool:engines", 2), ("gate", 1)]);
    (0..50).for_each(|k| sim.submit(&format!("w{k}"), &[("pool:engines", 1), ("gate", 1)], 0));
    sim.submit("x", &[("pool:engines", 1)], 0);
    assert!(sim.holds("x"));
}

fn tasks_share_what_their_run_holds_in_order_of_call<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("db", 1)]);
    sim.submit("run", &[("db", 1)], 0);
    sim.call("t1", "run", &[("db", 1)]).unwrap();
    sim.call("t2", "run", &[("db", 1)]).unwrap();
    assert!(sim.holds("t1") && sim.waits("t2"));
    sim.end("t1");
    assert!(sim.holds("t2"));
    assert_eq!(sim.call("t3", "run", &[("db", 2)]).unwrap_err().code(), "ResourceExceedsCapacity");
}

fn case_r7_the_newest_task_of_a_circle_is_refused<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("a", 1), ("b", 1)]);
    sim.submit("r1", &[("a", 1)], 0);
    sim.submit("r2", &[("b", 1)], 0);
    sim.call("t1", "r1", &[("b", 1)]).unwrap();
    sim.call("t2", "r2", &[("a", 1)]).unwrap();
    assert_eq!(sim.refused, [("t2".to_owned(), "ResourceDeadlock")]);
    sim.end("r2");
    assert!(sim.holds("t1"));
}

fn a_circle_through_shared_units_is_seen<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("n", 1), ("x", 1)]);
    sim.submit("run", &[("n", 1)], 0);
    sim.call("a", "run", &[("x", 1)]).unwrap();
    sim.call("b", "run", &[("n", 1)]).unwrap();
    sim.call("a1", "a", &[("n", 1)]).unwrap();
    sim.call("b1", "b", &[("x", 1)]).unwrap();
    assert_eq!(sim.refused, [("b1".to_owned(), "ResourceDeadlock")]);
}

fn the_line_gives_way_to_a_task_of_the_run_it_waits_for<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("engine", 1), ("db", 2), ("gpu", 1)]);
    sim.submit("run", &[("engine", 1)], 0);
    sim.submit("x", &[("db", 1)], 0);
    sim.submit("high", &[("engine", 1), ("db", 2)], 10);
    sim.call("task", "run", &[("db", 1)]).unwrap();
    assert!(sim.holds("task"));
    sim.end("task");
    sim.end("x");
    sim.end("run");
    assert!(sim.holds("high"));
}

fn lowering_a_total_refuses_the_newest_in_the_circle_not_the_bystander<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("a", 1), ("b", 2), ("z", 1)]);
    for (id, name) in [("r1", "a"), ("r2", "b"), ("r3", "z"), ("y", "b")] {
        sim.submit(id, &[(name, 1)], 0);
    }
    sim.call("t1", "r1", &[("b", 1)]).unwrap();
    sim.call("t2", "r2", &[("a", 1)]).unwrap();
    sim.call("t3", "r3", &[("a", 1)]).unwrap();
    sim.set_permits("b", 1);
    sim.end("y");
    assert_eq!(sim.refused, [("t2".to_owned(), "ResourceDeadlock")]);
}

fn a_paused_resource_is_checked_against_its_last_total<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("db", 2)]);
    sim.set_permits("db", 0);
    sim.submit("w", &[("db", 2)], 0);
    assert!(!sim.gate.explain(sim.id("w")).unwrap().unsatisfiable);
    assert_eq!(sim.try_submit("v", &[("db", 3)], 0).unwrap_err().code(), "ResourceExceedsCapacity");
    sim.set_permits("db", 2);
    assert!(sim.holds("w"));
}

fn case_e3_a_total_below_its_use_takes_nothing_back<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("db", 3)]);
    (0..3).for_each(|k| sim.submit(&format!("h{k}"), &[("db", 1)], 0));
    sim.submit("w", &[("db", 2)], 0);
    sim.set_permits("db", 1);
    assert!(sim.gate.explain(sim.id("w")).unwrap().unsatisfiable);
    assert_eq!(sim.gate.resource("db").unwrap().free, -2);
    sim.set_permits("db", 2);
    sim.end("h0");
    sim.end("h1");
    assert!(sim.waits("w"));
    sim.end("h2");
    assert!(sim.holds("w"));
}

fn case_e9_the_exact_name_wins_then_the_longest_prefix_then_the_longest_suffix<S: Subject>() {
    let mut sim = World::<S>::new();
    sim.semaphores(&[("a*", 1), ("api:*", 2), ("*:x", 3), ("api:*x", 4), ("api:exact", 5)]);
    let mut declared_as = |name| {
        // Used, for the gate keeps no key of a pattern that is idle.
        sim.submit(name, &[(name, 1)], 0);
        sim.gate.resource(name).unwrap().declared_as
    };
    assert_eq!(declared_as("api:exact"), "api:exact");
    assert_eq!(declared_as("api:y"), "api:*");
    assert_eq!(declared_as("api:xx"), "api:*x");
    assert_eq!(declared_as("b:x"), "*:x");
    assert_eq!(declared_as("abc"), "a*");
    assert_eq!(sim.try_submit("none", &[("zzz", 1)], 0).unwrap_err().code(), "UnknownResource");
}
