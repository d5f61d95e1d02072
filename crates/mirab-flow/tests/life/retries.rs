use crate::world::*;
use mirab_core::Time;
use mirab_flow::{FlowSpec, State, Wake};

fn retrying(retries: u32, delay: u64) -> FlowSpec {
    FlowSpec { retries, retry_delay: delay, needs: owned(&[("db", 1)]), ..flow("nightly") }
}

#[test]
fn case_r18_a_retry_delay_holds_neither_units_nor_the_engine() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![retrying(2, seconds(60))]);
    let id = world.submit("nightly");
    let place = world.stored(id).place;
    let body = world.start("engine-1");
    let other = world.submit("nightly");
    world.fail(body).unwrap();
    let run = world.stored(id);
    assert_eq!((run.state, run.failures, run.due_at), (State::AwaitingRetry, 1, world.now.plus(seconds(60))));
    assert_eq!((world.state(other), world.used("db")), (State::Pending, 1));
    let body = world.start("engine-1");
    world.complete(body).unwrap();
    assert_eq!((world.used("db"), world.used("pool:default")), (0, 0));
    assert_eq!(world.driver.poll_timeout(), Some((world.stored(id).due_at, Wake::Retry(id))));
    world.pass(seconds(60));
    assert_eq!((world.state(id), world.stored(id).place), (State::Pending, place));
}

#[test]
fn attempts_end_when_no_retry_is_left() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![retrying(2, 0)]);
    let id = world.submit("nightly");
    for attempt in 1..=3 {
        let body = world.start("engine-1");
        assert_eq!(world.stored(id).attempt, attempt);
        world.fail(body).unwrap();
        world.pass(0);
    }
    let run = world.stored(id);
    assert_eq!((run.state, run.failures, run.error.clone()), (State::Failed, 3, Some(failure())));
    assert_eq!(run.message.as_deref(), Some("attempt 3 failed: ValueError: no rows"));
    world.assert_idle();
}

#[test]
fn case_f5_a_retry_keeps_its_place_before_younger_work() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![retrying(1, seconds(1)), flow("young")]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    let young = [(); 3].map(|()| world.submit("young"));
    world.fail(body).unwrap();
    assert_eq!(world.start("engine-1").id, young[0]);
    world.pass(seconds(1));
    let body = Body { id: young[0], fence: world.o().lease(young[0]).unwrap().fence };
    world.complete(body).unwrap();
    assert_eq!((world.state(id), world.state(young[1])), (State::Pending, State::Waiting));
}

#[test]
fn a_retry_survives_a_restart() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![retrying(1, seconds(60))]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    world.fail(body).unwrap();
    world.pass(seconds(20));
    world.restart(1, &[semaphore("db", 1)], vec![retrying(1, seconds(60))]);
    world.pass(seconds(39));
    assert_eq!(world.state(id), State::AwaitingRetry);
    world.pass(seconds(1));
    assert_eq!(world.state(id), State::Pending);
}

#[test]
fn time_that_steps_back_changes_nothing() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![retrying(1, seconds(60))]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    let before = world.now;
    world.now = Time(before.0 - seconds(500));
    world.fail(body).unwrap();
    assert_eq!(world.stored(id).due_at, before.plus(seconds(60)));
}
