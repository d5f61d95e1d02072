use crate::world::*;
use mirab_core::ClaimId;
use mirab_flow::{Driver, Effect, Fact, FlowSpec, Outcome, State};

fn spec() -> FlowSpec {
    FlowSpec { needs: owned(&[("db", 1)]), crash_retries: 1, ..flow("nightly") }
}

#[test]
fn case_r1_units_are_held_over_a_restart_until_their_body_ends() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![spec()]);
    let first = world.submit("nightly");
    let body = world.start("engine-1");
    let waiting: Vec<ClaimId> = (0..20).map(|_| world.submit("nightly")).collect();
    world.restart(4, &[semaphore("db", 1)], vec![spec()]);
    assert_eq!((world.state(first), world.used("db")), (State::Running, 1));
    assert!(waiting.iter().all(|id| world.state(*id) == State::Waiting));
    world.pass(seconds(14));
    assert_eq!(world.beat(body), Ok(false), "a fresh life, and the same fence");
    world.complete(body).unwrap();
    for id in waiting {
        assert_eq!(world.state(id), State::Pending, "in the old order");
        let body = world.start("engine-1");
        world.complete(body).unwrap();
    }
    world.assert_idle();
}

#[test]
fn a_lease_whose_worker_died_meanwhile_lapses_after_one_more_life() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![spec()]);
    let id = world.submit("nightly");
    world.start("engine-1");
    world.now = world.now.plus(seconds(3_600));
    world.restart(4, &[semaphore("db", 1)], vec![spec()]);
    world.pass(seconds(15) - 1);
    assert_eq!(world.state(id), State::Running);
    world.pass(1);
    world.run(|o, now| o.worker_lost(now, "engine-1", "no heartbeat for 15 s"));
    assert_eq!((world.state(id), world.stored(id).crashes), (State::Pending, 1));
}

#[test]
fn offers_are_made_again_and_a_taken_hand_off_is_still_good() {
    let mut world = World::new(4, &[semaphore("db", 2)], vec![spec()]);
    let ids = [world.submit("nightly"), world.submit("nightly")];
    let taken = world.take_again("engine-1", "a").unwrap();
    world.restart(4, &[semaphore("db", 2)], vec![spec()]);
    assert_eq!(world.effects.iter().filter(|effect| matches!(effect, Effect::Offer { .. })).count(), 1);
    assert_eq!(world.take_again("engine-1", "a"), Some(taken));
    assert_eq!(world.start("engine-2").id, ids[1]);
}

#[test]
fn tasks_go_on_over_a_restart() {
    let mut world = World::new(4, &[semaphore("db", 1), semaphore("gpu", 1)], vec![flow("nightly"), spec()]);
    world.set_flows(vec![flow("nightly")]);
    world.submit("nightly");
    world.submit("nightly");
    let (first, second) = (world.start("engine-1"), world.start("engine-2"));
    let holds = world.claim(first, "a", &[("db", 1)]).unwrap();
    let inner = mirab_flow::NewTask { parent: Some(holds.id), ..new_task("inner", &[("db", 1)]) };
    let inner = world.claim_task(first, inner).unwrap();
    let waits = world.claim(second, "a", &[("db", 1)]).unwrap();
    world.restart(4, &[semaphore("db", 1), semaphore("gpu", 1)], vec![flow("nightly")]);
    assert_eq!(world.used("db"), 1);
    assert_eq!(world.claim(first, "a", &[("db", 1)]), Ok(holds), "same id, fence and attempt");
    assert_eq!(world.claim(second, "a", &[("db", 1)]), Ok(waits));
    assert_eq!(world.end(first, inner.id, Outcome::Completed), Ok(None));
    assert_eq!(world.end(first, holds.id, Outcome::Completed), Ok(None));
    assert_eq!(world.claim(second, "a", &[("db", 1)]).unwrap().state, State::Running);
}

#[test]
fn a_cancel_that_was_asked_for_goes_on() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![spec()]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    world.cancel(id).unwrap();
    world.restart(4, &[semaphore("db", 1)], vec![spec()]);
    assert!(world.effects.contains(&Effect::StopBody { run: id, worker: "engine-1".into() }));
    assert_eq!(world.beat(body), Ok(true));
    world.pass(seconds(10));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::KillWorker { .. })));
}

#[test]
fn a_body_without_a_stored_lease_counts_as_crashed() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![spec()]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    let task = world.claim(body, "a", &[]).unwrap();
    let mut journal = world.driver.journal().clone();
    mirab_flow::Journal::commit(&mut journal, &[Fact::LeaseEnded(id), Fact::LeaseEnded(task.id)]).unwrap();
    world.driver = Driver::open(journal, options(4, &[semaphore("db", 1)]), world.now).unwrap();
    world.run(|_, _| ());
    assert_eq!((world.state(id), world.stored(id).crashes, world.used("db")), (State::Pending, 1, 1));
    assert_eq!(world.task_state(task.id), State::Crashed);
}

#[test]
fn a_lease_without_a_body_is_dropped() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![spec()]);
    let id = world.submit("nightly");
    let body = world.start("engine-1");
    let lease = world.driver.journal().leases[&id].clone();
    world.complete(body).unwrap();
    let mut journal = world.driver.journal().clone();
    mirab_flow::Journal::commit(&mut journal, &[Fact::Lease(lease)]).unwrap();
    world.driver = Driver::open(journal, options(4, &[semaphore("db", 1)]), world.now).unwrap();
    world.run(|_, _| ());
    world.assert_idle();
}

#[test]
fn an_empty_store_has_nothing_to_say() {
    let mut driver = Driver::open(crate::memory::Memory::default(), options(1, &[]), mirab_core::Time(0)).unwrap();
    assert_eq!((driver.commit(mirab_core::Time(0)), driver.journal().commits), (Ok(vec![]), 0));
}

#[test]
fn a_run_of_a_project_that_is_not_served_any_more_waits_without_holding_anything() {
    let mut world = World::new(4, &[semaphore("db", 1)], vec![spec()]);
    let id = world.submit("nightly");
    let options = world.o().declarations().options.clone();
    let stored = world.driver.journal().stored();
    let mut o = mirab_flow::Orchestrator::restore(options, stored, world.now);
    o.handle_timeout(world.now.plus(seconds(5)));
    assert_eq!((o.run(id).unwrap().state, o.gate().waiting()), (State::Waiting, 0));
    assert_eq!(o.resources().iter().map(|resource| resource.used).sum::<u64>(), 0);
    assert!(o.why(world.now, id).unwrap().reason.contains("is not served"));
    assert_eq!(o.poll_timeout(), None);
    assert_eq!(o.set_flows(world.now, PROJECT, vec![spec()]), []);
    assert_eq!(o.run(id).unwrap().state, State::Pending);
}
