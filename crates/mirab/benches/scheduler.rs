//! The embedded scheduler beside the bare parts of tokio, in one run: `cargo bench -p mirab --bench scheduler -- [throughput|latency|rates]`.
use mirab::{Context, Pool, ResourceConfig, Scheduler, Task, TaskError};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

const TASKS: usize = 100_000;
const PERMITS: usize = 10;
const ROUNDS: usize = 5;

fn main() {
    let which: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| which.is_empty() || which.iter().any(|wanted| wanted == name);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if is_wanted("throughput") {
        runtime.block_on(throughput());
    }
    if is_wanted("latency") {
        runtime.block_on(latency());
    }
    if is_wanted("rates") {
        runtime.block_on(rates());
    }
}

/// All tasks through one semaphore, each yields once; both sides in turn, medians.
async fn throughput() {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(bare_semaphore().await);
        ours.push(through_mirab().await);
    }
    let (ours, bare) = (median(ours), median(bare));
    println!("{TASKS} tasks that yield once, semaphore of {PERMITS}, four priorities");
    println!("mirab: {:.0} ns a task; tokio Semaphore + spawn: {:.0} ns; ratio {:.2} (bar 3)", ours, bare, ours / bare);
}

async fn bare_semaphore() -> f64 {
    let begun = Instant::now();
    let semaphore = Arc::new(Semaphore::new(PERMITS));
    let spawn = |_| {
        let semaphore = Arc::clone(&semaphore);
        tokio::spawn(async move {
            let _permit = semaphore.acquire().await.expect("it is open");
            tokio::task::yield_now().await;
        })
    };
    let tasks: Vec<_> = (0..TASKS).map(spawn).collect();
    for task in tasks {
        task.await.expect("it does not panic");
    }
    per_task(begun)
}

async fn through_mirab() -> f64 {
    async fn yields(_: Context, (): ()) -> Result<(), Infallible> {
        tokio::task::yield_now().await;
        Ok(())
    }
    let scheduler = Scheduler::builder()
        .resource(ResourceConfig::semaphore("sem", PERMITS as u64))
        .pool(Pool::new("p", yields).slots(1_000).resource("sem", 1))
        .start()
        .expect("plain names");
    let begun = Instant::now();
    let tasks = scheduler.submit_many::<(), _>((0..TASKS).map(|n| Task::new(()).priority((n % 4) as i32)));
    for task in tasks {
        task.expect("known names").await.expect("it does not fail");
    }
    let took = per_task(begun);
    assert_eq!(scheduler.snapshot().priority_inversions, 0);
    took
}

/// From the end of a body to the first line of the next, while 100,000 wait.
async fn latency() {
    static ENDED: AtomicU64 = AtomicU64::new(0);
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    let waits = Arc::new(Mutex::new(Vec::new()));
    let (begun, done, open) = (Instant::now(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (samples, is_done, opened) = (Arc::clone(&waits), Arc::clone(&done), Arc::clone(&open));
    let body = move |_: Context, n: usize| {
        let now = begun.elapsed().as_nanos() as u64;
        if n > 0 {
            samples.lock().expect("no panic").push(now - ENDED.load(Ordering::SeqCst));
        }
        let (is_done, opened) = (Arc::clone(&is_done), Arc::clone(&opened));
        async move {
            if n == 0 {
                opened.notified().await;
            }
            tokio::task::yield_now().await;
            if LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
                is_done.notify_one();
            }
            ENDED.store(begun.elapsed().as_nanos() as u64, Ordering::SeqCst);
            Ok::<(), TaskError>(())
        }
    };
    let scheduler = Scheduler::builder()
        .resource(ResourceConfig::semaphore("sem", 1))
        .pool(Pool::new("p", body).slots(1_000).resource("sem", 1))
        .start()
        .expect("plain names");
    const SAMPLES: usize = 20_000;
    LEFT.store(SAMPLES, Ordering::SeqCst);
    let tasks = (0..TASKS + SAMPLES).map(|n| Task::new(n).priority((n % 4) as i32 * i32::from(n > 0)));
    let first: mirab::Handle<()> = scheduler.submit(Task::new(0_usize).priority(9)).expect("known names");
    let handles = scheduler.submit_many::<(), _>(tasks.skip(1));
    open.notify_one();
    first.await.expect("it does not fail");
    done.notified().await;
    let mut waits = waits.lock().expect("no panic")[..SAMPLES - 1].to_vec();
    waits.sort_unstable();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize] as f64 / 1_000.0;
    println!(
        "release to next start with {TASKS} waiting: p50 {:.1} us, p99 {:.1} us (bar 50), worst {:.1} us",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    drop(handles);
    scheduler.shutdown(Duration::ZERO).await;
}

/// How much of its nominal rate a bucket reaches, and whether it ever exceeds it.
async fn rates() {
    const SECONDS: f64 = 10.0;
    for (rate, burst) in [(50.0, 5), (1_000.0, 100), (20_000.0, 2_000), (1_000.0, 1)] {
        let bare = if burst == 1 { Some(bare_timer(rate, SECONDS)) } else { None };
        let starts = starts_in(rate, burst, SECONDS).await;
        let nominal = rate * SECONDS + burst as f64;
        let excess = excess(&starts, rate, burst as f64);
        let share = 100.0 * starts.len() as f64 / nominal;
        let beside = bare.map_or(String::new(), |bare| {
            format!(
                "; a bare timer loop: {bare}, share of it {:.1} % (bar 98)",
                100.0 * starts.len() as f64 / bare as f64
            )
        });
        println!(
            "{rate}/s, burst {burst}, {SECONDS} s: {} starts, {share:.1} % of nominal (bar 99 unless burst 1), most above burst + rate x T in any window: {excess:.3}{beside}",
            starts.len()
        );
    }
}

/// Instants that the machine granted, in seconds.
async fn starts_in(rate: f64, burst: u64, seconds: f64) -> Vec<f64> {
    async fn nothing(_: Context, (): ()) -> Result<(), Infallible> {
        Ok(())
    }
    let scheduler = Scheduler::builder()
        .resource(ResourceConfig::token_bucket("api", rate, burst).expect("a rate"))
        .pool(Pool::new("p", nothing).slots(100_000).resource("api", 1))
        .event_capacity(1 << 20)
        .start()
        .expect("plain names");
    let tasks = (rate * seconds * 1.2) as usize + burst as usize;
    let mut events = scheduler.events();
    let handles = scheduler.submit_many::<(), _>((0..tasks).map(|_| Task::new(())));
    let mut starts: Vec<f64> = Vec::new();
    while let Some(event) = events.next().await {
        let mirab::Event::Task { at, what: mirab::What::Started { .. }, .. } = event else { continue };
        let at = at.as_secs_f64();
        if starts.first().is_some_and(|first| at - first > seconds) {
            break;
        }
        starts.push(at);
    }
    drop(handles);
    starts
}

/// The most by which a window between two starts exceeds what is allowed; at most 0, up to rounding.
fn excess(starts: &[f64], rate: f64, burst: f64) -> f64 {
    // The worst window that ends at a start begins where `count - rate * t` was least.
    let (mut worst, mut least) = (f64::MIN, f64::MAX);
    for (count, at) in starts.iter().enumerate() {
        least = least.min(count as f64 - rate * at);
        worst = worst.max(count as f64 + 1.0 - rate * at - least - burst);
    }
    worst
}

/// How often a thread that does nothing else gets around to a period.
fn bare_timer(rate: f64, seconds: f64) -> usize {
    let (begun, mut fired) = (Instant::now(), 0);
    while begun.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(Duration::from_secs_f64(1.0 / rate));
        fired += 1;
    }
    fired
}

fn per_task(begun: Instant) -> f64 {
    begun.elapsed().as_nanos() as f64 / TASKS as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
