//! Schedulers with a store: what was accepted goes on after the process has gone.
use mirab::{
    Codec, CodecError, Context, Event, Handle, Pool, ResourceConfig, Scheduler, Task, TaskError, TaskState, sqlite,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(3_600);

fn home() -> (TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state.db");
    (home, path)
}

/// Counts its attempts, and gives twice what it is given.
fn doubling(calls: &Arc<AtomicU32>) -> Pool {
    let calls = Arc::clone(calls);
    let double = move |_: Context, n: u64| {
        calls.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, TaskError>(2 * n) }
    };
    Pool::new("p", double).stored::<u64, u64>()
}

/// Never ends by itself.
fn endless() -> Pool {
    async fn wait(_: Context, _: u64) -> Result<u64, TaskError> {
        std::future::pending().await
    }
    Pool::new("p", wait).slots(1).stored::<u64, u64>()
}

fn start(path: &Path, pool: Pool) -> Scheduler {
    let api = ResourceConfig::token_bucket("api", 0.001, 3).unwrap();
    Scheduler::builder().resource(api).pool(pool).store(sqlite(path)).start().unwrap()
}

#[tokio::test]
async fn what_waits_and_what_was_executing_goes_on_in_the_next_scheduler() {
    let (_home, path) = home();
    let scheduler = start(&path, endless());
    let tasks = (0..4).map(|n| Task::new(n).key_and_digest(&format!("k{n}"), n));
    let mut handles: Vec<Handle<u64>> = scheduler.submit_many(tasks).into_iter().map(Result::unwrap).collect();
    let last = scheduler.submit::<u64>(Task::new(4_u64).after(&handles[3]).priority(7)).unwrap();
    for handle in &handles {
        handle.stored().await.unwrap();
    }
    last.stored().await.unwrap();
    assert_eq!(handles[0].status().unwrap().state, TaskState::Running);
    scheduler.shutdown(Duration::ZERO).await;
    assert_eq!(handles.remove(0).await.unwrap_err().code(), "TaskCancelled");

    let calls = Arc::new(AtomicU32::new(0));
    let scheduler = start(&path, doubling(&calls));
    for n in 0..4 {
        let again: Handle<u64> = scheduler.submit(Task::new(n).key_and_digest(&format!("k{n}"), n)).unwrap();
        assert_eq!(again.await.unwrap(), 2 * n);
    }
    scheduler.shutdown(LONG).await;
    assert_eq!(calls.load(Ordering::SeqCst), 5, "the one that came after another as well");
    assert_eq!(scheduler.status(last.id()).unwrap().priority, 7);
}

/// Case D26, and keys.
#[tokio::test]
async fn results_of_keys_and_balances_of_buckets_are_kept() {
    let (_home, path) = home();
    let calls = Arc::new(AtomicU32::new(0));
    let task = || Task::new(21_u64).key_and_digest("k", 1).resource("api", 2);
    for round in 0..3 {
        let scheduler = start(&path, doubling(&calls));
        let handle: Handle<u64> = scheduler.submit(task()).unwrap();
        assert_eq!(handle.await.unwrap(), 42, "round {round}");
        let other = scheduler.submit::<u64>(Task::new(22_u64).key_and_digest("k", 2).resource("api", 2)).unwrap_err();
        assert_eq!(other.code(), "KeyConflict");
        assert_eq!(scheduler.snapshot().resources[0].view.free, 1, "round {round}");
        scheduler.shutdown(LONG).await;
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn times_are_told_since_the_start_of_the_scheduler() {
    let (_home, path) = home();
    let told = |ctx: Context, _: u64| async move {
        let (now, deadline) = (ctx.now(), ctx.deadline().unwrap());
        Ok::<_, TaskError>([now, deadline, ctx.time_left().unwrap()].map(|time| time.as_secs()))
    };
    let scheduler = start(&path, Pool::new("p", told).stored::<u64, [u64; 3]>());
    let mut events = scheduler.events();
    let handle: Handle<[u64; 3]> = scheduler.submit(Task::new(1_u64).timeout(LONG)).unwrap();
    let [now, deadline, left] = handle.await.unwrap();
    let hour = LONG.as_secs();
    assert!(now < 60 && (hour..hour + 60).contains(&deadline) && left <= hour, "{now} {deadline} {left}");
    let Some(Event::Task { at, .. }) = events.next().await else { panic!("something has happened") };
    assert!(at <= scheduler.now() && scheduler.now() < LONG, "{at:?}");
    scheduler.shutdown(LONG).await;
}

#[tokio::test]
async fn retries_are_counted_without_the_attempts_that_went_with_their_process() {
    let (_home, path) = home();
    for _ in 0..2 {
        let scheduler = start(&path, endless());
        let task = Task::new(1_u64).key_and_digest("k", 1).retries(1).retry_delay(Duration::ZERO);
        let handle: Handle<u64> = scheduler.submit(task).unwrap();
        handle.stored().await.unwrap();
        scheduler.shutdown(Duration::ZERO).await;
    }
    let fail = |_: Context, _: u64| async { Err::<u64, _>(TaskError::new("no luck")) };
    let scheduler = start(&path, Pool::new("p", fail).stored::<u64, u64>());
    let task = Task::new(1_u64).key_and_digest("k", 1).retries(1).retry_delay(Duration::ZERO);
    let error = scheduler.submit::<u64>(task).unwrap().await.unwrap_err();
    // Two were lost, one failed, and the one retry failed.
    assert_eq!(error.to_string(), format!("task {} failed in attempt 4: no luck", error.id().0));
    scheduler.shutdown(LONG).await;
}

#[tokio::test]
async fn a_second_scheduler_on_the_file_is_refused_until_the_first_has_gone() {
    let (_home, path) = home();
    let calls = Arc::new(AtomicU32::new(0));
    let first = start(&path, doubling(&calls));
    let second = Scheduler::builder().pool(doubling(&calls)).store(sqlite(&path)).start().unwrap_err();
    assert_eq!(second.code(), "StoreLocked");
    assert!(second.to_string().contains("state.db is in use by another scheduler"), "{second}");
    drop(first);
    start(&path, doubling(&calls));
}

#[tokio::test]
async fn what_cannot_be_stored_or_read_is_told_when_it_starts() {
    let (_home, path) = home();
    let told = |pool: Pool, expected: &str| {
        let error = Scheduler::builder().pool(pool).store(sqlite(&path)).start().unwrap_err();
        assert_eq!(error.code(), "InvalidOption");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let calls = Arc::new(AtomicU32::new(0));
    let echo = |_: Context, text: String| async { Ok::<_, TaskError>(text) };
    told(Pool::new("p", echo), "add .stored::<P, R>() to it");
    told(Pool::new("p", echo).stored::<String, u64>(), "is to store results of type u64, and its executor's are");
    let scheduler = start(&path, endless());
    scheduler.submit::<u64>(Task::new(1_u64)).unwrap().stored().await.unwrap();
    scheduler.shutdown(Duration::ZERO).await;
    told(Pool::new("p", echo).stored::<String, String>(), "the payload of task 1 in the store cannot be read");
    told(Pool::new("q", echo).stored::<String, String>(), "for pool \"p\", which is not declared");
    let paused = Scheduler::paused().pool(doubling(&calls)).store(sqlite(&path)).start().unwrap_err();
    assert!(paused.to_string().contains("virtual clock"), "{paused}");
    let without = Scheduler::builder().pool(doubling(&calls)).start().unwrap();
    let error = without.submit::<u64>(Task::new(1_u64)).unwrap().stored().await.unwrap_err();
    assert!(error.to_string().contains("has no store"), "{error}");
}

/// Bytes of a number, as they are in memory.
struct Raw;

impl Codec<u64> for Raw {
    fn name(&self) -> &str {
        "raw"
    }

    fn encode(&self, value: &u64) -> Result<Vec<u8>, CodecError> {
        if *value == 13 { Err("13 brings bad luck".into()) } else { Ok(value.to_le_bytes().into()) }
    }

    fn decode(&self, bytes: &[u8]) -> Result<u64, CodecError> {
        Ok(u64::from_le_bytes(bytes.try_into()?))
    }
}

#[tokio::test]
async fn another_codec_writes_payloads_and_results_and_says_what_it_cannot() {
    let (_home, path) = home();
    let add = |_: Context, n: u64| async move { Ok::<_, TaskError>(n + 1) };
    let pool = || Pool::new("p", add).stored_by::<u64, u64>(Raw);
    let key = |n: u64| Task::new(n).key_and_digest(&n.to_string(), n).retries(5);
    for _ in 0..2 {
        let scheduler = start(&path, pool());
        assert_eq!(scheduler.submit::<u64>(key(7)).unwrap().await.unwrap(), 8);
        let payload = scheduler.submit::<u64>(key(13)).unwrap_err();
        assert!(payload.to_string().contains("cannot be stored: 13 brings bad luck"), "{payload}");
        let result = scheduler.submit::<u64>(key(12)).unwrap().await.unwrap_err();
        assert!(result.to_string().contains("in attempt 1: the result cannot be stored"), "{result}");
        scheduler.shutdown(LONG).await;
    }
}

/// Set for the child, which is a test of this file once more.
const CHILD: &str = "MIRAB_TEST_SCHEDULER";

fn say(word: &str, n: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word} {n}").unwrap();
    out.flush().unwrap();
}

/// Accepts numbers without end, and says so; says which it executes.
async fn run_until_killed(path: &Path) {
    let call = |_: Context, n: u64| async move {
        say("started", n);
        tokio::task::yield_now().await;
        Ok::<_, TaskError>(n)
    };
    let scheduler = start(path, Pool::new("p", call).slots(8).stored::<u64, u64>());
    let first = scheduler.snapshot().counts.submitted;
    for n in first.. {
        let handle: Handle<u64> = scheduler.submit(Task::new(n)).unwrap();
        handle.stored().await.unwrap();
        say("accepted", n);
    }
}

#[tokio::test]
async fn a_scheduler_that_is_killed_again_and_again_runs_all_that_it_accepted() {
    if let Some(path) = std::env::var_os(CHILD) {
        return run_until_killed(Path::new(&path)).await;
    }
    let rounds = if std::env::var_os("MIRAB_SOAK").is_some() { 100 } else { 4 };
    let (_home, path) = home();
    let (mut accepted, mut started) = (BTreeSet::new(), BTreeMap::<u64, u32>::new());
    for round in 0..rounds {
        let name = "a_scheduler_that_is_killed_again_and_again_runs_all_that_it_accepted";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name, "--nocapture"]).env(CHILD, &path).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        for (number, line) in lines.enumerate() {
            if number == 2 + (round * 37) % 60 {
                child.kill().unwrap();
            }
            let mut words = line.rsplit(' ');
            let (Some(Ok(n)), Some(word)) = (words.next().map(str::parse::<u64>), words.next()) else { continue };
            match word.trim_start_matches("...") {
                "accepted" => assert!(accepted.insert(n), "{n} was accepted twice"),
                "started" => *started.entry(n).or_default() += 1,
                _ => {}
            }
        }
        child.wait().unwrap();
    }
    let calls = Arc::new(AtomicU32::new(0));
    let scheduler = start(&path, doubling(&calls));
    scheduler.shutdown(LONG).await;
    let counts = scheduler.snapshot().counts;
    assert!(accepted.len() > rounds && counts.submitted >= accepted.len() as u64, "{counts:?}");
    assert_eq!((counts.completed, counts.ended()), (counts.submitted, counts.submitted), "none is lost");
    // Eight execute at once: no kill makes more than eight run again.
    let again: u32 = started.values().map(|times| times - 1).sum();
    assert!(again as usize <= 8 * rounds, "{again} ran again in {rounds} rounds");
}

/// A result that cannot be told.
#[derive(Clone)]
struct Unwritable;

impl serde::Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("no letters")
    }
}

impl<'de> serde::Deserialize<'de> for Unwritable {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <()>::deserialize(from).map(|()| Unwritable)
    }
}

#[tokio::test]
async fn a_codec_that_panics_fails_the_attempt_and_nothing_else() {
    let (_home, path) = home();
    let give = |_: Context, _: u64| async { Ok::<_, TaskError>(Unwritable) };
    let calls = Arc::new(AtomicU32::new(0));
    let scheduler = Scheduler::builder()
        .pool(Pool::new("odd", give).stored::<u64, Unwritable>())
        .pool(doubling(&calls))
        .store(sqlite(&path))
        .start()
        .unwrap();
    let failure = scheduler.submit::<Unwritable>(Task::new(1_u64).pool("odd")).unwrap().await.map(drop).unwrap_err();
    assert!(failure.to_string().contains("cannot be stored: no letters"), "{failure}");
    assert_eq!(scheduler.submit::<u64>(Task::new(4_u64).pool("p")).unwrap().await.unwrap(), 8);
    scheduler.shutdown(LONG).await;
}

#[tokio::test]
async fn tasks_of_a_shard_that_is_not_listed_any_more_are_told_of() {
    let (_home, path) = home();
    let sharded =
        |pool: Pool| Scheduler::builder().shards(["a", "b"]).pool(pool.shard("b")).store(sqlite(&path)).start();
    let scheduler = sharded(endless()).unwrap();
    scheduler.submit::<u64>(Task::new(1_u64)).unwrap().stored().await.unwrap();
    scheduler.shutdown(Duration::ZERO).await;
    let calls = Arc::new(AtomicU32::new(0));
    let alone = Scheduler::builder().pool(doubling(&calls)).store(sqlite(&path)).start().unwrap_err();
    assert!(alone.to_string().contains("tasks of 2 shards, and 1 are listed"), "{alone}");
    sharded(doubling(&calls)).unwrap().shutdown(LONG).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // Nothing is left there.
    Scheduler::builder().pool(doubling(&calls)).store(sqlite(&path)).start().unwrap().shutdown(LONG).await;
}
