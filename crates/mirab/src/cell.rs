//! What the scheduler keeps of a task beside the machine: its payload, and who is to be told how it ended.
use crate::directory::Listed;
use crate::error::TaskFailure;
use crate::failure::Cause;
use crate::foreign::let_go;
use crate::value::{Payload, Value};
use mirab_core::Fence;
use mirab_flow::scheduler::{TaskEnd, TaskId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// A task, from its submission until nobody has a handle of it and it has ended.
pub(crate) struct TaskCell {
    pub id: TaskId,
    pub pool: Arc<Listed>,
    pub key: Option<Box<str>>,
    /// So many attempts may follow the first.
    pub retries: u32,
    payload: Mutex<Option<Payload>>,
    /// The attempt with this fence, and all before it, are to stop.
    stopped: AtomicU64,
    body: Mutex<Option<Waker>>,
    outcome: Mutex<Outcome>,
    #[cfg(feature = "sqlite")]
    stored: Mutex<Stored>,
    #[cfg(feature = "sqlite")]
    pub coder: Option<Arc<dyn crate::store::Coder>>,
}

/// Of a scheduler with a store.
#[cfg(feature = "sqlite")]
#[derive(Default)]
struct Stored {
    accepted: Option<Result<(), Arc<mirab_store::TaskStoreError>>>,
    wakers: Vec<Waker>,
    result: Option<mirab_store::Blob>,
}

#[derive(Default)]
struct Outcome {
    value: Option<Box<dyn Value>>,
    cause: Option<Cause>,
    attempts: u32,
    end: Option<TaskEnd>,
    /// Of the handles that are awaited, by their seats.
    wakers: Vec<Option<Waker>>,
}

impl TaskCell {
    pub fn new(id: TaskId, pool: Arc<Listed>, key: Option<Box<str>>, retries: u32, payload: Option<Payload>) -> Self {
        let (payload, outcome) = (Mutex::new(payload), Mutex::default());
        Self {
            id,
            pool,
            key,
            retries,
            payload,
            stopped: AtomicU64::new(0),
            body: Mutex::new(None),
            outcome,
            #[cfg(feature = "sqlite")]
            stored: Mutex::default(),
            #[cfg(feature = "sqlite")]
            coder: None,
        }
    }

    /// The payload for an attempt: a copy while another may follow.
    pub fn payload(&self, attempt: u32) -> Option<Payload> {
        let mut payload = lock(&self.payload);
        if attempt > self.retries { payload.take() } else { self.pool.executor.copy(payload.as_ref()?) }
    }

    /// Asks the body of an attempt to stop.
    pub fn stop(&self, fence: Fence) {
        self.stopped.fetch_max(fence.0, Ordering::SeqCst);
        let body = lock(&self.body).take();
        body.into_iter().for_each(Waker::wake);
    }

    pub fn is_stopped(&self, fence: Fence) -> bool {
        self.stopped.load(Ordering::SeqCst) >= fence.0
    }

    /// Whom to wake when the body is to stop.
    pub fn register_body(&self, waker: &Waker) {
        let mut body = lock(&self.body);
        if !body.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *body = Some(waker.clone());
        }
    }

    /// What an attempt came to, before the machine is told.
    pub fn note(&self, attempt: u32, result: Result<Box<dyn Value>, Option<Cause>>) {
        let mut outcome = lock(&self.outcome);
        outcome.attempts = attempt;
        let before = match result {
            Ok(value) => (outcome.value.replace(value), None),
            Err(cause) => (None, std::mem::replace(&mut outcome.cause, cause)),
        };
        drop(outcome);
        let_go(before);
    }

    /// The task is over.
    pub fn resolve(&self, end: TaskEnd) {
        let payload = lock(&self.payload).take();
        let mut outcome = lock(&self.outcome);
        outcome.end = Some(end);
        let wakers = std::mem::take(&mut outcome.wakers);
        drop(outcome);
        wakers.into_iter().flatten().for_each(Waker::wake);
        let_go(payload);
    }

    /// A seat for a further handle.
    pub fn seat(&self) -> usize {
        let mut outcome = lock(&self.outcome);
        if outcome.end.is_some() {
            // Nobody waits any more.
            return 0;
        }
        outcome.wakers.push(None);
        outcome.wakers.len() - 1
    }

    /// How it ended; who is to be woken when it has not.
    pub fn poll(&self, seat: usize, waker: &Waker) -> Option<Result<Box<dyn Value>, TaskFailure>> {
        let mut outcome = lock(&self.outcome);
        let Some(end) = outcome.end.clone() else {
            if outcome.wakers.len() <= seat {
                outcome.wakers.resize(seat + 1, None);
            }
            outcome.wakers[seat] = Some(waker.clone());
            return None;
        };
        Some(self.result(&mut outcome, end))
    }

    fn result(&self, outcome: &mut Outcome, end: TaskEnd) -> Result<Box<dyn Value>, TaskFailure> {
        let (id, attempts) = (self.id, outcome.attempts);
        Err(match end {
            // Only a task with a key has several handles.
            TaskEnd::Completed if self.key.is_some() => {
                return Ok(outcome.value.as_ref().expect("it completed with a value").clone_value());
            }
            TaskEnd::Completed => return Ok(outcome.value.take().expect("a handle gives its result once")),
            TaskEnd::Failed { timed_out: true, .. } => TaskFailure::TimedOut { id, attempts },
            TaskEnd::Failed { message, .. } => {
                TaskFailure::Failed { id, attempts, message, cause: outcome.cause.clone() }
            }
            TaskEnd::Cancelled => TaskFailure::Cancelled(id),
            TaskEnd::Expired => TaskFailure::Expired(id),
            TaskEnd::Skipped { reason } => TaskFailure::Skipped { id, reason },
        })
    }
}

impl Drop for TaskCell {
    fn drop(&mut self) {
        let outcome = std::mem::take(&mut *lock(&self.outcome));
        let_go(lock(&self.payload).take());
        let_go(outcome.value);
        let_go(outcome.cause);
    }
}

#[cfg(feature = "sqlite")]
impl TaskCell {
    pub fn with_coder(mut self, coder: Option<Arc<dyn crate::store::Coder>>) -> Self {
        self.coder = coder;
        self
    }

    /// It is stored, or cannot be.
    pub fn accept(&self, accepted: Result<(), Arc<mirab_store::TaskStoreError>>) {
        let mut stored = lock(&self.stored);
        stored.accepted = Some(accepted);
        let wakers = std::mem::take(&mut stored.wakers);
        drop(stored);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn poll_accepted(&self, waker: &Waker) -> std::task::Poll<Result<(), Arc<mirab_store::TaskStoreError>>> {
        let mut stored = lock(&self.stored);
        if let Some(accepted) = &stored.accepted {
            return std::task::Poll::Ready(accepted.clone());
        }
        if !stored.wakers.iter().any(|known| known.will_wake(waker)) {
            stored.wakers.push(waker.clone());
        }
        std::task::Poll::Pending
    }

    /// The result as it is stored, once: of an attempt that returned.
    pub fn note_result(&self, blob: mirab_store::Blob) {
        lock(&self.stored).result = Some(blob);
    }

    pub fn take_result(&self) -> Option<mirab_store::Blob> {
        lock(&self.stored).result.take()
    }
}

/// Nothing that is done under these locks leaves them half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
