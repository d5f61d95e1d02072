//! What happens because time passes.
use super::Orchestrator;
use crate::step::Wake;
use mirab_core::{Time, TimeoutReason};

impl Orchestrator {
    /// The instant to call [`Orchestrator::handle_timeout`] at, if nothing happens before, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Time, Wake)> {
        let tokens = self.gate.poll_timeout().map(|(at, reason)| match reason {
            TimeoutReason::Tokens { resource } => (at, Wake::Tokens(resource)),
            TimeoutReason::Overrun => (at, Wake::Overrun),
        });
        match (self.timers.first(), tokens) {
            (Some(timer), Some(tokens)) => Some(timer.min(tokens)),
            (timer, tokens) => timer.or(tokens),
        }
    }

    /// Does all that is due. What falls due by that, at the same instant, is done too.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.advance(now);
        self.gate.handle_timeout(now);
        self.settle(now);
        while let Some(wake) = self.timers.pop_due(now) {
            self.woken(now, &wake);
            self.settle(now);
        }
    }

    fn woken(&mut self, now: Time, wake: &Wake) {
        match *wake {
            Wake::Due(run) => self.fall_due(now, run),
            Wake::Retry(run) => self.retry_due(now, run),
            Wake::HandOff(run) => self.hand_off_lapsed(now, run),
            Wake::Lapse(run) => self.lease_lapsed(now, run),
            Wake::CancelGrace(run) => self.grace_is_over(run),
            Wake::Tokens(_) | Wake::Overrun | Wake::Store => {}
        }
    }
}
