//! Pools: where tasks execute, how many at once, and what executes them.
use crate::context::Context;
use crate::failure::TaskError;
use crate::value::{Payload, TypeOf, Value, fit};
use mirab_core::DEFAULT_SHARD;
use mirab_flow::scheduler::PoolSpec;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

/// Slots of a pool that says nothing.
const DEFAULT_SLOTS: u64 = 16;

/// How an attempt ended.
pub(crate) type Output = Result<Box<dyn Value>, TaskError>;

/// An attempt that executes.
pub(crate) enum Body {
    Future(Pin<Box<dyn Future<Output = Output> + Send>>),
    Thread(Box<dyn FnOnce() -> Output + Send>),
}

/// Executes the tasks of a pool, without their types.
pub(crate) trait Executor: Send + Sync {
    fn takes(&self) -> TypeOf;
    fn gives(&self) -> TypeOf;
    fn is_blocking(&self) -> bool;
    /// The payload as it is taken; back with what does not fit.
    fn accept(&self, payload: Payload) -> Result<Payload, Payload>;
    /// A payload for one attempt; the one that is kept serves the next.
    fn copy(&self, payload: &Payload) -> Option<Payload>;
    /// `None` for a payload that was not accepted.
    fn begin(&self, context: Context, payload: Payload) -> Option<Body>;
}

/// A pool of a scheduler, with the executor of its tasks.
///
/// ```
/// use mirab::{Context, Pool, TaskError};
/// async fn call_llm(_ctx: Context, prompt: String) -> Result<usize, TaskError> {
///     Ok(prompt.len())
/// }
/// let pool = Pool::new("llm", call_llm).slots(16).max_queued(1_000).resource("gpu", 1);
/// ```
pub struct Pool {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) spec: PoolSpec,
    pub(crate) resources: Vec<(String, u64)>,
    pub(crate) priority: i32,
    pub(crate) shard: Option<String>,
    #[cfg(feature = "sqlite")]
    pub(crate) coder: Option<Arc<dyn crate::store::Coder>>,
}

impl Pool {
    /// A pool of 16 slots whose tasks execute as futures. Cancelling or timing out a task drops its future at its next `.await`.
    ///
    /// A payload is cloned for each attempt but the last that is allowed, a result for each further caller with the same key.
    pub fn new<F, Fut, P, R, E>(name: &str, executor: F) -> Self
    where
        F: Fn(Context, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        P: Clone + Send + 'static,
        R: Clone + Send + 'static,
        E: Into<TaskError> + 'static,
    {
        let begin = move |context: Context, payload: P| {
            let future = executor(context, payload);
            Body::Future(Box::pin(async move { boxed(future.await) }))
        };
        Self::of(name, Arc::new(Typed { begin, is_blocking: false, types: PhantomData::<fn(P) -> R> }))
    }

    /// A pool of 16 slots whose tasks execute on threads, such as CPU-bound ones.
    ///
    /// A thread cannot be stopped: a task that is cancelled or timed out keeps its slot and its units until the function returns;
    /// [`Context::is_cancelled`] tells it to. More slots than the runtime has threads for blocking work (512 unless it was built with others) are
    /// of no use.
    pub fn blocking<F, P, R, E>(name: &str, executor: F) -> Self
    where
        F: Fn(Context, P) -> Result<R, E> + Send + Sync + 'static,
        P: Clone + Send + 'static,
        R: Clone + Send + 'static,
        E: Into<TaskError> + 'static,
    {
        let executor = Arc::new(executor);
        let begin = move |context: Context, payload: P| {
            let executor = Arc::clone(&executor);
            Body::Thread(Box::new(move || boxed(executor(context, payload))))
        };
        Self::of(name, Arc::new(Typed { begin, is_blocking: true, types: PhantomData::<fn(P) -> R> }))
    }

    fn of(name: &str, executor: Arc<dyn Executor>) -> Self {
        let spec = PoolSpec::new(name, DEFAULT_SLOTS);
        Self {
            executor,
            spec,
            resources: Vec::new(),
            priority: 0,
            shard: None,
            #[cfg(feature = "sqlite")]
            coder: None,
        }
    }

    /// So many attempts execute at once; 0 pauses it.
    #[must_use]
    pub fn slots(mut self, slots: u64) -> Self {
        self.spec.slots = slots;
        self
    }

    /// So many tasks may wait; more are refused with `QueueFull`.
    #[must_use]
    pub fn max_queued(mut self, most: u64) -> Self {
        self.spec.max_queued = Some(most);
        self
    }

    /// Units that each of its tasks needs, unless the task says otherwise for that resource.
    #[must_use]
    pub fn resource(mut self, name: &str, units: u64) -> Self {
        self.resources.push((name.into(), units));
        self
    }

    /// Priority of its tasks that say none.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The shard that it belongs to; of a scheduler that lists shards, each pool names one.
    #[must_use]
    pub fn shard(mut self, shard: &str) -> Self {
        self.shard = Some(shard.into());
        self
    }

    /// Payloads of type `P` and results of type `R`, which are those of its executor, are stored as JSON: what a scheduler with a store needs.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn stored<P, R>(self) -> Self
    where
        P: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
        R: serde::Serialize + serde::de::DeserializeOwned + Clone + Send + 'static,
    {
        self.stored_by::<P, R>(crate::store::Json)
    }

    /// The same by another codec.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn stored_by<P: Send + 'static, R: Clone + Send + 'static>(
        mut self,
        codec: impl crate::store::Codec<P> + crate::store::Codec<R>,
    ) -> Self {
        self.coder = Some(Arc::new(crate::store::TypedCoder::<_, P, R>::new(codec)));
        self
    }

    pub(crate) fn shard_name(&self) -> &str {
        self.shard.as_deref().unwrap_or(DEFAULT_SHARD)
    }
}

/// An executor that knows its types.
struct Typed<B, P, R> {
    begin: B,
    is_blocking: bool,
    /// It holds no value of them.
    types: PhantomData<fn(P) -> R>,
}

impl<B, P, R> Executor for Typed<B, P, R>
where
    B: Fn(Context, P) -> Body + Send + Sync,
    P: Clone + Send + 'static,
    R: 'static,
{
    fn takes(&self) -> TypeOf {
        TypeOf::of::<P>()
    }

    fn gives(&self) -> TypeOf {
        TypeOf::of::<R>()
    }

    fn is_blocking(&self) -> bool {
        self.is_blocking
    }

    fn accept(&self, payload: Payload) -> Result<Payload, Payload> {
        fit::<P>(payload)
    }

    fn copy(&self, payload: &Payload) -> Option<Payload> {
        Some(Box::new(payload.downcast_ref::<P>()?.clone()))
    }

    fn begin(&self, context: Context, payload: Payload) -> Option<Body> {
        Some((self.begin)(context, *payload.downcast::<P>().ok()?))
    }
}

fn boxed<R: Clone + Send + 'static, E: Into<TaskError>>(result: Result<R, E>) -> Output {
    result.map(|value| Box::new(value) as Box<dyn Value>).map_err(Into::into)
}
