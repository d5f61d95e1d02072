//! `mirab cancel`: ends runs, whether they wait or execute.
use crate::commands::ps::one_line;
use crate::failure::{Exit, Failure};
use crate::session::Session;

/// Cancel runs, whether they wait or execute
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The runs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<u64>,
}

/// One that is refused does not keep the others alive; the first refusal gives the exit code.
pub(crate) fn execute(args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    let client = session.client()?;
    let mut exit = Exit::Success;
    for id in &args.ids {
        match client.cancel_run(*id).map_err(Failure::from) {
            Ok(run) if session.out.json => session.out.json(&run)?,
            Ok(run) => session.out.line(one_line(&run))?,
            Err(failure) => {
                let told = failure.tell();
                exit = if exit == Exit::Success { told } else { exit };
                if told == Exit::NoServer {
                    break;
                }
            }
        }
    }
    Ok(exit)
}
