//! The host: clock, store, gate, HTTP, engines.
//!
//! One thread, the writer, owns the machines and the store (`host`). Everything else asks it: the API (`api`), and the supervisor of
//! engine processes (`supervisor`). What a commit calls for comes back as effects (`effects`), which wake whoever waits (`wakers`).
//! The server imports no user code: flows are found (`discovery`) and executed (`engine_process`) by child processes.
mod api;
mod catalog;
mod check;
mod clock;
pub mod config;
mod discovery;
mod effects;
mod engine_process;
mod engine_table;
mod home;
mod host;
#[cfg(test)]
mod host_tests;
mod limits;
mod loaded;
mod log_file;
mod params;
mod polls;
mod process;
mod projects;
mod running;
mod serve;
mod serve_error;
mod supervisor;
mod sync;
mod wakers;
#[cfg(test)]
mod wakers_tests;

pub use api::openapi;
pub use check::{Finding, check};
pub use config::ConfigError;
pub use discovery::DiscoveryError;
pub use home::HomeError;
pub use limits::{Offline, OfflineError};
pub use running::Running;
pub use serve::{ServeOptions, serve, start};
pub use serve_error::ServeError;
