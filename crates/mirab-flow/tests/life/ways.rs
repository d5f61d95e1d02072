//! Case A22: every way to start passes the one gate. Each finds the only unit held by another, waits for it, and then starts.
use crate::world::*;
use mirab_core::ClaimId;
use mirab_flow::{FlowSpec, NewRun, Outcome, State};

fn specs() -> Vec<FlowSpec> {
    let spec = FlowSpec { needs: owned(&[("db", 1)]), retries: 1, crash_retries: 1, ..flow("nightly") };
    vec![spec, flow("plain")]
}

fn world() -> World {
    World::new(4, &[semaphore("db", 1)], specs())
}

/// A run that goes before all others, once it may start.
fn rival(world: &mut World) -> ClaimId {
    world.create(NewRun { priority: Some(9), ..new_run("nightly") }).unwrap()
}

/// `waits` waits while `body` has the unit, and has it in the step in which that one ends.
fn waits_for(world: &mut World, waits: ClaimId, body: Body) {
    assert_eq!((world.state(waits), world.state(body.id), world.used("db")), (State::Waiting, State::Running, 1));
    world.complete(body).unwrap();
    assert_eq!((world.state(waits), world.used("db")), (State::Pending, 1));
}

#[test]
fn case_a22_a_submitted_run_and_one_that_falls_due_pass_the_gate() {
    let mut world = world();
    rival(&mut world);
    let body = world.start("engine-1");
    let due_at = Some(world.now.plus(seconds(1)));
    let due = world.create(NewRun { due_at, ..new_run("nightly") }).unwrap();
    let second = world.submit("nightly");
    world.pass(seconds(1));
    assert_eq!(world.state(due), State::Waiting);
    waits_for(&mut world, second, body);
    let body = world.start("engine-1");
    waits_for(&mut world, due, body);
}

#[test]
fn case_a22_a_retry_passes_the_gate() {
    let mut world = world();
    let retried = world.submit("nightly");
    let first = world.start("engine-1");
    rival(&mut world);
    world.fail(first).unwrap();
    let body = world.start("engine-2");
    world.pass(0);
    waits_for(&mut world, retried, body);
}

#[test]
fn case_a22_a_run_that_lost_its_engine_passes_the_gate() {
    let mut world = world();
    let crashed = world.submit("nightly");
    world.start("engine-1");
    rival(&mut world);
    world.run(|o, now| o.worker_lost(now, "engine-1", "killed by signal 9"));
    let body = world.start("engine-2");
    waits_for(&mut world, crashed, body);
}

#[test]
fn case_a22_a_run_whose_hand_off_failed_passes_the_gate() {
    let mut world = world();
    let offered = world.submit("nightly");
    rival(&mut world);
    world.pass(seconds(5));
    let body = world.start("engine-1");
    waits_for(&mut world, offered, body);
}

#[test]
fn case_a22_what_is_live_at_a_restart_passes_the_gate() {
    let mut world = world();
    rival(&mut world);
    let body = world.start("engine-1");
    let waits = world.submit("nightly");
    world.restart(4, &[semaphore("db", 1)], specs());
    waits_for(&mut world, waits, body);
}

#[test]
fn case_a22_a_task_and_its_retry_pass_the_gate() {
    let mut world = world();
    let run = world.submit("plain");
    let caller = world.start("engine-1");
    assert_eq!(caller.id, run);
    rival(&mut world);
    let body = world.start("engine-2");
    let task = || mirab_flow::NewTask { retries: 1, ..new_task("a", &[("db", 1)]) };
    let id = world.claim_task(caller, task()).unwrap().id;
    assert_eq!((world.task_state(id), world.used("db")), (State::Waiting, 1));
    world.complete(body).unwrap();
    assert_eq!((world.task_state(id), world.used("db")), (State::Running, 1));
    rival(&mut world);
    assert_eq!(world.end(caller, id, Outcome::Failed), Ok(Some(0)));
    let body = world.start("engine-2");
    assert_eq!(world.claim_task(caller, task()).unwrap().id, id);
    assert_eq!((world.task_state(id), world.used("db")), (State::Waiting, 1));
    world.complete(body).unwrap();
    assert_eq!((world.task_state(id), world.used("db")), (State::Running, 1));
}
