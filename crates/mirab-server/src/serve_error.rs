//! Why a server cannot be started.
use crate::config::ConfigError;
use crate::discovery::DiscoveryError;
use crate::home::HomeError;
use mirab_flow::StoreUnavailable;
use mirab_store::StoreError;
use std::io;
use std::path::PathBuf;

/// Why a server cannot be started: each says what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another server holds the home; it can be asked to serve further directories.
    #[error("a server is already serving this home at {url}: it can take further directories, or stop it first")]
    AlreadyServing {
        /// Where it answers.
        url: String,
    },
    /// The home cannot be held.
    #[error(transparent)]
    Home(HomeError),
    /// Something else listens there.
    #[error(
        "port {port} on {host} is in use: stop what listens there, or choose another with --port (0: any free one)"
    )]
    PortInUse {
        /// Host that was asked for.
        host: String,
        /// Port that was asked for.
        port: u16,
    },
    /// The address cannot be used.
    #[error("the server cannot listen on {host}, port {port}: {error}; choose others with --host and --port")]
    Listen {
        /// Host that was asked for.
        host: String,
        /// Port that was asked for.
        port: u16,
        /// What failed.
        error: io::Error,
    },
    /// A configuration file, or a variable, makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What is to be served is not there.
    #[error("{} is not a directory: name the directory that holds your flows", path.display())]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// Two directories have one name.
    #[error(
        "{} and {} are both named project {name:?}: set another project under [server] in the mirab.toml of one of them",
        first.display(), second.display()
    )]
    DoubledProject {
        /// The name.
        name: String,
        /// A directory.
        first: PathBuf,
        /// Another one.
        second: PathBuf,
    },
    /// The flows could not be found.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// The store cannot be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store cannot be written, so nothing could be accepted.
    #[error(transparent)]
    StoreUnavailable(#[from] StoreUnavailable),
    /// The system refused something that the server needs.
    #[error("the server cannot be started: {0}")]
    System(#[from] io::Error),
}

impl From<HomeError> for ServeError {
    fn from(error: HomeError) -> Self {
        match error {
            HomeError::AlreadyServing { url } => ServeError::AlreadyServing { url },
            other => ServeError::Home(other),
        }
    }
}
