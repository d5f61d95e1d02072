//! The scheduler as programs use it: what the first page of its description says, and the life of a task. On a virtual clock.
use mirab::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq)]
struct Answer(String);

async fn call_llm(ctx: Context, prompt: String) -> Result<Answer, TaskError> {
    Ok(Answer(format!("{prompt}, in attempt {}", ctx.attempt())))
}

async fn echo(_ctx: Context, n: u64) -> Result<u64, TaskError> {
    Ok(n)
}

fn task(n: u64) -> Task<u64> {
    Task::new(n)
}

/// Tells the instant at which it starts, and holds what it holds for a while.
fn starts(hold: Duration) -> (Pool, mpsc::UnboundedReceiver<(u64, u64)>, Arc<std::sync::OnceLock<Scheduler>>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let clock: Arc<std::sync::OnceLock<Scheduler>> = Arc::default();
    let now = Arc::clone(&clock);
    let pool = Pool::new("p", move |ctx: Context, n: u64| {
        let at = now.get().map_or(0, |scheduler: &Scheduler| scheduler.now().as_secs());
        sender.send((n, at)).unwrap();
        async move {
            ctx.sleep(hold).await;
            Ok::<u64, TaskError>(n)
        }
    });
    (pool, receiver, clock)
}

async fn instants(
    handles: Vec<Result<Handle<u64>, Error>>,
    mut told: mpsc::UnboundedReceiver<(u64, u64)>,
) -> Vec<(u64, u64)> {
    for handle in handles {
        handle.unwrap().await.unwrap();
    }
    std::iter::from_fn(|| told.try_recv().ok()).collect()
}

async fn as_described() -> Result<Answer, Box<dyn std::error::Error>> {
    let scheduler = Scheduler::builder()
        .resource(ResourceConfig::semaphore("gpu", 4))
        .resource(ResourceConfig::token_bucket("api", 50.0, 100))
        .pool(Pool::new("llm", call_llm).slots(16))
        .start()?;
    let handle = scheduler.submit(Task::new("hi").pool("llm").priority(5).resource("gpu", 1).resource("api", 1))?;
    let answer = handle.await?;
    Ok(answer)
}

#[tokio::test]
async fn the_described_example_runs_as_it_stands() {
    assert_eq!(as_described().await.unwrap(), Answer("hi, in attempt 1".into()));
}

#[tokio::test]
async fn what_can_never_start_is_refused_at_submission() {
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("gpu", 4))
        .resource(ResourceConfig::token_bucket("api", 10.0, 100))
        .pool(Pool::new("llm", echo))
        .start()
        .unwrap();
    let refused = |task: Task<u64>| scheduler.submit::<u64>(task).unwrap_err();
    let unknown = refused(Task::new(1).resource("gpus", 1));
    assert_eq!(unknown.code(), "UnknownResource");
    assert!(unknown.to_string().contains("gpu"), "{unknown}");
    // Case D8: both numbers are named.
    let too_many = refused(Task::new(1).resource("api", 101));
    assert_eq!(too_many.code(), "ResourceExceedsCapacity");
    assert!(too_many.to_string().contains("101") && too_many.to_string().contains("100"), "{too_many}");
    assert_eq!(refused(Task::new(1).resource("gpu", 0)).code(), "InvalidResource");
    let pool = refused(Task::new(1).pool("lm"));
    assert_eq!(pool.code(), "UnknownPool");
    assert!(pool.to_string().contains("llm"), "{pool}");
    assert_eq!(scheduler.snapshot().counts.submitted, 0);
}

#[tokio::test]
async fn wrong_types_are_told_at_submission() {
    let scheduler = Scheduler::paused().pool(Pool::new("llm", call_llm)).start().unwrap();
    let payload = scheduler.submit::<Answer>(Task::new(7_u8)).unwrap_err();
    assert_eq!(payload.code(), "WrongType");
    assert!(payload.to_string().contains("String") && payload.to_string().contains("u8"), "{payload}");
    let result = scheduler.submit::<u32>(Task::new("hi")).unwrap_err();
    assert_eq!(result.code(), "WrongType");
    assert!(result.to_string().contains("Answer"), "{result}");
    // Who does not look at the result asks for nothing.
    let handle: Handle<()> = scheduler.submit(Task::new("hi")).unwrap();
    handle.await.unwrap();
}

#[tokio::test]
async fn builders_tell_what_is_wrong_when_they_start() {
    let bad_rate = Scheduler::paused().resource(ResourceConfig::token_bucket("api", 0.0, 1)).start().unwrap_err();
    assert_eq!(bad_rate.code(), "InvalidResource");
    let doubled = Scheduler::paused().pool(Pool::new("a", echo)).pool(Pool::new("a", echo)).start().unwrap_err();
    assert_eq!(doubled.code(), "InvalidOption");
    let shard = Scheduler::paused().shards(["a"]).pool(Pool::new("p", echo)).start().unwrap_err();
    assert!(shard.to_string().contains("name its shard"), "{shard}");
}

#[test]
fn without_a_runtime_it_does_not_start() {
    let error = Scheduler::builder().pool(Pool::new("a", echo)).start().unwrap_err();
    assert_eq!(error.code(), "InvalidOption");
    assert!(error.to_string().contains("runtime"), "{error}");
}

#[tokio::test]
async fn the_higher_priority_starts_first_and_resources_are_taken_together() {
    let (pool, told, clock) = starts(SECOND);
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("gpu", 1))
        .pool(pool.slots(2).resource("gpu", 1).priority(3))
        .start()
        .unwrap();
    clock.set(scheduler.clone()).ok().unwrap();
    let tasks = [task(0), task(1).priority(0), task(2).priority(9), task(3)];
    let order = instants(scheduler.submit_many(tasks), told).await;
    assert_eq!(order, [(0, 0), (2, 1), (3, 2), (1, 3)]);
    let snapshot = scheduler.snapshot();
    assert_eq!((snapshot.priority_inversions, snapshot.counts.completed), (0, 4));
    assert_eq!((snapshot.pools[0].waits.count, snapshot.resources[0].waits.count), (4, 4));
}

/// Cases C12 and D9: tokens at their instants, in order, nobody late and nobody lost.
#[tokio::test]
async fn a_bucket_lets_each_start_at_its_instant() {
    for (rate, burst, expected) in [(1.0, 2, [0, 0, 1, 2, 3]), (0.5, 1, [0, 2, 4, 6, 8])] {
        let (pool, told, clock) = starts(Duration::ZERO);
        let scheduler = Scheduler::paused()
            .resource(ResourceConfig::token_bucket("api", rate, burst))
            .pool(pool.resource("api", 1))
            .start()
            .unwrap();
        clock.set(scheduler.clone()).ok().unwrap();
        let told = instants(scheduler.submit_many((0..5).map(task)), told).await;
        assert_eq!(told, (0..5).zip(expected).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn the_hundredth_of_five_a_second_starts_at_exactly_its_instant() {
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::token_bucket("api", 5.0, 1))
        .pool(Pool::new("p", echo).resource("api", 1))
        .start()
        .unwrap();
    let mut last = Duration::ZERO;
    for (n, handle) in scheduler.submit_many::<u64, _>((0..101).map(task)).into_iter().enumerate() {
        assert_eq!(handle.unwrap().await.unwrap(), n as u64);
        last = scheduler.now();
    }
    assert_eq!(last, Duration::from_secs(20));
}

#[tokio::test]
async fn a_failure_is_retried_and_holds_nothing_meanwhile() {
    let tries = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&tries);
    let flaky = move |ctx: Context, n: u64| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            match (n, ctx.attempt()) {
                (0, 1 | 2) => Err(TaskError::from(Retryable::new("429").retry_after(10 * SECOND))),
                _ => Ok(n),
            }
        }
    };
    let scheduler = Scheduler::paused().pool(Pool::new("p", flaky).slots(1)).start().unwrap();
    let first: Handle<u64> = scheduler.submit(Task::new(0_u64).retries(2).priority(1)).unwrap();
    let second: Handle<u64> = scheduler.submit(Task::new(1_u64)).unwrap();
    // Cases F3 and F5: the other one uses the slot in the gap; the retry keeps key and priority.
    assert_eq!(second.await.unwrap(), 1);
    let status = first.status().unwrap();
    assert_eq!((status.state, status.priority, scheduler.now()), (TaskState::AwaitingRetry, 1, Duration::ZERO));
    assert_eq!((first.await.unwrap(), scheduler.now()), (0, 20 * SECOND));
    assert_eq!(tries.load(Ordering::SeqCst), 4);
}

/// Case F1.
#[tokio::test]
async fn units_are_free_during_the_pause_and_taken_again_in_order() {
    let flaky = |ctx: Context, n: u64| async move {
        match ctx.attempt() {
            1 if n == 0 => Err(TaskError::from(Retryable::new("no luck").retry_after(600 * SECOND))),
            _ => Ok(n),
        }
    };
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("db", 1))
        .pool(Pool::new("p", flaky).resource("db", 1))
        .start()
        .unwrap();
    let first: Handle<u64> = scheduler.submit(Task::new(0_u64).retries(5)).unwrap();
    scheduler.advance(SECOND).await;
    assert_eq!(scheduler.snapshot().resources[0].view.used, 0);
    assert_eq!((first.await.unwrap(), scheduler.now()), (0, 600 * SECOND));
}

#[tokio::test]
async fn how_a_task_failed_is_told_with_its_cause() {
    let fails = |_: Context, n: u64| async move {
        match n {
            0 => Err(TaskError::from("x".parse::<u8>().unwrap_err())),
            1 => Err(Permanent::new("no such model").into()),
            _ => panic!("a bug"),
        }
        .map(|()| 0_u64)
    };
    let scheduler = Scheduler::paused().pool(Pool::new("p", fails).slots(1)).start().unwrap();
    let mut handles = scheduler.submit_many::<u64, _>((0..3).map(|n| task(n).retries(3))).into_iter();
    let mut next = || handles.next().unwrap().unwrap();
    let Err(TaskFailure::Failed { attempts: 4, cause: Some(cause), .. }) = next().await else { panic!("it failed") };
    assert!(cause.get().downcast_ref::<std::num::ParseIntError>().is_some());
    let permanent = next().await.unwrap_err();
    assert_eq!(permanent.code(), "TaskFailed");
    assert!(
        permanent.to_string().contains("no such model") && permanent.to_string().contains("attempt 1"),
        "{permanent}"
    );
    // A panic is a failure, and no slot is lost.
    let panicked = next().await.unwrap_err();
    assert!(panicked.to_string().contains("panicked: a bug"), "{panicked}");
    assert_eq!(scheduler.snapshot().pools[0].running, 0);
}

#[tokio::test]
async fn a_timeout_drops_the_body_and_fails_the_task() {
    let hangs = |_: Context, (): ()| async { std::future::pending::<Result<(), TaskError>>().await };
    let scheduler = Scheduler::paused().pool(Pool::new("p", hangs)).start().unwrap();
    let handle: Handle<()> = scheduler.submit(Task::new(()).timeout(5 * SECOND)).unwrap();
    let failure = handle.await.unwrap_err();
    assert_eq!((failure.code(), scheduler.now()), ("TaskTimedOut", 5 * SECOND));
    assert_eq!(scheduler.snapshot().pools[0].running, 0);
}

/// Says when it is dropped.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn guarded(dropped: &Arc<AtomicUsize>) -> Pool {
    let dropped = Arc::clone(dropped);
    Pool::new("p", move |_: Context, n: u64| {
        let guard = Guard(Arc::clone(&dropped));
        async move {
            let _guard = guard;
            std::future::pending::<Result<u64, TaskError>>().await.map(|_| n)
        }
    })
}

#[tokio::test]
async fn a_cancel_drops_the_body_before_its_units_are_given_on() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let scheduler = Scheduler::paused().pool(guarded(&dropped).slots(1)).start().unwrap();
    let handles = [0, 1].map(|n| scheduler.submit::<u64>(task(n)).unwrap());
    scheduler.advance(SECOND).await;
    let [running, waiting] = handles;
    assert!(waiting.cancel() && !waiting.cancel());
    assert_eq!(waiting.await.unwrap_err().code(), "TaskCancelled");
    assert!(running.cancel() && !running.cancel());
    assert_eq!(running.status().unwrap().state, TaskState::Stopping);
    assert_eq!(running.await.unwrap_err().code(), "TaskCancelled");
    assert_eq!((dropped.load(Ordering::SeqCst), scheduler.snapshot().pools[0].running), (1, 0));
}

#[tokio::test]
async fn a_function_on_a_thread_keeps_its_slot_until_it_returns() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let started = Arc::new(Notify::new());
    let start = Arc::clone(&started);
    let body = move |ctx: Context, (): ()| {
        start.notify_one();
        released.lock().unwrap().recv().unwrap();
        if ctx.is_cancelled() { Err(TaskError::new("told to stop")) } else { Ok(()) }
    };
    let scheduler = Scheduler::builder().pool(Pool::blocking("p", body).slots(1)).start().unwrap();
    let handle: Handle<()> = scheduler.submit(Task::new(())).unwrap();
    started.notified().await;
    assert!(handle.cancel());
    assert_eq!(scheduler.snapshot().pools[0].running, 1);
    release.send(()).unwrap();
    assert_eq!(handle.await.unwrap_err().code(), "TaskCancelled");
    assert_eq!(scheduler.snapshot().pools[0].running, 0);
}

/// Case S26.
#[tokio::test]
async fn a_key_names_one_task_and_no_other() {
    let scheduler = Scheduler::paused().pool(Pool::new("llm", call_llm)).start().unwrap();
    let task = |prompt: &str| Task::new(prompt.to_owned()).key("k");
    let first: Handle<Answer> = scheduler.submit(task("hi")).unwrap();
    let again: Handle<Answer> = scheduler.submit(Task::new("hi").key("k")).unwrap();
    assert_eq!(first.id(), again.id());
    let answer = first.await.unwrap();
    // Also once it has ended.
    let late: Handle<Answer> = scheduler.submit(task("hi")).unwrap();
    assert_eq!((again.await.unwrap(), late.await.unwrap()), (answer.clone(), answer));
    let other = scheduler.submit::<Answer>(task("bye")).unwrap_err();
    assert_eq!(other.code(), "KeyConflict");
    assert!(other.to_string().contains("payload"), "{other}");
    assert_eq!(scheduler.submit::<Answer>(task("hi").retries(1)).unwrap_err().code(), "KeyConflict");
    assert_eq!(scheduler.snapshot().counts.submitted, 1);
}

#[tokio::test]
async fn forgotten_keys_are_new_again() {
    let scheduler = Scheduler::paused().retained(2).pool(Pool::new("p", echo)).start().unwrap();
    for n in 0..4_u64 {
        let handle: Handle<u64> = scheduler.submit(Task::new(n).key(&n.to_string())).unwrap();
        assert_eq!(handle.await.unwrap(), n);
    }
    let submitted = |n: u64| {
        let handle = scheduler.submit::<u64>(Task::new(n).key(&n.to_string())).unwrap();
        drop(handle);
        scheduler.snapshot().counts.submitted
    };
    assert_eq!((submitted(3), submitted(0)), (4, 5));
}

#[tokio::test]
async fn times_to_start_are_kept() {
    let (pool, told, clock) = starts(10 * SECOND);
    let scheduler = Scheduler::paused().pool(pool.slots(1)).start().unwrap();
    clock.set(scheduler.clone()).ok().unwrap();
    let late: Handle<u64> = scheduler.submit(task(0).not_before(3 * SECOND)).unwrap();
    scheduler.advance(4 * SECOND).await;
    let expires: Handle<u64> = scheduler.submit(task(1).start_within(5 * SECOND)).unwrap();
    assert_eq!(late.status().unwrap().state, TaskState::Running);
    assert_eq!(expires.await.unwrap_err().code(), "TaskExpired");
    assert_eq!(scheduler.now(), 9 * SECOND);
    assert_eq!(instants(vec![Ok(late)], told).await, [(0, 3)]);
    assert_eq!(scheduler.snapshot().counts.expired, 1);
}

#[tokio::test]
async fn tasks_come_after_others() {
    let fails = |_: Context, ok: bool| async move { if ok { Ok(1_u64) } else { Err(TaskError::new("no")) } };
    let scheduler = Scheduler::paused().pool(Pool::new("p", fails)).start().unwrap();
    let submit = |task: Task<bool>| scheduler.submit::<u64>(task).unwrap();
    let (good, bad) = (submit(Task::new(true).not_before(SECOND)), submit(Task::new(false)));
    let after_good = submit(Task::new(true).after(&good));
    let skipped = submit(Task::new(true).after(&bad));
    let on_failure = submit(Task::new(true).after_on(&bad, On::Failure));
    let at_last = submit(Task::new(true).after_on(&skipped, On::Completion).after(&after_good));
    assert_eq!(after_good.status().unwrap().state, TaskState::Blocked);
    assert_eq!((at_last.await.unwrap(), scheduler.now()), (1, SECOND));
    let skipped = skipped.await.unwrap_err();
    assert_eq!(skipped.code(), "TaskSkipped");
    assert!(skipped.to_string().contains("Failed"), "{skipped}");
    assert_eq!(on_failure.await.unwrap(), 1);
    let unknown = scheduler.submit::<u64>(Task::new(true).after(TaskId(999))).unwrap_err();
    assert_eq!(unknown.code(), "UnknownTask");
}

#[tokio::test]
async fn who_waits_is_told_why_and_can_be_moved() {
    let (pool, told, clock) = starts(SECOND);
    let scheduler = Scheduler::paused()
        .resource(ResourceConfig::semaphore("gpu", 1))
        .pool(pool.resource("gpu", 1))
        .start()
        .unwrap();
    clock.set(scheduler.clone()).ok().unwrap();
    let [first, second, third] = [0, 1, 2].map(|n| scheduler.submit::<u64>(task(n)).unwrap());
    let why = third.explain().unwrap();
    assert_eq!((why.blocked_on[0].resource.as_str(), why.blocked_on[0].free), ("gpu", 0));
    assert_eq!((first.explain(), third.position()), (None, Some(2)));
    assert!(third.set_priority(1));
    assert_eq!(third.position(), Some(1));
    let order = instants(vec![Ok(first), Ok(second), Ok(third)], told).await;
    assert_eq!(order, [(0, 0), (2, 1), (1, 2)]);
}

#[tokio::test]
async fn a_queue_takes_no_more_than_it_may() {
    let dropped = Arc::default();
    let scheduler = Scheduler::paused().pool(guarded(&dropped).slots(1).max_queued(2)).start().unwrap();
    let submitted = scheduler.submit_many::<u64, _>((0..4).map(task));
    let refused: Vec<_> = submitted.iter().filter_map(|one| one.as_ref().err().map(Error::code)).collect();
    assert_eq!((submitted.len(), refused), (4, vec!["QueueFull"]));
}
