//! `mirab serve`: the server in the foreground, or more directories for the one that runs already.
use crate::failure::{Exit, Failure};
use crate::output::{Output, clean};
use crate::session::Session;
use mirab_client::{Client, Home};
use mirab_server::{DiscoveryError, Running, ServeError, ServeOptions};
use mirab_wire::{AddProject, Project, ServerFile};
use std::io::IsTerminal;
use std::path::PathBuf;
use tracing_subscriber::EnvFilter;

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

impl Args {
    fn dirs(&self) -> Vec<PathBuf> {
        if self.dirs.is_empty() { vec![".".into()] } else { self.dirs.clone() }
    }

    /// Flags that a server which runs already cannot obey any more.
    fn late_flags(&self) -> Vec<&'static str> {
        let given = [
            ("--host", self.host.is_some()),
            ("--port", self.port.is_some()),
            ("--max-engines", self.max_engines.is_some()),
            ("--python", self.python.is_some()),
        ];
        given.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag)).collect()
    }
}

pub(crate) fn execute(args: Args, session: &mut Session) -> Result<Exit, Failure> {
    log_to_stderr();
    let home = session.home()?;
    let options = ServeOptions {
        host: args.host.clone(),
        port: args.port,
        max_engines: args.max_engines,
        ..ServeOptions::new(home.path(), args.dirs(), session.python(args.python.clone()))
    };
    let out = &mut session.out;
    // A reader that is gone, or a full disk behind the output, is no reason to stop serving.
    let served = mirab_server::serve(options, |running| drop(announce(running, &home, out)));
    match served {
        Ok(()) => Ok(Exit::Success),
        Err(ServeError::AlreadyServing { url }) => add(&args, &home, &url, out),
        Err(error) => Err(refused(error)),
    }
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("MIRAB_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that this process logs already, which is as well.
    let _ = log.with_ansi(std::io::stderr().is_terminal()).try_init();
}

fn announce(running: &Running, home: &Home, out: &mut Output) -> Result<(), Failure> {
    let url = running.url();
    if out.json {
        return out.json(&ServerFile { url: url.into(), pid: std::process::id() });
    }
    let flows = Client::at(url, home.token()?).flows()?;
    let names: Vec<String> = flows.projects.iter().map(|project| clean(&project.name)).collect();
    out.line(format!("serving {} at {url} (home {})", names.join(", "), running.home().display()))
}

/// The log of the server says so too, but that is not before the eyes of whoever added the directory.
fn warn_of_broken(project: &Project) {
    for broken in &project.broken {
        let (kind, message) = (clean(&broken.error.kind), clean(&broken.error.message));
        eprintln!("warning: {}/{} did not import: {kind}: {message}", clean(&project.path), clean(&broken.file));
    }
}

/// Hands the directories to the server that holds the home.
fn add(args: &Args, home: &Home, url: &str, out: &mut Output) -> Result<Exit, Failure> {
    let client = Client::at(url, home.token()?);
    for dir in args.dirs() {
        let not_there = |_| refused(ServeError::NotADirectory { path: dir.clone() });
        let path = dir.canonicalize().map_err(not_there)?.to_string_lossy().into_owned();
        let project = client.add_project(&AddProject { path })?;
        if out.json {
            out.json(&project)?;
        } else {
            out.line(format!(
                "added {} to the server at {url} (home {})",
                clean(&project.name),
                home.path().display()
            ))?;
        }
        warn_of_broken(&project);
    }
    let late = args.late_flags();
    if !late.is_empty() {
        eprintln!("warning: {} had no effect, since the server runs already", late.join(" and "));
        eprintln!("hint: stop it and serve again to change that");
    }
    Ok(Exit::Success)
}

/// The server's words have the way out in the same sentence; where a person meets them most, it is told apart as a hint.
fn refused(error: ServeError) -> Failure {
    let message = error.to_string();
    match error {
        ServeError::NotADirectory { path } => Failure::usage(format!("{} is not a directory", path.display()))
            .hint("name the directory that holds your flows"),
        ServeError::PortInUse { host, port } => {
            Failure::new(Exit::SetUp, format!("port {port} on {host} is in use by another program"))
                .hint("stop it, or choose another port with --port (0: any free one)")
        }
        ServeError::Discovery(DiscoveryError::NoPython { python, error }) => {
            Failure::new(Exit::SetUp, format!("the Python interpreter {} cannot be started: {error}", python.display()))
                .hint("name another with --python or the variable MIRAB_PYTHON")
        }
        ServeError::Discovery(DiscoveryError::NoPackage { python, said }) => {
            let message = format!("the Python interpreter {} has no package mirab: {said}", python.display());
            Failure::new(Exit::SetUp, message)
                .hint("install it there (pip install mirab), or name another interpreter with --python")
        }
        _ => Failure::new(Exit::SetUp, message),
    }
}
