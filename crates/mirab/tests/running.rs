//! A scheduler while it runs and when it ends: limits that change, what is told of it, shards, shutdown.
use mirab::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use tokio::sync::Barrier;

const SECOND: Duration = Duration::from_secs(1);

async fn echo(_ctx: Context, n: u64) -> Result<u64, TaskError> {
    Ok(n)
}

async fn takes_a_second(ctx: Context, n: u64) -> Result<u64, TaskError> {
    ctx.sleep(SECOND).await;
    Ok(n)
}

async fn for_ever(_ctx: Context, (): ()) -> Result<(), TaskError> {
    std::future::pending().await
}

fn tasks(count: u64) -> impl Iterator<Item = Task<u64>> {
    (0..count).map(Task::new)
}

async fn all(handles: Vec<Result<Handle<u64>, Error>>) {
    for handle in handles {
        handle.unwrap().await.unwrap();
    }
}

#[tokio::test]
async fn raising_a_limit_starts_what_it_allows_and_lowering_takes_nothing_back() {
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("db", 1))
        .pool(Pool::new("p", takes_a_second).slots(2).resource("db", 1))
        .start()
        .unwrap();
    let handles = scheduler.submit_many(tasks(8));
    let running = || scheduler.snapshot().pools[0].running;
    assert_eq!(running(), 1);
    scheduler.set_permits("db", 3).unwrap();
    assert_eq!(running(), 2);
    scheduler.set_slots("p", 4).unwrap();
    assert_eq!(running(), 3);
    scheduler.set_permits("db", 0).unwrap();
    scheduler.advance(SECOND).await;
    assert_eq!((running(), scheduler.snapshot().counts.completed), (0, 3));
    scheduler.set_permits("db", 9).unwrap();
    all(handles).await;
    assert_eq!(scheduler.now(), 3 * SECOND);
}

#[tokio::test]
async fn a_changed_rate_counts_at_once() {
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::token_bucket("api", 1.0, 1))
        .pool(Pool::new("p", echo).resource("api", 1))
        .start()
        .unwrap();
    let handles = scheduler.submit_many(tasks(12));
    scheduler.advance(SECOND).await;
    scheduler.set_rate("api", 10.0, 1).unwrap();
    all(handles).await;
    assert_eq!(scheduler.now(), 2 * SECOND);
    assert_eq!(scheduler.set_rate("api", -1.0, 1).unwrap_err().code(), "InvalidResource");
    assert!(scheduler.set_permits("api", 1).unwrap_err().to_string().contains("set_rate"));
    assert_eq!(scheduler.set_permits("apj", 1).unwrap_err().code(), "UnknownResource");
}

#[tokio::test]
async fn resources_and_pools_come_and_go() {
    let scheduler = Scheduler::paused().pool(Pool::new("p", for_ever)).start().unwrap();
    scheduler.add_resource(ResourceConfig::semaphore("db", 1)).unwrap();
    assert_eq!(scheduler.add_resource(ResourceConfig::semaphore("db", 2)).unwrap_err().code(), "InvalidOption");
    let handle: Handle<()> = scheduler.submit(Task::new(()).resource("db", 1)).unwrap();
    assert_eq!(scheduler.remove_resource("db").unwrap_err().code(), "ResourceInUse");
    assert_eq!(scheduler.remove_pool("p").unwrap_err().code(), "ResourceInUse");
    scheduler.add_pool(Pool::new("q", echo)).unwrap();
    assert_eq!(scheduler.add_pool(Pool::new("q", echo)).unwrap_err().code(), "InvalidOption");
    // With two pools a task names one.
    assert_eq!(scheduler.submit::<u64>(Task::new(1_u64)).unwrap_err().code(), "UnknownPool");
    assert_eq!(scheduler.submit::<u64>(Task::new(1_u64).pool("q")).unwrap().await.unwrap(), 1);
    assert!(scheduler.cancel(handle.id()));
    assert_eq!(handle.await.unwrap_err().code(), "TaskCancelled");
    scheduler.remove_resource("db").unwrap();
    scheduler.remove_pool("p").unwrap();
    assert_eq!(scheduler.submit::<()>(Task::new(()).pool("p")).unwrap_err().code(), "UnknownPool");
}

/// Cases D20 and D21: each key of a pattern is one bucket of its own.
#[tokio::test]
async fn many_tenants_share_nothing() {
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::token_bucket("api:*", 1.0, 1))
        .pool(Pool::new("p", echo).slots(1_000))
        .start()
        .unwrap();
    let tasks = (0..300_u64).map(|n| Task::new(n).resource(&format!("api:{}", n % 100), 1));
    all(scheduler.submit_many(tasks)).await;
    assert_eq!(scheduler.now(), 2 * SECOND);
}

/// Cases D18 and D22: a pause that the far side asked for holds starts back and leaves the limit as it was; nobody is sent away meanwhile.
#[tokio::test]
async fn cooldown_and_settle_reach_the_bucket() {
    let call = |ctx: Context, n: u64| async move {
        match n {
            0 => ctx.cooldown("api", 20 * SECOND)?,
            1 => ctx.settle("api", 5)?,
            _ => {}
        }
        Ok::<u64, Error>(n)
    };
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::token_bucket("api", 1.0, 10))
        .pool(Pool::new("p", call).slots(1).resource("api", 1))
        .start()
        .unwrap();
    all(scheduler.submit_many(tasks(1))).await;
    let second = scheduler.submit_many(tasks(2).skip(1));
    assert_eq!(scheduler.snapshot().resources[0].view.limit.capacity(), 10);
    all(second).await;
    assert_eq!((scheduler.now(), scheduler.snapshot().resources[0].view.free), (20 * SECOND, 5));
    // Case D19: tokens are counted when they are looked at.
    scheduler.advance(2 * SECOND).await;
    assert_eq!(scheduler.snapshot().resources[0].view.free, 7);
}

#[tokio::test]
async fn what_happens_is_told_in_order_and_who_lags_is_told_how_much_it_missed() {
    let scheduler = Scheduler::paused().event_capacity(8).pool(Pool::new("p", echo)).start().unwrap();
    let mut events = scheduler.events();
    let handle: Handle<u64> = scheduler.submit(Task::new(1_u64)).unwrap();
    let id = handle.id();
    handle.await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let Some(Event::Task { id: of, what, .. }) = events.next().await else { panic!("nothing was missed") };
        assert_eq!(of, id);
        seen.push(what);
    }
    let started = What::Started { attempt: 1, waited: 0 };
    assert_eq!(seen, [What::Submitted, What::Queued, started, What::Ended(TaskEnd::Completed)]);
    all(scheduler.submit_many(tasks(10))).await;
    assert_eq!(events.next().await, Some(Event::Missed(32)));
    assert!(matches!(events.next().await, Some(Event::Task { .. })));
    drop(scheduler);
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn retries_are_told_with_the_pause_that_was_drawn() {
    let fails = |_: Context, (): ()| async { Err::<(), _>(TaskError::new("no luck")) };
    let scheduler = Scheduler::paused().pool(Pool::new("p", fails)).start().unwrap();
    let mut events = scheduler.events();
    let task = Task::new(()).retries(3).retry_delay(SECOND).retry_max_delay(3 * SECOND);
    assert_eq!(scheduler.submit::<()>(task).unwrap().await.unwrap_err().code(), "TaskFailed");
    drop(scheduler);
    let mut bounds = Vec::new();
    while let Some(event) = events.next().await {
        if let Event::Task { what: What::Retrying { pause, at_most, .. }, .. } = event {
            assert!(pause <= at_most);
            bounds.push(at_most / 1_000_000_000);
        }
    }
    assert_eq!(bounds, [1, 2, 3]);
}

#[tokio::test]
async fn shards_have_limits_of_their_own_and_are_added_up() {
    let scheduler = Scheduler::paused()
        .shards(["a", "b"])
        .resource(ResourceConfig::semaphore("gpu", 1).in_shard("a"))
        .resource(ResourceConfig::semaphore("db", 1).in_shard("b"))
        .pool(Pool::new("p", takes_a_second).shard("a"))
        .pool(Pool::new("q", takes_a_second).shard("b"))
        .start()
        .unwrap();
    let task = |n: u64, pool: &str| Task::new(n).pool(pool);
    let across = scheduler.submit::<u64>(task(0, "p").resource("db", 1)).unwrap_err();
    assert_eq!(across.code(), "ResourceOnOtherShard");
    let handles: Vec<_> = (0..3)
        .flat_map(|n| [task(n, "p").resource("gpu", 1), task(n, "q").resource("db", 1)])
        .map(|task| scheduler.submit(task))
        .collect();
    let ids: Vec<TaskId> = handles.iter().map(|handle| handle.as_ref().unwrap().id()).collect();
    let snapshot = scheduler.snapshot();
    assert_eq!(snapshot.counts.submitted, 6);
    assert_eq!(snapshot.pools.iter().map(|pool| pool.running).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(snapshot.resources.iter().map(|one| one.view.name.as_str()).collect::<Vec<_>>(), ["db", "gpu"]);
    all(handles).await;
    assert_eq!((scheduler.now(), ids[1].shard_number()), (3 * SECOND, 1));
    // Limits change in the shard that they belong to.
    scheduler.set_permits("db", 2).unwrap();
    assert!(scheduler.set_resource(ResourceConfig::semaphore("db", 2).in_shard("a")).is_err());
    scheduler.remove_resource("db").unwrap();
    scheduler.add_resource(ResourceConfig::semaphore("db", 1).in_shard("a")).unwrap();
    all(vec![scheduler.submit(task(0, "p").resource("db", 1))]).await;
    assert_eq!(scheduler.submit::<u64>(task(0, "q").resource("db", 1)).unwrap_err().code(), "ResourceOnOtherShard");
}

#[tokio::test]
async fn each_listed_shard_executes_on_a_thread_of_its_own() {
    let threads: Arc<Mutex<BTreeMap<String, Vec<ThreadId>>>> = Arc::default();
    let pool = |name: &str| {
        let threads = Arc::clone(&threads);
        let body = move |ctx: Context, n: u64| {
            let threads = Arc::clone(&threads);
            async move {
                tokio::task::yield_now().await;
                let mut threads = threads.lock().unwrap();
                threads.entry(ctx.pool().into()).or_default().push(std::thread::current().id());
                Ok::<u64, TaskError>(n)
            }
        };
        Pool::new(name, body).shard(name)
    };
    let scheduler = Scheduler::builder().shards(["a", "b"]).pool(pool("a")).pool(pool("b")).start().unwrap();
    let handles =
        (0..20_u64).map(|n| scheduler.submit(Task::new(n).pool(if n % 2 == 0 { "a" } else { "b" }))).collect();
    all(handles).await;
    scheduler.shutdown(SECOND).await;
    let threads = threads.lock().unwrap();
    assert!(threads.values().all(|ids| ids.len() == 10 && ids.iter().all(|id| *id == ids[0])));
    assert_ne!(threads["a"][0], threads["b"][0]);
    assert_ne!(threads["a"][0], std::thread::current().id());
}

#[tokio::test]
async fn shutdown_lets_end_what_can_and_cancels_the_rest() {
    let scheduler = Scheduler::paused()
        .pool(Pool::new("short", takes_a_second).slots(1))
        .pool(Pool::new("long", for_ever))
        .start()
        .unwrap();
    let short = [1, 2, 3].map(|n| scheduler.submit::<u64>(Task::new(n as u64).pool("short")).unwrap());
    let long: Handle<()> = scheduler.submit(Task::new(()).pool("long")).unwrap();
    let later: Handle<()> = scheduler.submit(Task::new(()).pool("long").not_before(99 * SECOND)).unwrap();
    scheduler.shutdown(10 * SECOND).await;
    assert_eq!(scheduler.now(), 10 * SECOND);
    assert_eq!(scheduler.snapshot().counts.completed, 3);
    for handle in short {
        handle.await.unwrap();
    }
    assert_eq!(long.await.unwrap_err().code(), "TaskCancelled");
    assert_eq!(later.await.unwrap_err().code(), "TaskCancelled");
    assert_eq!(scheduler.submit::<u64>(Task::new(1_u64).pool("short")).unwrap_err().code(), "SchedulerClosed");
    assert_eq!(scheduler.set_slots("short", 3).unwrap_err().code(), "SchedulerClosed");
    assert!(scheduler.snapshot().pools.iter().all(|pool| pool.running == 0 && pool.waiting == 0));
    // Nothing is left to wait for.
    scheduler.shutdown(10 * SECOND).await;
    assert_eq!(scheduler.now(), 10 * SECOND);
}

#[tokio::test]
async fn dropping_the_last_handle_cancels_what_is_left() {
    let scheduler = Scheduler::builder().pool(Pool::new("p", for_ever)).start().unwrap();
    let clone = scheduler.clone();
    let handle: Handle<()> = scheduler.submit(Task::new(())).unwrap();
    drop(scheduler);
    assert_eq!(handle.status().unwrap().state, TaskState::Running);
    drop(clone);
    assert_eq!(handle.await.unwrap_err().code(), "TaskCancelled");
}

#[test]
fn a_scheduler_whose_runtime_has_gone_says_so() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let pool = Pool::new("p", for_ever).slots(1);
    let scheduler = Scheduler::builder().pool(pool).runtime(runtime.handle().clone()).start().unwrap();
    // Far more than a stack of one inside the other would hold.
    let handles = scheduler.submit_many::<(), _>((0..50_000).map(|_| Task::new(())));
    drop(runtime);
    assert_eq!(scheduler.submit::<()>(Task::new(())).unwrap_err().code(), "SchedulerClosed");
    let waiting = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for handle in handles {
        assert!(waiting.block_on(handle.unwrap()).is_err());
    }
    assert_eq!(scheduler.snapshot().pools[0].running, 0);
}

/// Case S17: what a task had set for later goes with it.
#[tokio::test]
async fn timeouts_of_tasks_that_have_ended_leave_nothing_behind() {
    let scheduler = Scheduler::paused().retained(10).pool(Pool::new("p", echo).slots(100)).start().unwrap();
    for _ in 0..10 {
        let timed = tasks(1_000).map(|task| task.timeout(3_600 * SECOND).start_within(3_600 * SECOND));
        all(scheduler.submit_many(timed)).await;
    }
    // No timer is left: the clock has nowhere to go.
    let idle: Handle<()> = {
        scheduler.add_pool(Pool::new("q", for_ever)).unwrap();
        scheduler.submit(Task::new(()).pool("q").timeout(7 * SECOND)).unwrap()
    };
    assert_eq!((idle.await.unwrap_err().code(), scheduler.now()), ("TaskTimedOut", 7 * SECOND));
}

/// Counted while it lives: a body that is cancelled goes too.
struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn from_many_threads_every_task_ends_and_no_limit_is_exceeded() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, peak) = (Arc::clone(&now), Arc::clone(&most));
    let body = move |_: Context, n: u64| {
        let (inside, peak) = (Arc::clone(&inside), Arc::clone(&peak));
        async move {
            peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _inside = Inside(inside);
            tokio::task::yield_now().await;
            if n % 7 == 3 { Err(TaskError::new("odd")) } else { Ok(n) }
        }
    };
    let scheduler = Scheduler::builder()
        .resource(ResourceConfig::semaphore("db", 3))
        .pool(Pool::new("p", body).slots(50).resource("db", 1))
        .start()
        .unwrap();
    let (start, mut submitters) = (Arc::new(Barrier::new(8)), Vec::new());
    for offset in 0..8_u64 {
        let (scheduler, start) = (scheduler.clone(), Arc::clone(&start));
        submitters.push(tokio::spawn(async move {
            start.wait().await;
            let handles: Vec<Handle<u64>> = (0..500)
                .map(|n| scheduler.submit(Task::new(n * 8 + offset).priority((n % 3) as i32)).unwrap())
                .collect();
            for (n, handle) in handles.into_iter().enumerate() {
                if n % 5 == 0 {
                    handle.cancel();
                }
                let _ = handle.await;
            }
        }));
    }
    for submitter in submitters {
        submitter.await.unwrap();
    }
    let snapshot = scheduler.snapshot();
    let TaskCounts { submitted, completed, failed, cancelled, .. } = snapshot.counts;
    assert_eq!((submitted, completed + failed + cancelled, snapshot.priority_inversions), (4_000, 4_000, 0));
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert_eq!((snapshot.pools[0].running, snapshot.resources[0].view.used), (0, 0));
}
