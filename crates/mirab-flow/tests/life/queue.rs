use crate::world::*;
use mirab_flow::{NewRun, NewTask, Shown, Who};

#[test]
fn case_r23_waiting_for_an_engine_is_its_own_reason() {
    let mut world = World::new(2, &[semaphore("db", 1)], vec![flow("nightly")]);
    let ids = [(); 3].map(|()| world.submit("nightly"));
    let row = world.o().queue(world.now, 10).waiting.remove(0);
    assert_eq!((row.id, row.shown, row.reason.as_str()), (ids[2], Shown::Queued, "all 2 engines are busy"));
    assert!(world.told(ids[2], "resource.exhausted").is_empty());
    world.run(|o, now| o.set_slots(now, 0));
    let reason = |world: &World| world.o().queue(world.now, 10).waiting[0].reason.clone();
    assert_eq!(reason(&world), "engines are paused: max_engines is 0");
    world.run(|o, now| o.set_slots(now, 1));
    assert_eq!(reason(&world), "the only engine is busy");
}

#[test]
fn case_k1_and_r38_every_shortage_is_named_with_who_holds_since_when() {
    let mut world = World::new(1, &[semaphore("db", 1), semaphore("gpu", 1)], vec![flow("nightly"), flow("train")]);
    world.submit_needing("train", &[("db", 1), ("gpu", 1)]).unwrap();
    world.start("engine-1");
    let id = world.submit_needing("nightly", &[("db", 1), ("gpu", 1)]).unwrap();
    world.now = world.now.plus(seconds(12));
    let view = world.o().queue(world.now, 10);
    let row = &view.waiting[0];
    assert_eq!((view.total, row.id, row.position, row.shown), (1, id, 1, Shown::AwaitingResource));
    assert_eq!(
        row.reason,
        "needs 1 of `db`, 0 of 1 free: held by run 1 (train) for 12 s; \
         needs 1 of `gpu`, 0 of 1 free: held by run 1 (train) for 12 s"
    );
    let mut resources: Vec<&str> = row.explanation.blocked_on.iter().map(|blocked| blocked.resource.as_str()).collect();
    resources.sort_unstable();
    assert_eq!(resources, ["db", "gpu", "pool:default"]);
    assert_eq!(world.told(id, "resource.exhausted"), ["needs 1 of `db`, 0 free"]);
}

#[test]
fn case_r8_a_waiting_task_is_in_the_line_with_its_holder() {
    let mut world = World::new(2, &[semaphore("db", 1)], vec![flow("nightly")]);
    world.submit("nightly");
    world.submit("nightly");
    let (first, second) = (world.start("engine-1"), world.start("engine-2"));
    let holds = world.claim(first, "a", &[("db", 1)]).unwrap();
    world.now = world.now.plus(seconds(1) / 2);
    let waits = world.claim(second, "a", &[("db", 1)]).unwrap();
    let row = world.o().queue(world.now, 10).waiting.remove(0);
    assert_eq!((row.id, row.is_task, row.run, row.name.as_str()), (waits.id, true, second.id, "nightly/load"));
    assert_eq!(row.shown, Shown::AwaitingResource);
    assert_eq!(row.reason, "needs 1 of `db`, 0 of 1 free: held by task 3 (nightly/load) of run 1 for 0.5 s");
    let why = world.o().why(world.now, second.id).unwrap();
    assert!(why.reason.starts_with("its task nightly/load waits: needs 1 of `db`"), "{}", why.reason);
    assert_eq!((why.waiting.len(), why.waiting[0].position), (1, 1));
    let who = Who { run: first.id, is_task: true, name: "nightly/load".into() };
    assert_eq!(world.o().describe(holds.id), Some(who));
}

#[test]
fn work_that_is_held_back_says_for_whom() {
    let mut world = World::new(4, &[semaphore("db", 2)], vec![flow("nightly")]);
    world.submit_needing("nightly", &[("db", 1)]).unwrap();
    // From now on the next one would end after the first, so that it would delay the large one.
    world.pass(seconds(1));
    let big = world.submit_needing("nightly", &[("db", 2)]).unwrap();
    let small = world.submit_needing("nightly", &[("db", 1)]).unwrap();
    let rows = world.o().queue(world.now, 10).waiting;
    assert_eq!((rows[0].id, rows[1].id), (big, small));
    assert_eq!(rows[1].reason, "`db` has 1 free, kept for run 2 (nightly) ahead of it");
    assert_eq!(rows[1].explanation.blocked_on[0].behind, [big]);
}

#[test]
fn buckets_say_when() {
    let mut world = World::new(4, &[bucket("api", 0.5, 1)], vec![flow("nightly")]);
    world.submit_needing("nightly", &[("api", 1)]).unwrap();
    world.submit_needing("nightly", &[("api", 1)]).unwrap();
    world.now = world.now.plus(seconds(1) / 2);
    world.run(|o, now| o.handle_timeout(now));
    assert_eq!(world.o().queue(world.now, 1).waiting[0].reason, "needs 1 of `api`, 0 of 1 free, enough in 1.5 s");
    // The tokens of that moment are not for those behind.
    world.submit_needing("nightly", &[("api", 1)]).unwrap();
    world.submit_needing("nightly", &[("api", 1)]).unwrap();
    let reasons: Vec<_> = world.o().queue(world.now, 9).waiting.into_iter().skip(1).map(|row| row.reason).collect();
    assert_eq!(
        reasons,
        ["needs 1 of `api`, 0 of 1 free, 1 ahead of it", "needs 1 of `api`, 0 of 1 free, 2 ahead of it"]
    );
}

#[test]
fn one_unit_in_all_is_told_in_the_singular() {
    let mut world = World::new(1, &[semaphore("db", 1), semaphore("gpu", 2)], vec![flow("nightly")]);
    let mut refused = |name: &str| world.submit_needing("nightly", &[(name, 3)]).unwrap_err().to_string();
    assert!(refused("db").contains("but there is 1 in all"));
    assert!(refused("gpu").contains("but there are 2 in all"));
}

#[test]
fn a_task_is_explained_by_its_own_id() {
    let mut world = World::new(2, &[semaphore("db", 1)], vec![flow("nightly")]);
    world.submit("nightly");
    world.submit("nightly");
    let (first, second) = (world.start("engine-1"), world.start("engine-2"));
    let holds = world.claim(first, "a", &[("db", 1)]).unwrap();
    let other = world.claim(second, "a", &[("db", 1)]).unwrap();
    let waits = world.claim(second, "b", &[("db", 1)]).unwrap();
    let why = |world: &World, id| world.o().why(world.now, id).unwrap();
    let waiting = why(&world, waits.id);
    assert_eq!(waiting.who, Who { run: second.id, is_task: true, name: "nightly/load".into() });
    assert_eq!((waiting.shown, waiting.waiting.len(), waiting.waiting[0].id), (Shown::AwaitingResource, 1, waits.id));
    assert_eq!(waiting.reason, waiting.waiting[0].reason);
    assert_eq!(why(&world, second.id).waiting.len(), 2);
    let holding = why(&world, holds.id);
    assert_eq!((holding.reason.as_str(), holding.waiting.len()), ("it has been executing for 0.0 s", 0));
    world.end(first, holds.id, mirab_flow::Outcome::Completed).unwrap();
    assert_eq!(why(&world, holds.id).reason, "it ended 0.0 s ago");
    assert_eq!(why(&world, other.id).shown, Shown::As(mirab_flow::State::Running));
}

#[test]
fn the_line_is_in_order_of_rank_and_counts_all() {
    let mut world = World::new(1, &[], vec![flow("nightly")]);
    world.submit("nightly");
    let ids = [0, 5, 5, -1].map(|p| world.create(NewRun { priority: Some(p), ..new_run("nightly") }).unwrap());
    let view = world.o().queue(world.now, 3);
    let rows: Vec<_> = view.waiting.iter().map(|row| (row.position, row.id, row.priority)).collect();
    assert_eq!((view.total, rows), (4, vec![(1, ids[1], 5), (2, ids[2], 5), (3, ids[0], 0)]));
    let why = world.o().why(world.now, ids[3]).unwrap();
    assert_eq!((why.waiting[0].position, why.reason.as_str()), (4, "the only engine is busy"));
}

#[test]
fn every_live_state_has_a_reason() {
    let mut world =
        World::new(1, &[], vec![mirab_flow::FlowSpec { retries: 1, retry_delay: seconds(90), ..flow("n") }]);
    let reason = |world: &World, id| world.o().why(world.now, id).unwrap().reason;
    let due_at = Some(world.now.plus(seconds(7_200)));
    let scheduled = world.create(NewRun { due_at, ..new_run("n") }).unwrap();
    assert_eq!(reason(&world, scheduled), "due in 2 h");
    let id = world.submit("n");
    assert_eq!(reason(&world, id), "offered to an engine for 0.0 s");
    let body = world.start("engine-1");
    assert_eq!(reason(&world, id), "it has been executing for 0.0 s");
    world.fail(body).unwrap();
    assert_eq!(reason(&world, id), "its next attempt is due in 90 s");
    world.pass(seconds(90));
    world.start("engine-1");
    world.cancel(id).unwrap();
    assert_eq!(reason(&world, id), "asked to stop 0.0 s ago");
    assert_eq!(world.o().why(world.now, mirab_core::ClaimId(99)), None);
}

#[test]
fn nested_tasks_wait_for_their_siblings() {
    let spec = mirab_flow::FlowSpec { needs: owned(&[("db", 1)]), ..flow("nightly") };
    let mut world = World::new(1, &[semaphore("db", 1)], vec![spec]);
    world.submit("nightly");
    let body = world.start("engine-1");
    world.claim(body, "a", &[("db", 1)]).unwrap();
    world.claim_task(body, NewTask { name: "save".into(), ..new_task("b", &[("db", 1)]) }).unwrap();
    let row = world.o().queue(world.now, 10).waiting.remove(0);
    assert_eq!((row.name.as_str(), row.shown), ("nightly/save", Shown::AwaitingResource));
    assert_eq!(row.reason, "needs 1 of `db`, 0 of 1 free: held by task 2 (nightly/load) of run 1 for 0.0 s");
}
