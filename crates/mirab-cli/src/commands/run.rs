//! `mirab run`: a flow of a file, offline, in a Python process of its own.
use crate::failure::{Exit, Failure};
use crate::given;
use crate::session::Session;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Says in our words what is missing; without the working directory on the path, whose files could stand in for modules.
const START: &str = "\
import sys
if sys.path[:1] == ['']:
    del sys.path[0]
try:
    from mirab._run import main
except ImportError as error:
    print(f'error: {sys.executable} cannot import the package mirab: {error}', file=sys.stderr)
    print('hint: install it there (pip install mirab), or name another interpreter with --python', file=sys.stderr)
    sys.exit(5)
sys.exit(main(sys.argv[1:]))
";

/// Run a flow here and now, without a server, and print its result as JSON
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file and the flow in it, such as pipelines/nightly.py:nightly
    #[arg(value_name = "FILE:FLOW", value_parser = target)]
    target: (PathBuf, String),
    /// A parameter; the value is taken as JSON where it is JSON, else as text
    #[arg(long = "param", short = 'p', value_name = "NAME=VALUE", value_parser = given::param)]
    params: Vec<(String, Value)>,
    /// The interpreter
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

fn target(text: &str) -> Result<(PathBuf, String), String> {
    match text.rsplit_once(':') {
        Some((file, flow)) if !file.is_empty() && !flow.is_empty() => Ok((file.into(), flow.into())),
        _ => Err("expected FILE:FLOW, such as nightly.py:nightly".into()),
    }
}

pub(crate) fn execute(args: Args, session: &mut Session) -> Result<Exit, Failure> {
    let (file, flow) = &args.target;
    if !file.is_file() {
        return Err(Failure::usage(format!("{} is not a file, expected a Python file with the flow", file.display())));
    }
    let params = Value::Object(given::params(&args.params)?).to_string();
    let python = session.python(args.python);
    let mut command = Command::new(&python);
    command.args(["-c", START]).arg(file).arg(flow).arg(format!("--params={params}"));
    // In the place of this process: signals, the terminal and the exit code are the flow's own.
    let error = command.exec();
    Err(Failure::new(Exit::SetUp, format!("the Python interpreter {} cannot be started: {error}", python.display()))
        .hint("name another with --python or the variable MIRAB_PYTHON"))
}
