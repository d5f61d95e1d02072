//! A thread that waits for the instants of one shard: a runtime's timers count milliseconds, and a bucket that refills a thousand times a second
//! would lose half its rate to them.
use crate::shard::Shard;
use mirab_core::Time;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

/// Wakes the thread of one shard.
#[derive(Default)]
pub(crate) struct Timer {
    thread: OnceLock<Thread>,
    /// The instant that the thread wakes at, `NEVER` if only when it is woken. Changed under the shard's lock only.
    armed: AtomicNever,
}

struct AtomicNever(AtomicU64);

impl Default for AtomicNever {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

const NEVER: u64 = u64::MAX;

impl Timer {
    /// Takes note of the next instant; true when the thread has to be woken for it. A later one it finds by itself.
    pub fn arm(&self, next: Option<Time>) -> bool {
        let next = next.map_or(NEVER, |at| at.0);
        let is_earlier = next < self.armed.0.load(Ordering::Relaxed);
        if is_earlier {
            self.armed.0.store(next, Ordering::Relaxed);
        }
        is_earlier
    }

    /// The thread, awake, says when it wakes next.
    pub fn set(&self, next: Option<Time>) {
        self.armed.0.store(next.map_or(NEVER, |at| at.0), Ordering::Relaxed);
    }

    pub fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.wake();
    }
}

/// Starts the thread of a shard. It ends with the shard.
pub(crate) fn start(shard: &Arc<Shard>) -> std::io::Result<()> {
    let weak = Arc::downgrade(shard);
    let thread = thread::Builder::new().name(format!("mirab-timer-{}", shard.name)).spawn(move || run(&weak))?;
    // It is started once.
    let _ = shard.timer.thread.set(thread.thread().clone());
    shard.timer.wake();
    Ok(())
}

fn run(shard: &Weak<Shard>) {
    be_precise();
    while let Some(alive) = shard.upgrade() {
        let pause = alive.on_time().map(|at| Duration::from_nanos(at.since(alive.clock.now())));
        drop(alive);
        match pause {
            Some(pause) => thread::park_timeout(pause),
            None => thread::park(),
        }
    }
}

/// Linux rounds the waits of a thread up by 50 microseconds unless it is told not to.
fn be_precise() {
    #[cfg(target_os = "linux")]
    // Without it the timer is late by that much, no more.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
