//! `mirab serve`: the server in the foreground, or more directories for the one that runs already.
use crate::failure::{Exit, Failure};
use crate::output::{Output, clean};
use crate::session::Session;
use mirab_client::{Client, Home};
use mirab_server::{DiscoveryError, Running, ServeError, ServeOptions};
use mirab_wire::{AddProject, BrokenFile, FlowList, Project, ServerFile};
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
        Ok(going_on) => {
            if going_on > 0 && !out.json {
                drop(out.line(left_to_themselves(going_on)));
            }
            Ok(Exit::Success)
        }
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
        out.json(&ServerFile { url: url.into(), pid: std::process::id() })?;
    }
    let list = Client::at(url, home.token()?).flows()?;
    if !out.json {
        let names: Vec<String> = list.projects.iter().map(|project| clean(&project.name)).collect();
        let (names, found) = (names.join(", "), counted(list.flows.len()));
        out.line(format!("serving {names} at {url} (home {}): {found}", running.home().display()))?;
    }
    list.projects.iter().for_each(|project| warn_of(project, count_of(&list, project)));
    Ok(())
}

fn left_to_themselves(runs: u64) -> String {
    match runs {
        1 => "1 run goes on; serve again on this home to collect it".into(),
        _ => format!("{runs} runs go on; serve again on this home to collect them"),
    }
}

fn count_of(list: &FlowList, project: &Project) -> usize {
    list.flows.iter().filter(|flow| flow.project == project.name).count()
}

fn counted(flows: usize) -> String {
    if flows == 1 { "1 flow".into() } else { format!("{flows} flows") }
}

/// Of what a person would miss in a directory that is served now.
fn warn_of(project: &Project, flows: usize) {
    let path = clean(&project.path);
    if flows == 0 {
        eprintln!("warning: no flows found in {path}");
    }
    for BrokenFile { file, error } in &project.broken {
        let last = error.message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        eprintln!("warning: {path}/{} did not import: {}: {}", clean(file), clean(&error.kind), clean(last.trim()));
    }
}

/// Hands the directories to the server that holds the home.
fn add(args: &Args, home: &Home, url: &str, out: &mut Output) -> Result<Exit, Failure> {
    let client = Client::at(url, home.token()?);
    let before = client.flows()?;
    for dir in args.dirs() {
        let not_there = |_| refused(ServeError::NotADirectory { path: dir.clone() });
        let path = dir.canonicalize().map_err(not_there)?.to_string_lossy().into_owned();
        let was_served = before.projects.iter().any(|project| project.path == path);
        let project = client.add_project(&AddProject { path })?;
        let (name, flows) = (clean(&project.name), count_of(&client.flows()?, &project));
        if out.json {
            out.json(&project)?;
        } else if was_served {
            out.line(format!("looked again at {name}: {}", counted(flows)))?;
        } else {
            let home = home.path().display();
            out.line(format!("added {name} to the server at {url} (home {home}): {}", counted(flows)))?;
        }
        warn_of(&project, flows);
    }
    let late = args.late_flags();
    if !late.is_empty() {
        eprintln!("warning: {} had no effect, since the server runs already", late.join(" and "));
        eprintln!("hint: stop it and serve again to change that");
    }
    Ok(Exit::Success)
}

/// The server's words have the way out in the same sentence; where a person meets them most, it is told apart as a hint.
pub(super) fn refused(error: ServeError) -> Failure {
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
