//! What the gate learns and is told while work runs, and what of it survives a restart.
use crate::world::*;
use mirab_core::{Learner, Limit, SECOND};
use mirab_flow::{Error, LearnerKind, NewRun, NewTask, Outcome, State};

fn learned(world: &World, learner: Learner<'_>) -> Vec<u64> {
    world.o().gate().durations(learner)
}

#[test]
fn only_bodies_that_ended_by_themselves_are_learned_from() {
    let mut world = World::new(4, &[semaphore("key:*", 1)], vec![flow("nightly")]);
    let ends: [fn(&mut World, Body); 5] = [
        |world, body| world.complete(body).unwrap(),
        |world, body| world.fail(body).unwrap(),
        |world, body| world.run(|o, now| o.fail(now, body.id, body.fence, failure(), true)).unwrap(),
        |world, body| {
            world.cancel(body.id).unwrap();
            world.complete(body).unwrap();
        },
        |world, _| world.run(|o, now| o.worker_lost(now, "engine-1", "killed")),
    ];
    for (taken, end) in (1..).zip(ends) {
        world.submit_needing("nightly", &[("key:a", 1)]).unwrap();
        let body = world.start("engine-1");
        world.pass(seconds(taken));
        end(&mut world, body);
    }
    let expected = [seconds(1), seconds(2)];
    assert_eq!(learned(&world, Learner::Kind("shop/nightly")), expected);
    assert_eq!(learned(&world, Learner::Resource("key:*")), expected);
    world.restart(4, &[semaphore("key:*", 1)], vec![flow("nightly")]);
    assert_eq!(learned(&world, Learner::Kind("shop/nightly")), expected);
    assert_eq!(learned(&world, Learner::Resource("key:*")), expected);
}

#[test]
fn a_task_is_learned_from_unless_it_was_stopped() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    world.submit("nightly");
    let body = world.start("engine-1");
    for (key, outcome) in [("a", Outcome::Completed), ("b", Outcome::Cancelled), ("c", Outcome::Failed)] {
        let task = world.claim(body, key, &[("db", 1)]).unwrap();
        world.pass(seconds(2));
        world.end(body, task.id, outcome).unwrap();
    }
    let kind = (LearnerKind::Kind, "shop/nightly/load".to_owned());
    assert_eq!(world.driver.journal().durations[&kind].recent, [seconds(2), seconds(2)]);
}

#[test]
fn what_a_lease_was_expected_to_take_is_kept_with_it() {
    let resources = [semaphore("db", 2), bucket("api", 1.0, 3)];
    let mut world = World::new(4, &resources, vec![flow("nightly")]);
    for taken in [1, 3] {
        world.submit("nightly");
        let body = world.start("engine-1");
        world.pass(seconds(taken));
        world.complete(body).unwrap();
    }
    let id = world.submit_needing("nightly", &[("db", 1), ("api", 2)]).unwrap();
    let lease = world.driver.journal().leases[&id].clone();
    assert_eq!((lease.shortest, lease.longest), (seconds(1), Some(seconds(3))));
    assert_eq!((lease.takes, lease.tokens), (owned(&[("db", 1), ("pool:default", 1)]), owned(&[("api", 2)])));
}

/// A holder ends late, small work passes a large claim, and the claim is then delayed by it: from then on nothing passes.
#[test]
fn who_was_delayed_once_is_not_delayed_again_after_a_restart() {
    let resources = [semaphore("db", 2)];
    let mut world = World::new(4, &resources, vec![flow("nightly")]);
    world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let first = world.start("engine-1");
    let big = world.submit_needing("nightly", &[("db", 2)]).unwrap();
    let small = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    assert_eq!(world.state(small), State::Pending, "in time as far as is known");
    world.pass(seconds(1));
    world.complete(first).unwrap();
    assert!(world.stored(big).delayed.contains(&"db".to_owned()), "what passed it keeps it waiting");
    world.restart(4, &resources, vec![flow("nightly")]);
    let late = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    assert_eq!(world.state(late), State::Waiting);
    let body = world.start("engine-2");
    assert_eq!(body.id, small);
    world.complete(body).unwrap();
    assert_eq!((world.state(big), world.stored(big).delayed.len()), (State::Pending, 0));
}

#[test]
fn case_e14_a_waiting_run_moves_when_its_priority_is_changed() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    let ids: Vec<_> = (0..3).map(|_| world.submit_needing("nightly", &[("db", 1)]).unwrap()).collect();
    let run = world.run(|o, now| o.set_priority(now, ids[2], 5, "api")).unwrap();
    assert_eq!((run.priority, run.place), (5, world.stored(ids[2]).place));
    assert_eq!(world.o().gate().line(9), [ids[2], ids[1]]);
    assert_eq!(world.told(ids[2], "run.priority"), ["from 0 to 5"]);
    world.run(|o, now| o.set_priority(now, ids[2], 5, "api")).unwrap();
    assert_eq!(world.told(ids[2], "run.priority").len(), 1, "nothing changed");
    world.restart(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    assert_eq!(world.o().gate().line(9), [ids[2], ids[1]]);
    let body = world.start("engine-1");
    world.complete(body).unwrap();
    assert_eq!((world.state(ids[2]), world.state(ids[1])), (State::Pending, State::Waiting));
    let ended = world.run(|o, now| o.set_priority(now, ids[0], 1, "api"));
    assert_eq!(ended, Err(Error::UnknownRun(ids[0])));
}

#[test]
fn a_priority_can_be_changed_before_a_run_is_in_line() {
    let spec = mirab_flow::FlowSpec { retries: 1, retry_delay: seconds(5), ..flow("nightly") };
    let mut world = World::new(4, &[semaphore("db", 1)], vec![spec]);
    let held = owned(&[("db", 1)]);
    let retried = world.create(NewRun { needs: held.clone(), ..new_run("nightly") }).unwrap();
    let body = world.start("engine-1");
    let due_at = Some(world.now.plus(seconds(1)));
    let scheduled = world.create(NewRun { due_at, needs: held.clone(), ..new_run("nightly") }).unwrap();
    world.run(|o, now| o.set_priority(now, scheduled, 1, "api")).unwrap();
    world.fail(body).unwrap();
    world.run(|o, now| o.set_priority(now, retried, 2, "api")).unwrap();
    world.create(NewRun { needs: held, ..new_run("nightly") }).unwrap();
    let body = world.start("engine-1");
    world.pass(seconds(5));
    assert_eq!(world.o().gate().line(9), [retried, scheduled]);
    world.complete(body).unwrap();
    assert_eq!(world.state(retried), State::Pending);
}

#[test]
fn a_task_in_line_keeps_the_rank_that_its_run_started_with() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    let bodies = ["engine-1", "engine-2"].map(|engine| {
        world.submit("nightly");
        world.start(engine)
    });
    let [_, waits] = bodies.map(|body| world.claim(body, "a", &[("db", 1)]).unwrap().id);
    world.run(|o, now| o.set_priority(now, bodies[1].id, 5, "api")).unwrap();
    let row = world.o().queue(world.now, 9).waiting.remove(0);
    assert_eq!((row.id, row.priority, world.stored(bodies[1].id).priority), (waits, 0, 5));
}

#[test]
fn a_task_settles_the_tokens_of_the_nearest_body_that_took_any() {
    let resources = [bucket("api", 0.001, 10), bucket("mail", 0.001, 10)];
    let mut world = World::new(4, &resources, vec![flow("nightly")]);
    world.submit_needing("nightly", &[("api", 4)]).unwrap();
    let body = world.start("engine-1");
    let task = world.claim(body, "a", &[("mail", 6)]).unwrap().id;
    let mut settle = |task, name: &str, actual| {
        let name = name.to_owned();
        world.run(move |o, now| o.settle_tokens(now, body.id, body.fence, task, &name, actual))
    };
    assert_eq!(settle(Some(task), "mail", 1), Ok(()));
    assert_eq!(settle(Some(task), "api", 9), Ok(()), "its run's");
    assert_eq!(settle(None, "mail", 1).unwrap_err().code(), "InvalidResource", "the run took none");
    assert_eq!(settle(Some(mirab_core::ClaimId(99)), "mail", 1), Err(Error::UnknownTask(mirab_core::ClaimId(99))));
    let old = mirab_core::Fence(body.fence.0 - 1);
    let stale = world.run(|o, now| o.settle_tokens(now, body.id, old, None, "api", 1));
    assert_eq!(stale.unwrap_err().code(), "StaleLease");
    let free = |world: &World| ["api", "mail"].map(|name| world.o().gate().resource(name).unwrap().free);
    assert_eq!(free(&world), [1, 9]);
    assert_eq!(world.driver.journal().leases[&body.id].tokens, owned(&[("api", 9)]));
    world.restart(4, &resources, vec![flow("nightly")]);
    assert_eq!(free(&world), [1, 9]);
    world.run(|o, now| o.settle_tokens(now, body.id, body.fence, None, "api", 3)).unwrap();
    assert_eq!(free(&world), [7, 9], "against what it was charged last");
}

#[test]
fn a_bucket_that_cools_starts_nothing_also_after_a_restart() {
    let resources = [bucket("api", 100.0, 10), semaphore("db", 1)];
    let mut world = World::new(4, &resources, vec![flow("nightly")]);
    world.submit("nightly");
    let body = world.start("engine-1");
    world.run(|o, now| o.cool_down(now, body.id, body.fence, None, "api", 60 * SECOND)).unwrap();
    let waits = world.submit_needing("nightly", &[("api", 1)]).unwrap();
    let wrong = world.run(|o, now| o.cool_down(now, body.id, body.fence, None, "db", SECOND));
    assert_eq!(wrong.unwrap_err().code(), "InvalidResource");
    world.complete(body).unwrap();
    world.restart(4, &resources, vec![flow("nightly")]);
    world.pass(seconds(60) - 1);
    assert_eq!(world.state(waits), State::Waiting);
    world.pass(1);
    assert_eq!(world.state(waits), State::Pending);
}

#[test]
fn a_paused_resource_remembers_its_total_over_a_restart() {
    let mut world = World::new(4, &[semaphore("db", 3)], vec![flow("nightly")]);
    world.run(|o, now| o.set_limit(now, "db", Limit::Semaphore { permits: 0 })).unwrap();
    world.restart(4, &[semaphore("db", 0)], vec![flow("nightly")]);
    assert_eq!(world.submit_needing("nightly", &[("db", 4)]).unwrap_err().code(), "ResourceExceedsCapacity");
    world.submit_needing("nightly", &[("db", 3)]).unwrap();
}

#[test]
fn a_name_that_is_declared_anew_has_no_total_of_before() {
    let mut world = World::new(4, &[semaphore("db", 3)], vec![flow("nightly")]);
    world.run(|o, now| o.remove_resource(now, "db")).unwrap();
    world.run(|o, now| o.declare(now, semaphore("db", 0))).unwrap();
    world.restart(4, &[semaphore("db", 0)], vec![flow("nightly")]);
    world.submit_needing("nightly", &[("db", 4)]).unwrap();
}

#[test]
fn a_name_that_is_declared_anew_has_no_durations_of_before() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let body = world.start("engine-1");
    world.pass(seconds(3));
    world.complete(body).unwrap();
    assert_eq!(learned(&world, Learner::Resource("db")), [seconds(3)]);
    world.run(|o, now| o.remove_resource(now, "db")).unwrap();
    world.run(|o, now| o.declare(now, semaphore("db", 1))).unwrap();
    for _ in 0..2 {
        assert!(learned(&world, Learner::Resource("db")).is_empty());
        world.restart(4, &[semaphore("db", 1)], vec![flow("nightly")]);
    }
}

#[test]
fn a_balance_that_a_lowered_burst_cut_is_stored_at_once() {
    let mut world = World::new(4, &[bucket("api", 0.001, 10)], vec![flow("nightly")]);
    let limit = |burst| bucket("api", 0.001, burst).limit;
    world.run(|o, now| o.set_limit(now, "api", limit(2))).unwrap();
    world.restart(4, &[bucket("api", 0.001, 10)], vec![flow("nightly")]);
    assert_eq!(world.o().gate().resource("api").unwrap().free, 2);
}

#[test]
fn a_nested_task_settles_through_the_tasks_around_it() {
    let mut world = World::new(4, &[bucket("api", 0.001, 10)], vec![flow("nightly")]);
    world.submit("nightly");
    let body = world.start("engine-1");
    let outer = world.claim(body, "a", &[("api", 2)]).unwrap().id;
    let inner = world.claim_task(body, NewTask { parent: Some(outer), ..new_task("b", &[]) }).unwrap().id;
    world.run(|o, now| o.settle_tokens(now, body.id, body.fence, Some(inner), "api", 5)).unwrap();
    assert_eq!(world.driver.journal().leases[&outer].tokens, owned(&[("api", 5)]));
}

#[test]
fn what_is_stored_after_a_settle_is_what_was_charged() {
    let resources = [bucket("api", 1.0, 10)];
    let mut world = World::new(4, &resources, vec![flow("nightly")]);
    world.submit_needing("nightly", &[("api", 4)]).unwrap();
    let body = world.start("engine-1");
    let settle = |world: &mut World, actual| {
        world.run(|o, now| o.settle_tokens(now, body.id, body.fence, None, "api", actual)).unwrap();
        let stored = world.driver.journal().leases[&body.id].tokens[0].1;
        world.restart(4, &resources, vec![flow("nightly")]);
        (world.o().gate().resource("api").unwrap().free, stored)
    };
    assert_eq!(settle(&mut world, 1_000), (-10, 20), "a debt of one burst is all that is charged");
    assert_eq!(settle(&mut world, 4), (6, 4), "only that comes back");
    world.pass(seconds(9));
    assert_eq!(settle(&mut world, 0), (10, 4), "a full bucket takes nothing back");
    assert_eq!(settle(&mut world, 4), (10, 4), "nor is that owed again");
}
