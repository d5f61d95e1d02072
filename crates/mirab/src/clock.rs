//! What time it is for a scheduler: nanoseconds since it started (with a store, since the Unix epoch, for times go on over a restart), of the machine's monotonic clock or of one that its user moves.
use crate::virtual_clock::VirtualClock;
use mirab_core::Time;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The clock of one scheduler.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// When it started, and what time it was then.
    Real(Instant, Time),
    Virtual(Arc<VirtualClock>),
}

impl Clock {
    /// Since the Unix epoch; a step of the machine's clock does not move it.
    #[cfg(feature = "sqlite")]
    pub fn since_epoch() -> Self {
        let then = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Clock::Real(Instant::now(), Time(nanos(then)))
    }

    pub fn now(&self) -> Time {
        match self {
            Clock::Real(start, then) => then.plus(nanos(start.elapsed())),
            Clock::Virtual(clock) => clock.now(),
        }
    }

    /// What time it was when the scheduler started.
    pub fn start(&self) -> Time {
        match self {
            Clock::Real(_, then) => *then,
            Clock::Virtual(_) => Time(0),
        }
    }

    pub fn as_virtual(&self) -> Option<&Arc<VirtualClock>> {
        match self {
            Clock::Real(..) => None,
            Clock::Virtual(clock) => Some(clock),
        }
    }

    /// Something happened: a virtual clock stands still until it is quiet.
    pub fn touch(&self) {
        if let Clock::Virtual(clock) = self {
            clock.touch();
        }
    }

    pub async fn sleep(&self, pause: Duration) {
        match self {
            Clock::Real(..) => tokio::time::sleep(pause).await,
            Clock::Virtual(clock) => clock.sleep(clock.now().plus(nanos(pause))).await,
        }
    }
}

/// An instant, or how long from now.
///
/// Made of a [`Duration`], an [`Instant`] or a [`SystemTime`]; one that has passed is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(Duration);

impl When {
    pub(crate) fn from(self, now: Time) -> Time {
        now.plus(nanos(self.0))
    }
}

impl From<Duration> for When {
    fn from(from_now: Duration) -> Self {
        Self(from_now)
    }
}

impl From<Instant> for When {
    fn from(at: Instant) -> Self {
        Self(at.saturating_duration_since(Instant::now()))
    }
}

impl From<SystemTime> for When {
    fn from(at: SystemTime) -> Self {
        Self(at.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
