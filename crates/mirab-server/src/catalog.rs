//! What is served: projects with the flows found in them, and all declarations. Kept in memory, read anew at every start.
use crate::config::{Declarations, DeclaredPool};
use mirab_wire::{Discovery, FoundFlow, Project};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A served directory.
#[derive(Clone, Debug)]
pub(crate) struct ServedProject {
    pub name: String,
    /// Absolute.
    pub dir: PathBuf,
    pub found: Discovery,
}

impl ServedProject {
    /// As it goes over the wire.
    pub fn shown(&self) -> Project {
        Project {
            name: self.name.clone(),
            path: self.dir.to_string_lossy().into_owned(),
            broken: self.found.broken.clone(),
        }
    }
}

/// All that is served.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    projects: BTreeMap<String, ServedProject>,
    declarations: Declarations,
    pools: Vec<DeclaredPool>,
}

impl Catalog {
    pub fn new(declarations: Declarations, pools: Vec<DeclaredPool>) -> Self {
        Self { projects: BTreeMap::new(), declarations, pools }
    }

    /// Serves a project, in place of one of the same name.
    pub fn put(&mut self, project: ServedProject) {
        self.projects.insert(project.name.clone(), project);
    }

    pub fn project(&self, name: &str) -> Option<&ServedProject> {
        self.projects.get(name)
    }

    /// In name order.
    pub fn projects(&self) -> impl Iterator<Item = &ServedProject> {
        self.projects.values()
    }

    pub fn flow(&self, project: &str, name: &str) -> Option<&FoundFlow> {
        self.projects.get(project)?.found.flows.iter().find(|flow| flow.name == name)
    }

    pub fn declarations(&self) -> &Declarations {
        &self.declarations
    }

    pub fn set_declarations(&mut self, declarations: Declarations) {
        self.declarations = declarations;
    }

    pub fn pools(&self) -> impl Iterator<Item = &DeclaredPool> {
        self.pools.iter()
    }
}

/// Never held across an await.
pub(crate) fn read(catalog: &RwLock<Catalog>) -> RwLockReadGuard<'_, Catalog> {
    catalog.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write(catalog: &RwLock<Catalog>) -> RwLockWriteGuard<'_, Catalog> {
    catalog.write().unwrap_or_else(PoisonError::into_inner)
}
