//! `mirab.toml`: read with the place of every value, checked, and merged over the served directories.
mod edit;
mod error;
mod file;
mod merge;
mod resources;
mod section;
mod settings;

pub(crate) use edit::{remove_file, remove_resource, set_resource, write_file};
pub use error::{ConfigError, Place};
pub(crate) use file::check_project;
pub use file::{ConfigFile, DeclaredPool, FILE_NAME, Role};
pub use merge::Declarations;
pub(crate) use merge::describe;
pub use resources::DeclaredResource;
pub(crate) use settings::check_engines;
pub use settings::{Given, ServerSettings};
