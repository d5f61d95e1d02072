//! The files that may declare resources: read together, and changed so that a change is made in all of them or in none.
use super::wanted::{Edit, EditError};
use crate::config::{self, ConfigFile, Declarations, FILE_NAME, Role};
use mirab_core::ResourceConfig;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// When each file was written last, when it or its permissions were changed last, and how long it is: what differs there was edited.
pub(super) type Stamps = Vec<(PathBuf, Option<(SystemTime, (i64, i64), u64)>)>;

/// So often a change is tried while somebody edits a file at the same time.
const TRIES: usize = 10;

/// What looking at the files again and again has found.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// `None` at first: the files may have been edited since the server read them.
    known: Option<Stamps>,
    last: Option<Stamps>,
    /// So many looks in a row have found the files as they were at the look before.
    quiet: u32,
}

/// After so many such looks nobody is writing any more, however slowly.
pub(super) const QUIET_LOOKS: u32 = 10;

impl Looks {
    /// Was something edited, and is it done? A file that differs from the look before may be in the middle of being written.
    pub fn is_news(&mut self, stamps: &Stamps) -> bool {
        let is_quiet = self.last.replace(stamps.clone()).as_ref() == Some(stamps);
        self.quiet = if is_quiet { self.quiet.saturating_add(1) } else { 0 };
        is_quiet && self.known.as_ref() != Some(stamps)
    }

    /// Has nobody touched the files for so long that even what is missing in them is meant to be?
    pub fn are_settled(&self) -> bool {
        self.quiet >= QUIET_LOOKS
    }

    pub fn taken_over(&mut self, stamps: Stamps) {
        self.known = Some(stamps);
    }
}

/// The files of served directories and of the home.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// Each once.
    paths: Vec<(PathBuf, Role)>,
    /// Where new names go.
    home: PathBuf,
}

/// A file with its new text, and the old one should the change not be made.
#[derive(Debug)]
pub(super) struct Rewrite {
    path: PathBuf,
    old: Option<String>,
    new: String,
}

impl Files {
    pub fn new(dirs: impl IntoIterator<Item = PathBuf>, home: &Path) -> Self {
        // Which of them was the first does not matter here: resources may stand in any.
        let served = dirs.into_iter().filter(|dir| dir != home).map(|dir| (dir.join(FILE_NAME), Role::Implicit));
        let home = home.join(FILE_NAME);
        Self { paths: served.chain([(home.clone(), Role::Home)]).collect(), home }
    }

    pub fn read(&self) -> Result<Declarations, EditError> {
        let mut declarations = Declarations::default();
        for (path, role) in &self.paths {
            declarations.add(&parse(path, *role, &text_of(path)?.unwrap_or_default())?)?;
        }
        Ok(declarations)
    }

    pub fn stamps(&self) -> Stamps {
        let stamp = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, (metadata.ctime(), metadata.ctime_nsec()), metadata.len()))
        };
        self.paths.iter().map(|(path, _)| (path.clone(), stamp(path))).collect()
    }

    /// Writes every file that declares the name; a new name goes to the home's. `known` is what is in force. Gives what was written, to
    /// be taken back when the change cannot be made, and what the files declare now. Who edits a file in the very moment is let go first.
    pub fn write(&self, edit: &Edit, known: &Declarations) -> Result<(Vec<Rewrite>, Declarations), EditError> {
        let tried = (1..TRIES).map(|_| self.try_to_write(edit, known));
        let done = tried.into_iter().find(|written| !matches!(written, Err(EditError::Meanwhile(_))));
        done.unwrap_or_else(|| self.try_to_write(edit, known))
    }

    fn try_to_write(&self, edit: &Edit, known: &Declarations) -> Result<(Vec<Rewrite>, Declarations), EditError> {
        // With a file that cannot be used nobody knows where the name is declared.
        let there = self.read()?;
        check_unchanged(edit.name(), &there, known)?;
        let is_new = there.get(edit.name()).is_none();
        let mut rewrites = Vec::new();
        for (path, role) in &self.paths {
            let old = text_of(path)?;
            let text = old.as_deref().unwrap_or_default();
            let declares = parse(path, *role, text)?.resources.iter().any(|each| each.config.name == edit.name());
            if declares || (is_new && *path == self.home) {
                let new = edit.apply_to(text)?;
                parse(path, *role, &new)?;
                rewrites.push(Rewrite { path: path.clone(), old, new });
            }
        }
        let rewrites = write_all(rewrites)?;
        match self.read() {
            Ok(declarations) => Ok((rewrites, declarations)),
            Err(error) => {
                take_back(rewrites);
                Err(error)
            }
        }
    }
}

/// What somebody wrote by hand is not overwritten unseen: a change, a new name or one that is gone.
fn check_unchanged(name: &str, there: &Declarations, known: &Declarations) -> Result<(), EditError> {
    let (written, in_force) = (there.get(name), known.get(name));
    if written == in_force {
        return Ok(());
    }
    let told = |config: Option<&ResourceConfig>| config.map_or_else(|| "not declared".into(), config::describe);
    let place = there.origin(name).map_or_else(|| "in the files".into(), |origin| format!("at {origin}"));
    Err(EditError::Conflict(format!(
        "resource {name:?} is {} {place}, edited by hand, but {} in force: look at it again, and then change it",
        told(written),
        told(in_force)
    )))
}

/// All of them, or none.
fn write_all(mut rewrites: Vec<Rewrite>) -> Result<Vec<Rewrite>, EditError> {
    for (index, rewrite) in rewrites.iter().enumerate() {
        let path = rewrite.path.display();
        let failed = match config::write_file(&rewrite.path, rewrite.old.as_deref(), &rewrite.new) {
            Ok(true) => continue,
            Ok(false) => EditError::Meanwhile(format!("{path} was edited by hand in this moment: try again")),
            Err(error) => EditError::Config(format!("{path} cannot be written: {error}; nothing was changed")),
        };
        rewrites.truncate(index);
        take_back(rewrites);
        return Err(failed);
    }
    Ok(rewrites)
}

/// Puts the old texts back, but for what was edited by hand meanwhile.
pub(super) fn take_back(rewrites: Vec<Rewrite>) {
    for Rewrite { path, old, new } in rewrites {
        let back = match old {
            Some(text) => config::write_file(&path, Some(&new), &text),
            None => config::remove_file(&path, &new),
        };
        match back {
            Ok(true) => {}
            Ok(false) => tracing::error!("{} was edited by hand meanwhile and is left as it is", path.display()),
            Err(error) => tracing::error!("{} cannot be put back as it was: {error}", path.display()),
        }
    }
}

fn parse(path: &Path, role: Role, text: &str) -> Result<ConfigFile, EditError> {
    Ok(ConfigFile::parse(&path.to_string_lossy(), text, role)?)
}

fn text_of(path: &Path) -> Result<Option<String>, EditError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EditError::Config(format!("{} cannot be read: {error}", path.display()))),
    }
}
