use crate::world::*;
use mirab_flow::{Created, Effect, Error, NewRun, State};

#[test]
fn a_run_goes_from_creation_to_its_result() {
    let mut world = World::new(1, &[], vec![flow("nightly")]);
    let id = world.submit("nightly");
    assert_eq!((world.state(id), world.stored(id).attempt), (State::Pending, 0));
    assert_eq!(world.effects, [Effect::Offer { pool: "default".into(), project: "shop".into() }]);
    let leased = world.take("engine-1").unwrap();
    assert_eq!((leased.id, leased.attempt, leased.file.as_str()), (id, 1, "nightly.py"));
    assert_eq!(world.state(id), State::Pending);
    world.now = world.now.plus(seconds(1));
    let body = Body { id, fence: leased.fence };
    assert_eq!(world.beat(body), Ok(false));
    assert_eq!((world.stored(id).attempt, world.stored(id).started_at), (1, Some(world.now)));
    world.complete(body).unwrap();
    let run = world.stored(id);
    assert_eq!((run.state, run.result.clone(), run.ended_at), (State::Completed, Some(7.into()), Some(world.now)));
    let states = [State::Waiting, State::Pending, State::Running, State::Completed];
    assert_eq!(world.states_of(id), states);
    world.assert_idle();
}

#[test]
fn offers_are_taken_in_the_order_of_admission_and_by_project() {
    let mut world = World::new(3, &[], vec![flow("nightly")]);
    let other = mirab_flow::FlowSpec { project: "lab".into(), ..flow("nightly") };
    assert_eq!(world.run(|o, now| o.set_flows(now, "lab", vec![other])), []);
    let first = world.submit("shop/nightly");
    let of_lab = world.submit("lab/nightly");
    let second = world.submit("shop/nightly");
    assert_eq!(world.o().demand(), [("lab".to_owned(), 1), ("shop".to_owned(), 2)]);
    assert_eq!((world.start("engine-1").id, world.start("engine-2").id), (first, second));
    assert!(world.take("engine-3").is_none(), "run {} is not of this project", of_lab.0);
}

#[test]
fn what_the_gate_refuses_leaves_nothing_behind() {
    let mut world = World::new(1, &[semaphore("db", 2)], vec![flow("nightly")]);
    let commits = world.driver.journal().commits;
    let code = |answer: Result<_, Error>| answer.unwrap_err().code();
    assert_eq!(code(world.submit_needing("nightly", &[("dbb", 1)])), "UnknownResource");
    assert_eq!(code(world.submit_needing("nightly", &[("db", 3)])), "ResourceExceedsCapacity");
    assert_eq!(code(world.submit_needing("nightly", &[("db", 2), ("db", 2)])), "ResourceExceedsCapacity");
    for bad in ["pool:default", "flow:shop/nightly", "tag:x", "", "a\nb", "db*"] {
        assert_eq!(code(world.submit_needing("nightly", &[(bad, 1)])), "InvalidResource", "{bad:?}");
    }
    assert_eq!(code(world.submit_needing("nightly", &[("db", 0)])), "InvalidResource");
    assert_eq!(world.driver.journal().commits, commits);
    assert_eq!(world.submit("nightly").0, 1, "a refused run uses no number");
}

#[test]
fn a_run_takes_options_over_from_its_flow() {
    let spec = mirab_flow::FlowSpec {
        priority: 5,
        needs: owned(&[("db", 1), ("gpu", 1)]),
        tags: vec!["heavy".into(), "night".into()],
        max_concurrent: Some(3),
        ..flow("nightly")
    };
    let resources = [semaphore("db", 4), semaphore("gpu", 1), semaphore("tag:heavy", 1), semaphore("tag:ab", 2)];
    let mut world = World::new(1, &resources, vec![spec]);
    let new = NewRun { needs: owned(&[("db", 3)]), tags: vec!["ab".into(), "heavy".into()], ..new_run("nightly") };
    let id = world.create(new).unwrap();
    let run = world.stored(id);
    let needs = [("db", 3), ("flow:shop/nightly", 1), ("gpu", 1), ("pool:default", 1), ("tag:ab", 1), ("tag:heavy", 1)];
    assert_eq!((run.needs.clone(), run.priority), (owned(&needs), 5));
    assert_eq!(run.tags, ["ab", "heavy", "night"]);
}

#[test]
fn the_same_idempotency_key_is_the_same_run_also_after_its_end_and_a_restart() {
    let mut world = World::new(1, &[], vec![flow("nightly")]);
    let new = NewRun { idempotency_key: Some("once".into()), ..new_run("nightly") };
    let id = world.create(new.clone()).unwrap();
    assert_eq!(world.run(|o, now| o.create_run(now, new.clone())), Ok(Created::Existing(id)));
    let body = world.start("engine-1");
    world.complete(body).unwrap();
    world.restart(1, &[], vec![flow("nightly")]);
    assert_eq!(world.run(|o, now| o.create_run(now, new)), Ok(Created::Existing(id)));
    assert!(world.submit("nightly") > id);
}

#[test]
fn a_run_due_later_joins_the_line_at_its_time() {
    let mut world = World::new(1, &[semaphore("db", 1)], vec![flow("nightly")]);
    let due_at = world.now.plus(seconds(60));
    let later = NewRun { due_at: Some(due_at), ..new_run("nightly") };
    let refused = world.create(NewRun { needs: owned(&[("dbb", 1)]), ..later.clone() });
    assert_eq!(refused.unwrap_err().code(), "UnknownResource");
    let id = world.create(NewRun { needs: owned(&[("db", 1)]), ..later }).unwrap();
    assert_eq!((world.state(id), world.o().gate().waiting()), (State::Scheduled, 0));
    world.pass(seconds(60) - 1);
    assert_eq!(world.state(id), State::Scheduled);
    world.pass(1);
    assert_eq!((world.state(id), world.stored(id).place.unwrap().joined_at), (State::Pending, due_at));
}

#[test]
fn a_scheduled_run_that_became_impossible_fails_with_the_code() {
    let mut world = World::new(1, &[semaphore("db", 2)], vec![flow("nightly")]);
    let due_at = Some(world.now.plus(seconds(60)));
    let id = world.create(NewRun { due_at, needs: owned(&[("db", 2)]), ..new_run("nightly") }).unwrap();
    let limit = mirab_core::Limit::Semaphore { permits: 1 };
    world.run(|o, now| o.set_limit(now, "db", limit)).unwrap();
    world.pass(seconds(60));
    let run = world.stored(id);
    assert_eq!((run.state, run.error.as_ref().unwrap().kind.as_str()), (State::Failed, "ResourceExceedsCapacity"));
    world.assert_idle();
}

#[test]
fn cancel_ends_what_does_not_execute_at_once() {
    let mut world = World::new(1, &[], vec![retrying("nightly", 1, seconds(60)), flow("other")]);
    let due_at = Some(world.now.plus(seconds(600)));
    let scheduled = world.create(NewRun { due_at, ..new_run("other") }).unwrap();
    let retrying = world.submit("nightly");
    let body = world.start("engine-1");
    world.fail(body).unwrap();
    let pending = world.submit("other");
    let waiting = world.submit("other");
    let states = [State::Scheduled, State::AwaitingRetry, State::Pending, State::Waiting];
    assert_eq!([scheduled, retrying, pending, waiting].map(|id| world.state(id)), states);
    for id in [scheduled, retrying, waiting, pending] {
        assert_eq!(world.cancel(id).unwrap().state, State::Cancelled);
        assert_eq!(world.cancel(id), Err(Error::UnknownRun(id)), "not live any more");
    }
    world.assert_idle();
    assert_eq!(world.driver.poll_timeout(), None);
}

fn retrying(name: &str, retries: u32, retry_delay: u64) -> mirab_flow::FlowSpec {
    mirab_flow::FlowSpec { retries, retry_delay, ..flow(name) }
}

#[test]
fn case_a9_a_cancelled_holder_gives_back_when_its_body_ends() {
    let mut world = World::new(2, &[semaphore("db", 1)], vec![flow("nightly")]);
    let holder = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let next = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let body = world.start("engine-1");
    assert_eq!(world.cancel(holder).unwrap().state, State::Cancelling);
    assert!(world.effects.contains(&Effect::StopBody { run: holder, worker: "engine-1".into() }));
    assert_eq!((world.beat(body), world.used("db"), world.state(next)), (Ok(true), 1, State::Waiting));
    world.run(|o, now| o.fail(now, body.id, body.fence, failure(), true)).unwrap();
    assert_eq!((world.state(holder), world.state(next)), (State::Cancelled, State::Pending));
}

/// The part of A12 that is here: a run that is taken out of the way leaves nothing locked. (Rows cannot be deleted yet.)
#[test]
fn case_a12_what_a_cancelled_run_held_goes_on_in_the_commit_that_ends_it() {
    let mut world = World::new(2, &[semaphore("db", 1)], vec![flow("nightly")]);
    let offered = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let next = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let commits = world.driver.journal().commits;
    world.cancel(offered).unwrap();
    assert_eq!((world.state(offered), world.state(next)), (State::Cancelled, State::Pending));
    let journal = world.driver.journal();
    assert_eq!((journal.commits, journal.leases.keys().collect::<Vec<_>>()), (commits + 1, vec![&next]));
}

#[test]
fn a_body_that_does_not_stop_is_killed_after_the_grace_and_ends_cancelled() {
    let mut world = World::new(1, &[], vec![mirab_flow::FlowSpec { crash_retries: 3, ..flow("nightly") }]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    world.cancel(id).unwrap();
    let told = world.driver.journal().events.len();
    assert_eq!(world.cancel(id).unwrap().state, State::Cancelling);
    assert_eq!(world.driver.journal().events.len(), told, "asking again changes nothing");
    let kill = |world: &World| world.effects.iter().any(|effect| matches!(effect, Effect::KillWorker { .. }));
    world.pass(seconds(9));
    world.beat(body).unwrap();
    assert!(!kill(&world));
    world.pass(seconds(1));
    assert!(kill(&world));
    world.run(|o, now| o.worker_lost(now, "engine-1", "killed"));
    assert_eq!(world.state(id), State::Cancelled);
    world.assert_idle();
}

#[test]
fn a_body_that_ends_by_itself_after_a_cancel_is_cancelled_all_the_same() {
    for completes in [true, false] {
        let mut world = World::new(1, &[], vec![retrying("nightly", 1, 0)]);
        let id = world.submit("nightly");
        let body = world.start("engine-1");
        world.cancel(id).unwrap();
        if completes {
            world.complete(body).unwrap()
        } else {
            world.fail(body).unwrap()
        }
        assert_eq!((world.state(id), world.stored(id).result.clone()), (State::Cancelled, None));
        assert!(world.stored(id).message.as_ref().unwrap().contains("after a cancel was asked for"));
        world.assert_idle();
    }
}
