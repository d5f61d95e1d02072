//! A scheduler that a program holds in its hand: pools of executors, shared limits of two kinds (held: semaphores; used up: token buckets),
//! priorities, retries, deadlines. On tokio; see [`Scheduler`] for how it looks.
//!
//! Every decision is made by the sans-IO machine of `mirab-flow`; this crate gives it a clock, executes what it starts, and tells who waits.
//!
//! The guide, with an example of each kind of limit, is `docs/guide/rust.md`.
mod attempt;
mod builder;
mod cell;
mod clock;
mod context;
mod directory;
mod error;
mod events;
mod failure;
mod foreign;
mod handle;
mod live;
mod paused;
mod pool;
mod random;
mod runtimes;
mod scheduler;
mod shard;
mod shutdown;
mod snapshot;
#[cfg(feature = "sqlite")]
mod store;
mod task;
mod timer;
mod value;
mod virtual_clock;

/// The examples of the guide run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;

pub use builder::{IntoResource, SchedulerBuilder};
pub use clock::When;
pub use context::Context;
pub use error::{Error, TaskFailure};
pub use events::{Event, Events};
pub use failure::{Cause, Permanent, Retryable, TaskError};
pub use handle::Handle;
pub use mirab_core::{Blocked, Explanation, Limit, Promise, Rate, Refusal, ResourceConfig, ResourceView, Time};
pub use mirab_flow::scheduler::{
    MachineSnapshot as Snapshot, On, PoolSnapshot, PoolSpec, Quantiles, ResourceSnapshot, StopReason, TaskCounts,
    TaskEnd, TaskError as Refused, TaskId, TaskState, TaskStatus, What,
};
pub use pool::Pool;
pub use scheduler::Scheduler;
#[cfg(feature = "sqlite")]
pub use store::{Codec, CodecError, Json, Store, sqlite};
pub use task::Task;
