//! Attempts end: with them the task, or another attempt follows.
use super::TaskMachine;
use super::ended::{EndedTask, Keyed};
use super::limits;
use super::record::Stage;
use super::spec::{Again, Retry, StopReason, TaskEffect, TaskEnd, TaskId, TaskOutcome, What};
use super::timing::Alarm;
use mirab_core::{BucketState, Ended as GateEnd, Fence, Refusal, Time};
use std::sync::Arc;

impl TaskMachine {
    /// A body has ended: its units are free, and what they allow starts in this step. False for an attempt that is not live any more:
    /// then nothing has changed. `random` is any number: the pause before another attempt is drawn with it, and told as an event.
    pub fn finish(&mut self, now: Time, id: TaskId, fence: Fence, outcome: TaskOutcome, random: u64) -> bool {
        let Some(record) = self.tasks.get_mut(id).filter(|record| record.fence() == Some(fence)) else { return false };
        if let Some(deadline) = record.deadline.take() {
            self.alarms.remove(&(deadline, id, Alarm::Timeout));
        }
        let stopped = match record.stage {
            Stage::Stopping(_, why) => Some(why),
            _ => None,
        };
        let how = if stopped.is_none() { GateEnd::ByItself } else { GateEnd::Stopped };
        // What comes after it is in line before its units are given on.
        self.conclude(now, id, outcome, stopped, random);
        self.gate.release(now, id.claim(), fence, how);
        self.drain(now);
        true
    }

    fn conclude(&mut self, now: Time, id: TaskId, outcome: TaskOutcome, stopped: Option<StopReason>, random: u64) {
        let timed_out = stopped == Some(StopReason::TimedOut);
        let (message, again) = match (outcome, stopped) {
            (TaskOutcome::Success, _) => return self.end(now, id, TaskEnd::Completed),
            (_, Some(StopReason::Cancelled)) => return self.end(now, id, TaskEnd::Cancelled),
            (_, Some(StopReason::TimedOut)) => ("the attempt ran longer than its timeout".to_owned(), Again::ByPolicy),
            (TaskOutcome::Failure { message, again }, None) => (message, again),
            (TaskOutcome::Stopped, None) => ("what executed the attempt has gone".to_owned(), Again::ByPolicy),
        };
        let Some(record) = self.tasks.get_mut(id) else { return };
        let (attempt, failed) = (record.attempts, record.attempts - record.lost());
        let Some((pause, at_most)) = pause(record.shape.spec.retry, failed, again, random) else {
            return self.end(now, id, TaskEnd::Failed { message, timed_out });
        };
        let due = now.plus(pause);
        record.stage = Stage::Due(due);
        self.alarms.insert((due, id, Alarm::Due));
        self.note(id);
        let pool = self.pool_of(id);
        pool.running -= 1;
        pool.queued += 1;
        self.counts.retried += 1;
        self.tell(now, id, What::Retrying { attempt, pause, at_most, message });
    }

    /// A task is over, and with it, it may be, tasks that were to come after it.
    pub(super) fn end(&mut self, now: Time, id: TaskId, end: TaskEnd) {
        let dependants = self.end_one(now, id, end.clone());
        let mut over = vec![];
        if !dependants.is_empty() {
            over.push((id, end, dependants));
        }
        while let Some((id, end, dependants)) = over.pop() {
            for (next, on) in dependants {
                match (limits::is_broken(id, on, &end), self.tasks.get_mut(next)) {
                    (_, None) => {}
                    (Some(reason), Some(_)) => {
                        self.withdraw(now, next);
                        let skipped = TaskEnd::Skipped { reason };
                        let dependants = self.end_one(now, next, skipped.clone());
                        over.push((next, skipped, dependants));
                    }
                    (None, Some(record)) => {
                        let Stage::Blocked(open) = &mut record.stage else { continue };
                        *open -= 1;
                        if *open == 0 {
                            self.unblock(now, next);
                        }
                    }
                }
            }
        }
    }

    /// Gives the tasks that come after it.
    fn end_one(&mut self, now: Time, id: TaskId, end: TaskEnd) -> Vec<(TaskId, super::On)> {
        let Some(mut record) = self.tasks.remove(id) else { return Vec::new() };
        if let Some(pool) = self.pools.get_mut(record.shape.spec.pool.as_str()) {
            let left = if record.fence().is_none() { &mut pool.queued } else { &mut pool.running };
            *left -= 1;
        }
        if let Some(at) = record.start_by {
            self.alarms.remove(&(at, id, Alarm::Expire));
        }
        let counter = match &end {
            TaskEnd::Completed => &mut self.counts.completed,
            TaskEnd::Failed { .. } => &mut self.counts.failed,
            TaskEnd::Cancelled => &mut self.counts.cancelled,
            TaskEnd::Expired => &mut self.counts.expired,
            TaskEnd::Skipped { .. } => &mut self.counts.skipped,
        };
        *counter += 1;
        self.note_end(id, &record, &end);
        let more = record.more.take().map(|more| *more).unwrap_or_default();
        let keyed = more.key.map(|(key, digest)| Box::new(Keyed { key, digest, shape: Arc::clone(&record.shape) }));
        let ended = EndedTask { end: end.clone(), attempts: record.attempts, priority: record.priority, keyed };
        self.remember(id, ended);
        self.tell(now, id, What::Ended(end.clone()));
        self.effects.push_back(TaskEffect::Ended { id, end });
        more.dependants
    }

    /// Remembers a task that has ended, and forgets the oldest for it.
    pub(super) fn remember(&mut self, id: TaskId, task: EndedTask) {
        let Some((oldest, forgotten)) = self.ended.push(id, task) else { return };
        if let Some(keyed) = forgotten.keyed {
            self.keys.remove(&keyed.key);
        }
        self.note_forgotten(oldest);
    }

    /// Corrects what an attempt was charged for tokens, once the true cost is known (see [`mirab_core::Gate::settle`]).
    ///
    /// # Errors
    /// `InvalidClaim` for an attempt that is not live, `InvalidResource` for a name of which it took no tokens.
    pub fn settle(&mut self, now: Time, id: TaskId, fence: Fence, name: &str, actual: u64) -> Result<(), Refusal> {
        self.gate.settle(now, id.claim(), fence, name, actual)?;
        self.note_bucket(name);
        self.drain(now);
        Ok(())
    }

    /// The far side asked for a pause: nothing that needs this bucket starts within `pause` nanoseconds (see [`mirab_core::Gate::cooldown`]).
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceOnOtherShard`, `InvalidResource` for what is no token bucket.
    pub fn cooldown(&mut self, now: Time, name: &str, pause: u64) -> Result<BucketState, Refusal> {
        let state = self.gate.cooldown(now, name, pause)?;
        self.note_bucket(name);
        self.drain(now);
        Ok(state)
    }
}

/// The pause before the next attempt and what it was drawn from; `None` when there is none.
fn pause(retry: Retry, attempt: u32, again: Again, random: u64) -> Option<(u64, u64)> {
    if attempt > retry.retries || again == Again::Never {
        return None;
    }
    if let Again::After(pause) = again {
        return Some((pause, pause));
    }
    let doubled = retry.base.checked_shl(attempt - 1).filter(|pause| pause >> (attempt - 1) == retry.base);
    let at_most = doubled.unwrap_or(u64::MAX).min(retry.cap);
    // A fraction of 64 bits of it: no division, and no bias that matters.
    let drawn = (u128::from(random) * (u128::from(at_most) + 1)) >> 64;
    Some((u64::try_from(drawn).unwrap_or(at_most), at_most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirab_core::SECOND;

    #[test]
    fn pauses_double_up_to_the_cap_and_are_drawn_from_all_of_it() {
        let retry = Retry { retries: 100, base: SECOND, cap: 10 * SECOND };
        let most = |attempt| pause(retry, attempt, Again::ByPolicy, u64::MAX).unwrap();
        assert_eq!([1, 2, 3, 4, 5, 70, 100].map(|n| most(n).0 / SECOND), [1, 2, 4, 8, 10, 10, 10]);
        assert_eq!(pause(retry, 3, Again::ByPolicy, 0), Some((0, 4 * SECOND)));
        assert_eq!(pause(retry, 3, Again::ByPolicy, 1 << 63).unwrap().0, 2 * SECOND);
        assert_eq!(pause(retry, 3, Again::After(7), 9), Some((7, 7)));
        assert_eq!(pause(retry, 3, Again::Never, 9), None);
        assert_eq!(pause(retry, 101, Again::After(7), 9), None);
    }
}
