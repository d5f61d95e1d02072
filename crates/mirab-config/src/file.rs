//! One `mirab.toml`.
use crate::error::{ConfigError, Place, Source, lines_of};
use crate::resources::{self, DeclaredResource};
use crate::section::Section;
use std::path::Path;
use toml_edit::{Document, TableLike};

/// The file's name, in a served directory and in the home.
pub const FILE_NAME: &str = "mirab.toml";

/// Which directory a file stands in: not every section has a meaning everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The first served directory: all sections.
    First,
    /// A further directory: resources, and the project's name.
    Further,
    /// Not named, but with work that has not ended: as a further one, and what only the first may say is passed over.
    Implicit,
    /// The home: resources only.
    Home,
    /// The file of an embedded scheduler: `[gate]`, `[resources]`, and pools with all their options. What is said to a server is passed over.
    Embedded,
}

/// A pool and where it was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredPool {
    /// Its name.
    pub name: String,
    /// How many at once; only an embedded scheduler's pool may leave it to the program.
    pub slots: Option<u64>,
    /// How many may wait; of an embedded scheduler only, as what follows.
    pub max_queued: Option<u64>,
    /// Priority of its tasks that say none.
    pub priority: Option<i32>,
    /// Its shard.
    pub shard: Option<String>,
    /// Where.
    pub place: Place,
}

/// What one file says; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// `[server] host`.
    pub host: Option<String>,
    /// `[server] port`.
    pub port: Option<u16>,
    /// `[server] max_engines`, with its place: whether it is allowed depends on the machine.
    pub max_engines: Option<(u64, Place)>,
    /// `[server] engines_per_cpu`.
    pub engines_per_cpu: Option<u64>,
    /// `[server] project`.
    pub project: Option<String>,
    /// `[gate] aging` in nanoseconds.
    pub aging: Option<u64>,
    /// `[gate] assumed_duration` in nanoseconds.
    pub assumed_duration: Option<u64>,
    /// `[resources]`.
    pub resources: Vec<DeclaredResource>,
    /// `[pools.NAME]`.
    pub pools: Vec<DeclaredPool>,
}

impl ConfigFile {
    /// Reads the file in `dir`; a missing file says nothing.
    ///
    /// # Errors
    /// When it cannot be read or something in it is wrong.
    pub fn read(dir: &Path, role: Role) -> Result<Self, ConfigError> {
        let path = dir.join(FILE_NAME);
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            read => Self::of(&path, read, role),
        }
    }

    /// Reads a file that has to be there.
    ///
    /// # Errors
    /// When it cannot be read or something in it is wrong.
    pub fn read_file(path: &Path, role: Role) -> Result<Self, ConfigError> {
        Self::of(path, std::fs::read_to_string(path), role)
    }

    fn of(path: &Path, read: std::io::Result<String>, role: Role) -> Result<Self, ConfigError> {
        match read {
            Ok(text) => Self::parse(&path.to_string_lossy(), &text, role),
            Err(error) => Err(ConfigError::of(format!("{} cannot be read: {error}", path.display()))),
        }
    }

    /// Reads a file's text; `label` names it in errors.
    ///
    /// # Errors
    /// When something in it is wrong.
    pub fn parse(label: &str, text: &str, role: Role) -> Result<Self, ConfigError> {
        let lines = lines_of(text);
        let source = Source { label, text, lines: &lines };
        let document = Document::parse(text).map_err(|error| {
            let message = format!("{}: correct the TOML", error.message().trim().replace('\n', ", "));
            ConfigError::at(source.place(error.span()), message)
        })?;
        let root: &dyn TableLike = document.as_table();
        let root = Section { source, table: root, name: "the file".into() };
        root.check_keys(&["server", "gate", "resources", "pools"])?;
        let mut file = Self::default();
        check_role(&root, role)?;
        if role != Role::Embedded {
            file.read_server(&root, role)?;
        }
        file.read_gate(&root)?;
        if let Some(section) = Section::under(&root, "resources", "[resources]")? {
            file.resources = resources::read(&section)?;
        }
        file.read_pools(&root, role)?;
        Ok(file)
    }

    fn read_server(&mut self, root: &Section<'_>, role: Role) -> Result<(), ConfigError> {
        let Some(server) = Section::under(root, "server", "[server]")? else { return Ok(()) };
        server.check_keys(&["host", "port", "max_engines", "engines_per_cpu", "project"])?;
        let elsewhere = server.table.iter().map(|(key, _)| key).find(|key| *key != "project");
        if let (Role::Further, Some(key)) = (role, elsewhere) {
            return Err(server.error(key, first_directory_only(&format!("[server] {key}"))));
        }
        self.host = server.string("host")?;
        self.port = server.whole("port", 0..=65_535)?.and_then(|port| u16::try_from(port).ok());
        self.max_engines = server.whole("max_engines", 1..=100_000)?.map(|count| (count, server.place("max_engines")));
        self.engines_per_cpu = server.whole("engines_per_cpu", 1..=1_000)?;
        self.project = server.string("project")?;
        match self.project.as_deref().map(check_project) {
            Some(Err(why)) => Err(server.error("project", why)),
            _ => Ok(()),
        }
    }

    fn read_gate(&mut self, root: &Section<'_>) -> Result<(), ConfigError> {
        let Some(gate) = Section::under(root, "gate", "[gate]")? else { return Ok(()) };
        gate.check_keys(&["aging", "assumed_duration"])?;
        self.aging = gate.duration("aging")?;
        self.assumed_duration = gate.duration("assumed_duration")?;
        Ok(())
    }

    fn read_pools(&mut self, root: &Section<'_>, role: Role) -> Result<(), ConfigError> {
        let Some(pools) = Section::under(root, "pools", "[pools.NAME]")? else { return Ok(()) };
        for (name, _) in pools.table.iter() {
            let pool = read_pool(&pools, name, role)?;
            if let Some(first) = self.pools.iter().find(|other| other.name == pool.name) {
                let message =
                    format!("pool {:?} is declared twice, first at {}: keep one of them", pool.name, first.place);
                return Err(pools.error(name, message));
            }
            self.pools.push(pool);
        }
        Ok(())
    }
}

/// A project's name stands before a `/` in the names of its flows.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_project(name: &str) -> Result<(), String> {
    let odd = |c: char| c == '/' || c.is_control();
    if name.trim().is_empty() || name.trim() != name || name.contains(odd) || name.chars().count() > 100 {
        return Err(format!(
            "project is {name:?}, expected 1 to 100 characters without \"/\", control characters, or spaces at the ends"
        ));
    }
    Ok(())
}

fn read_pool(pools: &Section<'_>, key: &str, role: Role) -> Result<DeclaredPool, ConfigError> {
    let Some(pool) = Section::under(pools, key, &format!("[pools.{key}]"))? else { unreachable!("the key is there") };
    let name = mirab_core::check_declared(key).map_err(|refusal| pools.error(key, refusal.to_string()))?;
    if name == "default" && role != Role::Embedded {
        let message = "pool \"default\" has as many slots as there are engines: set max_engines under [server] instead";
        return Err(pools.error(key, message.into()));
    }
    if name.contains('*') {
        return Err(
            pools.error(key, format!("pool {name:?} has a \"*\", expected a plain name: pools know no patterns"))
        );
    }
    let is_embedded = role == Role::Embedded;
    let known: &[&str] = if is_embedded { &["slots", "max_queued", "priority", "shard"] } else { &["slots"] };
    pool.check_keys(known)?;
    let slots = pool.whole("slots", 0..=u64::MAX)?;
    if slots.is_none() && !is_embedded {
        return Err(pools.error(key, format!("pool {name:?} lacks slots, such as slots = 16")));
    }
    let (max_queued, priority) = (pool.whole("max_queued", 0..=u64::MAX)?, pool.priority("priority")?);
    let (shard, place) = (pool.string("shard")?, pools.place(key));
    Ok(DeclaredPool { name, slots, max_queued, priority, shard, place })
}

fn check_role(root: &Section<'_>, role: Role) -> Result<(), ConfigError> {
    let refused: &[&str] = match role {
        Role::First | Role::Implicit | Role::Embedded => &[],
        Role::Further => &["gate", "pools"],
        Role::Home => &["server", "gate", "pools"],
    };
    match refused.iter().find(|key| root.table.contains_key(key)) {
        Some(key) => Err(root.error(key, first_directory_only(&format!("[{key}]")))),
        None => Ok(()),
    }
}

fn first_directory_only(what: &str) -> String {
    format!("{what} is read from the first served directory only: move it there, or remove it")
}
