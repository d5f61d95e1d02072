//! Typed HTTP client and the worker runtime.
//!
//! Two ways in: [`Client`] has one method per route, for the command line; [`Worker`] takes leases and keeps them alive from a
//! native thread, for engines. Both find the server through the [`Home`] and know wire types only.
mod client;
mod error;
mod home;
mod http;
mod lease_keeper;
mod link;
mod running_lease;
mod worker;

pub use client::{Client, RunFilter};
pub use error::{ClientError, Result};
pub use home::Home;
pub use lease_keeper::{OnStop, Stop};
pub use running_lease::{Reported, RunningLease};
pub use worker::Worker;
