//! Seconds of an event loop's clock, and the machine's nanoseconds.
use mirab_core::Time;

const PER_SECOND: f64 = 1e9;

/// Rounded, so that an instant that went out as seconds comes back as the same instant.
pub fn nanos(seconds: f64) -> u64 {
    // A float beyond the range becomes its end, which is what "for ever" and "before the start" are to mean.
    (seconds * PER_SECOND).round() as u64
}

pub fn time(seconds: f64) -> Time {
    Time(nanos(seconds))
}

pub fn seconds(nanos: u64) -> f64 {
    nanos as f64 / PER_SECOND
}
