//! The command line as a whole: arguments to a subcommand, its failure to an exit code.
use crate::commands::{cancel, check, flows, priority, ps, queue, resources, run as offline, serve, submit, why};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0   ok
  1   the work failed: a flow raised, or a run that was waited for did not complete
  2   usage: the command line makes no sense as it stands
  3   no server answers on this home
  4   the server refused; its error code is printed as error[CODE]
  5   configuration or set-up: mirab.toml, the home, the port, the Python interpreter
  70  a bug in mirab

Environment:
  MIRAB_HOME    the home, where --home is not given
  MIRAB_PYTHON  the interpreter, where --python is not given
  MIRAB_LOG     what `mirab serve` logs to standard error, such as info or mirab_server=debug";

/// Runs Python flows that share limits, and shows what waits and why.
#[derive(Debug, Parser)]
#[command(name = "mirab", version, after_help = EXIT_CODES, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    /// The home of the server [default: ~/.mirab]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Print the JSON of the server, one document a line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Run(offline::Args),
    Submit(submit::Args),
    Ps(ps::Args),
    Queue(queue::Args),
    Why(why::Args),
    Resources(resources::Args),
    Flows(flows::Args),
    Cancel(cancel::Args),
    Check(check::Args),
    Priority(priority::Args),
}

/// Runs the command with the arguments after its name, and gives its exit code. `python` is the interpreter for engines
/// and offline runs where neither `--python` nor `MIRAB_PYTHON` names one.
pub fn run(args: Vec<OsString>, python: Option<PathBuf>) -> i32 {
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| exit_of(args, python)));
    let exit = caught.unwrap_or_else(|_| {
        eprintln!("error: this is a bug in mirab, not something you did");
        eprintln!("hint: please report it together with the message above and the output of `mirab --version`");
        Exit::Bug
    });
    exit as i32
}

fn exit_of(args: Vec<OsString>, python: Option<PathBuf>) -> Exit {
    let argv = std::iter::once(OsString::from("mirab")).chain(args);
    let cli = match Cli::try_parse_from(argv) {
        Ok(cli) => cli,
        Err(told) => {
            // Also --help and --version come this way; a reader that is gone is no error.
            let _ = told.print();
            return if told.use_stderr() { Exit::Usage } else { Exit::Success };
        }
    };
    let mut session = Session { home: cli.home, python, out: Output::stdout(cli.json) };
    dispatch(cli.command, &mut session).unwrap_or_else(|failure| failure.tell())
}

fn dispatch(command: Command, session: &mut Session) -> Result<Exit, Failure> {
    match command {
        Command::Serve(args) => serve::execute(args, session),
        Command::Run(args) => offline::execute(args, session),
        Command::Submit(args) => submit::execute(args, session),
        Command::Ps(args) => ps::execute(args, session),
        Command::Queue(args) => queue::execute(&args, session),
        Command::Why(args) => why::execute(&args, session),
        Command::Resources(args) => resources::execute(&args, session),
        Command::Flows(args) => flows::execute(&args, session),
        Command::Cancel(args) => cancel::execute(&args, session),
        Command::Check(args) => check::execute(args, session),
        Command::Priority(args) => priority::execute(&args, session),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definition_holds_together() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn the_global_flags_stand_anywhere() {
        for line in ["mirab --json --home h ps", "mirab ps --json --home h"] {
            let cli = parse(line).unwrap();
            assert_eq!((cli.json, cli.home), (true, Some("h".into())), "{line}");
        }
    }

    #[test]
    fn a_submission_takes_everything_that_a_run_can_have() {
        let line = "mirab submit shop/nightly --param rows=3 --param day=monday --priority -5 --tag a --tag b \
                    --resource gpu=2 --at 2026-03-01T09:00:00Z --key k --wait";
        let Command::Submit(args) = parse(line).unwrap().command else { panic!("not a submission") };
        let run = args.request().unwrap();
        assert_eq!(serde_json::to_value(&run.params).unwrap(), serde_json::json!({"rows": 3, "day": "monday"}));
        assert_eq!((run.flow.as_str(), run.priority), ("shop/nightly", Some(-5)));
        assert_eq!((run.tags, run.resources), (vec!["a".into(), "b".into()], [("gpu".into(), 2)].into()));
        assert_eq!((run.scheduled_at, run.idempotency_key.as_deref()), (Some(1_772_355_600.0), Some("k")));
        assert!(args.wait);
    }

    #[test]
    fn what_makes_no_sense_is_told_with_what_was_expected() {
        for (line, told) in [
            ("mirab submit f --param rows", "NAME=VALUE"),
            ("mirab submit f --resource gpu=many", "whole number"),
            ("mirab submit f --priority high", "expected a whole number from -2147483648 to 2147483647, such as 5"),
            ("mirab submit f --at noon", "seconds since 1970"),
            ("mirab ps --state Busy", "AwaitingResource"),
            ("mirab run flows.py", "FILE:FLOW"),
            ("mirab why run-3", "invalid digit"),
            ("mirab cancel", "ID"),
            ("mirab quue", "queue"),
            ("mirab serve --port 70000", "65535"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
    }

    #[test]
    fn a_state_is_taken_in_any_case() {
        let Command::Ps(args) = parse("mirab ps --state awaitingresource").unwrap().command else { panic!("not ps") };
        assert_eq!(args.filter().state.as_deref(), Some("AwaitingResource"));
    }

    #[test]
    fn a_flow_with_its_project_filters_by_both() {
        let Command::Ps(args) = parse("mirab ps --flow shop/nightly").unwrap().command else { panic!("not ps") };
        let filter = args.filter();
        assert_eq!((filter.project.as_deref(), filter.flow.as_deref()), (Some("shop"), Some("nightly")));
    }
}
