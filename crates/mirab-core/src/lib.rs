//! The sans-IO gate: what may start now, what waits, in which order and why.
//!
//! Promise: no IO, no clock, no entropy, no hash order. The same inputs give the same outputs. The host passes the time and its
//! inputs in ([`Gate::submit`], [`Gate::release`], ...), and takes effects out ([`Gate::poll_start`], [`Gate::poll_timeout`]).
//!
//! ```
//! use mirab_core::{ClaimId, Ended, Gate, ResourceConfig, Submission, Time};
//! let mut gate = Gate::default();
//! gate.declare(Time(0), ResourceConfig::semaphore("gpu", 1)).unwrap();
//! for id in [1, 2] {
//!     let needs = [("gpu", 1)];
//!     let claim = Submission { id: ClaimId(id), kind: "train", needs: &needs, priority: 0, parent: None, place: None };
//!     gate.submit(Time(0), claim).unwrap();
//! }
//! let first = gate.poll_start().unwrap();
//! assert_eq!((first.id, gate.poll_start()), (ClaimId(1), None));
//! gate.release(Time(5), first.id, first.fence, Ended::ByItself);
//! assert_eq!(gate.poll_start().unwrap().id, ClaimId(2));
//! ```
mod api;
mod bucket;
mod config;
mod gate;
mod ids;
mod lookup;
mod name;
mod rank;
mod rate;
mod refusal;
mod slab;
mod template;
mod time;

pub use api::*;
pub use bucket::BucketState;
pub use config::{DEFAULT_SHARD, Limit, ResourceConfig};
pub use gate::{Gate, GateOptions};
pub use ids::{ClaimId, Fence, Place};
pub use name::{check_declared, check_requested, is_reserved, near_names, tag_limit};
pub use rate::Rate;
pub use refusal::{InCircle, Refusal};
pub use template::{Template, is_template};
pub use time::{SECOND, Time};
