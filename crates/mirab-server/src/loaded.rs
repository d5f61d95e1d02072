//! What is to be served, as the command line and the files have it.
use crate::config::{ConfigError, ConfigFile, Declarations, DeclaredPool, Given, Role, ServerSettings, check_project};
use crate::serve_error::ServeError;
use std::path::{Path, PathBuf};

/// A directory with its project's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedDir {
    pub name: String,
    /// Absolute.
    pub dir: PathBuf,
}

/// All files read and brought together.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub dirs: Vec<NamedDir>,
    pub settings: ServerSettings,
    /// `[gate] aging` and `assumed_duration`, in nanoseconds.
    pub aging: Option<u64>,
    pub assumed_duration: Option<u64>,
    pub declarations: Declarations,
    pub pools: Vec<DeclaredPool>,
}

impl Loaded {
    /// Reads the files of all directories and of the home. A directory that nobody named keeps no server from starting.
    pub fn read(dirs: &[PathBuf], implicit: &[PathBuf], home: &Path, given: &Given) -> Result<Self, ServeError> {
        let mut files: Vec<ConfigFile> = Vec::new();
        let mut named: Vec<NamedDir> = Vec::new();
        for dir in dirs {
            let absolute = absolute(dir)?;
            if named.iter().any(|other| other.dir == absolute) {
                continue;
            }
            let role = if files.is_empty() { Role::First } else { Role::Further };
            // By its full path: errors and origins name the same file the same way, from wherever it is served.
            let file = ConfigFile::read(&absolute, role)?;
            named.push(name(&absolute, &file, &named)?);
            files.push(file);
        }
        files.push(ConfigFile::read(home, Role::Home)?);
        let mut declarations = Declarations::default();
        for file in &files {
            declarations.add(file)?;
        }
        for dir in implicit {
            let read = read_implicit(dir, &named, &declarations);
            match read {
                Ok((found, all)) => {
                    named.push(found);
                    declarations = all;
                }
                Err(error) => tracing::warn!("{} has runs that have not ended, but they wait: {error}", dir.display()),
            }
        }
        let first = files.swap_remove(0);
        let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let settings = ServerSettings::settle(given, |name| std::env::var(name).ok(), &first, cpus)?;
        let ConfigFile { aging, assumed_duration, pools, .. } = first;
        Ok(Self { dirs: named, settings, aging, assumed_duration, declarations, pools })
    }
}

fn read_implicit(
    dir: &Path,
    named: &[NamedDir],
    declarations: &Declarations,
) -> Result<(NamedDir, Declarations), ServeError> {
    let dir = absolute(dir)?;
    let file = ConfigFile::read(&dir, Role::Implicit)?;
    let found = name(&dir, &file, named)?;
    let mut all = declarations.clone();
    all.add(&file)?;
    Ok((found, all))
}

/// The directory's full path.
pub(crate) fn absolute(dir: &Path) -> Result<PathBuf, ServeError> {
    let absolute = dir.canonicalize().ok().filter(|dir| dir.is_dir());
    absolute.ok_or_else(|| ServeError::NotADirectory { path: dir.to_owned() })
}

fn name(dir: &Path, file: &ConfigFile, others: &[NamedDir]) -> Result<NamedDir, ServeError> {
    let name = project_name(dir, file)?;
    match others.iter().find(|other| other.name == name) {
        Some(other) => Err(ServeError::DoubledProject { name, first: other.dir.clone(), second: dir.to_owned() }),
        None => Ok(NamedDir { name, dir: dir.to_owned() }),
    }
}

/// A project is named by its file, else by its folder.
pub(crate) fn project_name(dir: &Path, file: &ConfigFile) -> Result<String, ConfigError> {
    let folder = || dir.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
    let name = file.project.clone().unwrap_or_else(folder);
    match check_project(&name) {
        Ok(()) => Ok(name),
        Err(why) => {
            let message =
                format!("the folder {} cannot name a project ({why}): set project under [server]", dir.display());
            Err(ConfigError { place: None, message })
        }
    }
}
