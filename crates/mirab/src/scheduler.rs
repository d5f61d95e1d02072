//! The scheduler that a program holds.
use crate::builder::SchedulerBuilder;
use crate::cell::{TaskCell, lock};
use crate::clock::Clock;
use crate::directory::{Directory, Listed};
use crate::error::Error;
use crate::events::{Events, Sender};
use crate::handle::Handle;
use crate::pool::Pool;
use crate::shard::{Shard, State};
use crate::task::Task;
use crate::value::{Payload, TypeOf};
use mirab_core::Time;
use mirab_flow::scheduler::{Admission, MachineSnapshot, TaskId, TaskSpec, TaskStatus};
use std::any::TypeId;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// Runs tasks in pools, within shared limits. A clone is the same scheduler; when the last one is dropped, what is left is cancelled.
///
/// ```
/// # use mirab::{Context, TaskError};
/// use mirab::{Pool, ResourceConfig, Scheduler, Task};
/// # #[derive(Clone, Debug, PartialEq)]
/// # struct Answer(String);
/// async fn call_llm(ctx: Context, prompt: String) -> Result<Answer, TaskError> {
///     Ok(Answer(format!("{prompt} to you, in attempt {}", ctx.attempt())))
/// }
/// # async fn ask() -> Result<Answer, Box<dyn std::error::Error>> {
/// let scheduler = Scheduler::builder()
///     .resource(ResourceConfig::semaphore("gpu", 4))
///     .resource(ResourceConfig::token_bucket("api", 50.0, 100))
///     .pool(Pool::new("llm", call_llm).slots(16))
///     .start()?;
/// let handle = scheduler.submit(Task::new("hi").pool("llm").priority(5).resource("gpu", 1).resource("api", 1))?;
/// let answer = handle.await?;
/// # Ok(answer) }
/// # let runtime = tokio::runtime::Runtime::new().unwrap();
/// # assert_eq!(runtime.block_on(ask()).unwrap(), Answer("hi to you, in attempt 1".into()));
/// ```
#[derive(Clone)]
pub struct Scheduler {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub clock: Clock,
    pub shards: Vec<Arc<Shard>>,
    pub directory: RwLock<Directory>,
    /// `None` once it was shut down.
    pub events: Mutex<Option<Sender>>,
    #[cfg(feature = "sqlite")]
    pub is_stored: bool,
    /// Until it is shut down.
    #[cfg(feature = "sqlite")]
    pub writer: Mutex<Option<Arc<mirab_store::TaskWriter>>>,
    /// Goes with the last handle of the scheduler; whoever waits on its behalf sees that.
    pub _alive: watch::Sender<()>,
}

/// Tasks that one lock serves when many are submitted.
const CHUNK: usize = 256;

impl Scheduler {
    /// A scheduler to be described, and started.
    pub fn builder() -> SchedulerBuilder {
        SchedulerBuilder::new(false)
    }

    /// The same on a virtual clock, for tests: an hour of work takes milliseconds. Time stands still until everything that could happen has
    /// happened; then it goes on to the next timer, if somebody awaits a [`Handle`], or as far as [`Scheduler::advance`] says.
    /// [`Context::sleep`](crate::Context::sleep) sleeps on that clock. On a current-thread runtime (what `#[tokio::test]` gives) every run is the
    /// same.
    ///
    /// ```
    /// use mirab::{Context, Pool, ResourceConfig, Scheduler, Task, TaskError};
    /// # use std::time::Duration;
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// async fn call(_ctx: Context, n: u32) -> Result<u32, TaskError> {
    ///     Ok(n)
    /// }
    /// let scheduler = Scheduler::paused()
    ///     .resource(ResourceConfig::token_bucket("api", 1.0, 1))
    ///     .pool(Pool::new("calls", call).resource("api", 1))
    ///     .start()?;
    /// let mut sum = 0;
    /// for handle in scheduler.submit_many::<u32, _>((0..3600_u32).map(Task::new)) {
    ///     sum += handle?.await?;
    /// }
    /// assert_eq!((sum, scheduler.now()), (3600 * 3599 / 2, Duration::from_secs(3599)));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn paused() -> SchedulerBuilder {
        SchedulerBuilder::new(true)
    }

    /// Starts a scheduler as a `mirab.toml` says, with the executors of its pools; see [`SchedulerBuilder::config`].
    ///
    /// # Errors
    /// `InvalidConfig` for a file that cannot be used, and what [`SchedulerBuilder::start`] says.
    pub fn from_config(path: impl AsRef<Path>, pools: impl IntoIterator<Item = Pool>) -> Result<Self, Error> {
        pools.into_iter().fold(Self::builder().config(path), SchedulerBuilder::pool).start()
    }

    /// Accepts a task; it may start at once. The handle gives what the pool's executor returns; a `Handle<()>` serves for any.
    ///
    /// # Errors
    /// `UnknownPool`, `UnknownResource`, `ResourceExceedsCapacity`, `InvalidResource`, `ResourceOnOtherShard`, `QueueFull`, `KeyConflict`,
    /// `UnknownTask` for one that it is to come after, `WrongType`, `SchedulerClosed`. Then nothing has changed.
    pub fn submit<T: 'static>(&self, task: Task<impl Send + 'static>) -> Result<Handle<T>, Error> {
        let ready = self.prepare::<T, _>(task)?;
        let shard = self.shard(ready.pool.shard);
        let (task, seat) = shard.step(|state, now| ready.submit(state, now))?;
        Ok(Handle::new(task, Arc::clone(shard), seat))
    }

    /// Accepts many tasks, each as [`Scheduler::submit`] does, in order. A refused one is told in its place, and the others are accepted.
    pub fn submit_many<T: 'static, P: Send + 'static>(
        &self,
        tasks: impl IntoIterator<Item = Task<P>>,
    ) -> Vec<Result<Handle<T>, Error>> {
        let mut handles = Vec::new();
        let mut tasks = tasks.into_iter().map(|task| self.prepare::<T, P>(task)).peekable();
        while tasks.peek().is_some() {
            let chunk: Vec<_> = tasks.by_ref().take(CHUNK).collect();
            self.submit_chunk(chunk, &mut handles);
        }
        handles
    }

    fn submit_chunk<T: 'static>(&self, chunk: Vec<Result<Ready, Error>>, handles: &mut Vec<Result<Handle<T>, Error>>) {
        let mut chunk = chunk.into_iter().peekable();
        while let Some(first) = chunk.next() {
            let first = match first {
                Ok(first) => first,
                Err(error) => {
                    handles.push(Err(error));
                    continue;
                }
            };
            let (index, mut next) = (first.pool.shard, Some(Ok(first)));
            let shard = self.shard(index);
            handles.reserve(chunk.len() + 1);
            shard.step(|state, now| {
                while let Some(Ok(ready)) = next.take() {
                    let submitted = ready.submit(state, now);
                    handles.push(submitted.map(|(task, seat)| Handle::new(task, Arc::clone(shard), seat)));
                    next = chunk.next_if(|next| next.as_ref().is_ok_and(|next| next.pool.shard == index));
                }
            });
        }
    }

    /// Checks what does not depend on the machine.
    fn prepare<T: 'static, P: Send + 'static>(&self, task: Task<P>) -> Result<Ready, Error> {
        let given = std::any::type_name::<P>();
        let pool = {
            let directory = self.inner.directory.read().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(directory.pool(&task.spec.pool)?)
        };
        let (expected, gives) = (TypeOf::of::<T>(), pool.executor.gives());
        if expected.id != gives.id && expected.id != TypeId::of::<()>() {
            let (expected, given) = (expected.name, gives.name);
            return Err(Error::WrongResult { pool: pool.name.to_string(), expected, given });
        }
        let (payload, spec, admission) = task.unpack(&self.inner.clock, pool.priority);
        let payload = pool.executor.accept(payload).map_err(|_| Error::WrongPayload {
            pool: pool.name.to_string(),
            expected: pool.executor.takes().name,
            given,
        })?;
        let spec = pool.complete(spec);
        #[cfg(feature = "sqlite")]
        let blob = if self.inner.is_stored { Some(pool.encode(&payload)?) } else { None };
        Ok(Ready {
            pool,
            payload,
            spec,
            admission,
            #[cfg(feature = "sqlite")]
            blob,
        })
    }

    /// Cancels a task, see [`Handle::cancel`].
    #[must_use]
    pub fn cancel(&self, id: TaskId) -> bool {
        self.shard_of(id).is_some_and(|shard| shard.step(|state, now| state.machine.cancel(now, id)))
    }

    /// Where a task stands; `None` for one that is not known or not remembered.
    #[must_use]
    pub fn status(&self, id: TaskId) -> Option<TaskStatus> {
        self.shard_of(id)?.look(|state| state.machine.status(id))
    }

    /// What happens from now on. A reader that is slower than [`SchedulerBuilder::event_capacity`] events is told how many it missed. The stream ends with the
    /// scheduler.
    #[must_use]
    pub fn events(&self) -> Events {
        let start = self.inner.clock.start();
        let Some(events) = lock(&self.inner.events).clone() else { return Sender::new(1).subscribe(start) };
        let events = events.subscribe(start);
        self.inner.shards.iter().for_each(|shard| shard.watch());
        events
    }

    /// All that is going on, of all shards together: pools and resources with what they have in use and how long tasks waited for them, and
    /// counters.
    #[must_use]
    pub fn snapshot(&self) -> MachineSnapshot {
        let mut shards = self.inner.shards.iter().map(|shard| shard.ask(|machine| machine.snapshot()));
        let first = shards.next().expect("a scheduler has a shard");
        shards.fold(first, crate::snapshot::add)
    }

    /// Time since its start, on its clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.inner.clock.now().since(self.inner.clock.start()))
    }

    pub(crate) fn shard(&self, index: usize) -> &Arc<Shard> {
        &self.inner.shards[index]
    }

    fn shard_of(&self, id: TaskId) -> Option<&Arc<Shard>> {
        self.inner.shards.get(usize::from(id.shard_number()))
    }
}

/// A task whose pool is known and takes its payload.
struct Ready {
    pool: Arc<Listed>,
    payload: Payload,
    spec: Option<TaskSpec>,
    admission: Admission,
    #[cfg(feature = "sqlite")]
    blob: Option<mirab_store::Blob>,
}

impl Ready {
    /// Gives the task and the handle's seat among those who await it.
    fn submit(self, state: &mut State, now: Time) -> Result<(Arc<TaskCell>, usize), Error> {
        let key = self.admission.key.as_deref().map(Box::from);
        let spec = self.pool.spec(&self.spec);
        let retries = spec.retry.retries;
        let open = state.check_open();
        let submitted = open.and_then(|()| Ok(state.machine.submit(now, spec, self.admission)?));
        let submitted = match submitted {
            Ok(submitted) => submitted,
            Err(error) => {
                state.refuse(self.payload);
                return Err(error);
            }
        };
        if !submitted.is_new {
            state.refuse(self.payload);
            let task = state.find(submitted.id).expect("a task with a key is kept as long as the machine knows it");
            return Ok((Arc::clone(task), task.seat()));
        }
        #[cfg(feature = "sqlite")]
        let coder = self.blob.as_ref().and(self.pool.coder.clone());
        let task = TaskCell::new(submitted.id, self.pool, key, retries, Some(self.payload));
        #[cfg(feature = "sqlite")]
        let task = task.with_coder(coder);
        let task = Arc::new(task);
        #[cfg(feature = "sqlite")]
        state.accept(&task, self.blob);
        let seat = if task.key.is_some() { task.seat() } else { 0 };
        state.tasks.insert(submitted.id, Arc::clone(&task));
        Ok((task, seat))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shards.iter().for_each(Shard::cancel_all);
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shards: Vec<&str> = self.inner.shards.iter().map(|shard| shard.name.as_str()).collect();
        f.debug_struct("Scheduler").field("shards", &shards).finish_non_exhaustive()
    }
}

impl Inner {
    /// Changes limits, one change after the other.
    pub fn change<R>(&self, act: impl FnOnce(&mut Directory) -> R) -> R {
        act(&mut self.directory.write().unwrap_or_else(PoisonError::into_inner))
    }
}
