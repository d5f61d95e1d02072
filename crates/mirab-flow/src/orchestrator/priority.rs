//! A user's edit of a priority.
use super::Orchestrator;
use crate::error::Error;
use crate::records::{Fact, RunRecord};
use crate::state::State;
use mirab_core::{ClaimId, Time};

impl Orchestrator {
    /// Gives a live run another priority. One that waits moves in the line at once, and keeps its place among equals; for one that
    /// executes it counts from its next attempt on.
    ///
    /// # Errors
    /// `UnknownRun` when it is not live: it never was, or has ended.
    pub fn set_priority(&mut self, now: Time, id: ClaimId, priority: i32, cause: &str) -> Result<RunRecord, Error> {
        let now = self.advance(now);
        let run = self.runs.get_mut(&id).ok_or(Error::UnknownRun(id))?;
        let (before, state) = (run.record.priority, run.state());
        if before != priority {
            run.record.priority = priority;
            let record = Box::new(run.record.clone());
            self.fact(Fact::Run(record));
            let reason = format!("from {before} to {priority}");
            self.event(now, id, None, "run.priority", None, reason, cause);
            if state == State::Waiting {
                self.gate.reprioritise(now, id, priority);
            }
        }
        self.settle(now);
        self.run(id).cloned().ok_or(Error::UnknownRun(id))
    }
}
