//! The embedded scheduler beside the public crate `cronoq`, its nearest equivalent, and beside the bare parts of tokio, which know no priorities,
//! rates or reasons: tasks that yield once, through one semaphore, in four priorities, submitted together and each awaited. No finished task is
//! kept on either side.
//!
//! `cargo run --release --bin scheduler [rounds]` measures all three in turn and compares the medians.
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TASKS: usize = 100_000;
const PERMITS: usize = 10;
const SLOTS: u32 = 1_000;
const ROUNDS: usize = 5;

async fn mirab() -> f64 {
    use mirab::{Context, Pool, ResourceConfig, Scheduler, Task};
    async fn yields(_: Context, (): ()) -> Result<(), Infallible> {
        tokio::task::yield_now().await;
        Ok(())
    }
    let scheduler = Scheduler::builder()
        .resource(ResourceConfig::semaphore("sem", PERMITS as u64))
        .pool(Pool::new("default", yields).slots(SLOTS.into()))
        .retained(0)
        .start()
        .expect("plain names");
    let begun = Instant::now();
    let tasks = (0..TASKS).map(|n| Task::new(()).priority((n % 4) as i32).resource("sem", 1));
    for handle in scheduler.submit_many::<(), _>(tasks) {
        handle.expect("known names").await.expect("it does not fail");
    }
    let took = per_task(begun);
    assert_eq!(scheduler.snapshot().priority_inversions, 0);
    took
}

async fn cronoq() -> f64 {
    use cronoq::{Pool, Priority, ResourceConfig, Scheduler, Task, TaskError};
    let pool = Pool::fixed("default", SLOTS).executor_fn(|_, _: Arc<()>| async {
        tokio::task::yield_now().await;
        Ok::<(), TaskError>(())
    });
    let scheduler = Scheduler::<(), ()>::builder()
        .resource(ResourceConfig::semaphore("sem", PERMITS as u32))
        .pool(pool)
        .queue_capacity(2 * TASKS)
        .configure(|core| (core.retention, core.retention_max) = (Duration::ZERO, 0))
        .build()
        .await
        .expect("plain names");
    let begun = Instant::now();
    let tasks = (0..TASKS).map(|n| Task::new(()).priority(Priority::ALL[n % 4]).resource("sem", 1));
    for handle in scheduler.submit_batch(tasks.collect()).await.expect("known names") {
        handle.await.expect("it does not fail");
    }
    let took = per_task(begun);
    scheduler.shutdown(Duration::from_secs(1)).await.expect("nothing runs");
    took
}

async fn tokio_semaphore() -> f64 {
    let begun = Instant::now();
    let semaphore = Arc::new(tokio::sync::Semaphore::new(PERMITS));
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

fn per_task(begun: Instant) -> f64 {
    begun.elapsed().as_nanos() as f64 / TASKS as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut figures = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        figures[0].push(runtime.block_on(mirab()));
        figures[1].push(runtime.block_on(cronoq()));
        figures[2].push(runtime.block_on(tokio_semaphore()));
    }
    let [ours, theirs, bare] = figures.map(median);
    println!("{TASKS} tasks that yield once, one semaphore of {PERMITS}, four priorities, median of {rounds}");
    println!("mirab {ours:.0} ns a task, cronoq {theirs:.0} ns: {:.2} times its throughput (bar 1.3)", theirs / ours);
    println!("tokio Semaphore + spawn {bare:.0} ns a task: mirab takes {:.2} times as long (bar 3)", ours / bare);
}
