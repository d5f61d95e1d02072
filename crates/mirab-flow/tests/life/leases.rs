use crate::world::*;
use mirab_core::{ClaimId, Fence};
use mirab_flow::{Effect, Error, FlowSpec, State, TakeLease};

fn rerun(crash_retries: u32) -> FlowSpec {
    FlowSpec { crash_retries, needs: owned(&[("db", 1)]), ..flow("nightly") }
}

fn world(crash_retries: u32) -> World {
    World::new(2, &[semaphore("db", 1)], vec![rerun(crash_retries)])
}

#[test]
fn a_hand_off_that_is_not_taken_goes_back_to_its_old_place() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let place = world.stored(id).place;
    let fence = world.o().lease(id).unwrap().fence;
    world.effects.clear();
    world.pass(seconds(5) - 1);
    assert_eq!(world.o().lease(id).unwrap().fence, fence);
    world.pass(1);
    assert_eq!(world.effects, [Effect::Offer { pool: "default".into(), project: "shop".into() }]);
    assert!(world.o().lease(id).unwrap().fence > fence);
    assert_eq!((world.stored(id).place, world.stored(id).crashes, world.used("db")), (place, 0, 1));
    let states = [State::Waiting, State::Pending, State::Waiting, State::Pending];
    assert_eq!(world.states_of(id), states);
}

#[test]
fn case_l1_a_late_worker_is_refused_and_case_q3_a_lost_answer_loses_no_work() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let late = world.take("engine-1").unwrap();
    world.pass(seconds(5));
    assert_eq!(world.state(id), State::Pending);
    let current = world.o().lease(id).map(|lease| lease.fence);
    let stale = Error::StaleLease { id, fence: late.fence, current };
    assert_eq!(world.beat(Body { id, fence: late.fence }), Err(stale.clone()));
    assert_eq!(world.complete(Body { id, fence: late.fence }), Err(stale));
    let body = world.start("engine-2");
    world.complete(body).unwrap();
    assert_eq!(world.state(id), State::Completed);
    world.assert_idle();
}

#[test]
fn the_time_to_take_a_run_up_counts_from_when_it_was_handed_over() {
    let mut world = world(0);
    world.submit("nightly");
    world.pass(seconds(4));
    let leased = world.take("engine-1").unwrap();
    world.pass(seconds(4));
    assert_eq!(world.beat(Body { id: leased.id, fence: leased.fence }), Ok(false));
}

#[test]
fn case_a25_the_same_request_gives_the_same_lease_again() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let other = world.submit("nightly");
    let first = world.take_again("engine-1", "a").unwrap();
    assert_eq!(world.take_again("engine-1", "a"), Some(first.clone()));
    world.beat(Body { id, fence: first.fence }).unwrap();
    assert_eq!(world.take_again("engine-1", "a"), Some(first), "also once it executes");
    assert_eq!((world.stored(id).attempt, world.state(other)), (1, State::Waiting));
}

#[test]
fn a_worker_that_asks_anew_has_lost_its_body() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let next = world.submit("nightly");
    world.start("engine-1");
    assert_eq!(world.take("engine-1").unwrap().id, next);
    assert_eq!(
        (world.state(id), world.stored(id).message.as_deref()),
        (State::Crashed, Some("worker asked for new work"))
    );
}

#[test]
fn a_worker_that_asks_anew_before_it_began_lost_nothing() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let first = world.take("engine-1").unwrap();
    let again = world.take("engine-1").unwrap();
    assert_eq!((again.id, world.stored(id).crashes), (id, 0));
    assert!(again.fence > first.fence);
}

#[test]
fn a_lost_worker_crashes_its_run_with_the_reason() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let next = world.submit("nightly");
    let body = world.start("engine-1");
    world.run(|o, now| o.worker_lost(now, "engine-1", "killed by signal 9"));
    let run = world.stored(id);
    assert_eq!((run.state, run.message.as_deref(), run.crashes), (State::Crashed, Some("killed by signal 9"), 1));
    assert_eq!(world.state(next), State::Pending);
    assert!(matches!(world.complete(body), Err(Error::StaleLease { current: None, .. })));
    world.run(|o, now| o.worker_lost(now, "engine-1", "again"));
    world.run(|o, now| o.worker_lost(now, "nobody", "never seen"));
    assert_eq!(world.state(next), State::Pending);
}

#[test]
fn a_crashed_run_is_run_again_at_its_place_while_reruns_are_left() {
    let mut world = world(1);
    let id = world.submit("nightly");
    let place = world.stored(id).place;
    world.start("engine-1");
    world.run(|o, now| o.worker_lost(now, "engine-1", "killed by signal 9"));
    assert_eq!((world.state(id), world.stored(id).place), (State::Pending, place));
    assert_eq!(world.take("engine-2").unwrap().attempt, 2);
    let fence = world.o().lease(id).unwrap().fence;
    world.beat(Body { id, fence }).unwrap();
    world.run(|o, now| o.worker_lost(now, "engine-2", "out of memory"));
    assert_eq!((world.state(id), world.stored(id).crashes), (State::Crashed, 2));
    assert_eq!(world.stored(id).message.as_deref(), Some("out of memory"));
    world.assert_idle();
}

#[test]
fn case_e12_a_lease_admits_no_second_holder_while_the_first_beats() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let next = world.submit("nightly");
    let body = world.start("engine-1");
    for _ in 0..30 {
        world.pass(seconds(5));
        assert_eq!(world.beat(body), Ok(false));
        assert_eq!((world.state(next), world.used("db")), (State::Waiting, 1), "ten lives of a lease long");
    }
    let commits = world.driver.journal().commits;
    world.beat(body).unwrap();
    assert_eq!(world.driver.journal().commits, commits, "a renewal is not stored");
    world.pass(seconds(15) - 1);
    assert_eq!(world.state(id), State::Running);
    world.pass(1);
    let reason = "no heartbeat for 15 s";
    let kill = Effect::KillWorker { worker: "engine-1".into(), run: id, reason: reason.into() };
    assert!(world.effects.contains(&kill));
    assert_eq!(world.beat(body).unwrap_err().code(), "StaleLease");
    assert_eq!((world.used("db"), world.state(next)), (1, State::Waiting), "its body may still use what it holds");
    world.run(|o, now| o.worker_lost(now, "engine-1", reason));
    assert_eq!((world.state(id), world.stored(id).message.as_deref()), (State::Crashed, Some(reason)));
    assert_eq!(world.state(next), State::Pending);
}

#[test]
fn case_a11_a_silent_lease_ends_after_missed_heartbeats_though_nobody_says_that_its_worker_is_gone() {
    let mut world = world(0);
    let (id, next) = (world.submit("nightly"), world.submit("nightly"));
    world.start("engine-1");
    world.pass(seconds(20) - 1);
    assert_eq!((world.state(id), world.state(next)), (State::Running, State::Waiting));
    world.pass(1);
    assert_eq!((world.state(id), world.state(next)), (State::Crashed, State::Pending), "however long it was to take");
    world.cancel(next).unwrap();
    world.assert_idle();
}

#[test]
fn a_run_whose_worker_died_before_it_began_goes_back_in_line() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let taken = world.take("engine-1").unwrap();
    world.run(|o, now| o.worker_lost(now, "engine-1", "killed by signal 9"));
    let again = world.take("engine-2").unwrap();
    assert_eq!((again.id, world.stored(id).crashes, again.attempt), (id, 0, taken.attempt));
    assert!(again.fence > taken.fence);
}

#[test]
fn case_a15_a_second_or_foreign_release_changes_nothing() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let next = world.submit("nightly");
    let body = world.start("engine-1");
    let wrong = Body { id, fence: Fence(body.fence.0 + 1) };
    for stale in [wrong, Body { id: next, fence: body.fence }, Body { id: ClaimId(99), fence: body.fence }] {
        assert_eq!(world.complete(stale).unwrap_err().code(), "StaleLease");
        assert_eq!((world.used("db"), world.state(id)), (1, State::Running));
    }
    world.complete(body).unwrap();
    let second = world.start("engine-2");
    assert_eq!(world.complete(body).unwrap_err().code(), "StaleLease");
    assert_eq!((second.id, world.used("db")), (next, 1));
    assert_eq!(world.o().gate().counters().double_releases, 0);
}

#[test]
fn case_a20_a_lease_keeps_what_it_was_given_when_the_flow_changes() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    let redeployed = FlowSpec { needs: owned(&[("db", 1), ("gpu", 1)]), max_concurrent: Some(1), ..rerun(0) };
    world.set_flows(vec![redeployed]);
    assert_eq!(world.o().lease(id).unwrap().takes, owned(&[("db", 1), ("pool:default", 1)]));
    world.restart(2, &[semaphore("db", 5)], vec![rerun(0)]);
    assert_eq!(world.used("db"), 1);
    world.complete(body).unwrap();
    world.assert_idle();
}

#[test]
fn an_unknown_pool_is_told() {
    let mut world = world(0);
    let ask = TakeLease { pool: "lm".into(), ..Default::default() };
    let answer = world.run(|o, now| o.take_lease(now, ask));
    assert_eq!(answer.unwrap_err().code(), "UnknownPool");
}

#[test]
fn a_run_that_lost_its_engine_keeps_its_place_before_those_that_wait_for_its_units() {
    let mut world = world(1);
    let (first, second) = (world.submit("nightly"), world.submit("nightly"));
    let body = world.start("engine-1");
    let task = world.claim(body, "a", &[]).unwrap();
    world.run(|o, now| o.worker_lost(now, "engine-1", "killed by signal 9"));
    assert_eq!((world.state(first), world.state(second)), (State::Pending, State::Waiting));
    assert_eq!(world.task_state(task.id), State::Crashed);
    let taken = world.take("engine-2").unwrap();
    world.pass(seconds(5));
    assert_eq!((taken.id, world.state(first), world.state(second)), (first, State::Pending, State::Waiting));
}

#[test]
fn a_host_that_was_away_gives_every_lease_a_full_life() {
    let mut world = world(0);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    world.now = world.now.plus(seconds(60));
    world.run(|o, now| o.renew_leases(now));
    world.run(|o, now| o.handle_timeout(now));
    assert_eq!((world.state(id), world.beat(body)), (State::Running, Ok(false)));
    world.pass(seconds(15));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::KillWorker { .. })));
}
