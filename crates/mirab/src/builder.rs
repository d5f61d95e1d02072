//! How a scheduler is described and started.
use crate::clock::{Clock, nanos};
use crate::directory::{Directory, Listed};
use crate::error::Error;
use crate::events::Sender;
use crate::pool::Pool;
use crate::random::Random;
use crate::scheduler::{Inner, Scheduler};
use crate::shard::Shard;
#[cfg(feature = "sqlite")]
use crate::store::{self, Cells, Journal};
use crate::virtual_clock::VirtualClock;
use crate::{paused, runtimes, timer};
use mirab_config::{ConfigError, ConfigFile, Role};
use mirab_core::{DEFAULT_SHARD, GateOptions, Refusal, ResourceConfig, Time};
use mirab_flow::scheduler::{Limits, MachineOptions, StoredTasks, TaskMachine};
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::sync::watch;

/// What [`SchedulerBuilder::resource`] takes: a declaration, or the attempt at one.
pub trait IntoResource: sealed::Sealed {
    #[doc(hidden)]
    fn into_resource(self) -> Result<ResourceConfig, Error>;
}

impl IntoResource for ResourceConfig {
    fn into_resource(self) -> Result<ResourceConfig, Error> {
        Ok(self)
    }
}

impl IntoResource for Result<ResourceConfig, Refusal> {
    fn into_resource(self) -> Result<ResourceConfig, Error> {
        self.map_err(Error::from)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for mirab_core::ResourceConfig {}
    impl Sealed for Result<mirab_core::ResourceConfig, mirab_core::Refusal> {}
}

/// Describes a scheduler; [`SchedulerBuilder::start`] tells what is wrong with it.
#[must_use = "a scheduler is there once it is started"]
pub struct SchedulerBuilder {
    is_paused: bool,
    config: Option<Result<ConfigFile, ConfigError>>,
    resources: Vec<Result<ResourceConfig, Error>>,
    pools: Vec<Pool>,
    shards: Vec<String>,
    gate: GateOptions,
    retained: usize,
    event_capacity: usize,
    runtime: Option<runtime::Handle>,
    #[cfg(feature = "sqlite")]
    store: Option<crate::store::Store>,
}

/// Shards that can be told apart by the numbers of their tasks.
const MOST_SHARDS: usize = 256;

impl SchedulerBuilder {
    pub(crate) fn new(is_paused: bool) -> Self {
        Self {
            is_paused,
            config: None,
            resources: Vec::new(),
            pools: Vec::new(),
            shards: Vec::new(),
            gate: GateOptions::default(),
            retained: MachineOptions::default().retained,
            event_capacity: 4_096,
            runtime: None,
            #[cfg(feature = "sqlite")]
            store: None,
        }
    }

    /// Declares a resource or pattern: `ResourceConfig::semaphore("gpu", 4)`, `ResourceConfig::token_bucket("api", 50.0, 100)`.
    pub fn resource(mut self, resource: impl IntoResource) -> Self {
        self.resources.push(resource.into_resource());
        self
    }

    /// Reads a `mirab.toml`: its `[resources]`, `[gate]`, and the options of `[pools.NAME]` for the pools of those names, which count above what the
    /// program says.
    pub fn config(mut self, path: impl AsRef<Path>) -> Self {
        self.config = Some(ConfigFile::read_file(path.as_ref(), Role::Embedded));
        self
    }

    /// Adds a pool.
    pub fn pool(mut self, pool: Pool) -> Self {
        self.pools.push(pool);
        self
    }

    /// Partitions, each with its own gate, lock and thread, on which its bodies execute. Every pool and resource then names one, and serves
    /// that one only.
    pub fn shards<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.shards = names.into_iter().map(Into::into).collect();
        self
    }

    /// Each point of priority is worth so much waiting; without it priority alone counts.
    pub fn aging(mut self, per_point: Duration) -> Self {
        self.gate.aging = Some(nanos(per_point));
        self
    }

    /// What work of an unknown kind is expected to take, instead of 10 s.
    pub fn assumed_duration(mut self, duration: Duration) -> Self {
        self.gate.assumed_duration = nanos(duration);
        self
    }

    /// So many ended tasks are remembered in each shard, for their keys and for tasks that come after them, instead of 10,000.
    pub fn retained(mut self, tasks: usize) -> Self {
        self.retained = tasks;
        self
    }

    /// A reader of events that is slower by more than so many misses some, and is told how many; 4,096 unless it is said.
    pub fn event_capacity(mut self, events: usize) -> Self {
        self.event_capacity = events.max(1);
        self
    }

    /// Where bodies execute, instead of the runtime in which it is started.
    pub fn runtime(mut self, runtime: runtime::Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Keeps its tasks in a file, as in `store(sqlite("state.db"))`: what was accepted survives the death of the process at any moment, with its
    /// keys, its results, and the balances of token buckets. A task is accepted once [`crate::Handle::stored`] says so, and starts after that. An
    /// attempt that was executing when the process died is followed by another: bodies may run more than once.
    ///
    /// Each pool says with [`Pool::stored`] how its payloads and results are written.
    #[cfg(feature = "sqlite")]
    pub fn store(mut self, store: crate::store::Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// `InvalidResource` for a resource or pool that cannot be, `InvalidOption` when names are given twice, a shard is not listed, or there is no
    /// runtime; `InvalidConfig` for a file that cannot be used.
    pub fn start(mut self) -> Result<Scheduler, Error> {
        self.take_config()?;
        let runtime = self.find_runtime()?;
        let names = self.shard_names()?;
        let directory = self.directory(&names)?;
        let clock = match self.is_paused {
            true => Clock::Virtual(Arc::new(VirtualClock::default())),
            #[cfg(feature = "sqlite")]
            false if self.store.is_some() => Clock::since_epoch(),
            false => Clock::Real(Instant::now(), Time(0)),
        };
        #[cfg(feature = "sqlite")]
        let (writer, opened) = self.open(names.len(), &directory)?;
        #[cfg(feature = "sqlite")]
        let (stored, mut cells): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        #[cfg(not(feature = "sqlite"))]
        let stored = names.iter().map(|_| StoredTasks::default()).collect();
        let machines = self.machines(&names, &directory, stored, clock.now())?;
        let (events, (alive, seen)) = (Sender::new(self.event_capacity), watch::channel(()));
        let mut shards = Vec::new();
        for (number, (name, machine)) in names.iter().zip(machines).enumerate() {
            let has_thread = !self.shards.is_empty() && !self.is_paused;
            let runtime = if has_thread { runtimes::own(name, seen.clone())? } else { runtime.clone() };
            let random = if self.is_paused { Random::seeded(number as u64) } else { Random::by_chance() };
            let shard = Arc::new(Shard::new(name, machine, clock.clone(), runtime, events.clone(), random));
            #[cfg(feature = "sqlite")]
            if let (Some(writer), Some(cells)) = (&writer, cells[number].take()) {
                shard.go_on(cells, Journal::new(Arc::clone(writer), shard_number(number)));
            }
            runtimes::watch(&shard, seen.clone());
            if !self.is_paused {
                timer::start(&shard).map_err(|error| no_thread(&error))?;
            }
            shards.push(shard);
        }
        if let Clock::Virtual(clock) = &clock {
            paused::start(&runtime, Arc::clone(clock), &shards, seen);
        }
        let directory = RwLock::new(directory);
        Ok(Scheduler {
            inner: Arc::new(Inner {
                clock,
                shards,
                directory,
                events: Mutex::new(Some(events)),
                #[cfg(feature = "sqlite")]
                is_stored: writer.is_some(),
                #[cfg(feature = "sqlite")]
                writer: Mutex::new(writer),
                _alive: alive,
            }),
        })
    }

    fn take_config(&mut self) -> Result<(), Error> {
        let Some(file) = self.config.take().transpose()? else { return Ok(()) };
        self.gate.aging = file.aging.or(self.gate.aging);
        self.gate.assumed_duration = file.assumed_duration.unwrap_or(self.gate.assumed_duration);
        self.resources.extend(file.resources.into_iter().map(|declared| Ok(declared.config)));
        for declared in file.pools {
            let Some(pool) = self.pools.iter_mut().find(|pool| pool.spec.name == declared.name) else {
                let message = format!(
                    "pool {:?} has no executor: add a pool of that name in the program, or remove it here",
                    declared.name
                );
                return Err(ConfigError::at(declared.place, message).into());
            };
            pool.spec.slots = declared.slots.unwrap_or(pool.spec.slots);
            pool.spec.max_queued = declared.max_queued.or(pool.spec.max_queued);
            pool.priority = declared.priority.unwrap_or(pool.priority);
            pool.shard = declared.shard.or(pool.shard.take());
        }
        Ok(())
    }

    fn find_runtime(&mut self) -> Result<runtime::Handle, Error> {
        self.runtime.take().or_else(|| runtime::Handle::try_current().ok()).ok_or_else(|| {
            let text = "there is no tokio runtime here: start the scheduler inside one, or say which with runtime()";
            Error::InvalidOption(text.into())
        })
    }

    fn shard_names(&self) -> Result<Vec<String>, Error> {
        if self.shards.is_empty() {
            return Ok(vec![DEFAULT_SHARD.into()]);
        }
        let is_doubled = |(at, name): (usize, &String)| self.shards[..at].contains(name);
        match self.shards.iter().enumerate().find(|&(at, name)| is_doubled((at, name)) || name.trim().is_empty()) {
            Some((_, name)) => Err(Error::InvalidOption(format!(
                "shard {name:?} is listed twice or has no name, expected different names: correct shards"
            ))),
            None if self.shards.len() > MOST_SHARDS => Err(Error::InvalidOption(format!(
                "{} shards are listed, expected at most {MOST_SHARDS}: list fewer",
                self.shards.len()
            ))),
            None => Ok(self.shards.clone()),
        }
    }

    fn directory(&mut self, names: &[String]) -> Result<Directory, Error> {
        let mut directory = Directory::default();
        for resource in std::mem::take(&mut self.resources) {
            let mut resource = resource?;
            resource.name = mirab_core::check_declared(&resource.name)?;
            shard_index(names, &resource.shard, "resource", &resource.name)?;
            match directory.resources.get(&resource.name) {
                Some(first) if *first != resource => return Err(doubled("resource", &resource.name)),
                _ => _ = directory.resources.insert(resource.name.clone(), resource),
            }
        }
        for pool in std::mem::take(&mut self.pools) {
            let shard = shard_index(names, pool.shard_name(), "pool", &pool.spec.name)?;
            let listed = Listed::new(pool, shard);
            if directory.pools.contains_key(&listed.name) {
                return Err(doubled("pool", &listed.name));
            }
            directory.pools.insert(Arc::clone(&listed.name), Arc::new(listed));
        }
        Ok(directory)
    }

    /// What is stored for each shard: nothing without a store.
    #[cfg(feature = "sqlite")]
    fn open(&self, shards: usize, directory: &Directory) -> Result<OpenedStore, Error> {
        let Some(store) = &self.store else {
            return Ok((None, (0..shards).map(|_| (StoredTasks::default(), None)).collect()));
        };
        if self.is_paused {
            let text =
                "a scheduler on a virtual clock keeps no store, for its time does not go on: leave one of the two out";
            return Err(Error::InvalidOption(text.into()));
        }
        directory.pools.values().try_for_each(|pool| pool.check_stored())?;
        let (writer, opened) = store::open(store, shards, directory)?;
        Ok((Some(writer), opened.into_iter().map(|(stored, cells)| (stored, Some(cells))).collect()))
    }

    fn machines(
        &self,
        names: &[String],
        directory: &Directory,
        stored: Vec<StoredTasks>,
        now: Time,
    ) -> Result<Vec<TaskMachine>, Error> {
        #[cfg(feature = "sqlite")]
        let durable = self.store.is_some();
        #[cfg(not(feature = "sqlite"))]
        let durable = false;
        let machine = |((number, name), stored): ((usize, &String), StoredTasks)| {
            let gate = GateOptions { shard: name.clone(), ..self.gate.clone() };
            let options = MachineOptions { gate, shard_number: shard_number(number), retained: self.retained, durable };
            let pools = directory.pools.values().filter(|pool| pool.shard == number);
            let limits = Limits {
                resources: directory.resources.values().cloned().collect(),
                pools: pools.map(|pool| pool.spec.clone()).collect(),
            };
            Ok(TaskMachine::restore(options, &limits, stored, now)?)
        };
        names.iter().enumerate().zip(stored).map(machine).collect()
    }
}

#[cfg(feature = "sqlite")]
type OpenedStore = (Option<Arc<mirab_store::TaskWriter>>, Vec<(StoredTasks, Option<Cells>)>);

fn shard_number(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// The number of a shard that a pool or resource names.
pub(crate) fn shard_index<S: AsRef<str>>(names: &[S], shard: &str, what: &str, name: &str) -> Result<usize, Error> {
    names.iter().position(|known| known.as_ref() == shard).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let known = known.join(", ");
        Error::InvalidOption(format!("{what} {name:?} is in shard {shard:?}, expected one of {known}: name its shard"))
    })
}

pub(crate) fn doubled(what: &str, name: &str) -> Error {
    Error::InvalidOption(format!("{what} {name:?} is declared twice, expected different names: keep one of them"))
}

pub(crate) fn no_thread(error: &std::io::Error) -> Error {
    Error::InvalidOption(format!("a thread could not be started: {error}; raise the limit of threads of this process"))
}
