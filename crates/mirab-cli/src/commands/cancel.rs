//! `mirab cancel`: ends runs, whether they wait or execute.
use crate::commands::ps::{is_terminal, one_line};
use crate::failure::{Exit, Failure};
use crate::session::Session;
use mirab_client::{Client, ClientError};
use mirab_wire::Run;

/// Cancel runs, whether they wait or execute
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The runs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<u64>,
}

/// The run, and whether it had ended before: a cancel of one that has ended changes nothing and is no error.
fn cancel(client: &Client, id: u64) -> Result<(Run, bool), ClientError> {
    let run = client.run(id)?;
    if is_terminal(&run.state) {
        return Ok((run, true));
    }
    let run = client.cancel_run(id)?;
    let came_first = is_terminal(&run.state) && run.state != "Cancelled";
    Ok((run, came_first))
}

/// One that is refused does not keep the others alive; the first refusal gives the exit code.
pub(crate) fn execute(args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    let client = session.client()?;
    let mut exit = Exit::Success;
    for id in &args.ids {
        match cancel(&client, *id).map_err(Failure::from) {
            Ok((run, _)) if session.out.json => session.out.json(&run)?,
            Ok((run, true)) => session.out.line(format!("run {id} had ended already: {}", run.state))?,
            Ok((run, false)) => session.out.line(one_line(&run))?,
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
