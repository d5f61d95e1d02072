//! Schedulers on a virtual clock: who moves it, and how far.
use crate::clock::{Clock, nanos};
use crate::scheduler::Scheduler;
use crate::shard::Shard;
use crate::virtual_clock::VirtualClock;
use mirab_core::Time;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime;
use tokio::sync::watch;

/// Moves the clock whenever nothing happens and somebody awaits a task.
pub(crate) fn start(
    runtime: &runtime::Handle,
    clock: Arc<VirtualClock>,
    shards: &[Arc<Shard>],
    mut seen: watch::Receiver<()>,
) {
    let shards: Vec<Weak<Shard>> = shards.iter().map(Arc::downgrade).collect();
    runtime.spawn(async move {
        let gone = async { while seen.changed().await.is_ok() {} };
        tokio::select! {
            () = gone => {}
            () = drive(&clock, &shards) => {}
        }
    });
}

async fn drive(clock: &VirtualClock, shards: &[Weak<Shard>]) {
    loop {
        clock.changed.notified().await;
        clock.quiet().await;
        let is_wanted = clock.awaited.load(Ordering::SeqCst) > 0 && clock.moved.load(Ordering::SeqCst) == 0;
        let shards: Vec<Arc<Shard>> = shards.iter().filter_map(Weak::upgrade).collect();
        if is_wanted && let Some(at) = next(clock, &shards) {
            set(clock, &shards, at);
        }
    }
}

/// The next instant at which something happens by itself.
fn next(clock: &VirtualClock, shards: &[Arc<Shard>]) -> Option<Time> {
    let timers = shards.iter().filter_map(|shard| shard.look(|state| state.machine.poll_timeout()));
    timers.chain(clock.next_sleeper()).min()
}

fn set(clock: &VirtualClock, shards: &[Arc<Shard>], to: Time) {
    clock.set(to);
    for shard in shards {
        shard.on_time();
    }
    clock.touch();
}

impl Scheduler {
    /// Moves the clock of a [paused](Scheduler::paused) scheduler: everything that falls due on the way happens at its instant.
    ///
    /// # Panics
    /// When the scheduler is not paused: real time moves by itself.
    pub async fn advance(&self, by: Duration) {
        let Clock::Virtual(clock) = &self.inner.clock else {
            panic!("advance moves a virtual clock: start the scheduler with Scheduler::paused()")
        };
        let _moved = Counted::new(clock, |clock| &clock.moved);
        let to = clock.now().plus(nanos(by));
        clock.quiet().await;
        while let Some(at) = next(clock, &self.inner.shards).filter(|at| *at <= to) {
            set(clock, &self.inner.shards, at);
            clock.quiet().await;
        }
        set(clock, &self.inner.shards, to);
        clock.quiet().await;
    }
}

/// Counts while it lives.
pub(crate) struct Counted<'a> {
    clock: &'a VirtualClock,
    counter: fn(&VirtualClock) -> &AtomicUsize,
}

impl<'a> Counted<'a> {
    pub fn new(clock: &'a VirtualClock, counter: fn(&VirtualClock) -> &AtomicUsize) -> Self {
        counter(clock).fetch_add(1, Ordering::SeqCst);
        clock.touch();
        Self { clock, counter }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        (self.counter)(self.clock).fetch_sub(1, Ordering::SeqCst);
        self.clock.touch();
    }
}
