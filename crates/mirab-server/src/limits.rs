//! Limits that change while work runs: in the files that declare them, and in the same step for the work.
//!
//! The file is written first, then the change is made: a crash between the two leaves a change that nobody was told of and that counts from
//! the next start, never one that was told and is lost.
use crate::catalog::{self, Catalog};
use crate::config::{self, ConfigError, ConfigFile, Declarations, FILE_NAME, Role};
use crate::host::Host;
use mirab_core::{Refusal, ResourceConfig};
use mirab_flow::StoreUnavailable;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::SystemTime;
use tokio::sync::Mutex;

/// Why a limit was not changed.
#[derive(Debug)]
pub(crate) enum EditError {
    Store(StoreUnavailable),
    Refused(Refusal),
    /// A file cannot be used, or says something else than what is in force.
    Config(String),
    /// A file was edited by hand meanwhile, and says something else about this name.
    Conflict(String),
}

impl From<ConfigError> for EditError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}

/// A change of one declaration.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Set(ResourceConfig),
    Remove(String),
}

impl Edit {
    fn name(&self) -> &str {
        match self {
            Edit::Set(config) => &config.name,
            Edit::Remove(name) => name,
        }
    }

    fn apply_to(&self, text: &str) -> Result<String, ConfigError> {
        match self {
            Edit::Set(config) => config::set_resource(text, config),
            Edit::Remove(name) => config::remove_resource(text, name),
        }
    }
}

/// The files with declarations, and how they are changed.
#[derive(Clone)]
pub(crate) struct Limits {
    pub catalog: Arc<RwLock<Catalog>>,
    pub home: PathBuf,
    /// One change at a time.
    pub editing: Arc<Mutex<()>>,
}

/// A file with its new text, and the old one should the change not be made.
struct Rewrite {
    path: PathBuf,
    old: Option<String>,
    new: String,
}

impl Limits {
    /// All files that may declare resources, with what may stand in each.
    fn files(&self) -> Vec<(PathBuf, Role)> {
        let catalog = catalog::read(&self.catalog);
        // Which of them was the first does not matter here: resources may stand in any.
        let served = catalog.projects().map(|project| (project.dir.join(FILE_NAME), Role::Implicit));
        served.chain([(self.home.join(FILE_NAME), Role::Home)]).collect()
    }

    /// Makes a change in the files and for the work.
    pub async fn edit(&self, host: &Host, edit: Edit) -> Result<(), EditError> {
        let _one_at_a_time = self.editing.lock().await;
        if let Edit::Remove(name) = &edit {
            // Asked first, so that a file is seldom written in vain.
            let name = name.clone();
            let refused = host.query(move |orchestrator, _| orchestrator.check_removal(&name));
            refused.await.map_err(EditError::Store)?.map_err(EditError::Refused)?;
        }
        let (this, wanted) = (self.clone(), edit.clone());
        let written = tokio::task::spawn_blocking(move || this.write(&wanted)).await;
        let (rewrites, declarations) = written.map_err(|error| EditError::Config(error.to_string()))??;
        // What was edited by hand meanwhile is taken over with it.
        let told = self.take_over(host, declarations).await;
        if told.is_err() {
            take_back(rewrites);
        }
        told
    }

    /// Writes every file that declares the name; a new name goes to the home's.
    fn write(&self, edit: &Edit) -> Result<(Vec<Rewrite>, Declarations), EditError> {
        // With a file that cannot be used nobody knows where the name is declared.
        self.read_all()?;
        let mut rewrites = Vec::new();
        let home = self.home.join(FILE_NAME);
        let files = self.files();
        let declared_in: Vec<&(PathBuf, Role)> =
            files.iter().filter(|(path, role)| declares(path, *role, edit.name())).collect();
        for (path, role) in
            files.iter().filter(|file| declared_in.contains(file) || (declared_in.is_empty() && file.0 == home))
        {
            let old = read(path)?;
            let text = old.clone().unwrap_or_default();
            self.check_unchanged(path, *role, &text, edit.name())?;
            let new = edit.apply_to(&text)?;
            ConfigFile::parse(&path.to_string_lossy(), &new, *role)?;
            rewrites.push(Rewrite { path: path.clone(), old, new });
        }
        for (index, rewrite) in rewrites.iter().enumerate() {
            if let Err(error) = config::write_file(&rewrite.path, &rewrite.new) {
                let message = format!("{} cannot be written: {error}; nothing was changed", rewrite.path.display());
                rewrites.truncate(index);
                take_back(rewrites);
                return Err(EditError::Config(message));
            }
        }
        match self.read_all() {
            Ok(declarations) => Ok((rewrites, declarations)),
            Err(error) => {
                take_back(rewrites);
                Err(error)
            }
        }
    }

    /// A value that somebody wrote by hand is not overwritten unseen.
    fn check_unchanged(&self, path: &Path, role: Role, text: &str, name: &str) -> Result<(), EditError> {
        let file = ConfigFile::parse(&path.to_string_lossy(), text, role)?;
        let there = file.resources.iter().find(|resource| resource.config.name == name);
        let catalog = catalog::read(&self.catalog);
        let known = catalog.declarations().iter().find(|resource| resource.config.name == name);
        match (there, known) {
            (Some(there), Some(known)) if there.config != known.config => Err(EditError::Conflict(format!(
                "resource {name:?} is {} at {}, edited by hand, but {} in force: look at it again, and then change it",
                config::describe(&there.config),
                there.place,
                config::describe(&known.config)
            ))),
            _ => Ok(()),
        }
    }

    /// Takes over what was edited by hand since: all changes in one step. A file that cannot be used changes nothing.
    pub async fn reload(&self, host: &Host) -> Result<(), EditError> {
        let _one_at_a_time = self.editing.lock().await;
        let this = self.clone();
        let read = tokio::task::spawn_blocking(move || this.read_all()).await;
        let declarations = read.map_err(|error| EditError::Config(error.to_string()))??;
        self.take_over(host, declarations).await
    }

    /// Makes what the files declare count for the work: all that is new or changed, and what is gone, in one step.
    async fn take_over(&self, host: &Host, declarations: Declarations) -> Result<(), EditError> {
        let before = catalog::read(&self.catalog).declarations().configs();
        let now_declared = declarations.configs();
        let set: Vec<ResourceConfig> = now_declared.iter().filter(|config| !before.contains(config)).cloned().collect();
        let gone = before.iter().filter(|old| now_declared.iter().all(|new| new.name != old.name));
        let gone: Vec<String> = gone.map(|config| config.name.clone()).collect();
        let told = host.call(move |orchestrator, now| {
            gone.iter().try_for_each(|name| orchestrator.check_removal(name))?;
            set.into_iter().try_for_each(|config| orchestrator.declare(now, config))?;
            gone.iter().try_for_each(|name| orchestrator.remove_resource(now, name))
        });
        told.await.map_err(EditError::Store)?.map_err(EditError::Refused)?;
        catalog::write(&self.catalog).set_declarations(declarations);
        Ok(())
    }

    fn read_all(&self) -> Result<Declarations, EditError> {
        let mut declarations = Declarations::default();
        for (path, role) in self.files() {
            declarations.add(&ConfigFile::parse(&path.to_string_lossy(), &read(&path)?.unwrap_or_default(), role)?)?;
        }
        Ok(declarations)
    }

    /// When each file was written last: what changes there was edited.
    fn stamps(&self) -> Vec<(PathBuf, Option<(SystemTime, u64)>)> {
        let stamp = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        self.files().into_iter().map(|(path, _)| (path.clone(), stamp(&path))).collect()
    }

    /// Looks at the files once a second, until the server ends.
    pub async fn watch(self, host: Host, mut stopping: tokio::sync::watch::Receiver<bool>) {
        let (mut known, mut told) = (self.stamps(), String::new());
        let mut ticks = tokio::time::interval(std::time::Duration::from_secs(1));
        loop {
            tokio::select! {
                _ = stopping.changed() => return,
                _ = ticks.tick() => {}
            }
            let stamps = self.stamps();
            if stamps == known {
                continue;
            }
            let read = self.reload(&host).await;
            match &read {
                Ok(()) => tracing::info!("limits were read again"),
                Err(error) if told != error.told() => tracing::error!("limits stay as they were: {}", error.told()),
                Err(_) => {}
            }
            told = read.as_ref().err().map(EditError::told).unwrap_or_default();
            // What is refused for now, as a name that is still held, is tried again; a file that cannot be used waits for its next edit.
            if !matches!(read, Err(EditError::Refused(_) | EditError::Store(_))) {
                known = stamps;
            }
        }
    }
}

impl EditError {
    /// In words.
    pub fn told(&self) -> String {
        match self {
            EditError::Store(_) => "the store cannot be written".into(),
            EditError::Refused(refusal) => refusal.to_string(),
            EditError::Config(why) | EditError::Conflict(why) => why.clone(),
        }
    }
}

fn declares(path: &Path, role: Role, name: &str) -> bool {
    let text = read(path).ok().flatten().unwrap_or_default();
    let file = ConfigFile::parse(&path.to_string_lossy(), &text, role);
    file.is_ok_and(|file| file.resources.iter().any(|resource| resource.config.name == name))
}

fn read(path: &Path) -> Result<Option<String>, EditError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EditError::Config(format!("{} cannot be read: {error}", path.display()))),
    }
}

/// Puts the old texts back.
fn take_back(rewrites: Vec<Rewrite>) {
    for Rewrite { path, old, .. } in rewrites {
        let back = match old {
            Some(text) => config::write_file(&path, &text),
            None => std::fs::remove_file(&path),
        };
        if let Err(error) = back {
            tracing::error!("{} cannot be put back as it was: {error}", path.display());
        }
    }
}
