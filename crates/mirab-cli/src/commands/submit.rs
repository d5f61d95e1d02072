//! `mirab submit`: puts a run in line, and waits for its end when asked to.
use crate::commands::ps::{is_terminal, one_line};
use crate::failure::{Exit, Failure};
use crate::given;
use crate::session::Session;
use crate::timestamp;
use mirab_client::{Client, ClientError, Home};
use mirab_wire::{CreateRun, Run};
use serde_json::Value;
use std::time::{Duration, Instant};

/// How often the run is looked at, at first and in the long run.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A server that restarts is back well within this.
const AWAY_FOR: Duration = Duration::from_secs(60);

/// Put a run of a flow in line
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The flow, as FLOW or PROJECT/FLOW
    flow: String,
    /// A parameter; the value is taken as JSON where it is JSON, else as text
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE", value_parser = given::param)]
    params: Vec<(String, Value)>,
    /// Instead of the flow's own; higher goes first
    #[arg(long, value_name = "N", value_parser = given::priority, allow_negative_numbers = true)]
    priority: Option<i32>,
    /// A tag besides the flow's own
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Units to hold besides the flow's own
    #[arg(long = "resource", value_name = "NAME=UNITS", value_parser = given::need)]
    resources: Vec<(String, u64)>,
    /// Not before this instant, such as 2026-03-01T09:00:00Z
    #[arg(long, value_name = "TIMESTAMP", value_parser = timestamp::parse, allow_negative_numbers = true)]
    at: Option<f64>,
    /// The same key again gives the same run again
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Follow the run to its end; the exit code is 0 when it Completed, else 1
    #[arg(long)]
    pub wait: bool,
}

impl Args {
    pub fn request(&self) -> Result<CreateRun, Failure> {
        Ok(CreateRun {
            flow: self.flow.clone(),
            params: given::params(&self.params)?,
            priority: self.priority,
            tags: self.tags.clone(),
            resources: given::needs(&self.resources)?,
            scheduled_at: self.at,
            idempotency_key: self.key.clone(),
        })
    }
}

pub(crate) fn execute(args: Args, session: &mut Session) -> Result<Exit, Failure> {
    let request = args.request()?;
    let home = session.home()?;
    let created = Client::of_home(&home)?.create_run(&request);
    let mut run = created.map_err(|error| refused(error, &request))?;
    if !session.out.json {
        session.out.line(one_line(&run))?;
    }
    if args.wait && !is_terminal(&run.state) {
        run = wait(&home, run.id)?;
        if !session.out.json {
            session.out.line(one_line(&run))?;
        }
    }
    if session.out.json {
        session.out.json(&run)?;
    } else if let (true, Some(result)) = (args.wait, &run.result) {
        session.out.json(result)?;
    }
    Ok(if !args.wait || run.state == "Completed" { Exit::Success } else { Exit::WorkFailed })
}

/// A value that looks like JSON was taken as JSON, though the flow wants a text: says how to give it as one.
fn refused(error: ClientError, request: &CreateRun) -> Failure {
    let text_wanted = |name: &str| match &error {
        ClientError::Problem(problem) if problem.code == "InvalidParams" => {
            problem.detail.contains(&format!("parameter {name:?} ")) && problem.detail.ends_with("expected str")
        }
        _ => false,
    };
    let meant = request.params.iter().find(|(name, value)| !value.is_string() && text_wanted(name));
    let hint = meant.map(|(name, value)| {
        let text = Value::String(value.to_string()).to_string();
        format!("to give it as text, quote it: -p {name}='{text}'")
    });
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Looks again and again; a restart of the server, which may change its address, does not end the wait.
fn wait(home: &Home, id: u64) -> Result<Run, Failure> {
    let (mut pause, mut away_since) = (FIRST_PAUSE, None);
    loop {
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        match Client::of_home(home).and_then(|client| client.run(id)) {
            Ok(run) if is_terminal(&run.state) => return Ok(run),
            Ok(_) => away_since = None,
            Err(error) if error.is_passing() => {
                if away_since.get_or_insert_with(Instant::now).elapsed() > AWAY_FOR {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}
