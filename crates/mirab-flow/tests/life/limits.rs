use crate::world::*;
use mirab_core::Limit;
use mirab_flow::{FlowSpec, NewRun, State};

fn permits(permits: u64) -> Limit {
    Limit::Semaphore { permits }
}

#[test]
fn slots_can_be_changed_and_are_kept_over_a_restart() {
    let mut world = World::new(1, &[], vec![flow("nightly")]);
    let ids = [(); 3].map(|()| world.submit("nightly"));
    assert_eq!(world.run(|o, now| o.set_slots(now, 2)), 2);
    assert_eq!(ids.map(|id| world.state(id)), [State::Pending, State::Pending, State::Waiting]);
    world.restart(1, &[], vec![flow("nightly")]);
    assert_eq!((world.o().slots(), world.state(ids[2])), (2, State::Waiting));
    assert_eq!(world.run(|o, now| o.set_slots(now, 1_000)), 64);
    assert_eq!(world.state(ids[2]), State::Pending);
}

#[test]
fn case_q17_fewer_slots_interrupt_nothing() {
    let mut world = World::new(2, &[], vec![flow("nightly")]);
    let ids = [(); 3].map(|()| world.submit("nightly"));
    let bodies = [world.start("engine-1"), world.start("engine-2")];
    world.run(|o, now| o.set_slots(now, 1));
    world.complete(bodies[0]).unwrap();
    assert_eq!(world.state(ids[2]), State::Waiting);
    world.complete(bodies[1]).unwrap();
    assert_eq!(world.state(ids[2]), State::Pending);
}

#[test]
fn case_e2_a_waiter_above_a_lowered_total_stays_and_says_so_also_after_a_restart() {
    let mut world = World::new(4, &[semaphore("db", 4)], vec![flow("nightly")]);
    let holder = world.submit_needing("nightly", &[("db", 3)]).unwrap();
    let big = world.submit_needing("nightly", &[("db", 4)]).unwrap();
    let body = world.start("engine-1");
    world.run(|o, now| o.set_limit(now, "db", permits(2))).unwrap();
    assert_eq!(world.submit_needing("nightly", &[("db", 4)]).unwrap_err().code(), "ResourceExceedsCapacity");
    for restarts in 0..2 {
        if restarts > 0 {
            world.restart(4, &[semaphore("db", 2)], vec![flow("nightly")]);
        }
        let row = world.o().queue(world.now, 10).waiting.remove(0);
        assert_eq!((row.id, row.explanation.unsatisfiable), (big, true));
        assert_eq!(row.reason, "needs 4 of `db`, whose total was lowered to 2");
    }
    world.complete(body).unwrap();
    assert_eq!((world.state(holder), world.state(big)), (State::Completed, State::Waiting));
    world.run(|o, now| o.set_limit(now, "db", permits(4))).unwrap();
    assert_eq!(world.state(big), State::Pending);
}

#[test]
fn case_e2_a_lowered_total_is_told_once_a_resource() {
    let mut world = World::new(4, &[semaphore("key:*", 4)], vec![flow("nightly")]);
    world.submit_needing("nightly", &[("key:a", 1), ("key:b", 2)]).unwrap();
    let [alone, first, _, fits] = [("key:a", 4), ("key:b", 3), ("key:b", 4), ("key:b", 2)].map(|need| {
        world.pass(1);
        world.submit_needing("nightly", &[need]).unwrap()
    });
    let body = world.start("engine-1");
    world.run(|o, now| o.set_limit(now, "key:*", permits(2))).unwrap();
    let told = |world: &World, id| world.told(id, "resource.unsatisfiable");
    assert_eq!(told(&world, alone), ["needs 4 of `key:a`, whose total was lowered to 2"]);
    assert_eq!(told(&world, first), ["needs 3 of `key:b`, whose total was lowered to 2: too little for 2 that wait"]);
    assert_eq!((told(&world, fits).len(), world.state(fits)), (0, State::Waiting));
    world.run(|o, now| o.set_limit(now, "key:*", permits(0))).unwrap();
    world.run(|o, now| o.set_limit(now, "key:*", permits(3))).unwrap();
    assert_eq!(told(&world, alone).len(), 2, "after a pause it is told anew");
    world.run(|o, now| o.set_limit(now, "key:*", permits(4))).unwrap();
    assert_eq!(told(&world, alone).len(), 2, "raised");
    world.complete(body).unwrap();
    assert_eq!(world.state(alone), State::Pending);
    world.run(|o, now| o.declare(now, semaphore("key:b", 1))).unwrap();
    assert_eq!(told(&world, first).len(), 1, "it holds what it needs");
}

#[test]
fn names_that_are_not_declared_any_more_are_paused_and_lose_nothing() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    let holder = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let waits = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let body = world.start("engine-1");
    world.restart(4, &[], vec![flow("nightly")]);
    assert_eq!((world.used("db"), world.state(waits)), (1, State::Waiting));
    world.complete(body).unwrap();
    assert_eq!((world.state(holder), world.state(waits)), (State::Completed, State::Waiting));
    assert_eq!(
        world.o().queue(world.now, 1).waiting[0].reason,
        "`db` is not declared any more: declare it again, or cancel what waits for it"
    );
    world.restart(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    assert_eq!(world.state(waits), State::Pending);
}

#[test]
fn caps_follow_their_flows() {
    let capped = |cap| FlowSpec { max_concurrent: cap, ..flow("nightly") };
    let mut world = World::new(8, &[], vec![capped(Some(1))]);
    let ids = [(); 4].map(|()| world.submit("nightly"));
    let pending = |world: &World| ids.iter().filter(|id| world.state(**id) == State::Pending).count();
    assert_eq!(pending(&world), 1);
    world.set_flows(vec![capped(Some(2))]);
    assert_eq!(pending(&world), 2);
    world.set_flows(vec![]);
    assert_eq!(pending(&world), 2, "a flow that is gone keeps its cap");
    assert_eq!(world.create(new_run("nightly")).unwrap_err().code(), "UnknownFlow");
    world.restart(8, &[], vec![capped(Some(3))]);
    assert_eq!(pending(&world), 3);
    world.set_flows(vec![capped(None)]);
    assert_eq!(pending(&world), 4);
}

#[test]
fn limits_are_set_by_declared_name_only() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![flow("nightly")]);
    let mut set = |name: &str| world.run(|o, now| o.set_limit(now, name, permits(9))).map_err(|refusal| refusal.code());
    assert_eq!(set("db"), Ok(()));
    assert_eq!(set("dbb"), Err("UnknownResource"));
    assert_eq!(set("pool:default"), Err("InvalidResource"));
}

#[test]
fn case_d26_a_bucket_is_not_full_again_after_a_restart() {
    let api = [bucket("api", 1.0, 10)];
    let mut world = World::new(64, &api, vec![flow("nightly")]);
    let ids: Vec<_> = (0..12).map(|_| world.submit_needing("nightly", &[("api", 1)]).unwrap()).collect();
    let started = |world: &World| ids.iter().filter(|id| world.state(**id) == State::Pending).count();
    assert_eq!(started(&world), 10);
    world.restart(64, &api, vec![flow("nightly")]);
    assert_eq!(started(&world), 10);
    world.now = world.now.plus(seconds(1));
    world.restart(64, &api, vec![flow("nightly")]);
    assert_eq!(started(&world), 11);
}

#[test]
fn patterns_give_each_name_its_own_total_over_a_restart() {
    let resources = [semaphore("api:*", 1)];
    let mut world = World::new(8, &resources, vec![flow("nightly")]);
    let ids = ["api:a", "api:b", "api:a"].map(|name| world.submit_needing("nightly", &[(name, 1)]).unwrap());
    let expected = [State::Pending, State::Pending, State::Waiting];
    assert_eq!(ids.map(|id| world.state(id)), expected);
    world.restart(8, &resources, vec![flow("nightly")]);
    assert_eq!(ids.map(|id| world.state(id)), expected);
}

#[test]
fn case_a3_nothing_is_held_after_ten_thousand_runs() {
    let spec = FlowSpec { needs: owned(&[("db", 1)]), max_concurrent: Some(3), crash_retries: 1, ..flow("nightly") };
    let mut world = World::new(4, &[semaphore("db", 2)], vec![spec]);
    for round in 0..10_000_u64 {
        let id = world.create(NewRun { priority: Some((round % 3) as i32), ..new_run("nightly") }).unwrap();
        match world.take("engine-1").map(|leased| Body { id: leased.id, fence: leased.fence }) {
            None => _ = world.cancel(id),
            Some(body) if round % 5 == 0 => _ = world.cancel(body.id),
            Some(body) if round % 5 == 1 => world.fail(body).unwrap(),
            Some(_) if round % 5 == 2 => world.run(|o, now| o.worker_lost(now, "engine-1", "gone")),
            Some(body) => world.complete(body).unwrap(),
        }
    }
    while let Some(leased) = world.take("engine-1") {
        world.complete(Body { id: leased.id, fence: leased.fence }).unwrap();
    }
    world.assert_idle();
}

#[test]
fn case_a16_who_waits_for_a_token_holds_no_slot_also_over_a_restart() {
    let api = [bucket("api", 1.0 / 64.0, 1)];
    let spec = || vec![FlowSpec { max_concurrent: Some(1), needs: owned(&[("api", 1)]), ..flow("nightly") }];
    let mut world = World::new(1, &api, spec());
    world.submit("nightly");
    let second = world.submit("nightly");
    let body = world.start("engine-1");
    world.complete(body).unwrap();
    world.pass(seconds(10));
    world.restart(1, &api, spec());
    assert_eq!((world.used("pool:default"), world.used("flow:shop/nightly")), (0, 0));
    world.pass(seconds(54) - 1);
    assert_eq!(world.state(second), State::Waiting);
    world.pass(1);
    assert_eq!(world.state(second), State::Pending);
}

#[test]
fn a_name_that_is_not_declared_any_more_takes_no_new_work_and_goes_with_its_last() {
    let spec = FlowSpec { retries: 1, retry_delay: seconds(9), ..flow("nightly") };
    let mut world = World::new(4, &[semaphore("x2", 1), semaphore("x3", 1)], vec![spec.clone()]);
    world.submit_needing("nightly", &[("x2", 1)]).unwrap();
    let waits = world.submit_needing("nightly", &[("x2", 1)]).unwrap();
    let due_at = Some(world.now.plus(seconds(60)));
    let scheduled = world.create(NewRun { needs: owned(&[("x2", 1)]), due_at, ..new_run("nightly") }).unwrap();
    let body = world.start("engine-1");
    world.restart(4, &[semaphore("x3", 1)], vec![spec]);
    let refused = world.submit_needing("nightly", &[("x2", 1)]).unwrap_err();
    assert_eq!(refused.code(), "UnknownResource");
    assert!(refused.to_string().contains("did you mean x3?"), "{refused}");
    assert_eq!(world.o().check_removal("x2").unwrap_err().code(), "UnknownResource");
    let why = world.o().why(world.now, waits).unwrap().reason;
    assert_eq!(why, "`x2` is not declared any more: declare it again, or cancel what waits for it");
    // What holds it goes on: its tasks share its units, and no other may claim them.
    let task = world.claim(body, "a", &[("x2", 1)]).unwrap();
    assert_eq!(task.state, State::Running);
    world.end(body, task.id, mirab_flow::Outcome::Completed).unwrap();
    let is_known = |world: &World| world.o().gate().resource("x2").is_some();
    world.cancel(waits).unwrap();
    assert!(is_known(&world), "it is held");
    world.fail(body).unwrap();
    assert!(is_known(&world), "its next attempt wants it");
    world.cancel(body.id).unwrap();
    assert!(!is_known(&world));
    world.pass(seconds(60));
    assert_eq!(world.stored(scheduled).error.as_ref().map(|error| error.kind.as_str()), Some("UnknownResource"));
}

#[test]
fn a_task_may_not_ask_for_a_name_that_is_not_declared_any_more() {
    let mut world = World::new(4, &[semaphore("x2", 1)], vec![flow("nightly")]);
    world.submit_needing("nightly", &[("x2", 1)]).unwrap();
    world.submit("nightly");
    let [_, other] = ["engine-1", "engine-2"].map(|engine| world.start(engine));
    world.restart(4, &[], vec![flow("nightly")]);
    assert_eq!(world.claim(other, "a", &[("x2", 1)]).unwrap_err().code(), "UnknownResource");
    world.run(|o, now| o.declare(now, semaphore("x2", 2))).unwrap();
    assert_eq!(world.claim(other, "b", &[("x2", 1)]).unwrap().state, State::Running);
}
