use crate::world::*;
use mirab_core::Fence;
use mirab_flow::{Effect, Error, FlowSpec, NewTask, Outcome, State};

/// Two runs that execute, and `db` of so many units.
fn two_bodies(db: u64) -> (World, Body, Body) {
    let mut world = World::new(2, &[semaphore("db", db), semaphore("gpu", 1)], vec![flow("nightly")]);
    world.submit("nightly");
    world.submit("nightly");
    let bodies = (world.start("engine-1"), world.start("engine-2"));
    world.effects.clear();
    (world, bodies.0, bodies.1)
}

#[test]
fn a_task_starts_ends_and_is_the_same_by_its_key() {
    let (mut world, body, _) = two_bodies(1);
    let task = world.claim(body, "load-1", &[("db", 1)]).unwrap();
    assert_eq!((task.state, task.attempt, world.used("db")), (State::Running, 1, 1));
    assert!(task.fence > Fence(0));
    assert_eq!(world.claim(body, "load-1", &[("db", 1)]), Ok(task));
    assert_eq!(world.end(body, task.id, Outcome::Completed), Ok(None));
    assert_eq!((world.task_state(task.id), world.used("db")), (State::Completed, 0));
    assert_eq!(world.end(body, task.id, Outcome::Failed), Ok(None), "ended already");
    assert_eq!(world.task_state(task.id), State::Completed);
    assert_eq!(world.claim(body, "load-1", &[("db", 1)]).unwrap().state, State::Completed);
}

#[test]
fn a_task_waits_its_turn_and_its_waiter_is_woken() {
    let (mut world, first, second) = two_bodies(1);
    let holds = world.claim(first, "load", &[("db", 1)]).unwrap();
    let waits = world.claim(second, "load", &[("db", 1)]).unwrap();
    assert_eq!((waits.state, waits.fence, waits.attempt), (State::Waiting, Fence(0), 0));
    assert_eq!(world.told(second.id, "resource.exhausted"), ["needs 1 of `db`, 0 free"]);
    assert_eq!(world.claim(second, "load", &[("db", 1)]), Ok(waits));
    assert_eq!(world.told(second.id, "resource.exhausted").len(), 1, "once a wait");
    world.effects.clear();
    world.end(first, holds.id, Outcome::Completed).unwrap();
    assert!(world.effects.contains(&Effect::TaskChanged { task: waits.id }));
    assert_eq!(world.claim(second, "load", &[("db", 1)]).unwrap().state, State::Running);
}

#[test]
fn a_refused_task_is_stored_as_failed_and_answered_the_same_again() {
    let (mut world, body, _) = two_bodies(1);
    for (key, name, units, code) in [
        ("a", "dbb", 1, "UnknownResource"),
        ("b", "db", 2, "ResourceExceedsCapacity"),
        ("c", "pool:default", 1, "InvalidResource"),
    ] {
        let refused = world.claim(body, key, &[(name, units)]).unwrap_err();
        assert_eq!((refused.code(), world.claim(body, key, &[(name, units)])), (code, Err(refused.clone())));
        let task = world.driver.journal().tasks.values().find(|task| task.key == key).unwrap();
        assert_eq!((task.state, task.error.as_ref().unwrap().kind.as_str()), (State::Failed, code));
    }
    world.complete(body).unwrap();
}

#[test]
fn case_a10_and_r6_a_task_shares_what_its_run_holds() {
    let mut world =
        World::new(1, &[semaphore("db", 1)], vec![FlowSpec { needs: owned(&[("db", 1)]), ..flow("nightly") }]);
    world.submit("nightly");
    let body = world.start("engine-1");
    let outer = world.claim(body, "outer", &[("db", 1)]).unwrap();
    assert_eq!((outer.state, world.used("db")), (State::Running, 1));
    let nested = NewTask { parent: Some(outer.id), ..new_task("inner", &[("db", 1)]) };
    let inner = world.claim_task(body, nested).unwrap();
    assert_eq!((inner.state, world.used("db")), (State::Running, 1));
    let sibling = world.claim(body, "sibling", &[("db", 1)]).unwrap();
    assert_eq!(sibling.state, State::Waiting, "the run's unit is in use by its task");
    let too_much = world.claim(body, "greedy", &[("db", 2)]).unwrap_err();
    assert_eq!(too_much.code(), "ResourceExceedsCapacity");
    world.end(body, inner.id, Outcome::Completed).unwrap();
    world.end(body, outer.id, Outcome::Completed).unwrap();
    assert_eq!(world.task_state(sibling.id), State::Running);
    world.complete(body).unwrap();
    assert_eq!(world.task_state(sibling.id), State::Cancelled);
    world.assert_idle();
}

#[test]
fn the_end_of_a_body_ends_its_tasks_from_the_inside_out() {
    let (mut world, body, other) = two_bodies(1);
    let outer = world.claim(body, "outer", &[("db", 1)]).unwrap();
    let inner = world.claim_task(body, NewTask { parent: Some(outer.id), ..new_task("inner", &[("gpu", 1)]) }).unwrap();
    let waits = world.claim(body, "waits", &[("db", 1)]).unwrap();
    let next = world.claim(other, "next", &[("db", 1)]).unwrap();
    world.end(body, outer.id, Outcome::Completed).unwrap();
    assert_eq!((world.task_state(inner.id), world.used("gpu")), (State::Cancelled, 0));
    assert_eq!((world.task_state(waits.id), world.task_state(next.id)), (State::Running, State::Waiting));
    let behind = world.claim(body, "behind", &[("db", 1)]).unwrap();
    world.fail(body).unwrap();
    assert_eq!([waits.id, behind.id].map(|id| world.task_state(id)), [State::Cancelled; 2]);
    assert!(world.told(body.id, "task.state").contains(&"the run's body has ended".to_owned()));
    assert_eq!((world.task_state(next.id), world.used("db")), (State::Running, 1));
}

#[test]
fn waiting_siblings_do_not_start_while_their_run_ends() {
    let (mut world, body, other) = two_bodies(1);
    let first = world.claim(other, "first", &[("db", 1)]).unwrap();
    let tasks = ["a", "b", "c"].map(|key| world.claim(body, key, &[("db", 1)]).unwrap().id);
    world.effects.clear();
    world.complete(body).unwrap();
    assert_eq!(tasks.map(|id| world.task_state(id)), [State::Cancelled; 3]);
    assert!(tasks.iter().all(|id| world.stored_task(*id).started_at.is_none()));
    assert_eq!(world.task_state(first.id), State::Running);
}

#[test]
fn a_failed_task_is_tried_again_after_its_delay() {
    let (mut world, body, other) = two_bodies(1);
    let task = NewTask { retries: 1, retry_delay: seconds(10), ..new_task("load", &[("db", 1)]) };
    let id = world.claim_task(body, task.clone()).unwrap().id;
    let place = world.stored_task(id).place;
    assert_eq!(world.end(body, id, Outcome::Failed), Ok(Some(seconds(10))));
    assert_eq!((world.task_state(id), world.used("db")), (State::AwaitingRetry, 0));
    assert_eq!(world.claim(other, "between", &[("db", 1)]).unwrap().state, State::Running);
    world.now = world.now.plus(seconds(4));
    assert_eq!(world.end(body, id, Outcome::Failed), Ok(Some(seconds(6))), "said again");
    assert_eq!(world.claim_task(body, task.clone()).unwrap().state, State::AwaitingRetry);
    world.now = world.now.plus(seconds(6));
    assert_eq!(world.claim_task(body, task.clone()).unwrap().state, State::Waiting);
    let between = world.o().tasks_of(other.id)[0].id;
    world.end(other, between, Outcome::Completed).unwrap();
    let again = world.claim_task(body, task).unwrap();
    assert_eq!((again.id, again.attempt, again.state), (id, 2, State::Running));
    assert_eq!(world.stored_task(id).place, place);
    assert_eq!(world.end(body, id, Outcome::Failed), Ok(None));
    assert_eq!((world.task_state(id), world.stored_task(id).error.clone()), (State::Failed, Some(failure())));
}

#[test]
fn a_task_may_give_up_waiting() {
    let (mut world, first, second) = two_bodies(1);
    let holds = world.claim(first, "load", &[("db", 1)]).unwrap();
    let waits = world.claim(second, "load", &[("db", 1)]).unwrap();
    assert_eq!(world.end(second, waits.id, Outcome::Completed), Ok(None));
    assert_eq!(world.task_state(waits.id), State::Waiting, "what did not begin cannot have completed");
    assert_eq!(world.end(second, waits.id, Outcome::Cancelled), Ok(None));
    assert_eq!((world.task_state(waits.id), world.o().gate().waiting()), (State::Cancelled, 0));
    assert_eq!(world.task_state(holds.id), State::Running);
}

#[test]
fn calls_with_a_stale_lease_or_about_foreign_tasks_are_refused() {
    let (mut world, first, second) = two_bodies(2);
    let task = world.claim(first, "load", &[("db", 1)]).unwrap();
    assert_eq!(world.end(second, task.id, Outcome::Completed), Err(Error::UnknownTask(task.id)));
    let foreign = NewTask { parent: Some(task.id), ..new_task("inner", &[]) };
    assert_eq!(world.claim_task(second, foreign), Err(Error::UnknownTask(task.id)));
    world.run(|o, now| o.worker_lost(now, "engine-1", "gone"));
    assert_eq!((world.task_state(task.id), world.used("db")), (State::Crashed, 0));
    assert_eq!(world.end(first, task.id, Outcome::Completed).unwrap_err().code(), "StaleLease");
    assert_eq!(world.claim(first, "more", &[]).unwrap_err().code(), "StaleLease");
    let as_lease = Body { id: task.id, fence: task.fence };
    assert_eq!(world.beat(as_lease).unwrap_err().code(), "StaleLease");
}

#[test]
fn a_circle_of_runs_is_broken_by_failing_the_newest_task() {
    let spec = |name: &str, unit: &str| FlowSpec { needs: owned(&[(unit, 1)]), ..flow(name) };
    let resources = [semaphore("a", 1), semaphore("b", 1)];
    let mut world = World::new(2, &resources, vec![spec("one", "a"), spec("two", "b")]);
    world.submit("one");
    world.submit("two");
    let (one, two) = (world.start("engine-1"), world.start("engine-2"));
    let waits = world.claim(one, "t", &[("b", 1)]).unwrap();
    let refused = world.claim(two, "t", &[("a", 1)]).unwrap_err();
    assert_eq!(refused.code(), "ResourceDeadlock");
    let told = refused.to_string();
    for part in [
        "run 1 (shop/one) holds a and its task load waits for b",
        "run 2 (shop/two) holds b and its task load waits for a",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(world.claim(two, "t", &[("a", 1)]), Err(refused));
    world.complete(two).unwrap();
    assert_eq!(world.task_state(waits.id), State::Running);
}

/// A call of a flow claims what its runs would, apart from an engine.
fn called(key: &str, flow: &str, cap: u64) -> NewTask {
    NewTask { name: flow.into(), max_concurrent: Some(cap), ..new_task(key, &[("db", 1)]) }
}

#[test]
fn a_flow_that_is_called_in_a_run_claims_its_cap_too() {
    let capped = FlowSpec { max_concurrent: Some(1), ..flow("load") };
    let mut world = World::new(4, &[semaphore("db", 9)], vec![flow("nightly"), capped]);
    world.submit("nightly");
    world.submit("load");
    let (body, own) = (world.start("engine-1"), world.start("engine-2"));
    let waits = world.claim_task(body, called("a", "load", 7)).unwrap();
    assert_eq!((waits.state, world.used("flow:shop/load")), (State::Waiting, 1), "what is served says the cap");
    let nested = world.claim_task(own, called("b", "load", 1)).unwrap();
    assert_eq!(nested.state, State::Running, "a run of the flow has the unit of its cap already");
    world.complete(own).unwrap();
    assert_eq!((world.task_state(waits.id), world.used("db")), (State::Running, 1));
    assert_eq!(world.used("pool:default"), 1, "it takes no engine");
}

#[test]
fn the_cap_of_a_called_flow_that_is_not_served_is_what_its_call_says() {
    let mut world = World::new(4, &[semaphore("db", 9)], vec![flow("nightly")]);
    world.submit("nightly");
    let body = world.start("engine-1");
    let states = ["a", "b", "c"].map(|key| world.claim_task(body, called(key, "helper", 2)).unwrap().state);
    assert_eq!(states, [State::Running, State::Running, State::Waiting]);
    world.restart(4, &[semaphore("db", 9)], vec![flow("nightly")]);
    assert_eq!(world.used("flow:shop/helper"), 2);
    let again = world.claim_task(body, called("d", "helper", 4)).unwrap();
    assert_eq!((again.state, world.used("flow:shop/helper")), (State::Running, 4), "the third starts with it");
    let odd = world.claim_task(body, called("e", "a*b", 1)).unwrap_err();
    assert_eq!(odd.code(), "InvalidResource");
}

#[test]
fn a_later_attempt_of_the_run_has_tasks_of_its_own() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![FlowSpec { crash_retries: 1, ..flow("nightly") }]);
    let run = world.submit("nightly");
    let body = world.start("engine-1");
    let first = world.claim(body, "load", &[("db", 1)]).unwrap();
    world.run(|o, now| o.worker_lost(now, "engine-1", "gone"));
    let body = world.start("engine-1");
    let second = world.claim(body, "load", &[("db", 1)]).unwrap();
    assert_ne!(first.id, second.id);
    assert_eq!([first.id, second.id].map(|id| world.stored_task(id).run_attempt), [1, 2]);
    assert_eq!(world.o().tasks_of(run).len(), 1);
}

#[test]
fn tasks_consume_tokens_at_every_attempt_and_wait_for_them() {
    let mut world = World::new(1, &[bucket("api", 1.0, 1)], vec![flow("nightly")]);
    world.submit("nightly");
    let body = world.start("engine-1");
    let first = world.claim(body, "a", &[("api", 1)]).unwrap();
    world.end(body, first.id, Outcome::Completed).unwrap();
    let second = world.claim(body, "b", &[("api", 1)]).unwrap();
    assert_eq!(second.state, State::Waiting);
    assert!(matches!(world.driver.poll_timeout(), Some((_, mirab_flow::Wake::Tokens(name))) if name == "api"));
    world.pass(seconds(1) - 1);
    assert_eq!(world.task_state(second.id), State::Waiting);
    world.pass(1);
    assert_eq!(world.task_state(second.id), State::Running);
}

#[test]
fn a_tag_total_counts_tasks_that_carry_the_tag() {
    let mut world = World::new(1, &[semaphore("tag:heavy", 1)], vec![flow("nightly")]);
    world.submit("nightly");
    let body = world.start("engine-1");
    let heavy = |key: &str| NewTask { tags: vec![" heavy".trim().into()], ..new_task(key, &[]) };
    assert_eq!(world.claim_task(body, heavy("a")).unwrap().state, State::Running);
    assert_eq!(world.claim_task(body, heavy("b")).unwrap().state, State::Waiting);
    assert_eq!(world.claim(body, "c", &[]).unwrap().state, State::Running);
}
