//! `mirab serve`: the server in the foreground, or more directories for the one that runs already.
use crate::failure::{Exit, Failure};
use crate::session::Session;
use std::path::PathBuf;

/// Serve the flows of directories; a server that runs already on this home takes them over
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directories with flows [default: the current one]
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Where to listen [default: 127.0.0.1]; beyond loopback callers need the home's token
    #[arg(long)]
    host: Option<String>,
    /// The port, 0 for a free one [default: 4747]
    #[arg(long)]
    port: Option<u16>,
    /// Engine processes at most [default: 1]
    #[arg(long, value_name = "N")]
    max_engines: Option<u64>,
    /// The interpreter of the engines
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

pub(crate) fn execute(args: Args, session: &mut Session) -> Result<Exit, Failure> {
    let _ = (args, session);
    Err(Failure::new(Exit::Bug, "not there yet"))
}
