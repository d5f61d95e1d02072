//! `mirab check`: what cannot work as it is written, before anything is served.
use crate::failure::{Exit, Failure};
use crate::output::clean;
use crate::session::Session;
use std::path::PathBuf;

/// Look for misspelt names, oversize requests, bad templates and limits that never bind
///
/// Imports the files of the directory in a process of its own, as `mirab serve` does. Ends with 1 when there are errors.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory with flows [default: the current one]
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// End with 1 on warnings too
    #[arg(long)]
    strict: bool,
    /// The interpreter
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

pub(crate) fn execute(args: Args, session: &mut Session) -> Result<Exit, Failure> {
    let home = session.home()?;
    let python = session.python(args.python);
    let findings = mirab_server::check(&args.dir, home.path(), &python).map_err(super::serve::refused)?;
    let (warnings, errors): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.warning);
    if session.out.json {
        session.out.json(&findings)?;
    } else {
        for finding in &findings {
            let kind = if finding.warning { "warning" } else { "error" };
            let (place, message) = (clean(&finding.place), clean(&finding.message));
            session.out.line(format!("{place}: {kind}[{}]: {message}", finding.code))?;
        }
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        session.out.line(format!("{}, {}", count(errors.len(), "error"), count(warnings.len(), "warning")))?;
    }
    let failed = !errors.is_empty() || (args.strict && !warnings.is_empty());
    Ok(if failed { Exit::WorkFailed } else { Exit::Success })
}
