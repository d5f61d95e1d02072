//! What tests of several files need: executors that note when they start.
#![allow(dead_code, reason = "not every file uses all of it")]
use mirab::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const SECOND: Duration = Duration::from_secs(1);

/// Which tasks have started, in order, and when.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<(u64, Duration)>>>);

impl Log {
    /// A pool without a limit of its own; its tasks note their start and hold what they hold for so long.
    pub fn pool(&self, name: &str) -> Pool {
        let log = self.clone();
        let body = move |ctx: Context, (n, hold): (u64, Duration)| {
            let log = log.clone();
            async move {
                log.0.lock().unwrap().push((n, ctx.now()));
                ctx.sleep(hold).await;
                Ok::<u64, TaskError>(n)
            }
        };
        Pool::new(name, body).slots(1_000_000)
    }

    pub fn entries(&self) -> Vec<(u64, Duration)> {
        self.0.lock().unwrap().clone()
    }

    /// Numbers of those that have started.
    pub fn started(&self) -> Vec<u64> {
        self.entries().into_iter().map(|(n, _)| n).collect()
    }

    /// When a task started.
    pub fn start_of(&self, n: u64) -> Option<Duration> {
        self.entries().into_iter().find(|(one, _)| *one == n).map(|(_, at)| at)
    }
}

/// A task that holds what it holds for so long.
pub fn task(n: u64, hold: Duration) -> Task<(u64, Duration)> {
    Task::new((n, hold))
}

/// One that ends as soon as it has started.
pub fn short(n: u64) -> Task<(u64, Duration)> {
    task(n, Duration::ZERO)
}

pub fn submit(scheduler: &Scheduler, task: Task<(u64, Duration)>) -> Handle<u64> {
    scheduler.submit(task).unwrap()
}

/// Submits all, each of which is accepted.
pub fn submit_all(scheduler: &Scheduler, tasks: impl IntoIterator<Item = Task<(u64, Duration)>>) -> Vec<Handle<u64>> {
    scheduler.submit_many(tasks).into_iter().map(Result::unwrap).collect()
}

pub async fn all(handles: Vec<Handle<u64>>) {
    for handle in handles {
        handle.await.unwrap();
    }
}

/// A bucket of so many units in so many seconds, exactly.
pub fn bucket(name: &str, units: u64, seconds: u64, burst: u64) -> ResourceConfig {
    let rate = Rate::per(units, seconds).unwrap();
    ResourceConfig { limit: Limit::TokenBucket { rate, burst }, ..ResourceConfig::semaphore(name, burst) }
}
