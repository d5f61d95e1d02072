//! Random histories: after every commit the orchestrator that is rebuilt from the store equals the one that wrote it.
use crate::memory::Memory;
use crate::world::*;
use mirab_core::{ClaimId, Explanation, Learner, Limit};
use mirab_flow::*;
use std::collections::BTreeMap;

/// A generator that gives the same numbers for the same seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, sides: usize) -> usize {
        (self.next() % sides as u64) as usize
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { Some(&of[self.below(of.len())]) }
    }
}

const WORKERS: [&str; 4] = ["engine-1", "engine-2", "engine-3", "engine-4"];
const NEEDS: [&[(&str, u64)]; 6] =
    [&[], &[("db", 1)], &[("db", 2), ("gpu", 1)], &[("api", 1)], &[("key:a", 1), ("gpu", 1)], &[("db", 3)]];

fn specs() -> Vec<FlowSpec> {
    let capped = |name: &str, overlap| FlowSpec { max_concurrent: Some(2), overlap, ..flow(name) };
    vec![
        FlowSpec { retries: 2, retry_delay: seconds(3), crash_retries: 1, ..flow("plain") },
        FlowSpec { needs: owned(&[("db", 1)]), crash_retries: 2, ..capped("queued", Overlap::Enqueue) },
        FlowSpec { tags: vec!["heavy".into()], priority: 3, ..capped("skipped", Overlap::Skip) },
        FlowSpec { priority: -1, ..capped("cancelled", Overlap::CancelNew) },
    ]
}

fn start() -> World {
    let resources = [
        semaphore("db", 3),
        semaphore("gpu", 1),
        bucket("api", 0.7, 3),
        semaphore("key:*", 1),
        semaphore("tag:heavy", 1),
    ];
    World::new(3, &resources, specs())
}

/// Bodies that execute, with their fences.
fn bodies(world: &World) -> Vec<Body> {
    let live = world.o().runs().filter(|run| matches!(run.state, State::Running | State::Cancelling));
    live.map(|run| Body { id: run.id, fence: world.o().lease(run.id).unwrap().fence }).collect()
}

fn act(world: &mut World, dice: &mut Dice) -> Result<(), StoreUnavailable> {
    let body = dice.pick(&bodies(world)).copied();
    let worker = WORKERS[dice.below(WORKERS.len())];
    match dice.below(16) {
        0..3 => create(world, dice),
        3..5 => take(world, dice, worker),
        5 => body.map_or(Ok(()), |body| end_body(world, dice, body)),
        6..9 => body.map_or(Ok(()), |body| claim(world, dice, body)),
        9..11 => body.map_or(Ok(()), |body| end_task(world, dice, body)),
        11 => {
            let ids: Vec<ClaimId> = world.o().runs().map(|run| run.id).collect();
            dice.pick(&ids).map_or(Ok(()), |id| world.try_run(|o, now| o.cancel_run(now, *id, "api")).map(drop))
        }
        12 => limits(world, dice, worker),
        13 => {
            let (ids, priority) = (world.o().runs().map(|run| run.id).collect::<Vec<_>>(), dice.below(5) as i32 - 2);
            dice.pick(&ids)
                .map_or(Ok(()), |id| world.try_run(|o, now| o.set_priority(now, *id, priority, "api")).map(drop))
        }
        14 => body.map_or(Ok(()), |body| tokens(world, dice, body)),
        _ => {
            world.pass(seconds(1) / 4 * dice.below(24) as u64);
            Ok(())
        }
    }
}

fn create(world: &mut World, dice: &mut Dice) -> Result<(), StoreUnavailable> {
    let spec = dice.pick(&specs()).unwrap().name.clone();
    let due_at = (dice.below(5) == 0).then(|| world.now.plus(seconds(dice.below(20) as u64)));
    let priority = (dice.below(4) == 0).then(|| dice.below(5) as i32 - 2);
    let new = NewRun { needs: owned(NEEDS[dice.below(NEEDS.len())]), due_at, priority, ..new_run(&spec) };
    world.try_run(|o, now| o.create_run(now, new)).map(drop)
}

fn take(world: &mut World, dice: &mut Dice, worker: &str) -> Result<(), StoreUnavailable> {
    // Mostly one that has nothing; sometimes one that lost its body.
    if world.o().leases_of_workers().iter().any(|(busy, _)| busy == worker) && dice.below(4) > 0 {
        return Ok(());
    }
    let request_id = dice.next().to_string();
    let ask = TakeLease { pool: POOL.into(), project: PROJECT.into(), worker: worker.into(), request_id };
    let leased = world.try_run(|o, now| o.take_lease(now, ask))?.unwrap();
    match leased {
        Some(leased) if dice.below(6) > 0 => {
            world.try_run(|o, now| o.heartbeat(now, leased.id, leased.fence)).map(drop)
        }
        _ => Ok(()),
    }
}

fn end_body(world: &mut World, dice: &mut Dice, body: Body) -> Result<(), StoreUnavailable> {
    let ended = match dice.below(3) {
        0 => world.try_run(|o, now| o.fail(now, body.id, body.fence, failure(), false))?,
        1 => world.try_run(|o, now| o.heartbeat(now, body.id, body.fence).map(drop))?,
        _ => world.try_run(|o, now| o.complete(now, body.id, body.fence, None))?,
    };
    // A lease that fell silent holds its units still, but nothing that is said about it counts.
    assert!(matches!(ended, Ok(()) | Err(Error::StaleLease { current: None, .. })), "{ended:?}");
    Ok(())
}

fn claim(world: &mut World, dice: &mut Dice, body: Body) -> Result<(), StoreUnavailable> {
    let running: Vec<ClaimId> =
        world.o().tasks_of(body.id).iter().filter(|task| task.state == State::Running).map(|task| task.id).collect();
    let parent = if dice.below(3) == 0 { dice.pick(&running).copied() } else { None };
    let key = format!("task-{}", dice.below(12));
    let needs = owned(NEEDS[dice.below(NEEDS.len())]);
    let task = NewTask { key, needs, parent, retries: 1, retry_delay: seconds(1), ..new_task("", &[]) };
    world.try_run(|o, now| o.claim_task(now, body.id, body.fence, task)).map(drop)
}

fn end_task(world: &mut World, dice: &mut Dice, body: Body) -> Result<(), StoreUnavailable> {
    let ids: Vec<ClaimId> = world.o().tasks_of(body.id).iter().map(|task| task.id).collect();
    let outcome = [Outcome::Completed, Outcome::Failed, Outcome::Cancelled][dice.below(3)];
    let Some(id) = dice.pick(&ids).copied() else { return Ok(()) };
    world.try_run(|o, now| o.end_task(now, body.id, body.fence, id, outcome, None)).map(drop)
}

/// A body says what it used of the bucket, or that the far side asked for a pause.
fn tokens(world: &mut World, dice: &mut Dice, body: Body) -> Result<(), StoreUnavailable> {
    let ids: Vec<ClaimId> = world.o().tasks_of(body.id).iter().map(|task| task.id).collect();
    let (task, much) = (dice.pick(&ids).copied(), dice.below(5) as u64);
    if dice.below(3) == 0 {
        world.try_run(|o, now| o.cool_down(now, body.id, body.fence, task, "api", seconds(much))).map(drop)
    } else {
        world.try_run(|o, now| o.settle_tokens(now, body.id, body.fence, task, "api", much)).map(drop)
    }
}

fn limits(world: &mut World, dice: &mut Dice, worker: &str) -> Result<(), StoreUnavailable> {
    match dice.below(5) {
        0 => {
            let burst = 3 + dice.below(2) as u64;
            world.try_run(|o, now| o.set_limit(now, "api", bucket("api", 0.7, burst).limit)).map(drop)
        }
        1 => {
            let limit = Limit::Semaphore { permits: 2 + dice.below(3) as u64 };
            world.try_run(|o, now| o.set_limit(now, "db", limit)).map(drop)
        }
        2 => world.try_run(|o, now| o.set_slots(now, 2 + dice.below(3) as u64)).map(drop),
        _ => world.try_run(|o, now| o.worker_lost(now, worker, "gone")),
    }
}

/// All that must be the same after a restart.
fn picture(o: &Orchestrator) -> String {
    let runs: Vec<_> = o.runs().collect();
    let tasks: Vec<_> = runs.iter().flat_map(|run| o.tasks_of(run.id)).collect();
    let leases: Vec<_> =
        runs.iter().map(|run| run.id).chain(tasks.iter().map(|task| task.id)).filter_map(|id| o.lease(id)).collect();
    let kinds = ["plain", "plain/load", "queued", "queued/load", "skipped", "cancelled"].map(|kind| {
        let kind = format!("{PROJECT}/{kind}");
        o.gate().durations(Learner::Kind(&kind))
    });
    let names =
        ["db", "gpu", "api", "key:*"].map(|name| (o.gate().durations(Learner::Resource(name)), o.gate().most(name)));
    let learned = (kinds, names, o.gate().bucket_state("api"));
    let line = o.gate().line(10_000);
    let why: Vec<_> = line.iter().take(5).filter_map(|id| o.gate().explain(*id)).map(without_memory).collect();
    let live = (line, why, o.resources(), o.demand(), o.leases_of_workers(), o.counters());
    format!("{runs:#?}\n{tasks:#?}\n{leases:#?}\n{live:#?}\n{learned:#?}")
}

/// Which starts passed a claim is remembered in memory only.
fn without_memory(mut explanation: Explanation) -> Explanation {
    explanation.blocked_on.iter_mut().for_each(|blocked| blocked.passed_by.clear());
    explanation
}

fn rebuilt(world: &World) -> (Orchestrator, Step) {
    let mut o = Orchestrator::restore_declared(world.o().declarations(), world.driver.journal().stored(), world.now);
    let step = o.take_step();
    (o, step)
}

fn check(world: &World, what: &str) {
    let (again, step) = rebuilt(world);
    assert_eq!(step.facts, [], "{what}: nothing was left to decide");
    let (live, stored) = (picture(world.o()), picture(&again));
    if live != stored {
        let differs = live.lines().zip(stored.lines()).find(|(a, b)| a != b);
        panic!("{what}: live and rebuilt differ: {differs:?}");
    }
    assert_held_is_the_sum_of_leases(world.driver.journal(), world.o(), what);
    for run in world.o().runs() {
        let holds = matches!(run.state, State::Pending | State::Running | State::Cancelling);
        assert_eq!(world.o().lease(run.id).is_some(), holds, "{what}: run {} is {}", run.id.0, run.state);
    }
}

fn assert_held_is_the_sum_of_leases(journal: &Memory, o: &Orchestrator, what: &str) {
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, units) in journal.leases.values().flat_map(|lease| &lease.takes) {
        *used.entry(name).or_default() += units;
    }
    for resource in o.resources() {
        assert_eq!(resource.used, used.remove(resource.name.as_str()).unwrap_or(0), "{what}: {}", resource.name);
    }
    assert!(used.is_empty(), "{what}: {used:?}");
}

/// Ends everything, so that nothing may be left.
fn wind_up(world: &mut World) {
    world.driver.journal_mut().failing_commits = 0;
    let _ = world.try_run(|_, _| ());
    for id in world.o().runs().map(|run| run.id).collect::<Vec<_>>() {
        world.cancel(id).unwrap();
    }
    for worker in WORKERS {
        world.run(|o, now| o.worker_lost(now, worker, "shut down"));
    }
    world.assert_idle();
}

#[test]
fn replaying_the_facts_gives_the_same_state_wherever_they_are_cut() {
    for seed in 0..150 {
        let (mut world, mut dice) = (start(), Dice(seed));
        for step in 0..250 {
            act(&mut world, &mut dice).unwrap();
            world.run(|o, now| o.handle_timeout(now)); // A gate counts tokens as of its latest call.
            check(&world, &format!("seed {seed}, step {step}"));
        }
        wind_up(&mut world);
    }
}

#[test]
fn commits_that_fail_lose_nothing_and_start_nothing() {
    for seed in 1_000..1_080 {
        let (mut world, mut dice) = (start(), Dice(seed));
        for step in 0..250 {
            let what = format!("seed {seed}, step {step}");
            if dice.below(6) == 0 {
                world.driver.journal_mut().failing_commits = 1;
                world.driver.journal_mut().failing_loads = dice.below(2) as u32;
            }
            let effects = world.effects.len();
            let failed = act(&mut world, &mut dice).is_err();
            if failed {
                assert!(world.driver.unavailable().is_some(), "{what}");
                assert_eq!(world.effects.len(), effects, "{what}: what was not committed has no effect");
            }
            if world.try_run(|o, now| o.handle_timeout(now)).is_ok() {
                check(&world, &what);
            }
        }
        while world.driver.unavailable().is_some() {
            world.pass(STORE_RETRY);
        }
        wind_up(&mut world);
    }
}

#[test]
fn the_same_seed_gives_the_same_facts() {
    let facts = |seed| {
        let (mut world, mut dice) = (start(), Dice(seed));
        for _ in 0..300 {
            act(&mut world, &mut dice).unwrap();
        }
        format!("{:?} {:?}", world.driver.journal(), world.effects)
    };
    assert_eq!(facts(7), facts(7));
    assert_ne!(facts(7), facts(8));
}
