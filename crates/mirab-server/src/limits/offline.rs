//! Changes while no server runs: in the files only, after the checks that a server makes.
use super::difference::Difference;
use super::files::{Files, take_back};
use super::wanted::{EditError, Wanted};
use crate::api::{ApiError, detail};
use crate::clock::Clock;
use crate::config::Declarations;
use crate::home::Home;
use crate::loaded::absolute;
use crate::serve::with_unfinished;
use crate::serve_error::ServeError;
use mirab_core::Time;
use mirab_flow::{Journal, Options, Orchestrator, Stored};
use mirab_store::SqliteStore;
use mirab_wire::{Problem, ResourceChange, ResourceDetail};
use std::path::{Path, PathBuf};

/// Why a limit cannot be changed without a server.
#[derive(Debug)]
pub enum OfflineError {
    /// The home cannot be held, or its store cannot be read.
    SetUp(ServeError),
    /// What the server would have answered.
    Refused(Problem),
}

impl From<ApiError> for OfflineError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error.into_problem())
    }
}

/// The limits of a home that no server holds. It is held meanwhile, so that none can start.
pub struct Offline {
    /// Let go at the end.
    _home: Home,
    files: Files,
    declarations: Declarations,
    /// Made from the store for its answers; what it would start or store is forgotten with it.
    machines: Orchestrator,
    now: Time,
}

impl Offline {
    /// Takes the files that `mirab serve DIR` would read: those of the directory, of projects whose work has not ended, and of the home.
    ///
    /// # Errors
    /// When a server holds the home, the store cannot be read, or a file cannot be used.
    pub fn open(home: &Path, dir: &Path) -> Result<Self, OfflineError> {
        let (home, stored, dirs) = hold(home, dir).map_err(OfflineError::SetUp)?;
        let files = Files::new(dirs, home.dir());
        let declarations = files.read().map_err(ApiError::from)?;
        let options = Options { resources: declarations.by_name(), slots: 1, max_slots: 1, ..Options::default() };
        let now = Clock::start().now();
        let machines = Orchestrator::restore(options, stored, now);
        Ok(Self { _home: home, files, declarations, machines, now })
    }

    /// Changes what is given of a known resource; a new one needs all that its kind needs.
    ///
    /// # Errors
    /// As over HTTP.
    pub fn set(mut self, name: &str, change: ResourceChange) -> Result<ResourceDetail, OfflineError> {
        let fields = Wanted::fields(name, change.clone()).map_err(ApiError::from)?;
        let name = fields.name().to_owned();
        let wanted = match self.declarations.get(&name).is_none() && change.is_whole() {
            true => Wanted::whole(&name, &change).map_err(ApiError::from)?,
            false => fields,
        };
        self.make(wanted).map_err(ApiError::from)?;
        Ok(detail(&self.machines, &self.declarations, &name)?)
    }

    /// Takes a resource away that no stored work holds or waits for.
    ///
    /// # Errors
    /// As over HTTP.
    pub fn delete(mut self, name: &str) -> Result<(), OfflineError> {
        let wanted = Wanted::gone(name).map_err(ApiError::from)?;
        Ok(self.make(wanted).map_err(ApiError::from)?)
    }

    fn make(&mut self, wanted: Wanted) -> Result<(), EditError> {
        let known = self.declarations.get(wanted.name());
        let removal = self.machines.check_removal(wanted.name());
        let edit = wanted.edit(known, removal)?;
        let (rewrites, declarations) = self.files.write(&edit, &self.declarations)?;
        let made = Difference::between(&self.declarations, &declarations).make(&mut self.machines, self.now);
        if made.is_err() {
            take_back(rewrites);
        }
        self.declarations = declarations;
        Ok(made?)
    }
}

fn hold(home: &Path, dir: &Path) -> Result<(Home, Stored, Vec<PathBuf>), ServeError> {
    let home = Home::open(home)?;
    let stored = SqliteStore::open(home.store_path())?.load()?;
    let mut dirs = vec![absolute(dir)?];
    dirs.extend(with_unfinished(&dirs, &stored));
    Ok((home, stored, dirs))
}
