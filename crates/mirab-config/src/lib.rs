//! `mirab.toml`: read with the place of every value, and checked; for the server and for embedded schedulers.
mod error;
mod file;
mod near;
mod resources;
mod section;

pub use error::{ConfigError, Place};
pub use file::{ConfigFile, DeclaredPool, FILE_NAME, Role, check_project};
pub use near::did_you_mean;
pub use resources::DeclaredResource;
