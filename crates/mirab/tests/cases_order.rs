//! Cases of group C, as users of the library meet them: who starts, who waits, and who is not held up by it. On a virtual clock.
mod log;

use log::*;
use mirab::*;
use std::time::Duration;

fn start(log: &Log, resources: &[(&str, u64)]) -> Scheduler {
    let described = resources.iter().fold(Scheduler::paused(), |scheduler, (name, permits)| {
        scheduler.resource(ResourceConfig::semaphore(name, *permits))
    });
    described.pool(log.pool("p")).start().unwrap()
}

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn case_c1_a_crowd_that_waits_hides_nobody_who_could_start() {
    let log = Log::default();
    let scheduler = start(&log, &[("a", 1), ("b", 20)]);
    let _holder = submit(&scheduler, task(0, HOUR).resource("a", 1));
    let _crowd = submit_all(&scheduler, (0..1_000).map(|n| task(1_000 + n, HOUR).resource("a", 1).priority(2)));
    let _free = submit_all(&scheduler, (0..100).map(|n| task(5_000 + n, HOUR).resource("b", 1).priority(1)));
    assert_eq!(scheduler.snapshot().pools[0].running, 21);
    scheduler.advance(Duration::ZERO).await;
    assert_eq!(log.started()[1..], (5_000..5_020).collect::<Vec<_>>());
}

#[tokio::test]
async fn case_c2_a_large_request_starts() {
    let log = Log::default();
    let scheduler = start(&log, &[("db", 4)]);
    let _held = submit_all(&scheduler, (1..=4_u32).map(|n| task(u64::from(n), n * SECOND).resource("db", 1)));
    let _stream = submit_all(&scheduler, (0..500).map(|n| task(100 + n, SECOND).resource("db", 1)));
    scheduler.advance(SECOND / 2).await;
    let large = submit(&scheduler, task(99, SECOND).resource("db", 4).priority(10));
    large.await.unwrap();
    assert_eq!(log.start_of(99), Some(4 * SECOND));
}

#[tokio::test]
async fn cases_c7_and_c9_one_who_needs_something_else_starts_now() {
    let log = Log::default();
    let scheduler = start(&log, &[("gate", 1), ("key:*", 1)]);
    let _gate = submit_all(&scheduler, (0..5_000).map(|n| task(n, HOUR).resource("gate", 1)));
    let _busy = submit_all(&scheduler, (0..10_000).map(|n| task(10_000 + n, HOUR).resource("key:1", 1)));
    all(submit_all(&scheduler, [short(90_000), short(90_001).resource("key:2", 1)])).await;
    assert_eq!((scheduler.now(), log.started()), (Duration::ZERO, vec![0, 10_000, 90_000, 90_001]));
}

#[tokio::test]
async fn case_c8_a_place_in_line_is_kept_for_life() {
    for seed in 1..=100_u64 {
        let log = Log::default();
        let scheduler = start(&log, &[("a", 1), ("b", 1)]);
        let _holders = submit_all(&scheduler, [("a", 0), ("b", 1)].map(|(name, n)| task(n, SECOND).resource(name, 1)));
        let need = |n: u64| short(n).resource(if (n * seed).is_multiple_of(3) { "a" } else { "b" }, 1);
        let handles = submit_all(&scheduler, (2..22).map(need));
        // Who is moved and moved back stands where it stood.
        for handle in handles.iter().filter(|handle| (handle.id().0 * seed) % 5 < 2) {
            assert!(handle.set_priority(7) && handle.set_priority(0));
        }
        all(handles).await;
        for name in ["a", "b"] {
            let of = |n: &u64| *n > 1 && (n * seed).is_multiple_of(3) == (name == "a");
            let order: Vec<u64> = log.started().into_iter().filter(of).collect();
            assert!(order.is_sorted(), "seed {seed}: {order:?}");
        }
    }
}

#[tokio::test]
async fn case_c10_expired_tasks_consume_nothing_and_keys_do_not_stall_each_other() {
    let log = Log::default();
    let scheduler = Scheduler::paused().resource(bucket("api:*", 1, 60, 1)).pool(log.pool("p")).start().unwrap();
    let of = |n: u64, key: &str| short(n).resource(&format!("api:{key}"), 1);
    submit(&scheduler, of(0, "1")).await.unwrap();
    let expiring = submit_all(&scheduler, (1..=100).map(|n| of(n, "1").start_within(59 * SECOND)));
    submit(&scheduler, of(200, "2")).await.unwrap();
    assert_eq!(scheduler.now(), Duration::ZERO);
    for handle in expiring {
        assert_eq!(handle.await.unwrap_err().code(), "TaskExpired");
    }
    submit(&scheduler, of(300, "1")).await.unwrap();
    assert_eq!((log.start_of(300), log.started().len()), (Some(60 * SECOND), 3));
}

#[tokio::test]
async fn case_c11_unknown_names_are_refused_and_stop_nobody() {
    let log = Log::default();
    let scheduler = start(&log, &[("db", 1)]);
    for n in 0..64 {
        let refused = scheduler.submit::<u64>(short(n).resource("bd", 1)).unwrap_err();
        assert_eq!(refused.code(), "UnknownResource");
        assert_eq!(scheduler.submit::<u64>(short(n).pool("q")).unwrap_err().code(), "UnknownPool");
    }
    submit(&scheduler, short(100).resource("db", 1)).await.unwrap();
    assert_eq!((log.started(), scheduler.now()), (vec![100], Duration::ZERO));
}

#[tokio::test]
async fn cases_c13_and_c16_who_waits_for_a_resource_takes_no_slot() {
    let log = Log::default();
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("license", 1))
        .pool(log.pool("p").slots(4))
        .start()
        .unwrap();
    let _licensed = submit_all(&scheduler, (0..4).map(|n| task(n, HOUR).resource("license", 1)));
    let _others = submit_all(&scheduler, (10..20).map(|n| task(n, HOUR)));
    scheduler.advance(Duration::ZERO).await;
    assert_eq!(log.started(), [0, 10, 11, 12]);
}

#[tokio::test]
async fn case_c18_priority_counts_in_a_crowd() {
    let log = Log::default();
    let scheduler = start(&log, &[("db", 1)]);
    let _crowd = submit_all(&scheduler, (0..1_000).map(|n| task(n, SECOND).resource("db", 1)));
    submit(&scheduler, task(9_999, SECOND).resource("db", 1).priority(5)).await.unwrap();
    assert_eq!(log.start_of(9_999), Some(SECOND));
}

#[tokio::test]
async fn case_c19_priority_holds_among_those_who_wait_for_one_resource() {
    let log = Log::default();
    let scheduler = start(&log, &[("db", 3), ("gpu", 2)]);
    let priority = |n: u64| (n * 7_919 % 13) as i32;
    let need = |n: u64| task(n, SECOND).resource(["db", "gpu"][(n % 2) as usize], 1).priority(priority(n));
    let handles = submit_all(&scheduler, (0..300).map(need));
    all(handles).await;
    for (parity, at_once) in [(0, 3), (1, 2)] {
        let starts = log.started().into_iter().filter(|n| n % 2 == parity);
        // The first ones found it free.
        let order: Vec<i32> = starts.skip(at_once).map(priority).collect();
        assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
    }
    assert_eq!(scheduler.snapshot().priority_inversions, 0);
}

#[tokio::test]
async fn case_c21_whoever_waits_long_enough_ranks_first() {
    let log = Log::default();
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("db", 1))
        .pool(log.pool("p").resource("db", 1))
        .aging(60 * SECOND)
        .start()
        .unwrap();
    let _holder = submit(&scheduler, task(0, SECOND).priority(3));
    let patient = submit(&scheduler, task(1, SECOND));
    let mut stream = Vec::new();
    for n in 2..400 {
        stream.push(submit(&scheduler, task(n, SECOND).priority(3)));
        scheduler.advance(SECOND).await;
    }
    patient.await.unwrap();
    let started = log.start_of(1).unwrap();
    assert!(started > 120 * SECOND && started <= 181 * SECOND, "{started:?}");
}
