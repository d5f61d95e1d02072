//! What every subcommand has at hand: where the home is, which interpreter to use, where to write.
use crate::failure::Failure;
use crate::output::Output;
use mirab_client::{Client, Home};
use std::ffi::OsString;
use std::path::PathBuf;

const FALLBACK_PYTHON: &str = "python3";

/// The global flags, and the output.
pub(crate) struct Session {
    /// `--home`.
    pub home: Option<PathBuf>,
    /// The interpreter that this command itself runs in, if it does.
    pub python: Option<PathBuf>,
    pub out: Output,
}

impl Session {
    pub fn home(&self) -> Result<Home, Failure> {
        Ok(Home::resolve(self.home.clone())?)
    }

    pub fn client(&self) -> Result<Client, Failure> {
        Ok(Client::of_home(&self.home()?)?)
    }

    /// The interpreter by precedence: flag, environment, the one around this command, `python3`.
    pub fn python(&self, flag: Option<PathBuf>) -> PathBuf {
        self.python_from(flag, std::env::var_os("MIRAB_PYTHON"))
    }

    fn python_from(&self, flag: Option<PathBuf>, variable: Option<OsString>) -> PathBuf {
        let variable = variable.filter(|text| !text.is_empty()).map(PathBuf::from);
        flag.or(variable).or_else(|| self.python.clone()).unwrap_or_else(|| FALLBACK_PYTHON.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_nearest_say_names_the_interpreter() {
        let mut session = Session { home: None, python: Some("own".into()), out: Output::stdout(false) };
        let python = |session: &Session, flag: Option<&str>, variable: Option<&str>| {
            session.python_from(flag.map(PathBuf::from), variable.map(OsString::from))
        };
        assert_eq!(python(&session, Some("flag"), Some("variable")), Path::new("flag"));
        assert_eq!(python(&session, None, Some("variable")), Path::new("variable"));
        assert_eq!(python(&session, None, Some("")), Path::new("own"));
        session.python = None;
        assert_eq!(python(&session, None, None), Path::new("python3"));
    }
}
