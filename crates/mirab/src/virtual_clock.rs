//! A clock that stands still while anything happens, and is moved to the next timer when nothing does.
use mirab_core::Time;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// So many turns of the runtime without anything happening are quiet.
const QUIET_TURNS: u32 = 4;

#[derive(Debug, Default)]
pub(crate) struct VirtualClock {
    now: AtomicU64,
    /// Grows with all that happens.
    happened: AtomicU64,
    /// Handles that somebody awaits: only then time passes by itself.
    pub awaited: AtomicUsize,
    /// Attempts on threads, and attempts that were started and not polled yet, or are being polled.
    pub busy: AtomicUsize,
    /// While somebody moves it, it does not move by itself.
    pub moved: AtomicUsize,
    sleepers: Mutex<Sleepers>,
    pub changed: Notify,
}

#[derive(Debug, Default)]
struct Sleepers {
    next: u64,
    by_time: BTreeMap<(Time, u64), Option<Waker>>,
}

impl VirtualClock {
    pub fn now(&self) -> Time {
        Time(self.now.load(Ordering::SeqCst))
    }

    pub fn touch(&self) {
        self.happened.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_one();
    }

    /// Lets the runtime run until nothing happens any more.
    pub async fn quiet(&self) {
        let (mut seen, mut turns) = (self.happened.load(Ordering::SeqCst), 0);
        while turns < QUIET_TURNS {
            tokio::task::yield_now().await;
            let happened = self.happened.load(Ordering::SeqCst);
            let is_quiet = happened == seen && self.busy.load(Ordering::SeqCst) == 0;
            turns = if is_quiet { turns + 1 } else { 0 };
            seen = happened;
        }
    }

    /// Moves it; wakes who has slept until then.
    pub fn set(&self, to: Time) {
        self.now.fetch_max(to.0, Ordering::SeqCst);
        let mut due = Vec::new();
        let mut sleepers = self.sleepers();
        for (_, waker) in sleepers.by_time.range_mut(..=(to, u64::MAX)) {
            due.extend(waker.take());
        }
        drop(sleepers);
        due.into_iter().for_each(Waker::wake);
    }

    /// When the next sleeper that has not been woken wakes.
    pub fn next_sleeper(&self) -> Option<Time> {
        self.sleepers().by_time.iter().find(|(_, waker)| waker.is_some()).map(|((at, _), _)| *at)
    }

    pub fn sleep(self: &Arc<Self>, until: Time) -> VirtualSleep {
        let mut sleepers = self.sleepers();
        sleepers.next += 1;
        VirtualSleep { clock: Arc::clone(self), key: (until, sleepers.next) }
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sleeps on a virtual clock.
pub(crate) struct VirtualSleep {
    clock: Arc<VirtualClock>,
    key: (Time, u64),
}

impl Future for VirtualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut sleepers = self.clock.sleepers();
        if self.clock.now() >= self.key.0 {
            return Poll::Ready(());
        }
        sleepers.by_time.insert(self.key, Some(context.waker().clone()));
        drop(sleepers);
        self.clock.touch();
        Poll::Pending
    }
}

impl Drop for VirtualSleep {
    fn drop(&mut self) {
        self.clock.sleepers().by_time.remove(&self.key);
    }
}
