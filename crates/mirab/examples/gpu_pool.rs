//! Four GPUs and jobs for one to four of them, far more than fit: jobs of all sizes go on, and each GPU is hardly ever idle. On a virtual clock, so
//! that a day of work takes no time; a program says `Scheduler::builder()` instead of `paused()`, and the rest is the same.
//!
//! `cargo run -p mirab --example gpu_pool` fails when jobs of some size are starved.
use mirab::{Context, Handle, Pool, ResourceConfig, Scheduler, Task, TaskError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const GPUS: u64 = 4;
const JOBS: u64 = 2_000;
const MINUTE: Duration = Duration::from_secs(60);
const BETWEEN_JOBS: Duration = Duration::from_secs(95);

/// A job: so many GPUs for so long, submitted at some instant.
#[derive(Clone)]
struct Job {
    gpus: u64,
    takes: Duration,
    submitted: Duration,
}

/// Jobs of one size: how long the longest wait was, and GPU time.
#[derive(Clone, Copy, Default)]
struct Size {
    jobs: u64,
    longest_wait: Duration,
    busy: Duration,
}

type Sizes = Arc<Mutex<[Size; GPUS as usize]>>;

fn pool(sizes: &Sizes) -> Pool {
    let sizes = Arc::clone(sizes);
    let train = move |ctx: Context, job: Job| {
        let sizes = Arc::clone(&sizes);
        async move {
            let waited = ctx.now() - job.submitted;
            ctx.sleep(job.takes).await;
            let mut sizes = sizes.lock().expect("nobody panics with it");
            let size = &mut sizes[job.gpus as usize - 1];
            size.jobs += 1;
            size.longest_wait = size.longest_wait.max(waited);
            size.busy += job.takes * job.gpus as u32;
            Ok::<(), TaskError>(())
        }
    };
    Pool::new("train", train).slots(100)
}

/// A number below `most`, by chance, the same in every run.
fn draw(chance: &mut u64, most: usize) -> usize {
    *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*chance >> 33) as usize % most
}

/// Most jobs are for one GPU; they come nearly as fast as they can be worked off.
async fn run(sizes: &Sizes) -> Result<Duration, Box<dyn std::error::Error>> {
    let gpus = ResourceConfig::semaphore("gpu", GPUS);
    let scheduler = Scheduler::paused().resource(gpus).pool(pool(sizes)).start()?;
    let (mut chance, mut handles) = (7, Vec::<Handle<()>>::new());
    for _ in 0..JOBS {
        let gpus = [1, 1, 1, 1, 2, 2, 3, 4][draw(&mut chance, 8)];
        let takes = MINUTE * (1 + draw(&mut chance, 5) as u32);
        let job = Job { gpus, takes, submitted: scheduler.now() };
        handles.push(scheduler.submit(Task::new(job).resource("gpu", gpus))?);
        scheduler.advance(BETWEEN_JOBS).await;
    }
    for handle in handles {
        handle.await?;
    }
    Ok(scheduler.now())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = Sizes::default();
    let took = run(&sizes).await?;
    let sizes = *sizes.lock().expect("nobody panics with it");
    for (gpus, size) in (1..).zip(&sizes) {
        println!("{} jobs for {gpus}: none waited longer than {} min", size.jobs, size.longest_wait.as_secs() / 60);
    }
    let busy: Duration = sizes.iter().map(|size| size.busy).sum();
    println!(
        "GPUs were busy {:.1} % of {} h",
        100.0 * busy.as_secs_f64() / (GPUS as f64 * took.as_secs_f64()),
        took.as_secs() / 3_600
    );
    let jobs: u64 = sizes.iter().map(|size| size.jobs).sum();
    if jobs != JOBS || sizes.iter().any(|size| 2 * size.longest_wait > 3 * sizes[0].longest_wait) {
        return Err("expected all jobs to end, and none to wait 1.5 times as long as those for one GPU".into());
    }
    Ok(())
}

#[cfg(test)]
#[test]
fn no_size_is_starved() {
    main().unwrap();
}
