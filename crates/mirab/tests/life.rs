//! The life of a task as its submitter and its executor see it, at the edges. On a virtual clock but where a thread is to be blocked.
mod log;

use log::*;
use mirab::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

fn start(log: &Log) -> Scheduler {
    Scheduler::paused().pool(log.pool("p")).start().unwrap()
}

#[tokio::test]
async fn what_would_come_after_itself_is_refused() {
    let scheduler = start(&Log::default());
    let keyed = || task(0, SECOND).key("k").not_before(SECOND);
    let first = submit(&scheduler, keyed());
    let second = submit(&scheduler, short(1).after(&first));
    let third = submit(&scheduler, short(2).after(&second).after(&first));
    for after in [&first, &second, &third] {
        let refused = scheduler.submit::<u64>(keyed().after(after)).unwrap_err();
        assert_eq!(refused.code(), "KeyConflict");
        assert!(refused.to_string().contains("circle"), "{refused}");
    }
    // A number that no task has yet is none to come after.
    let next = TaskId(third.id().0 + 1);
    assert_eq!(scheduler.submit::<u64>(short(3).after(next)).unwrap_err().code(), "UnknownTask");
    assert_eq!(submit(&scheduler, keyed()).id(), first.id());
    third.await.unwrap();
    assert_eq!((scheduler.now(), scheduler.snapshot().counts.submitted), (2 * SECOND, 3));
}

#[tokio::test]
async fn a_failure_skips_all_that_was_to_follow_and_says_why() {
    let fails = |_: Context, (): ()| async { Err::<(), _>(TaskError::new("no luck")) };
    let scheduler = Scheduler::paused().pool(Pool::new("p", fails)).start().unwrap();
    let submit = |task: Task<()>| scheduler.submit::<()>(task).unwrap();
    let failed = submit(Task::new(()).retries(1).retry_delay(SECOND));
    let cancelled = submit(Task::new(()).after_on(&failed, On::Failure).not_before(9 * SECOND));
    let chain = submit(Task::new(()).after(&failed));
    let end_of_chain = submit(Task::new(()).after(&chain));
    let after_cancelled = submit(Task::new(()).after(&cancelled));
    assert_eq!(chain.status().unwrap().state, TaskState::Blocked);
    assert!(cancelled.cancel());
    let ids = [&failed, &chain, &cancelled].map(|handle| handle.id().0.to_string());
    for (skipped, [of, how]) in [
        (chain, [&*ids[0], "Failed"]),
        (end_of_chain, [&*ids[1], "Skipped"]),
        (after_cancelled, [&*ids[2], "Cancelled"]),
    ] {
        let failure = skipped.await.unwrap_err();
        let text = failure.to_string();
        assert!(failure.code() == "TaskSkipped" && text.contains(of) && text.contains(how), "{text}");
    }
    let late = submit(Task::new(()).after(&failed)).await.unwrap_err();
    assert_eq!((late.code(), scheduler.snapshot().counts.skipped), ("TaskSkipped", 4));
}

#[tokio::test]
async fn shards_do_not_wait_for_each_other() {
    let log = Log::default();
    let pools = ["a", "b"].map(|name| log.pool(name).shard(name));
    let described = pools.into_iter().fold(Scheduler::paused().shards(["a", "b"]), SchedulerBuilder::pool);
    let scheduler = described.start().unwrap();
    let first = submit(&scheduler, short(0).pool("a"));
    let across = scheduler.submit::<u64>(short(1).pool("b").after(&first)).unwrap_err();
    assert_eq!(across.code(), "UnknownTask");
    submit(&scheduler, short(1).pool("a").after(&first)).await.unwrap();
}

#[tokio::test]
async fn an_attempt_knows_when_it_is_stopped_and_each_has_its_time() {
    let attempts: Arc<Mutex<Vec<[Duration; 2]>>> = Arc::default();
    let seen = Arc::clone(&attempts);
    let hangs = move |ctx: Context, (): ()| {
        seen.lock().unwrap().push([ctx.deadline().unwrap() - ctx.now(), ctx.time_left().unwrap()]);
        std::future::pending::<Result<(), TaskError>>()
    };
    let scheduler = Scheduler::paused().pool(Pool::new("p", hangs)).start().unwrap();
    let task = Task::new(()).not_before(3 * SECOND).timeout(5 * SECOND).retries(2).retry_delay(Duration::ZERO);
    let failure = scheduler.submit::<()>(task).unwrap().await.unwrap_err();
    assert_eq!((failure.code(), scheduler.now()), ("TaskTimedOut", 18 * SECOND));
    assert!(failure.to_string().contains("attempt 3"), "{failure}");
    assert_eq!(*attempts.lock().unwrap(), [[5 * SECOND; 2]; 3]);
}

#[tokio::test]
async fn tokens_are_settled_while_the_attempt_lives() {
    let kept: Arc<Mutex<Option<Context>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let call = move |ctx: Context, used: u64| {
        *keep.lock().unwrap() = Some(ctx.clone());
        async move {
            ctx.settle("tokens", used)?;
            Ok::<(), Error>(())
        }
    };
    let scheduler =
        Scheduler::paused().resource(bucket("tokens", 1, 1, 10)).pool(Pool::new("p", call)).start().unwrap();
    let free = || scheduler.snapshot().resources[0].view.free;
    let call = |used: u64| scheduler.submit::<()>(Task::new(used).resource("tokens", 4)).unwrap();
    call(1).await.unwrap();
    assert_eq!(free(), 9);
    call(12).await.unwrap();
    assert_eq!(free(), -3);
    let over = kept.lock().unwrap().take().unwrap();
    assert_eq!(over.settle("tokens", 0).unwrap_err().code(), "StaleLease");
    assert_eq!(over.settle("token", 0).unwrap_err().code(), "StaleLease");
    assert_eq!(free(), -3);
    assert_eq!(over.cooldown("token", SECOND).unwrap_err().code(), "UnknownResource");
}

#[tokio::test]
async fn tags_are_limited_where_a_limit_is_declared() {
    let log = Log::default();
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("tag:heavy", 1))
        .resource(ResourceConfig::semaphore("tag:user-*", 2))
        .pool(log.pool("p"))
        .start()
        .unwrap();
    let tasks = (0..9).map(|n| task(n, SECOND).tag(["heavy", "user-7", "light"][(n % 3) as usize]));
    let handles = submit_all(&scheduler, tasks);
    assert_eq!(scheduler.snapshot().pools[0].running, 1 + 2 + 3);
    all(handles).await;
    assert_eq!(scheduler.now(), 3 * SECOND);
}

#[tokio::test]
async fn waits_are_told_as_quantiles_of_each_pool_and_resource() {
    let log = Log::default();
    let scheduler = Scheduler::paused()
        .resource(bucket("api", 1, 1, 1))
        .resource(ResourceConfig::semaphore("db:*", 100))
        .pool(log.pool("calls").resource("api", 1))
        .pool(log.pool("quick"))
        .start()
        .unwrap();
    let calls = (0..101).map(|n| short(n).pool("calls").resource(&format!("db:{}", n % 3), 1));
    all(submit_all(&scheduler, calls.chain((0..50).map(|n| short(n).pool("quick"))))).await;
    let snapshot = scheduler.snapshot();
    let [calls, quick] = [0, 1].map(|n| snapshot.pools[n].waits);
    assert_eq!((calls.count, quick), (101, Quantiles { count: 50, ..Quantiles::default() }));
    for (told, seconds) in [(calls.p50, 50), (calls.p90, 90), (calls.p99, 99)] {
        let least = seconds * 1_000_000_000;
        assert!((least..=least + least / 4).contains(&told), "{told} for {seconds} s");
    }
    let of = |name: &str| snapshot.resources.iter().find(|one| one.view.name == name).unwrap().waits;
    assert_eq!(of("api"), calls);
    let counts = (snapshot.counts.completed, snapshot.counts.started, snapshot.priority_inversions);
    assert_eq!(counts, (151, 151, 0));
}

#[tokio::test]
async fn events_end_with_the_scheduler_also_while_handles_live() {
    let log = Log::default();
    let scheduler = start(&log);
    let mut events = scheduler.events();
    let handle = submit(&scheduler, task(0, 10 * SECOND));
    scheduler.advance(3 * SECOND).await;
    scheduler.shutdown(SECOND).await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    let ended = Event::Task { at: 4 * SECOND, id: handle.id(), what: What::Ended(TaskEnd::Cancelled) };
    assert_eq!(last, Some(ended));
    assert_eq!(scheduler.events().next().await, None);
    assert_eq!(handle.await.unwrap_err().code(), "TaskCancelled");
}

#[tokio::test]
async fn case_f1_who_waits_for_its_retry_holds_nothing_and_comes_back_in_order() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&log);
    let flaky = move |ctx: Context, n: u64| {
        noted.lock().unwrap().push((n, ctx.attempt(), ctx.now().as_secs()));
        async move {
            ctx.sleep(SECOND).await;
            match (n, ctx.attempt()) {
                (0, 1) => Err(TaskError::from(Retryable::new("429").retry_after(10 * SECOND))),
                _ => Ok(n),
            }
        }
    };
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("db", 1))
        .pool(Pool::new("p", flaky).slots(1).resource("db", 1))
        .start()
        .unwrap();
    let handles = scheduler.submit_many((0..20_u64).map(Task::new).map(|task| task.retries(5)));
    all(handles.into_iter().map(Result::unwrap).collect()).await;
    // Cases F3 and F5: others run in the gap; the retry passes the same gate, with the place that it had.
    let mut expected: Vec<(u64, u32, u64)> = (0..11).map(|n| (n, 1, n)).collect();
    expected.push((0, 2, 11));
    expected.extend((11..20).map(|n| (n, 1, n + 1)));
    assert_eq!(*log.lock().unwrap(), expected);
}

/// Case L2: an executor that blocks its thread stops neither the clock of the scheduler nor runs twice.
#[tokio::test]
async fn case_l2_a_thread_that_is_blocked_stops_no_time() {
    let calls = Arc::new(AtomicU32::new(0));
    let (count, (told, tell)) = (Arc::clone(&calls), mpsc::channel::<Scheduler>());
    let tell = Mutex::new(tell);
    let blocks = move |_: Context, (): ()| {
        count.fetch_add(1, Ordering::SeqCst);
        let scheduler = tell.lock().unwrap().recv().unwrap();
        let limit = Instant::now() + 60 * SECOND;
        // This is the only thread of the runtime.
        while scheduler.snapshot().counts.expired == 0 {
            assert!(Instant::now() < limit, "the other task never expired");
            std::thread::yield_now();
        }
        async { Ok::<(), TaskError>(()) }
    };
    let scheduler = Scheduler::builder().pool(Pool::new("p", blocks).slots(1)).start().unwrap();
    let blocking: Handle<()> = scheduler.submit(Task::new(()).retries(3)).unwrap();
    let expiring: Handle<()> = scheduler.submit(Task::new(()).start_within(Duration::from_millis(5))).unwrap();
    told.send(scheduler.clone()).unwrap();
    blocking.await.unwrap();
    assert_eq!(expiring.await.unwrap_err().code(), "TaskExpired");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
