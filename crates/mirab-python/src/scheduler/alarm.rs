//! A timer that an event loop watches like a socket. The loop's own timers are rounded up to whole milliseconds, which at 1,000 starts a second is
//! a start in ten.
use super::seconds::nanos;
use pyo3::prelude::*;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsRawFd, OwnedFd};

const PER_SECOND: u64 = 1_000_000_000;

/// One timer.
#[pyclass(frozen, module = "mirab._native")]
pub struct Alarm {
    timer: OwnedFd,
}

#[pymethods]
impl Alarm {
    #[new]
    fn new() -> PyResult<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
            .map_err(std::io::Error::from)?;
        Ok(Self { timer })
    }

    /// Readable once it has gone off, until it is set anew.
    fn fileno(&self) -> i32 {
        self.timer.as_raw_fd()
    }

    /// Sets it to go off in so many seconds, or not at all.
    fn set(&self, seconds: Option<f64>) -> PyResult<()> {
        // 0 would mean never.
        let nanos = seconds.map_or(0, |seconds| nanos(seconds).max(1));
        let whole = i64::try_from(nanos / PER_SECOND).unwrap_or(i64::MAX);
        let at = Timespec { tv_sec: whole, tv_nsec: (nanos % PER_SECOND) as _ };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec).map_err(std::io::Error::from)?;
        Ok(())
    }
}
