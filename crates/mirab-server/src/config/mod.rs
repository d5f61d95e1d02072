//! `mirab.toml`: merged over the served directories.
mod edit;
mod merge;
mod settings;

pub(crate) use edit::{remove_file, remove_resource, set_resource, write_file};
pub use merge::Declarations;
pub(crate) use merge::describe;
pub(crate) use mirab_config::check_project;
pub use mirab_config::{ConfigError, ConfigFile, DeclaredPool, DeclaredResource, FILE_NAME, Place, Role};
pub(crate) use settings::check_engines;
pub use settings::{Given, ServerSettings};
