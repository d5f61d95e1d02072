//! Serving directories: at start, and one more while the server runs.
use crate::catalog::{self, Catalog, ServedProject};
use crate::config::{ConfigError, ConfigFile, Role};
use crate::discovery::{DiscoveryError, discover, specs};
use crate::host::Host;
use crate::loaded::{NamedDir, absolute, project_name};
use crate::supervisor::Supervisor;
use mirab_core::{ResourceConfig, Time};
use mirab_flow::{FlowSpec, Orchestrator, ProjectRecord, StoreUnavailable};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use tokio::sync::Mutex;

/// Why a directory cannot be served besides.
pub(crate) enum AddError {
    Store(StoreUnavailable),
    /// Its `mirab.toml`, alone or beside what is declared already.
    Config(String),
    /// What is wrong and what to do.
    Refused(String),
}

impl From<ConfigError> for AddError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}

/// How directories come to be served.
#[derive(Clone)]
pub(crate) struct Projects {
    pub catalog: Arc<RwLock<Catalog>>,
    pub finder: Finder,
    /// One directory at a time.
    pub adding: Arc<Mutex<()>>,
}

/// Finds the flows of directories.
#[derive(Clone, Debug)]
pub(crate) struct Finder {
    pub python: PathBuf,
    pub logs: PathBuf,
}

impl Finder {
    /// Blocks until the interpreter has looked at all files.
    pub fn find(&self, project: NamedDir) -> Result<(ServedProject, Vec<FlowSpec>), DiscoveryError> {
        // A project's name is a file's name as well, but for its oddest characters.
        let file = project.name.replace(|c: char| !c.is_alphanumeric() && c != '-' && c != '_', "_");
        let log = self.logs.join(format!("discovery-{file}.log"));
        let mut found = discover(&self.python, &project.dir, &log, &log.with_extension("json"))?;
        let specs = specs(&project.name, &mut found);
        for broken in &found.broken {
            // Whoever asked to serve it is told by the answer.
            tracing::info!("{} of project {} did not import: {}", broken.file, project.name, broken.error.message);
        }
        Ok((ServedProject { name: project.name, dir: project.dir, found }, specs))
    }
}

/// A directory that was looked at.
struct Looked {
    project: ServedProject,
    specs: Vec<FlowSpec>,
    /// Its `mirab.toml`, when it was not served before, with the resources that only this one declares.
    file: Option<ConfigFile>,
    new: Vec<ResourceConfig>,
}

impl Projects {
    /// Serves one more directory, or looks anew at the flows of one that is served.
    pub async fn add(
        &self,
        host: &Host,
        supervisor: &Supervisor,
        path: PathBuf,
    ) -> Result<mirab_wire::Project, AddError> {
        let _one_at_a_time = self.adding.lock().await;
        let this = self.clone();
        let looked = tokio::task::spawn_blocking(move || this.look_at(&path)).await;
        let Looked { project, specs, file, new } = looked.map_err(refused)??;
        let record = ProjectRecord { name: project.name.clone(), path: project.dir.to_string_lossy().into_owned() };
        let told = host.call(move |orchestrator, now| {
            declare(orchestrator, now, &new)?;
            serve(orchestrator, now, record, specs);
            Ok(())
        });
        told.await.map_err(AddError::Store)?.map_err(AddError::Config)?;
        self.enter(&project, file);
        let mut table = supervisor.table();
        table.dirs.insert(project.name.clone(), project.dir.clone());
        table.outdate(&project.name);
        drop(table);
        supervisor.look_again();
        Ok(project.shown())
    }

    /// What is stored now is known to readers too. Limits may have changed since the directory was looked at.
    fn enter(&self, project: &ServedProject, file: Option<ConfigFile>) {
        let mut catalog = catalog::write(&self.catalog);
        catalog.put(project.clone());
        let mut declarations = catalog.declarations().clone();
        // Should they be at odds by now, reading all files anew tells of it.
        if file.is_some_and(|file| declarations.add(&file).is_ok()) {
            catalog.set_declarations(declarations);
        }
    }

    /// All that takes its time, off the async threads.
    fn look_at(&self, path: &Path) -> Result<Looked, AddError> {
        let dir = absolute(path).map_err(|error| AddError::Refused(error.to_string()))?;
        let known = catalog::read(&self.catalog)
            .projects()
            .find(|project| project.dir == dir)
            .map(|project| project.name.clone());
        let (name, file, new) = match known {
            // Its file was read at the start; changed totals are no business of a second look at its flows.
            Some(name) => (name, None, Vec::new()),
            None => {
                let file = ConfigFile::read(&dir, Role::Further)?;
                let new = catalog::read(&self.catalog).declarations().clone().add(&file)?;
                (project_name(&dir, &file)?, Some(file), new)
            }
        };
        self.check_name(&name, &dir).map_err(AddError::Config)?;
        let found = self.finder.find(NamedDir { name, dir });
        let (project, specs) = found.map_err(|error| AddError::Refused(error.to_string()))?;
        Ok(Looked { project, specs, file, new })
    }

    fn check_name(&self, name: &str, dir: &Path) -> Result<(), String> {
        match catalog::read(&self.catalog).project(name) {
            Some(other) if other.dir != dir => Err(format!(
                "project {name:?} is served already, from {}: set another project under [server] in {}/mirab.toml",
                other.dir.display(),
                dir.display()
            )),
            _ => Ok(()),
        }
    }
}

/// Puts a project and its flows to the machines.
pub(crate) fn serve(orchestrator: &mut Orchestrator, now: Time, record: ProjectRecord, specs: Vec<FlowSpec>) {
    let name = record.name.clone();
    orchestrator.add_project(now, record);
    for refusal in orchestrator.set_flows(now, &name, specs) {
        tracing::warn!("the cap of a flow of project {name} was refused: {refusal}");
    }
}

/// Makes new resources known while the server runs.
fn declare(orchestrator: &mut Orchestrator, now: Time, new: &[ResourceConfig]) -> Result<(), String> {
    for config in new {
        orchestrator.declare(now, config.clone()).map_err(|refusal| refusal.to_string())?;
    }
    Ok(())
}

fn refused(error: tokio::task::JoinError) -> AddError {
    AddError::Refused(format!("the directory could not be looked at: {error}"))
}
