//! Code of the program that panics, or that calls the scheduler, where nobody expects it: in what an error says, and in values that go.
use mirab::*;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

/// Panics in going.
#[derive(Clone)]
struct Bomb(Arc<AtomicBool>);

impl Bomb {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0.swap(false, Ordering::SeqCst) && !std::thread::panicking() {
            panic!("it goes off");
        }
    }
}

fn misbehave(n: u32) -> Result<u32, TaskError> {
    match n {
        1 => Err(TaskError::new(Unspeakable)),
        2 => std::panic::panic_any(Bomb::new()),
        3 => panic!("just so"),
        n => Ok(n),
    }
}

#[tokio::test]
async fn an_attempt_that_panics_in_odd_places_fails_and_nothing_else() {
    let on_loop = Pool::new("async", |_: Context, n: u32| async move { misbehave(n) });
    let on_thread = Pool::blocking("blocking", |_: Context, n: u32| misbehave(n));
    let scheduler = Scheduler::builder().pool(on_loop.slots(1)).pool(on_thread.slots(1)).start().unwrap();
    for pool in ["async", "blocking"] {
        for n in 1..=3_u32 {
            let failure = scheduler.submit::<u32>(Task::new(n).pool(pool)).unwrap().await.unwrap_err();
            assert_eq!(failure.code(), "TaskFailed", "{pool} {n}");
        }
        assert_eq!(scheduler.submit::<u32>(Task::new(4_u32).pool(pool)).unwrap().await.unwrap(), 4);
    }
    scheduler.shutdown(SECOND).await;
}

#[tokio::test]
async fn payloads_that_panic_in_going_stop_no_clock() {
    let pool = |name: &str| Pool::new(name, |_: Context, _: Bomb| async { Ok::<_, TaskError>(()) });
    let echo = Pool::new("echo", |_: Context, n: u32| async move { Ok::<_, TaskError>(n) });
    let scheduler = Scheduler::paused().pool(pool("q").slots(0).max_queued(1)).pool(echo).start().unwrap();
    let bomb = || Task::new(Bomb::new()).pool("q");
    let expires = scheduler.submit::<()>(bomb().start_within(SECOND)).unwrap();
    assert_eq!(scheduler.submit::<()>(bomb()).unwrap_err().code(), "QueueFull");
    assert_eq!(expires.await.unwrap_err().code(), "TaskExpired");
    let cancelled = scheduler.submit::<()>(bomb()).unwrap();
    assert!(cancelled.cancel());
    let delayed = scheduler.submit::<u32>(Task::new(5_u32).pool("echo").not_before(SECOND)).unwrap();
    assert_eq!((delayed.await.unwrap(), scheduler.now()), (5, 2 * SECOND));
}

/// Calls the scheduler in going.
struct Caller(Option<Scheduler>, Arc<AtomicU32>);

impl Clone for Caller {
    fn clone(&self) -> Self {
        Caller(self.0.clone(), Arc::clone(&self.1))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(scheduler) = self.0.take() {
            drop(scheduler.snapshot());
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn values_that_call_the_scheduler_in_going_go_without_its_lock() {
    let take = |_: Context, caller: Caller| async move { Ok::<_, TaskError>(caller) };
    let scheduler = Scheduler::paused().pool(Pool::new("p", take).max_queued(1)).retained(1).start().unwrap();
    let gone = Arc::new(AtomicU32::new(0));
    let caller = || Task::new(Caller(Some(scheduler.clone()), Arc::clone(&gone)));
    // Results of tasks with keys, forgotten one after the other.
    for n in 0..5 {
        drop(scheduler.submit::<Caller>(caller().key_and_digest(&n.to_string(), n)).unwrap().await.unwrap());
    }
    // A payload under a key that is known, one too many, one with a wrong name, one that comes too late.
    drop(scheduler.submit::<Caller>(caller().key_and_digest("4", 4_u64)).unwrap());
    let waits = scheduler.submit::<Caller>(caller().not_before(SECOND)).unwrap();
    assert_eq!(scheduler.submit::<Caller>(caller().not_before(SECOND)).unwrap_err().code(), "QueueFull");
    assert!(waits.cancel());
    assert_eq!(scheduler.submit::<Caller>(caller().resource("none", 1)).unwrap_err().code(), "UnknownResource");
    let refused = scheduler.submit_many::<Caller, _>([caller().resource("none", 1), caller().resource("none", 1)]);
    assert!(refused.iter().all(Result::is_err));
    drop(waits);
    scheduler.shutdown(SECOND).await;
    assert_eq!(scheduler.submit::<Caller>(caller()).unwrap_err().code(), "SchedulerClosed");
    assert!(gone.load(Ordering::SeqCst) >= 12);
}

#[test]
fn a_function_that_was_cancelled_before_its_thread_came_does_not_begin() {
    let runtime = tokio::runtime::Builder::new_multi_thread().max_blocking_threads(1).enable_time().build().unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let (gate, begun) = (Mutex::new(gate), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&begun);
    let body = move |_: Context, n: u32| {
        noted.lock().unwrap().push(n);
        if n == 1 {
            gate.lock().unwrap().recv().unwrap();
        }
        Ok::<_, TaskError>(n)
    };
    runtime.block_on(async {
        let scheduler = Scheduler::builder().pool(Pool::blocking("p", body).slots(4)).start().unwrap();
        let submit = |task: Task<u32>| scheduler.submit::<u32>(task).unwrap();
        let first = submit(Task::new(1));
        let (cancelled, late) = (submit(Task::new(2)), submit(Task::new(3).timeout(Duration::from_millis(1))));
        assert!(cancelled.cancel());
        while late.status().unwrap().state != TaskState::Stopping {
            tokio::task::yield_now().await;
        }
        open.send(()).unwrap();
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(cancelled.await.unwrap_err().code(), "TaskCancelled");
        assert_eq!(late.await.unwrap_err().code(), "TaskTimedOut");
        scheduler.shutdown(SECOND).await;
    });
    assert_eq!(*begun.lock().unwrap(), [1]);
}
