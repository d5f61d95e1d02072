//! Keeps one lease alive from a thread of its own, so that no lock of the body's language can lose it.
//!
//! ```text
//! Live --cancel asked for--> Live, stop = Cancel (heartbeats go on: the body may clean up)
//! Live --409--> Gone, stop = Stale
//! any  --end()--> Ended: nothing is called any more
//! ```
use crate::Result;
use crate::link::Link;
use mirab_wire::{Heartbeat, HeartbeatAnswer, Lease};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two tries while the server is away.
pub(crate) const AWAY_PAUSE: Duration = Duration::from_millis(200);
const LISTEN_S: f64 = 5.0;

/// Why a body is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A cancel was asked for: clean up and report.
    Cancel,
    /// The lease is somebody else's now: nothing may be reported.
    Stale,
}

impl Stop {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Cancel => "the run is being cancelled: nothing more can start in it",
            Self::Stale => "the lease of this run has lapsed and its run was given on: stop, nothing can be reported",
        }
    }
}

/// Called at most once for a lease, from the heartbeat thread, and never after the lease has ended here.
pub type OnStop = Arc<dyn Fn(Stop) + Send + Sync>;

#[derive(Default)]
struct State {
    stop: Option<Stop>,
    ended: bool,
}

struct Shared {
    link: Arc<Link>,
    lease: u64,
    fence: u64,
    on_stop: OnStop,
    state: Mutex<State>,
    changed: Condvar,
}

/// Handle of the heartbeat thread of one lease.
pub(crate) struct LeaseKeeper {
    shared: Arc<Shared>,
}

impl LeaseKeeper {
    /// Renews a lease that was taken up, until [`end`](Self::end).
    pub fn start(link: Arc<Link>, lease: &Lease, on_stop: OnStop) -> Self {
        let (lease, fence) = (lease.id, lease.fence);
        let shared = Arc::new(Shared { link, lease, fence, on_stop, state: Mutex::default(), changed: Condvar::new() });
        let mine = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("mirab-heartbeat".into())
            .spawn(move || mine.run())
            .expect("a thread can be started");
        Self { shared }
    }

    /// Why the body is to stop, if it is.
    pub fn stop(&self) -> Option<Stop> {
        self.shared.state().stop
    }

    /// Waits `pause` or until the body is to stop, whichever is first.
    pub fn wait(&self, pause: Duration) -> Option<Stop> {
        self.shared.wait(pause, |state| state.stop.is_some()).stop
    }

    /// No heartbeat and no call of `on_stop` begins after this has returned.
    pub fn end(&self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn run(&self) {
        let mut wait_s = LISTEN_S;
        while !self.state().ended {
            match self.beat(wait_s) {
                Ok(HeartbeatAnswer { cancel: false }) => wait_s = LISTEN_S,
                Ok(HeartbeatAnswer { cancel: true }) => {
                    self.ask_to_stop(Stop::Cancel);
                    // The server would answer at once from now on: only renew, at the pace of listening.
                    wait_s = 0.0;
                    drop(self.wait(Duration::from_secs_f64(LISTEN_S), |state| state.ended));
                }
                Err(error) if error.is_stale() => return self.ask_to_stop(Stop::Stale),
                Err(_) => {
                    drop(self.wait(AWAY_PAUSE, |state| state.ended));
                }
            }
        }
    }

    fn beat(&self, wait_s: f64) -> Result<HeartbeatAnswer> {
        self.link.call(|client| client.heartbeat(self.lease, &Heartbeat { fence: self.fence, wait_s }))
    }

    /// Tells the body under the lock, so that `end` cannot return between the check and the call.
    fn ask_to_stop(&self, stop: Stop) {
        let mut state = self.state();
        let first = state.stop.is_none();
        state.stop = Some(stop);
        if first && !state.ended {
            (self.on_stop)(stop);
        }
        self.changed.notify_all();
    }

    fn wait(&self, pause: Duration, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let until = Instant::now() + pause;
        let mut state = self.state();
        while !done(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
