//! Cases Q1, Q2 and B12: no wake-up is lost, and nobody waits for a lock whose holder waits for him.
use crate::host::Host;
use crate::wakers::{Topic, Wakers};
use crate::world::{World, claim, look, offers, release, serve, submit, take, take_or_end, task, tell_to_end};
use mirab_flow::State;
use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread;
use shuttle::{Config, Runner};
use std::sync::Arc;

/// How many schedules are tried; many more where time does not matter.
fn rounds(few: usize) -> usize {
    if std::env::var_os("MIRAB_SOAK").is_some() { few * 50 } else { few }
}

/// A thread that waits for ever is a deadlock to the checker, which then tells the schedule.
fn run(scheduler: impl Scheduler + 'static, scenario: fn()) {
    let mut config = Config::new();
    // The machines need more than the checker's small stacks.
    config.stack_size = 1 << 20;
    Runner::new(scheduler, config).run(scenario);
}

fn check(few: usize, scenario: fn()) {
    run(RandomScheduler::new(rounds(few)), scenario);
    run(PctScheduler::new(3, rounds(few)), scenario);
}

fn both(world: &World) -> (Host, Wakers) {
    (world.host.clone(), world.wakers.clone())
}

fn two_polls_for_two_runs() {
    let world = World::start();
    block_on(serve(&world.host));
    let polls = ["one", "two"].map(|worker| {
        let (host, wakers) = both(&world);
        thread::spawn(move || block_on(take(&host, &wakers, worker)).id)
    });
    let host = world.host.clone();
    let submits = thread::spawn(move || {
        block_on(async {
            submit(&host).await;
            submit(&host).await;
        });
    });
    submits.join().unwrap();
    let taken = polls.map(|poll| poll.join().unwrap());
    assert_ne!(taken[0], taken[1]);
    world.end();
}

#[test]
fn case_q1_no_offer_is_missed_between_the_look_and_the_wait() {
    check(3_000, two_polls_for_two_runs);
}

fn one_poll_ends_and_one_takes() {
    let world = World::start();
    block_on(serve(&world.host));
    let is_to_end = Arc::default();
    let (host, wakers) = both(&world);
    let asked = Arc::clone(&is_to_end);
    let ends = thread::spawn(move || {
        block_on(async {
            if take_or_end(&host, &wakers, "one", &asked).await.is_some() {
                // It was faster than the word to end: there is to be work for the other all the same.
                submit(&host).await;
            }
        });
    });
    let (host, wakers) = both(&world);
    let takes = thread::spawn(move || drop(block_on(take(&host, &wakers, "two"))));
    let (host, wakers) = both(&world);
    let tells = thread::spawn(move || block_on(tell_to_end(&host, &wakers, "one", is_to_end)));
    block_on(submit(&world.host));
    for thread in [ends, takes, tells] {
        thread.join().unwrap();
    }
    world.end();
}

#[test]
fn a_worker_that_ends_takes_no_wake_up_with_it() {
    check(3_000, one_poll_ends_and_one_takes);
}

fn hand_overs(bodies: usize, each: usize) {
    let world = World::start();
    block_on(serve(&world.host));
    let threads: Vec<_> = (0..bodies)
        .map(|number| {
            let (host, wakers) = both(&world);
            thread::spawn(move || {
                block_on(async {
                    submit(&host).await;
                    let lease = take(&host, &wakers, &number.to_string()).await;
                    for key in 0..each {
                        let task = claim(&host, &wakers, &lease, key).await;
                        release(&host, &lease, task).await;
                    }
                });
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    world.end();
}

#[test]
fn case_q2_no_unit_that_is_handed_over_is_missed() {
    check(3_000, || hand_overs(2, 2));
}

#[test]
fn case_b12_releases_and_claims_never_lock_each_other() {
    check(2_000, || hand_overs(3, 1));
}

/// The fault that [`polls::look`](crate::polls::look) keeps out: a look, and only then the registration.
fn looks_before_it_listens() {
    let world = World::start();
    block_on(serve(&world.host));
    let (host, wakers) = both(&world);
    let poll = thread::spawn(move || {
        block_on(async {
            while look(&host, "one").await.is_none() {
                offers(&wakers).armed().await;
            }
        });
    });
    block_on(submit(&world.host));
    poll.join().unwrap();
    world.end();
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_look_before_the_registration_is_found_to_lose_a_wake_up() {
    check(300, looks_before_it_listens);
}

/// The fault that [`polls::claim`](crate::polls::claim) keeps out: a task that waits is listened for once its claim was answered.
fn listens_after_the_answer() {
    let world = World::start();
    block_on(serve(&world.host));
    let threads = ["one", "two"].map(|worker| {
        let (host, wakers) = both(&world);
        thread::spawn(move || {
            block_on(async {
                submit(&host).await;
                let lease = take(&host, &wakers, worker).await;
                let of = (lease.id, lease.fence);
                let ask = || host.call(move |o, now| o.claim_task(now, of.0, of.1, task(0)).unwrap());
                let mut status = ask().await.unwrap();
                while status.state != State::Running {
                    wakers.listen(Topic::Task(status.id.0)).armed().await;
                    status = ask().await.unwrap();
                }
                release(&host, &lease, status.id).await;
            });
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    world.end();
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_registration_after_the_answer_is_found_to_lose_a_wake_up() {
    check(300, listens_after_the_answer);
}
