//! What an executor is told of the attempt that it executes.
use crate::cell::TaskCell;
use crate::clock::nanos;
use crate::error::Error;
use crate::shard::Shard;
use mirab_core::Refusal;
use mirab_flow::scheduler::{TaskId, TaskStart};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The attempt that an executor executes.
#[derive(Clone)]
pub struct Context {
    task: Arc<TaskCell>,
    shard: Arc<Shard>,
    start: TaskStart,
}

impl Context {
    pub(crate) fn new(task: Arc<TaskCell>, shard: Arc<Shard>, start: TaskStart) -> Self {
        Self { task, shard, start }
    }

    /// The task.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        self.task.id
    }

    /// Number of the attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.start.attempt
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &str {
        &self.task.pool.name
    }

    /// The key that the task was submitted with.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.task.key.as_deref()
    }

    /// Time since the scheduler's start, on its clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        let clock = &self.shard.clock;
        Duration::from_nanos(clock.now().since(clock.start()))
    }

    /// When the attempt is stopped for its timeout, since the scheduler's start.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.start.deadline.map(|at| Duration::from_nanos(at.since(self.shard.clock.start())))
    }

    /// How long the attempt may still run; `None` without a timeout.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.start.deadline.map(|at| Duration::from_nanos(at.since(self.shard.clock.now())))
    }

    /// True once the attempt is to stop: it was cancelled, or its timeout has come. A future is dropped for that; a function on a thread has
    /// to look here.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.task.is_stopped(self.start.fence)
    }

    /// Tells a token bucket what the call has cost in truth: the difference to what the task took is given back, or owed.
    ///
    /// # Errors
    /// `InvalidResource` for a name of which the task took no tokens; `StaleLease` once the attempt has ended.
    pub fn settle(&self, resource: &str, actual: u64) -> Result<(), Error> {
        let (id, fence) = (self.start.id, self.start.fence);
        self.shard.step(|state, now| match state.machine.settle(now, id, fence, resource, actual) {
            Err(Refusal::InvalidClaim { .. }) => Err(Error::StaleLease { id, attempt: self.start.attempt }),
            settled => Ok(settled?),
        })
    }

    /// The far side asked for a pause: nothing that needs this bucket starts within it.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceOnOtherShard`, `InvalidResource` for what is no token bucket.
    pub fn cooldown(&self, resource: &str, pause: Duration) -> Result<(), Error> {
        self.shard.step(|state, now| {
            state.machine.cooldown(now, resource, nanos(pause))?;
            Ok(())
        })
    }

    /// Sleeps on the scheduler's clock: of a [paused](crate::Scheduler::paused) scheduler, no time passes outside.
    pub async fn sleep(&self, pause: Duration) {
        self.shard.clock.sleep(pause).await;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("task_id", &self.task.id).field("attempt", &self.start.attempt).finish()
    }
}
