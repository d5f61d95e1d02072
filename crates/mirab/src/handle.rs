//! What a submitter keeps of a task.
use crate::cell::TaskCell;
use crate::error::TaskFailure;
use crate::shard::Shard;
use crate::value::open;
use mirab_core::Explanation;
use mirab_flow::scheduler::{TaskId, TaskStatus};
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// A submitted task. Awaiting it gives the result; dropping it does nothing to the task.
#[must_use = "a handle is awaited for the task's result; drop it if that does not matter"]
pub struct Handle<T> {
    task: Arc<TaskCell>,
    shard: Arc<Shard>,
    seat: usize,
    is_awaited: bool,
    has_given: bool,
    gives: PhantomData<fn() -> T>,
}

impl<T: 'static> Handle<T> {
    pub(crate) fn new(task: Arc<TaskCell>, shard: Arc<Shard>, seat: usize) -> Self {
        Self { task, shard, seat, is_awaited: false, has_given: false, gives: PhantomData }
    }

    /// The task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.task.id
    }

    /// Waits until the task is stored, by a scheduler with a store: from then on it is run whatever happens to this process.
    ///
    /// # Errors
    /// `StoreUnavailable` when it could not be stored: then it was not accepted, and the scheduler closes.
    #[cfg(feature = "sqlite")]
    pub async fn stored(&self) -> Result<(), crate::Error> {
        match self.task.coder {
            Some(_) => self.task.stored().await,
            None => Err(crate::Error::InvalidOption("the scheduler has no store: start it with store()".into())),
        }
    }

    /// Cancels the task: one that waits ends at once, the body of one that executes is dropped (a function on a thread is told, see
    /// [`crate::Context::is_cancelled`]), and its units are held until then. False when it has ended, or was cancelled before.
    pub fn cancel(&self) -> bool {
        self.shard.step(|state, now| state.machine.cancel(now, self.task.id))
    }

    /// Where it stands; `None` once it has ended so long ago that it is not remembered.
    #[must_use]
    pub fn status(&self) -> Option<TaskStatus> {
        self.shard.look(|state| state.machine.status(self.task.id))
    }

    /// Why it waits in line; `None` when it does not. Instants are nanoseconds since the scheduler's start; with a store,
    /// since the Unix epoch.
    #[must_use]
    pub fn explain(&self) -> Option<Explanation> {
        self.shard.ask(|machine| machine.explain(self.task.id))
    }

    /// How many tasks rank ahead of it in line, plus one; `None` when it is not in line.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.shard.look(|state| state.machine.position(self.task.id))
    }

    /// Another priority; a task that executes has it from its next attempt on. False when it has ended.
    pub fn set_priority(&self, priority: i32) -> bool {
        self.shard.step(|state, now| state.machine.reprioritise(now, self.task.id, priority))
    }
}

impl<T> Handle<T> {
    /// Time passes by itself on a virtual clock while somebody awaits a task.
    fn set_awaited(&mut self, is_awaited: bool) {
        if self.is_awaited == is_awaited {
            return;
        }
        self.is_awaited = is_awaited;
        if let Some(clock) = self.shard.clock.as_virtual() {
            match is_awaited {
                true => clock.awaited.fetch_add(1, Ordering::SeqCst),
                false => clock.awaited.fetch_sub(1, Ordering::SeqCst),
            };
            clock.touch();
        }
    }
}

impl<T: 'static> Future for Handle<T> {
    type Output = Result<T, TaskFailure>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!this.has_given, "a handle gives its result once");
        let result = this.task.poll(this.seat, context.waker());
        this.set_awaited(result.is_none());
        let Some(result) = result else { return Poll::Pending };
        this.has_given = true;
        Poll::Ready(result.map(|value| open(value).expect("what a pool gives is checked at submission")))
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.set_awaited(false);
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.task.id).finish()
    }
}

impl<T> From<&Handle<T>> for TaskId {
    fn from(handle: &Handle<T>) -> Self {
        handle.task.id
    }
}
