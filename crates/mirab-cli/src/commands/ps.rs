//! `mirab ps`: runs, newest first.
use crate::failure::{Exit, Failure};
use crate::output::clean;
use crate::session::Session;
use crate::table::Table;
use crate::when::{now, relative, rounded};
use mirab_client::RunFilter;
use mirab_wire::Run;

const STATES: [&str; 12] = [
    "Scheduled",
    "Queued",
    "AwaitingResource",
    "Pending",
    "Running",
    "AwaitingRetry",
    "Cancelling",
    "Completed",
    "Failed",
    "Cancelled",
    "Crashed",
    "Skipped",
];

/// List runs, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only runs in this state
    #[arg(long, value_parser = state)]
    state: Option<String>,
    /// Only runs of this flow, as FLOW or PROJECT/FLOW
    #[arg(long)]
    flow: Option<String>,
    /// Only runs of this project
    #[arg(long)]
    project: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u64,
}

impl Args {
    /// The server's filter has the flow's short name.
    pub fn filter(&self) -> RunFilter {
        let (mut project, mut flow) = (self.project.clone(), self.flow.clone());
        if let Some((of, short)) = self.flow.as_deref().and_then(|flow| flow.split_once('/'))
            && project.as_deref().is_none_or(|project| project == of)
        {
            (project, flow) = (Some(of.to_owned()), Some(short.to_owned()));
        }
        RunFilter { state: self.state.clone(), flow, project, limit: Some(self.limit), cursor: None }
    }
}

fn state(text: &str) -> Result<String, String> {
    let known = STATES.iter().find(|state| state.eq_ignore_ascii_case(text));
    known.map(|state| (*state).to_owned()).ok_or_else(|| format!("expected one of {}", STATES.join(", ")))
}

/// True once nothing can change any more.
pub(crate) fn is_terminal(state: &str) -> bool {
    matches!(state, "Completed" | "Failed" | "Cancelled" | "Crashed" | "Skipped" | "Expired")
}

/// `run 41 Failed: ValueError: no rows`, with what there is to say.
pub(crate) fn one_line(run: &Run) -> String {
    let said = said(run);
    let colon = if said.is_empty() { "" } else { ": " };
    format!("run {} {}{colon}{}", run.id, run.state, clean(&said))
}

fn said(run: &Run) -> String {
    match (&run.error, &run.message) {
        (Some(error), _) if run.state != "Completed" => format!("{}: {}", error.kind, error.message),
        (_, Some(message)) => message.clone(),
        _ => String::new(),
    }
}

pub(crate) fn execute(args: Args, session: &mut Session) -> Result<Exit, Failure> {
    let list = session.client()?.runs(&args.filter())?;
    if session.out.json {
        session.out.json(&list)?;
        return Ok(Exit::Success);
    }
    if list.runs.is_empty() {
        session.out.line("no runs")?;
        return Ok(Exit::Success);
    }
    session.out.table(&table(&list.runs))?;
    if list.next_cursor.is_some() {
        session.out.line(format!("the newest {}; there are more: raise --limit to see them", list.runs.len()))?;
    }
    Ok(Exit::Success)
}

fn table(runs: &[Run]) -> Table {
    let now = now();
    let mut table = Table::new(&[">ID", "FLOW", "STATE", ">PRIO", ">TRY", "CREATED", "TOOK", "SAYS"]);
    for run in runs {
        let took = run.started_at.map(|started| rounded(run.ended_at.unwrap_or(now) - started));
        table.row([
            run.id.to_string(),
            format!("{}/{}", run.project, run.flow),
            run.state.clone(),
            run.priority.to_string(),
            run.attempt.to_string(),
            relative(run.created_at, now),
            took.unwrap_or_else(|| "-".into()),
            said(run),
        ]);
    }
    table
}
