//! What can go wrong between a client and the server.
use crate::Stop;
use mirab_wire::Problem;
use std::path::PathBuf;

/// Result of a call.
pub type Result<T> = std::result::Result<T, ClientError>;

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused; the problem says what was wrong.
    #[error("{}", .0.detail)]
    Problem(Problem),
    /// The home names no server.
    #[error("no server is running on {}: start one with `mirab serve DIR`, or name another home with --home", .home.display())]
    NoServer {
        /// The home that was looked at.
        home: PathBuf,
    },
    /// Nobody answers at the URL.
    #[error("the server at {url} does not answer ({cause}): start it with `mirab serve DIR`")]
    Unreachable {
        /// What was dialled.
        url: String,
        /// What the connection said.
        cause: String,
    },
    /// Something answered, but not in Mirab's words.
    #[error(
        "{url} gave an answer that this version does not understand ({cause}): do client and server have the same version?"
    )]
    BadAnswer {
        /// What was asked.
        url: String,
        /// What was wrong with it.
        cause: String,
    },
    /// The home cannot be found or read.
    #[error("{0}")]
    Home(String),
    /// The lease is to stop, so nothing more may be started under it.
    #[error("{}", .0.describe())]
    Stopped(Stop),
}

impl ClientError {
    /// True when the same call may succeed later without anybody changing anything: no server, or one that cannot commit now.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::NoServer { .. } | Self::Unreachable { .. } => true,
            Self::Problem(problem) => problem.status == 503,
            _ => false,
        }
    }

    /// True when the lease that was spoken of is not ours any more.
    pub fn is_stale(&self) -> bool {
        // A server that does not know the run at all has nothing of it to renew either.
        matches!(self, Self::Problem(problem) if problem.status == 409 || problem.code == "UnknownRun")
    }

    /// The stable code of the error.
    pub fn code(&self) -> &str {
        match self {
            Self::Problem(problem) => &problem.code,
            Self::NoServer { .. } | Self::Unreachable { .. } => "Unreachable",
            Self::BadAnswer { .. } => "BadAnswer",
            Self::Home(_) => "BadHome",
            Self::Stopped(Stop::Cancel) => "Cancelled",
            Self::Stopped(Stop::Stale) => "StaleLease",
        }
    }
}
