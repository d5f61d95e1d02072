//! `mirab priority`: another place in the line.
use crate::commands::ps::one_line;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use mirab_wire::PatchRun;

/// Change the priority of a run that has not ended; higher goes first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run
    id: u64,
    /// Its priority from now on
    #[arg(allow_negative_numbers = true, value_parser = crate::given::priority)]
    pub(crate) priority: i32,
}

pub(crate) fn execute(args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    let run = session.client()?.patch_run(args.id, &PatchRun { priority: args.priority })?;
    if session.out.json {
        session.out.json(&run)?;
    } else {
        session.out.line(format!("{}, priority {}", one_line(&run), run.priority))?;
    }
    Ok(Exit::Success)
}
