//! The host's clock.
use mirab_core::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall clock at start plus monotonic time since: it never steps, and instants mean something to people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    started_at: u64,
}

impl Clock {
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), started_at: nanos(since_epoch) }
    }

    pub fn now(&self) -> Time {
        Time(self.started_at).plus(nanos(self.started.elapsed()))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
