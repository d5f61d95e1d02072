use crate::world::*;
use mirab_core::Time;
use mirab_flow::{Effect, FlowSpec, Outcome, STORE_RETRY, State, Wake};

fn world() -> World {
    let spec = FlowSpec { needs: owned(&[("db", 1)]), ..flow("nightly") };
    World::new(2, &[semaphore("db", 1)], vec![spec])
}

#[test]
fn a_failed_commit_starts_nothing_loses_nothing_and_work_goes_on_after() {
    let mut world = world();
    let first = world.submit("nightly");
    let body = world.start("engine-1");
    let second = world.submit("nightly");
    world.effects.clear();
    world.driver.journal_mut().failing_commits = 1;
    let refused = world.try_run(|o, now| o.complete(now, body.id, body.fence, None)).unwrap_err();
    assert_eq!((refused.code(), refused.why.as_str()), ("StoreUnavailable", "disk full"));
    assert_eq!(world.driver.unavailable(), Some("disk full"));
    assert_eq!((world.state(first), world.state(second), world.used("db")), (State::Running, State::Waiting, 1));
    assert_eq!(
        (world.o().run(first).unwrap().state, world.o().run(second).unwrap().state),
        (State::Running, State::Waiting)
    );
    assert_eq!(world.effects, []);
    world.complete(body).unwrap();
    assert_eq!((world.driver.unavailable(), world.state(second)), (None, State::Pending));
    assert_eq!(world.effects.len(), 1, "{:?}", world.effects);
    let body = world.start("engine-2");
    world.complete(body).unwrap();
    world.assert_idle();
}

#[test]
fn the_whole_group_is_refused_and_its_numbers_are_used_again() {
    let mut world = world();
    world.driver.journal_mut().failing_commits = 1;
    let now = world.now;
    for _ in 0..3 {
        world.driver.apply(now, |o| o.create_run(now, new_run("nightly"))).unwrap();
    }
    assert!(world.driver.commit(now).is_err());
    assert_eq!((world.o().runs().count(), world.o().gate().waiting()), (0, 0));
    assert_eq!(world.submit("nightly").0, 1);
}

#[test]
fn a_limit_that_cannot_be_stored_is_in_force_at_no_time() {
    let mut world =
        World::new(4, &[semaphore("db", 0)], vec![FlowSpec { needs: owned(&[("db", 1)]), ..flow("nightly") }]);
    let ids = [world.submit("nightly"), world.submit("nightly")];
    world.driver.journal_mut().failing_commits = 1;
    let raised = world.try_run(|o, now| {
        o.declare(now, semaphore("new", 1)).unwrap();
        o.declare(now, semaphore("db", 2)).unwrap();
        o.set_flows(now, PROJECT, vec![]);
    });
    assert!(raised.is_err());
    // The store is back for whatever comes next: it must not carry out what was refused.
    world.pass(STORE_RETRY);
    assert_eq!((world.driver.unavailable(), ids.map(|id| world.state(id))), (None, [State::Waiting; 2]));
    assert!(world.o().gate().resource("new").is_none());
    assert_eq!(world.o().flows().count(), 1);
    world.run(|o, now| o.declare(now, semaphore("db", 2))).unwrap();
    assert_eq!(ids.map(|id| world.state(id)), [State::Pending; 2]);
}

#[test]
fn a_group_is_one_commit() {
    let mut world = world();
    let (commits, now) = (world.driver.journal().commits, world.now);
    for _ in 0..100 {
        world.driver.apply(now, |o| o.create_run(now, new_run("nightly"))).unwrap();
    }
    let effects = world.driver.commit(now).unwrap();
    assert_eq!(world.driver.journal().commits, commits + 1);
    assert_eq!(effects.iter().filter(|effect| matches!(effect, Effect::Offer { .. })).count(), 1);
}

#[test]
fn the_store_is_tried_again_by_itself_and_what_is_due_then_happens() {
    let mut world = World::new(1, &[], vec![FlowSpec { retries: 1, retry_delay: seconds(1), ..flow("nightly") }]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    world.fail(body).unwrap();
    world.driver.journal_mut().failing_commits = 5;
    world.pass(seconds(1));
    assert_eq!(world.driver.poll_timeout(), Some((world.now.plus(STORE_RETRY), Wake::Store)));
    world.pass(seconds(2));
    assert_eq!((world.state(id), world.driver.unavailable()), (State::AwaitingRetry, Some("disk full")));
    world.pass(seconds(1) / 2);
    assert_eq!((world.state(id), world.driver.unavailable()), (State::Pending, None));
}

#[test]
fn an_idle_server_learns_that_its_store_is_back() {
    let mut world = world();
    world.driver.journal_mut().failing_commits = 2;
    assert!(world.try_run(|o, now| o.create_run(now, new_run("nightly"))).is_err());
    world.pass(STORE_RETRY);
    assert_eq!(world.driver.unavailable(), Some("disk full"));
    world.pass(STORE_RETRY);
    assert_eq!((world.driver.unavailable(), world.driver.poll_timeout()), (None, None));
}

#[test]
fn while_the_store_cannot_even_be_read_everything_is_refused() {
    let mut world = world();
    let first = world.submit("nightly");
    let body = world.start("engine-1");
    let second = world.submit("nightly");
    world.effects.clear();
    world.driver.journal_mut().failing_commits = 1;
    world.driver.journal_mut().failing_loads = 3;
    assert_eq!(world.try_run(|o, now| o.complete(now, body.id, body.fence, None)).unwrap_err().why, "disk gone");
    assert!(world.try_run(|o, now| o.create_run(now, new_run("nightly"))).is_err());
    assert!(world.try_run(|o, now| o.heartbeat(now, body.id, body.fence)).is_err());
    world.pass(STORE_RETRY);
    assert_eq!((world.driver.unavailable(), world.driver.journal().failing_loads), (Some("disk gone"), 0));
    world.pass(STORE_RETRY);
    assert_eq!((world.driver.unavailable(), world.effects.clone()), (None, vec![]));
    assert_eq!((world.state(first), world.state(second), world.used("db")), (State::Running, State::Waiting, 1));
    assert_eq!(world.beat(body), Ok(false));
    world.complete(body).unwrap();
    assert_eq!(world.state(second), State::Pending);
}

#[test]
fn what_is_declared_in_memory_outlives_a_rebuild() {
    let mut world = world();
    let limit = mirab_core::Limit::Semaphore { permits: 7 };
    world.run(|o, now| o.set_limit(now, "db", limit)).unwrap();
    world.run(|o, now| o.set_slots(now, 5));
    world.driver.journal_mut().failing_commits = 1;
    assert!(world.try_run(|o, now| o.set_slots(now, 9)).is_err());
    assert_eq!((world.o().slots(), world.o().gate().resource("db").unwrap().limit), (5, limit));
    assert_eq!(world.o().find_flow("nightly").unwrap().needs, owned(&[("db", 1)]));
    assert_eq!(world.o().projects().len(), 1);
}

#[test]
fn a_task_whose_end_was_not_stored_still_holds() {
    let mut world = World::new(2, &[semaphore("db", 1)], vec![flow("nightly")]);
    world.submit("nightly");
    world.submit("nightly");
    let (first, second) = (world.start("engine-1"), world.start("engine-2"));
    let holds = world.claim(first, "a", &[("db", 1)]).unwrap();
    let waits = world.claim(second, "a", &[("db", 1)]).unwrap();
    world.effects.clear();
    world.driver.journal_mut().failing_commits = 1;
    let ended = world.try_run(|o, now| o.end_task(now, first.id, first.fence, holds.id, Outcome::Completed, None));
    assert!(ended.is_err() && world.effects.is_empty());
    assert_eq!((world.task_state(holds.id), world.task_state(waits.id)), (State::Running, State::Waiting));
    world.end(first, holds.id, Outcome::Completed).unwrap();
    assert_eq!(world.task_state(waits.id), State::Running);
}

#[test]
fn leases_get_a_fresh_life_by_a_rebuild_because_their_renewals_could_not_be_answered() {
    let mut world = world();
    let id = world.submit("nightly");
    world.start("engine-1");
    world.now = Time(world.now.0 + seconds(14));
    world.driver.journal_mut().failing_commits = 1;
    assert!(world.try_run(|o, now| o.create_run(now, new_run("nightly"))).is_err());
    world.pass(seconds(14));
    assert_eq!(world.state(id), State::Running);
    world.pass(seconds(1));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::KillWorker { run, .. } if *run == id)));
}
