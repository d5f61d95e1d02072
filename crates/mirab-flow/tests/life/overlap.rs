use crate::world::*;
use mirab_flow::{FlowSpec, NewRun, Overlap, State};

fn capped(overlap: Overlap, cap: u64) -> FlowSpec {
    FlowSpec { max_concurrent: Some(cap), overlap, ..flow("nightly") }
}

#[test]
fn skip_ends_a_new_run_at_once_with_message_and_event() {
    let mut world = World::new(4, &[], vec![capped(Overlap::Skip, 1)]);
    let first = world.submit("nightly");
    let body = world.start("engine-1");
    let second = world.submit("nightly");
    let run = world.stored(second);
    assert_eq!((run.state, run.message.as_deref()), (State::Skipped, Some("previous run still active")));
    assert_eq!((run.ended_at, run.place), (Some(world.now), None));
    assert_eq!(world.told(second, "run.skipped"), ["previous run still active"]);
    assert_eq!(world.states_of(second), [State::Skipped]);
    world.complete(body).unwrap();
    let third = world.submit("nightly");
    assert_eq!((world.state(first), world.state(third)), (State::Completed, State::Pending));
}

#[test]
fn cancel_new_ends_a_new_run_as_cancelled_with_the_same_message() {
    let mut world = World::new(4, &[], vec![capped(Overlap::CancelNew, 2)]);
    let ids = [(); 3].map(|()| world.submit("nightly"));
    assert_eq!(ids.map(|id| world.state(id)), [State::Pending, State::Pending, State::Cancelled]);
    assert_eq!(world.stored(ids[2]).message.as_deref(), Some("previous run still active"));
    assert!(world.told(ids[2], "run.skipped").is_empty());
}

#[test]
fn enqueue_waits_for_the_cap_as_a_resource() {
    let mut world = World::new(4, &[], vec![capped(Overlap::Enqueue, 1)]);
    let first = world.submit("nightly");
    let second = world.submit("nightly");
    let body = world.start("engine-1");
    assert_eq!((body.id, world.state(second)), (first, State::Waiting));
    assert_eq!(world.o().shown_state(second).unwrap().as_str(), "AwaitingResource");
    world.complete(body).unwrap();
    assert_eq!(world.state(second), State::Pending);
}

#[test]
fn case_g2_runs_that_wait_for_an_engine_count() {
    let mut world = World::new(0, &[], vec![capped(Overlap::Skip, 1)]);
    let ids: Vec<_> = (0..10).map(|_| world.submit("nightly")).collect();
    assert_eq!(world.state(ids[0]), State::Waiting);
    assert!(ids[1..].iter().all(|id| world.state(*id) == State::Skipped));
}

#[test]
fn scheduled_runs_count_only_once_they_are_due_and_are_decided_on_then() {
    let mut world = World::new(4, &[], vec![capped(Overlap::Skip, 1)]);
    let due_at = Some(world.now.plus(seconds(60)));
    let scheduled = world.create(NewRun { due_at, ..new_run("nightly") }).unwrap();
    let now = world.submit("nightly");
    assert_eq!((world.state(scheduled), world.state(now)), (State::Scheduled, State::Pending));
    let body = world.start("engine-1");
    world.pass(seconds(10));
    for _ in 0..5 {
        world.beat(body).unwrap();
        world.pass(seconds(10));
    }
    assert_eq!((world.state(scheduled), world.told(scheduled, "run.skipped").len()), (State::Skipped, 1));
}

#[test]
fn retries_and_reruns_are_never_turned_away() {
    let spec = FlowSpec { retries: 1, retry_delay: seconds(5), crash_retries: 1, ..capped(Overlap::Skip, 1) };
    let mut world = World::new(4, &[], vec![spec]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    world.fail(body).unwrap();
    assert_eq!(world.state(id), State::AwaitingRetry);
    let other = world.submit("nightly");
    assert_eq!(world.state(other), State::Skipped, "a run that waits for its retry counts");
    world.pass(seconds(5));
    world.start("engine-1");
    world.run(|o, now| o.worker_lost(now, "engine-1", "exit code 9"));
    assert_eq!(world.state(id), State::Pending);
    let body = world.start("engine-2");
    world.complete(body).unwrap();
    assert_eq!((world.state(id), world.stored(id).attempt), (State::Completed, 3));
}

#[test]
fn flows_of_one_name_in_two_projects_are_two_flows() {
    let mut world = World::new(4, &[], vec![capped(Overlap::Skip, 1)]);
    let other = FlowSpec { project: "lab".into(), ..capped(Overlap::Skip, 1) };
    assert_eq!(world.run(|o, now| o.set_flows(now, "lab", vec![other])), []);
    let ids = ["shop/nightly", "lab/nightly", "shop/nightly"].map(|name| world.submit(name));
    assert_eq!(ids.map(|id| world.state(id)), [State::Pending, State::Pending, State::Skipped]);
}

#[test]
fn case_r2_the_cap_and_the_policy_hold_over_a_restart() {
    for (overlap, expected) in [(Overlap::Enqueue, State::Waiting), (Overlap::Skip, State::Skipped)] {
        let mut world = World::new(4, &[], vec![capped(overlap, 1)]);
        world.submit("nightly");
        let body = world.start("engine-1");
        world.restart(4, &[], vec![capped(overlap, 1)]);
        let second = world.submit("nightly");
        assert_eq!((world.state(second), world.used("flow:shop/nightly")), (expected, 1));
        world.complete(body).unwrap();
    }
}

#[test]
fn a_run_that_fell_due_while_its_flow_was_unknown_is_decided_on_when_it_is_found() {
    let mut world = World::new(4, &[], vec![capped(Overlap::Skip, 1)]);
    world.submit("nightly");
    world.start("engine-1");
    let due_at = Some(world.now.plus(seconds(60)));
    let scheduled = world.create(NewRun { due_at, ..new_run("nightly") }).unwrap();
    let journal = world.driver.journal().clone();
    world.now = world.now.plus(seconds(100));
    world.driver = mirab_flow::Driver::open(journal, options(4, &[]), world.now).unwrap();
    world.run(|o, now| o.handle_timeout(now));
    assert_eq!(world.state(scheduled), State::Scheduled);
    world.set_flows(vec![capped(Overlap::Skip, 1)]);
    assert_eq!(world.state(scheduled), State::Skipped);
}
