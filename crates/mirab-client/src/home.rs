//! The home directory: where a client finds the server and its token.
use crate::{ClientError, Result};
use mirab_wire::ServerFile;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A home, which one server may hold at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// The home at `flag`, else at `MIRAB_HOME`, else `~/.mirab`.
    pub fn resolve(flag: Option<PathBuf>) -> Result<Self> {
        let from_env = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user_home = || from_env("HOME").map(|home| home.join(".mirab"));
        let path = flag.or_else(|| from_env("MIRAB_HOME")).or_else(user_home).ok_or_else(|| {
            ClientError::Home("no home directory is known: name one with --home DIR or the variable MIRAB_HOME".into())
        })?;
        Ok(Self::at(path))
    }

    /// The home at a path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that says where the server answers.
    pub fn server_path(&self) -> PathBuf {
        self.path.join("server.json")
    }

    /// The file that holds the token, where the server asks for one.
    pub fn token_path(&self) -> PathBuf {
        self.path.join("token")
    }

    /// Reads where the server answers; it may have moved since the last time.
    pub fn server(&self) -> Result<ServerFile> {
        let path = self.server_path();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ClientError::NoServer { home: self.path.clone() });
            }
            Err(error) => return Err(unreadable(&path, &error)),
        };
        // A server that writes the file just now is as good as one that is not there yet.
        serde_json::from_str(&text).map_err(|_| ClientError::NoServer { home: self.path.clone() })
    }

    /// Reads the token; `None` when there is none.
    pub fn token(&self) -> Result<Option<String>> {
        let path = self.token_path();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|token| !token.is_empty())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> ClientError {
    ClientError::Home(format!("{} cannot be read ({error}): a home can only be used by its owner", path.display()))
}
