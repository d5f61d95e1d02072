//! How late the embedded scheduler starts what may start, how exactly it keeps rates (case S12), and what ended tasks leave behind (cases S17, S23):
//! `cargo bench --profile dist -p mirab --bench scheduler -- [latency|rates|ended]`. Its throughput beside others is measured in `bench/peers`.
use mirab::{Context, Pool, ResourceConfig, Scheduler, Task, TaskError};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

const TASKS: usize = 100_000;

fn main() {
    let which: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| which.is_empty() || which.iter().any(|wanted| wanted == name);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if is_wanted("latency") {
        runtime.block_on(latency());
    }
    if is_wanted("rates") {
        runtime.block_on(rates());
    }
    if is_wanted("ended") {
        runtime.block_on(ended());
    }
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

/// A million tasks with a timeout of an hour, which end at once: what stays behind, and what it costs to remember them.
async fn ended() {
    const MANY: usize = 1_000_000;
    for retained in [10_000, MANY] {
        let pool = Pool::new("p", |_: Context, (): ()| async { Ok::<(), Infallible>(()) }).slots(1_000);
        let scheduler = Scheduler::builder().pool(pool).retained(retained).start().expect("a plain name");
        let (mut worst, mut per_task, mut resident) = (Duration::ZERO, Vec::new(), Vec::new());
        for _ in 0..3 {
            let begun = Instant::now();
            for _ in 0..MANY / 1_000 {
                let step = Instant::now();
                let tasks = (0..1_000).map(|_| Task::new(()).timeout(Duration::from_secs(3_600)));
                for handle in scheduler.submit_many::<(), _>(tasks) {
                    handle.expect("a known pool").await.expect("it does not fail");
                }
                worst = worst.max(step.elapsed());
            }
            per_task.push(begun.elapsed().as_nanos() as usize / MANY);
            resident.push(resident_mib());
        }
        println!(
            "{MANY} tasks three times, {retained} remembered: {per_task:?} ns a task, worst thousand {worst:?}, {resident:?} MiB resident"
        );
    }
}

fn resident_mib() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4 / 1_024
}
