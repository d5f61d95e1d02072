//! Expected errors: an exit code, what was wrong, and a hint apart from it.
use mirab_client::ClientError;
use mirab_wire::Problem;
use std::io;

/// Exit codes, as `mirab help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Exit {
    Success = 0,
    WorkFailed = 1,
    Usage = 2,
    NoServer = 3,
    Refused = 4,
    SetUp = 5,
    Bug = 70,
}

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell.
    Told { exit: Exit, code: Option<String>, message: String, hint: Option<String> },
    /// Whoever read the output has seen enough, as in `mirab ps | head`.
    ReaderGone,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Told { exit, code: None, message: message.into(), hint: None }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Told { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// Writes it to standard error; gives the exit code.
    pub fn tell(&self) -> Exit {
        let Self::Told { exit, code, message, hint } = self else { return Exit::Success };
        match code {
            Some(code) => eprintln!("error[{code}]: {message}"),
            None => eprintln!("error: {message}"),
        }
        if let Some(hint) = hint {
            eprintln!("hint: {hint}");
        }
        *exit
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::new(Exit::WorkFailed, format!("the output cannot be written: {error}")),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Problem(problem) => refused(problem),
            ClientError::NoServer { home } => {
                Self::new(Exit::NoServer, format!("no server is running on the home {}", home.display()))
                    .hint("start one with `mirab serve DIR`, or name another home with --home")
            }
            ClientError::Unreachable { url, cause } => {
                Self::new(Exit::NoServer, format!("the server does not answer at {url}: {cause}"))
                    .hint("it may have been killed: start it again with `mirab serve DIR`")
            }
            ClientError::BadAnswer { url, cause } => {
                Self::new(Exit::NoServer, format!("{url} does not answer as a server of this version does: {cause}"))
                    .hint("use the `mirab` that the server was started with")
            }
            ClientError::Home(message) => Self::new(Exit::SetUp, message),
            ClientError::Stopped(_) => Self::new(Exit::Bug, error.to_string()),
        }
    }
}

fn refused(problem: Problem) -> Failure {
    // Only the server's own mistakes have this status.
    let exit = if problem.status == 500 { Exit::Bug } else { Exit::Refused };
    let hint = match problem.code.as_str() {
        "UnknownRun" => Some("`mirab ps` lists the runs of this home, `mirab queue` the tasks that wait"),
        "UnknownFlow" => Some("`mirab flows` lists the flows, and the files that did not import"),
        "UnknownResource" => Some("`mirab resources` lists what is declared"),
        _ => None,
    };
    let hint = hint.map(str::to_owned);
    Failure::Told { exit, code: Some(problem.code), message: problem.detail, hint }
}
