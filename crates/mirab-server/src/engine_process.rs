//! One engine process: how it is started, and what is remembered of it over a restart of the server.
use crate::home::write_atomically;
use crate::process::{ProcessId, open_pidfd, start_time, wait_for_exit};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PREFIX: &str = "engine-";
/// Logs of ended engines beyond so many are removed, oldest first.
const KEPT_LOGS: usize = 100;

/// An engine as it stands in the table file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineRecord {
    pub worker: String,
    pub project: String,
    pub pid: u32,
    /// Tells this process from a later one with the same id.
    pub start_time: u64,
}

impl EngineRecord {
    pub fn process(&self) -> ProcessId {
        ProcessId { pid: self.pid, start_time: self.start_time }
    }
}

/// The table file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineFile {
    /// Number of the next engine. Written before that engine starts: numbers are never given twice, so a process that
    /// is missing in the table because the server was killed at the wrong moment can be told and sent away.
    pub next: u64,
    pub engines: Vec<EngineRecord>,
}

impl EngineFile {
    /// An unreadable table is as good as none: leases of its engines lapse.
    pub fn read(path: &Path) -> Self {
        let Ok(text) = std::fs::read(path) else { return Self::default() };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!("{} cannot be read ({error}): engines of an earlier server are not adopted", path.display());
            Self::default()
        })
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, &serde_json::to_vec(self)?)
    }
}

/// Name of the engine with this number.
pub(crate) fn worker_name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// True for names that only engines of a server have.
pub(crate) fn is_engine(worker: &str) -> bool {
    worker.strip_prefix(PREFIX).is_some_and(|number| number.parse::<u64>().is_ok())
}

/// A started or adopted process.
pub(crate) struct EngineProcess {
    pub pid: u32,
    pub start_time: u64,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
    /// `None` for one that an earlier server started.
    pub child: Option<Child>,
}

impl EngineProcess {
    /// The process of an earlier server, when it still lives.
    pub fn adopt(record: &EngineRecord) -> Option<Self> {
        // First the descriptor, then the check: what it stands for cannot change any more.
        let pidfd = open_pidfd(record.pid).ok()?;
        let is_same = start_time(record.pid) == Some(record.start_time);
        let has_ended = wait_for_exit(&pidfd, Duration::ZERO).unwrap_or(true);
        (is_same && !has_ended).then_some(Self { pid: record.pid, start_time: record.start_time, pidfd, child: None })
    }
}

/// How engines are started.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub python: PathBuf,
    pub home: PathBuf,
    pub logs: PathBuf,
}

impl Launcher {
    pub fn log_path(&self, worker: &str) -> PathBuf {
        self.logs.join(format!("{worker}.log"))
    }

    /// Starts an engine for a project's directory, in a process group of its own: it outlives this server.
    pub fn launch(&self, worker: &str, project: &str, dir: &Path) -> io::Result<EngineProcess> {
        self.remove_old_logs();
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(self.log_path(worker))?;
        let mut command = Command::new(&self.python);
        // -P: files of the directory must not stand in for modules that the engine itself needs.
        command.args(["-P", "-m", "mirab._engine", "--home"]).arg(&self.home);
        command.args(["--worker", worker, "--project", project, "--path"]).arg(dir).args(["--pool", mirab_flow::POOL]);
        command.current_dir(dir).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let mut child = command.spawn()?;
        let watched = open_pidfd(child.id()).and_then(|pidfd| {
            let started = start_time(child.id()).ok_or_else(|| io::Error::other("its start time cannot be read"))?;
            Ok((pidfd, started))
        });
        match watched {
            Ok((pidfd, start_time)) => Ok(EngineProcess { pid: child.id(), start_time, pidfd, child: Some(child) }),
            Err(error) => {
                // What cannot be watched must not run.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn remove_old_logs(&self) {
        let Ok(entries) = std::fs::read_dir(&self.logs) else { return };
        let number = |path: &Path| path.file_stem()?.to_str()?.strip_prefix(PREFIX)?.parse::<u64>().ok();
        let mut logs: Vec<(u64, PathBuf)> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                Some((number(&path)?, path))
            })
            .collect();
        logs.sort_unstable();
        for (_, path) in logs.iter().rev().skip(KEPT_LOGS) {
            let _ = std::fs::remove_file(path);
        }
    }
}
