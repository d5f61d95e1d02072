//! What time alone does: tasks fall due, expire, and overrun their timeouts.
use super::record::Stage;
use super::spec::{StopReason, TaskEffect, TaskEnd, TaskId, What};
use super::{TaskMachine, spec};
use mirab_core::Time;

/// Why a task is to be looked at at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// It did not start in time.
    Expire,
    /// It joins the line.
    Due,
    /// Its attempt has run for too long.
    Timeout,
}

impl TaskMachine {
    /// The instant to call [`TaskMachine::handle_timeout`] at, if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let alarm = self.alarms.first().map(|(at, ..)| *at);
        let gate = self.gate.poll_timeout().map(|(at, _)| at);
        alarm.into_iter().chain(gate).min()
    }

    /// Does what is due by now. An instant before the latest one that was given counts as that.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.alarms.first().is_some_and(|(at, ..)| *at <= now) {
            // Else what one that expires makes room for could start, though it expires at the same time.
            self.gate.withhold_starts();
            self.ring(now);
            self.gate.resume_starts(now);
        } else {
            self.gate.handle_timeout(now);
        }
        self.drain(now);
    }

    /// Does what tasks are due for by now.
    pub(super) fn ring(&mut self, now: Time) {
        while let Some(&(at, id, alarm)) = self.alarms.first()
            && at <= now
        {
            self.alarms.pop_first();
            match alarm {
                Alarm::Expire => self.expire(now, id),
                Alarm::Due => self.fall_due(now, id),
                Alarm::Timeout => self.stop(now, id, StopReason::TimedOut),
            }
        }
    }

    fn expire(&mut self, now: Time, id: TaskId) {
        let Some(record) = self.tasks.get_mut(id) else { return };
        record.start_by = None;
        self.withdraw(now, id);
        self.end(now, id, TaskEnd::Expired);
    }

    /// A task joins the line by itself: nobody is there to be told of a refusal, so it ends with it.
    pub(super) fn fall_due(&mut self, now: Time, id: TaskId) {
        match self.join(now, id) {
            Ok(()) => self.tell(now, id, What::Queued),
            Err(refusal) => self.end(now, id, TaskEnd::Failed { message: refusal.to_string(), timed_out: false }),
        }
    }

    /// Asks the body of a running attempt to stop; a second time nothing.
    pub(super) fn stop(&mut self, now: Time, id: TaskId, why: StopReason) {
        let Some(record) = self.tasks.get_mut(id) else { return };
        let Stage::Running(fence) = record.stage else { return };
        record.stage = Stage::Stopping(fence, why);
        self.note(id);
        self.effects.push_back(TaskEffect::Stop { id, fence, why });
        self.tell(now, id, What::Stopping(why));
    }

    /// Takes a task out of wherever it waits, with its alarms. False when it does not wait.
    pub(super) fn withdraw(&mut self, now: Time, id: TaskId) -> bool {
        let Some(record) = self.tasks.get_mut(id) else { return false };
        if let Some(at) = record.start_by.take() {
            self.alarms.remove(&(at, id, Alarm::Expire));
        }
        match record.stage {
            Stage::Blocked(_) => {}
            Stage::Due(at) => _ = self.alarms.remove(&(at, id, Alarm::Due)),
            Stage::Queued(_) => _ = self.gate.cancel(now, id.claim()),
            Stage::Running(_) | Stage::Stopping(..) => return false,
        }
        true
    }

    /// Cancels a task: one that waits ends at once, the body of one that executes is asked to stop. False when it has ended, or was asked
    /// before.
    pub fn cancel(&mut self, now: Time, id: TaskId) -> bool {
        let Some(record) = self.tasks.get(id) else { return false };
        match record.stage {
            Stage::Stopping(..) => return false,
            Stage::Running(_) => self.stop(now, id, StopReason::Cancelled),
            Stage::Blocked(_) | Stage::Due(_) | Stage::Queued(_) => {
                self.withdraw(now, id);
                self.end(now, id, TaskEnd::Cancelled);
            }
        }
        self.drain(now);
        true
    }

    /// Gives a task that waits another priority; one that executes has it from its next attempt on. False when it has ended.
    pub fn reprioritise(&mut self, now: Time, id: TaskId, priority: i32) -> bool {
        let Some(record) = self.tasks.get_mut(id) else { return false };
        record.priority = priority;
        if let Stage::Queued(_) = record.stage {
            self.gate.reprioritise(now, id.claim(), priority);
        }
        self.note(id);
        self.tell(now, id, spec::What::Reprioritised(priority));
        self.drain(now);
        true
    }
}
