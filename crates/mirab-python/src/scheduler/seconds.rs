//! Seconds of an event loop's clock, and the machine's nanoseconds.
use mirab_core::Time;
use std::time::SystemTime;

const PER_SECOND: f64 = 1e9;

/// Rounded, so that an instant that went out as seconds comes back as the same instant.
pub fn nanos(seconds: f64) -> u64 {
    // A float beyond the range becomes its end, which is what "for ever" and "before the start" are to mean.
    (seconds * PER_SECOND).round() as u64
}

/// The instants of an event loop as those of a machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// The machine's time when the loop's was 0. With a store that is nanoseconds since the Unix epoch: times go on over a restart.
    zero: u64,
}

impl Clock {
    /// Of a loop whose time is `now`, with the machine's time since the Unix epoch.
    pub fn since_epoch(now: f64) -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { zero: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX).saturating_sub(nanos(now)) }
    }

    pub fn time(self, at: f64) -> Time {
        Time(self.zero.saturating_add(nanos(at)))
    }

    /// Of what happened before the loop's time began, a negative number.
    pub fn seconds(self, at: Time) -> f64 {
        if at.0 >= self.zero { seconds(at.0 - self.zero) } else { -seconds(self.zero - at.0) }
    }
}

pub fn seconds(nanos: u64) -> f64 {
    nanos as f64 / PER_SECOND
}
