//! The life of work, sans-IO: runs, tasks, attempts, retries, overlap.
//!
//! Promise: no IO, no clock, no entropy, no hash order. [`Orchestrator`] takes commands with the time and collects facts and effects;
//! [`Driver`] commits the facts to a [`Journal`] and only then gives the effects out.
mod driver;
mod error;
mod flow_spec;
mod journal;
mod names;
mod orchestrator;
mod overlap;
mod records;
mod run;
pub mod scheduler;
mod state;
mod step;
mod task_run;
mod timers;
mod views;

pub use driver::{Driver, STORE_RETRY};
pub use error::{Error, IllegalChange, StoreUnavailable};
pub use flow_spec::{FlowSpec, cap_name};
pub use journal::Journal;
pub use names::{plain_needs, text_of};
pub use orchestrator::{
    Created, DEFAULT_POOL, Declarations, HAND_OFF, LEASE_LIFE, Leased, NewRun, NewTask, Options, Orchestrator, Outcome,
    POOL, SLOTS_SETTING, TakeLease, TaskStatus,
};
pub use overlap::Overlap;
pub use records::*;
pub use state::{STATES, State};
pub use step::{Effect, Step, Wake};
pub use views::{QueueView, Shown, WaitingRow, Who, Why};
