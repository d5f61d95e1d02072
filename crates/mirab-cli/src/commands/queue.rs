//! `mirab queue`: what waits, in order and why, and the engines.
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::table::Table;
use crate::when::{now, span};
use mirab_wire::{Engine, Queue, Waiting};

/// Show what waits, in order and why, and the engines
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u64,
}

pub(crate) fn execute(args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    let queue = session.client()?.queue(args.limit)?;
    if session.out.json {
        session.out.json(&queue)?;
        return Ok(Exit::Success);
    }
    show_line(&queue, session)?;
    session.out.line("")?;
    match queue.engines.as_slice() {
        [] => session.out.line("no engines: one starts when a run can")?,
        engines => session.out.table(&engine_table(engines))?,
    }
    Ok(Exit::Success)
}

fn show_line(queue: &Queue, session: &mut Session) -> Result<(), Failure> {
    if queue.waiting.is_empty() && queue.total == 0 {
        return session.out.line("nothing waits");
    }
    session.out.table(&waiting_table(&queue.waiting))?;
    let shown = queue.waiting.len();
    if queue.total > shown as u64 {
        session.out.line(format!("the first {shown} of {} that wait: raise --limit to see more", queue.total))?;
    }
    Ok(())
}

fn waiting_table(waiting: &[Waiting]) -> Table {
    let now = now();
    let mut table = Table::new(&[">POS", ">ID", "WHAT", ">PRIO", "WAITING", "REASON"]);
    for each in waiting {
        table.row([
            each.position.to_string(),
            each.id.to_string(),
            what(each),
            each.priority.to_string(),
            span(now - each.since),
            each.reason.clone(),
        ]);
    }
    table
}

/// `run shop/nightly`, or `task shop/nightly/load of run 7`.
fn what(waiting: &Waiting) -> String {
    let of = if waiting.kind == "task" { format!(" of run {}", waiting.run_id) } else { String::new() };
    format!("{} {}/{}{of}", waiting.kind, waiting.project, waiting.name)
}

fn engine_table(engines: &[Engine]) -> Table {
    let mut table = Table::new(&["ENGINE", "PROJECT", ">PID", "STATE", ">RUN"]);
    for engine in engines {
        let run = engine.run_id.map_or_else(|| "-".into(), |id| id.to_string());
        table.row([engine.worker.clone(), engine.project.clone(), engine.pid.to_string(), engine.state.clone(), run]);
    }
    table
}
