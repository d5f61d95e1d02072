//! Token buckets whose declaration goes and comes back: never full for nothing.
use crate::world::*;
use mirab_core::{ClaimId, Limit, ResourceConfig};
use mirab_flow::State;

/// A bucket of five that fills in 500 s.
fn slow(name: &str) -> ResourceConfig {
    bucket(name, 0.01, 5)
}

/// All that `name` has is taken, the true cost was twice that, and the far side asked for a pause of 600 s.
fn indebted(declared: &str, name: &str) -> World {
    let mut world = World::new(8, &[slow(declared)], vec![flow("nightly")]);
    world.submit_needing("nightly", &[(name, 5)]).unwrap();
    let body = world.start("engine-1");
    world.run(|o, now| o.settle_tokens(now, body.id, body.fence, None, name, 10)).unwrap();
    world.run(|o, now| o.cool_down(now, body.id, body.fence, None, name, seconds(600))).unwrap();
    world.complete(body).unwrap();
    world
}

/// One token of minus five is there after 600 s, so it is the pause that counts; five of them are there after 1,000 s.
fn assert_still_indebted(world: &mut World, name: &str) {
    let [one, five] = [1, 5].map(|units| world.submit_needing("nightly", &[(name, units)]).unwrap());
    let states = |world: &World, ids: [ClaimId; 2]| ids.map(|id| world.state(id));
    assert_eq!(states(world, [one, five]), [State::Waiting; 2]);
    world.pass(seconds(600) - 1);
    assert_eq!(states(world, [one, five]), [State::Waiting; 2]);
    world.pass(1);
    assert_eq!(states(world, [one, five]), [State::Pending, State::Waiting]);
    world.cancel(one).unwrap();
    world.pass(seconds(500) - 1);
    assert_eq!(world.state(five), State::Waiting);
    world.pass(1);
    assert_eq!(world.state(five), State::Pending);
}

fn remove(world: &mut World, name: &str) {
    world.run(|o, now| o.remove_resource(now, name)).unwrap();
}

fn declare(world: &mut World, config: ResourceConfig) {
    world.run(|o, now| o.declare(now, config)).unwrap();
}

#[test]
fn a_bucket_that_is_declared_again_goes_on_from_its_balance() {
    let mut world = indebted("slow", "slow");
    remove(&mut world, "slow");
    declare(&mut world, slow("slow"));
    assert_still_indebted(&mut world, "slow");
}

#[test]
fn the_same_with_restarts_on_the_way() {
    for restart_when in 0..3 {
        let mut world = indebted("slow", "slow");
        let restart = |world: &mut World, when: usize, declared: &[ResourceConfig]| {
            if when == restart_when {
                world.restart(8, declared, vec![flow("nightly")]);
            }
        };
        restart(&mut world, 0, &[]);
        if restart_when > 0 {
            remove(&mut world, "slow");
        }
        restart(&mut world, 1, &[]);
        declare(&mut world, slow("slow"));
        restart(&mut world, 2, &[slow("slow")]);
        assert_still_indebted(&mut world, "slow");
    }
}

#[test]
fn a_bucket_that_was_a_semaphore_or_of_another_shard_meanwhile_goes_on_too() {
    let mut world = indebted("slow", "slow");
    declare(&mut world, semaphore("slow", 3));
    declare(&mut world, slow("slow").in_shard("eu"));
    declare(&mut world, semaphore("slow", 3));
    let limit = slow("slow").limit;
    world.run(|o, now| o.set_limit(now, "slow", limit)).unwrap();
    assert_still_indebted(&mut world, "slow");
}

#[test]
fn who_waits_for_a_semaphore_that_becomes_a_bucket_again_gets_no_token_for_nothing() {
    let mut world = indebted("slow", "slow");
    declare(&mut world, semaphore("slow", 1));
    let holds = world.submit_needing("nightly", &[("slow", 1)]).unwrap();
    let waits = world.submit_needing("nightly", &[("slow", 1)]).unwrap();
    declare(&mut world, slow("slow"));
    assert_eq!(world.state(waits), State::Waiting);
    world.cancel(holds).unwrap();
    world.pass(seconds(600));
    assert_eq!(world.state(waits), State::Pending);
}

#[test]
fn keys_of_a_pattern_keep_their_balances_whatever_declares_them() {
    let mut world = indebted("api:*", "api:a");
    remove(&mut world, "api:*");
    declare(&mut world, slow("api:*"));
    declare(&mut world, semaphore("api:a", 1));
    remove(&mut world, "api:a");
    declare(&mut world, slow("api:a"));
    remove(&mut world, "api:a");
    let other = world.submit_needing("nightly", &[("api:b", 5)]).unwrap();
    assert_eq!(world.state(other), State::Pending);
    world.cancel(other).unwrap();
    assert_still_indebted(&mut world, "api:a");
}

#[test]
fn what_would_be_full_by_now_is_forgotten() {
    let mut world = indebted("slow", "slow");
    remove(&mut world, "slow");
    world.pass(seconds(1_000));
    declare(&mut world, ResourceConfig { limit: Limit::TokenBucket { rate: rate(1), burst: 7 }, ..slow("slow") });
    let all = world.submit_needing("nightly", &[("slow", 7)]).unwrap();
    assert_eq!(world.state(all), State::Pending);
}

fn rate(units: u64) -> mirab_core::Rate {
    mirab_core::Rate::per(units, 1_000).unwrap()
}
