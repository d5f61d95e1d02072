//! `mirab.toml`: read with the place of every value, checked, and merged over the served directories.
mod error;
mod file;
mod merge;
mod resources;
mod section;
mod settings;

pub use error::{ConfigError, Place};
pub(crate) use file::check_project;
pub use file::{ConfigFile, DeclaredPool, FILE_NAME, Role};
pub use merge::Declarations;
pub use resources::DeclaredResource;
pub(crate) use settings::check_engines;
pub use settings::{Given, ServerSettings};
