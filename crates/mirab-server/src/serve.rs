//! Starting and stopping a server.
use crate::api::auth::Access;
use crate::api::{self, App};
use crate::catalog::{Catalog, ServedProject};
use crate::clock::Clock;
use crate::config::Given;
use crate::discovery::DiscoveryError;
use crate::effects;
use crate::engine_process::Launcher;
use crate::engine_table::EngineTable;
use crate::home::Home;
use crate::host::Host;
use crate::limits::Limits;
use crate::loaded::{Loaded, NamedDir};
use crate::projects::{self, Finder, Projects};
use crate::running::{Parts, Running};
use crate::serve_error::ServeError;
use crate::supervisor::{self, Supervisor};
use crate::wakers::Wakers;
use mirab_core::SECOND;
use mirab_flow::{Driver, FlowSpec, Journal, Options, ProjectRecord, StoreUnavailable, Stored};
use mirab_store::{PageLimit, Reader, SqliteStore};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// A body that was asked to stop has so long until its engine is killed.
const CANCEL_GRACE: u64 = 10 * SECOND;

/// What to serve and how.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The home directory; made where it is missing.
    pub home: PathBuf,
    /// Directories with flows; the first one's `mirab.toml` has the server's settings.
    pub dirs: Vec<PathBuf>,
    /// Name or address to listen on; `None`: environment, file, default.
    pub host: Option<String>,
    /// Port to listen on, 0 for any free one; `None`: environment, file, default.
    pub port: Option<u16>,
    /// Engine processes; `None`: environment, stored setting, file, default.
    pub max_engines: Option<u64>,
    /// The interpreter that has the package `mirab`.
    pub python: PathBuf,
}

impl ServeOptions {
    /// Serves `dirs` from `home` with everything else as environment and files have it.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>, dirs: Vec<PathBuf>, python: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), dirs, host: None, port: None, max_engines: None, python: python.into() }
    }
}

/// Serves until SIGINT or SIGTERM. `ready` is told where, once requests are answered.
///
/// Idle engines end with the server; busy ones go on, and find the next server of this home. Gives how many runs go on.
///
/// # Errors
/// When the server cannot be started.
pub fn serve(options: ServeOptions, ready: impl FnOnce(&Running)) -> Result<u64, ServeError> {
    let running = start(options)?;
    // Before anyone is told: who reads where it answers may end it at once.
    let signals = running.signals()?;
    ready(&running);
    signals.wait();
    Ok(running.stop())
}

/// Starts a server and returns once it answers requests.
///
/// # Errors
/// When it cannot be started.
pub fn start(options: ServeOptions) -> Result<Running, ServeError> {
    let home = Home::open(&options.home)?;
    let mut store = SqliteStore::open(home.store_path())?;
    let implicit = with_unfinished(&options.dirs, &store.load()?);
    let given = Given { host: options.host.clone(), port: options.port, max_engines: options.max_engines };
    let loaded = Loaded::read(&options.dirs, &implicit, home.dir(), &given)?;
    let listener = listen(&loaded.settings.host, loaded.settings.port)?;
    let finder = Finder { python: options.python.clone(), logs: home.logs_dir() };
    let found = find_all(&finder, &loaded.dirs)?;
    let machines = Machines::start(store, &loaded)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let starting = Starting { home, loaded, listener, finder, found, python: options.python };
    starting.finish(machines, runtime)
}

/// Directories that are not named this time, but have work that has not ended, are served all the same.
pub(crate) fn with_unfinished(dirs: &[PathBuf], stored: &Stored) -> Vec<PathBuf> {
    let unfinished: BTreeSet<&str> = stored.runs.iter().map(|run| run.project.as_str()).collect();
    let mut all = Vec::new();
    for project in stored.projects.iter().filter(|project| unfinished.contains(project.name.as_str())) {
        let path = PathBuf::from(&project.path);
        if dirs.iter().any(|dir| dir.canonicalize().is_ok_and(|dir| dir == path)) {
            continue;
        }
        if path.is_dir() {
            tracing::info!("project {} has runs that have not ended: serving {} too", project.name, project.path);
            all.push(path);
        } else {
            tracing::warn!(
                "project {} has runs that have not ended, but {} is gone: they wait",
                project.name,
                project.path
            );
        }
    }
    all
}

fn listen(host: &str, port: u16) -> Result<TcpListener, ServeError> {
    let listener = TcpListener::bind((host, port)).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => ServeError::PortInUse { host: host.to_owned(), port },
        _ => ServeError::Listen { host: host.to_owned(), port, error },
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

type Found = (ServedProject, Vec<FlowSpec>);

/// Looks at all directories at the same time.
fn find_all(finder: &Finder, dirs: &[NamedDir]) -> Result<Vec<Found>, DiscoveryError> {
    std::thread::scope(|scope| {
        let looking: Vec<_> = dirs.iter().map(|dir| scope.spawn(|| finder.find(dir.clone()))).collect();
        looking
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The writer's thread and what belongs to it.
struct Machines {
    host: Host,
    writer: std::thread::JoinHandle<()>,
    reader: Reader,
    page_limit: PageLimit,
    wakers: Wakers,
    orders: (supervisor::Orders, tokio::sync::mpsc::UnboundedReceiver<supervisor::Order>),
}

impl Machines {
    fn start(store: SqliteStore, loaded: &Loaded) -> Result<Self, ServeError> {
        let (reader, page_limit, clock) = (store.reader(), store.page_limit(), Clock::start());
        let options = Options {
            resources: loaded.declarations.by_name(),
            aging: loaded.aging,
            assumed_duration: loaded.assumed_duration,
            slots: loaded.settings.max_engines,
            slots_are_fixed: loaded.settings.is_fixed,
            max_slots: loaded.settings.max_engines_ceiling,
            cancel_grace: CANCEL_GRACE,
        };
        let driver = Driver::open(store, options, clock.now())?;
        let (wakers, orders) = (Wakers::default(), supervisor::orders());
        let carry_out = effects::carry_out(wakers.clone(), orders.0.clone());
        let (host, writer) = Host::start(driver, clock, carry_out)?;
        Ok(Self { host, writer, reader, page_limit, wakers, orders })
    }
}

/// All that was made ready before anything is answered.
struct Starting {
    home: Home,
    loaded: Loaded,
    listener: TcpListener,
    finder: Finder,
    found: Vec<Found>,
    python: PathBuf,
}

impl Starting {
    fn finish(self, machines: Machines, runtime: Runtime) -> Result<Running, ServeError> {
        let Machines { host, writer, reader, page_limit, wakers, orders } = machines;
        let bound = self.listener.local_addr()?;
        let token = self.home.token()?;
        let mut table = EngineTable::restore(self.home.engines_path(), self.loaded.settings.max_engines);
        table.dirs = self.loaded.dirs.iter().map(|dir| (dir.name.clone(), dir.dir.clone())).collect();
        let launcher = Launcher { python: self.python, home: self.home.dir().to_owned(), logs: self.home.logs_dir() };
        let mut catalog = Catalog::new(self.loaded.declarations, self.loaded.pools);
        let mut told = Vec::new();
        for (project, specs) in self.found {
            let path = project.dir.to_string_lossy().into_owned();
            told.push((ProjectRecord { name: project.name.clone(), path }, specs));
            catalog.put(project);
        }
        table.max_engines = runtime.block_on(begin(&host, told))?;
        let supervisor = runtime.block_on(Supervisor::start(host.clone(), wakers.clone(), launcher, table, orders));
        let catalog = Arc::new(RwLock::new(catalog));
        let (stop, stopping) = watch::channel(false);
        let limits = Limits::new(host.clone(), catalog.clone(), self.home.dir().to_owned());
        runtime.spawn(limits.clone().watch(stopping.clone()));
        let app = App {
            host: host.clone(),
            reader,
            wakers,
            supervisor: supervisor.clone(),
            limits,
            projects: Projects { catalog: catalog.clone(), finder: self.finder, adding: Arc::default() },
            catalog,
            max_engines_ceiling: self.loaded.settings.max_engines_ceiling,
            access: Access { token: token.into(), is_beyond_loopback: !bound.ip().is_loopback() },
            stopping,
        };
        let parts = Parts { host, writer, supervisor, home: self.home, page_limit, stop };
        Running::begin(parts, runtime, self.listener, api::router(app))
    }
}

/// Tells the machines what is served; gives how many engines there may be. Until this is stored, nothing that was restored starts.
async fn begin(host: &Host, projects: Vec<(ProjectRecord, Vec<FlowSpec>)>) -> Result<u64, StoreUnavailable> {
    let told = host.call(move |orchestrator, now| {
        for (record, specs) in projects {
            projects::serve(orchestrator, now, record, specs);
        }
        orchestrator.slots()
    });
    told.await
}
