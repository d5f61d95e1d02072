//! Instants to wake up at, at most one for each reason.
use crate::step::Wake;
use mirab_core::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Timers in order of time, found again by their reason.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Time, Wake)>,
    by_wake: BTreeMap<Wake, Time>,
}

impl Timers {
    /// Sets or moves the timer of this reason.
    pub fn set(&mut self, at: Time, wake: Wake) {
        self.clear(&wake);
        self.by_time.insert((at, wake.clone()));
        self.by_wake.insert(wake, at);
    }

    pub fn clear(&mut self, wake: &Wake) {
        if let Some(at) = self.by_wake.remove(wake) {
            self.by_time.remove(&(at, wake.clone()));
        }
    }

    pub fn first(&self) -> Option<(Time, Wake)> {
        self.by_time.first().cloned()
    }

    /// Takes out the first timer that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<Wake> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, wake) = self.by_time.pop_first()?;
        self.by_wake.remove(&wake);
        Some(wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirab_core::ClaimId;

    #[test]
    fn a_timer_moves_and_fires_once_and_never_early() {
        let mut timers = Timers::default();
        timers.set(Time(5), Wake::Lapse(ClaimId(1)));
        timers.set(Time(7), Wake::Due(ClaimId(2)));
        timers.set(Time(9), Wake::Lapse(ClaimId(1)));
        assert_eq!((timers.pop_due(Time(6)), timers.first()), (None, Some((Time(7), Wake::Due(ClaimId(2))))));
        timers.clear(&Wake::Due(ClaimId(2)));
        assert_eq!(timers.pop_due(Time(9)), Some(Wake::Lapse(ClaimId(1))));
        assert_eq!((timers.pop_due(Time(9)), timers.first()), (None, None));
    }

    /// Timers that are not needed any more are gone at once, not when they would have fired.
    #[test]
    fn case_s17_timers_of_work_that_ended_take_no_memory() {
        let mut timers = Timers::default();
        for id in 0..100_000 {
            timers.set(Time(3_600 * mirab_core::SECOND + id), Wake::Lapse(ClaimId(id)));
            timers.clear(&Wake::Lapse(ClaimId(id)));
            assert_eq!((timers.by_time.len(), timers.by_wake.len()), (0, 0));
        }
    }
}
