//! Cases of group D, as users of the library meet them: what is used up comes back at its rate. On a virtual clock.
mod log;

use log::*;
use mirab::*;
use std::sync::{Arc, Barrier};
use std::time::Duration;

fn start(log: &Log, resource: ResourceConfig) -> Scheduler {
    Scheduler::paused().resource(resource).pool(log.pool("p")).start().unwrap()
}

fn tokens(scheduler: &Scheduler) -> i64 {
    scheduler.snapshot().resources[0].view.free
}

fn calls(range: std::ops::Range<u64>) -> impl Iterator<Item = Task<(u64, Duration)>> {
    range.map(|n| short(n).resource("api", 1))
}

#[tokio::test]
async fn case_c12_a_hundred_waiters_start_in_order_and_none_late() {
    let log = Log::default();
    let scheduler = start(&log, bucket("api", 5, 1, 1));
    all(submit_all(&scheduler, calls(0..101))).await;
    let expected: Vec<_> = (0..101).map(|n| (n, n as u32 * SECOND / 5)).collect();
    assert_eq!(log.entries(), expected);
}

#[tokio::test]
async fn case_d5_looking_often_loses_no_fraction() {
    let log = Log::default();
    let scheduler = start(&log, bucket("api", 19, 10, 10));
    let _handles = submit_all(&scheduler, calls(0..3_000));
    for _ in 0..100_000 {
        scheduler.advance(SECOND / 100).await;
        assert!(tokens(&scheduler) <= 1);
    }
    assert_eq!(log.entries().len(), 1_910);
}

#[tokio::test]
async fn cases_d7_and_d9_slow_rates_refill_at_their_instants() {
    for (resource, pause) in [(bucket("api", 1, 1_000, 1), 1_000), (bucket("api", 1, 60, 1), 60)] {
        let log = Log::default();
        let scheduler = start(&log, resource);
        all(submit_all(&scheduler, calls(0..3))).await;
        assert_eq!(log.entries(), [0, 1, 2].map(|n| (n, n as u32 * pause * SECOND)));
    }
}

#[tokio::test]
async fn case_d8_more_than_the_burst_is_refused_with_both_numbers() {
    let scheduler = start(&Log::default(), bucket("api", 10, 1, 100));
    let refused = scheduler.submit::<u64>(short(0).resource("api", 101)).unwrap_err();
    assert_eq!(refused.code(), "ResourceExceedsCapacity");
    let text = refused.to_string();
    assert!(text.contains("101") && text.contains("100"), "{text}");
    submit(&scheduler, short(0).resource("api", 100)).await.unwrap();
}

#[tokio::test]
async fn cases_d10_and_d15_a_thousand_seconds_of_calls_hold_up_nobody_else() {
    let log = Log::default();
    let scheduler = start(&log, bucket("api", 2, 600, 2));
    let handles = submit_all(&scheduler, calls(0..100));
    submit(&scheduler, short(100)).await.unwrap();
    let snapshot = scheduler.snapshot();
    assert_eq!((log.started(), scheduler.now()), (vec![0, 1, 100], Duration::ZERO));
    assert_eq!((snapshot.counts.submitted, snapshot.pools[0].waiting), (101, 98));
    all(handles).await;
    assert_eq!(scheduler.now(), 98 * 300 * SECOND);
}

#[tokio::test]
async fn case_d11_a_changed_rate_counts_for_those_who_wait() {
    let log = Log::default();
    let scheduler = start(&log, bucket("api", 1, 100, 1));
    let handles = submit_all(&scheduler, calls(0..11));
    scheduler.advance(50 * SECOND).await;
    // Half a token is there.
    scheduler.set_rate("api", 1.0, 1).unwrap();
    all(handles).await;
    assert_eq!((log.start_of(1), scheduler.now()), (Some(SECOND * 101 / 2), SECOND * 119 / 2));
}

#[tokio::test]
async fn case_d12_pools_share_one_rate() {
    let log = Log::default();
    let described = ["a", "b", "c", "d"].iter().fold(Scheduler::paused(), |all, name| all.pool(log.pool(name)));
    let scheduler = described.resource(bucket("api", 2, 1, 1)).start().unwrap();
    let in_pool = |n: u64| short(n).pool(["a", "b", "c", "d"][(n % 4) as usize]).resource("api", 1);
    all(submit_all(&scheduler, (0..21).map(in_pool))).await;
    assert_eq!(log.entries(), (0..21).map(|n| (n, n as u32 * SECOND / 2)).collect::<Vec<_>>());
}

#[tokio::test]
async fn cases_d16_and_d17_each_key_has_a_bucket_of_its_own() {
    let log = Log::default();
    let scheduler = start(&log, bucket("api:*", 1, 10, 1));
    let of = |n: u64| short(n).resource(&format!("api:{}", n % 10), 1);
    all(submit_all(&scheduler, (0..10).map(of))).await;
    assert_eq!(scheduler.now(), Duration::ZERO);
    // One that is spent leaves the others as they are.
    let again = submit(&scheduler, of(10));
    submit(&scheduler, short(11).resource("api:other", 1)).await.unwrap();
    assert_eq!(scheduler.now(), Duration::ZERO);
    again.await.unwrap();
    assert_eq!(scheduler.now(), 10 * SECOND);
}

#[tokio::test]
async fn case_d18_a_crowd_of_waiters_is_pushed_and_nobody_sent_away() {
    let log = Log::default();
    let scheduler = Scheduler::paused()
        .resource(bucket("api", 30, 1, 30))
        .pool(log.pool("p"))
        .event_capacity(100_000)
        .start()
        .unwrap();
    let mut events = scheduler.events();
    all(submit_all(&scheduler, calls(0..16_000))).await;
    assert_eq!(scheduler.now(), SECOND * (16_000 - 30) / 30 + Duration::from_nanos(1));
    assert!(log.started().is_sorted());
    scheduler.shutdown(Duration::ZERO).await;
    let mut told = 0;
    while let Some(event) = events.next().await {
        assert!(!matches!(event, Event::Missed(_) | Event::Task { what: What::Retrying { .. }, .. }), "{event:?}");
        told += 1;
    }
    // Submitted, queued, started, ended: nothing happens to a task while it waits.
    assert_eq!(told, 4 * 16_000);
}

#[tokio::test]
async fn case_d19_tokens_are_counted_when_they_are_looked_at() {
    let scheduler = start(&Log::default(), bucket("api", 1, 1, 10));
    all(submit_all(&scheduler, calls(0..10))).await;
    let mut seen = Vec::new();
    for _ in 0..12 {
        seen.push(tokens(&scheduler));
        scheduler.advance(SECOND).await;
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_d21_a_key_that_many_threads_ask_for_first_is_one_bucket() {
    let log = Log::default();
    let hourly = bucket("api:*", 1, 3_600, 1);
    let scheduler = Scheduler::builder().resource(hourly).pool(log.pool("p")).start().unwrap();
    let ready = Arc::new(Barrier::new(100));
    let threads: Vec<_> = (0..100)
        .map(|n| {
            let (scheduler, ready) = (scheduler.clone(), Arc::clone(&ready));
            std::thread::spawn(move || {
                ready.wait();
                submit(&scheduler, short(n).resource("api:k", 1))
            })
        })
        .collect();
    let handles: Vec<Handle<u64>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let snapshot = scheduler.snapshot();
    assert_eq!((snapshot.counts.started, snapshot.pools[0].waiting), (1, 99));
    drop(handles);
    scheduler.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn case_d22_a_pause_leaves_the_limit_as_it_was() {
    let log = Log::default();
    let call = |ctx: Context, (): ()| async move { ctx.cooldown("api:k", 20 * SECOND) };
    let scheduler = Scheduler::paused()
        .resource(bucket("api:*", 1, 1, 1))
        .pool(log.pool("p"))
        .pool(Pool::new("refused", call))
        .start()
        .unwrap();
    scheduler.submit::<()>(Task::new(()).pool("refused").resource("api:k", 1)).unwrap().await.unwrap();
    let of = |n: u64| short(n).pool("p").resource("api:k", 1);
    let handles = submit_all(&scheduler, (0..3).map(of));
    let view = scheduler.snapshot().resources.into_iter().find(|one| one.view.name == "api:k").unwrap().view;
    assert_eq!(view.limit.capacity(), 1);
    all(handles).await;
    assert_eq!(log.entries(), [0, 1, 2].map(|n| (n, (20 + n as u32) * SECOND)));
}

#[tokio::test]
async fn case_d25_a_ramp_and_a_ceiling_count_together() {
    let log = Log::default();
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("db", 100))
        .resource(bucket("ramp", 5, 30, 5))
        .pool(log.pool("p").resource("db", 1).resource("ramp", 1))
        .start()
        .unwrap();
    let _handles = submit_all(&scheduler, (0..300).map(|n| task(n, 10_000 * SECOND)));
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(scheduler.snapshot().pools[0].running);
        scheduler.advance(30 * SECOND).await;
    }
    assert_eq!(running, [5, 10, 15, 20]);
    scheduler.advance(3_600 * SECOND).await;
    assert_eq!(scheduler.snapshot().pools[0].running, 100);
}
