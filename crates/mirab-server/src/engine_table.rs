//! Which engine processes there are, and which are wanted. Pure bookkeeping, but for the file that outlives the server.
use crate::engine_process::{EngineFile, EngineRecord, worker_name};
use crate::process::ProcessId;
use mirab_core::ClaimId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest pause before an engine is started again that fails at start.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// A retired engine that does not end by itself is killed after so long, and so is one that never asks for work.
const PATIENCE: Duration = Duration::from_secs(5);
/// One that asked for work and lived for so long did start.
const SETTLED: Duration = Duration::from_secs(1);
const START_LIMIT: Duration = Duration::from_secs(60);

/// Where an engine stands, apart from being busy: that is what the leases say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has not asked for work yet.
    Starting,
    /// It has asked for work.
    Ready,
    /// It is to end when it asks next.
    Retiring(Instant),
    /// It has ended; the machines are being told.
    Ended,
}

/// An engine.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub record: EngineRecord,
    pub phase: Phase,
    since: Instant,
    /// Its end is no failed start: it took a run, lived for a while, or was told to end.
    is_proven: bool,
    /// Its project was looked at again since it started, or it is of an earlier server: it may have old code in memory.
    is_outdated: bool,
    killed_for: Option<String>,
}

#[derive(Debug)]
struct FailedStarts {
    count: u32,
    not_before: Instant,
    why: String,
}

/// What to do so that engines are where runs are offered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Worker, project, directory.
    pub launch: Vec<(String, String, PathBuf)>,
    /// Workers to wake, so that they are told to end.
    pub retire: Vec<String>,
    /// Processes with all that they started.
    pub kill: Vec<ProcessId>,
    /// When to look again at the latest.
    pub look_at: Option<Instant>,
}

/// All engines, the limit on them, and where projects are.
#[derive(Debug)]
pub(crate) struct EngineTable {
    pub max_engines: u64,
    pub stopping: bool,
    pub dirs: BTreeMap<String, PathBuf>,
    engines: BTreeMap<String, Engine>,
    failed: BTreeMap<String, FailedStarts>,
    next: u64,
    path: PathBuf,
}

impl EngineTable {
    /// The table as an earlier server left it in the file at `path`.
    pub fn restore(path: PathBuf, max_engines: u64) -> Self {
        let file = EngineFile::read(&path);
        // Files may have changed since they started: they bring to an end what they have, and get nothing new.
        let adopted = |record: EngineRecord| {
            (record.worker.clone(), Engine { is_proven: true, is_outdated: true, ..Engine::new(record) })
        };
        let engines = file.engines.into_iter().map(adopted).collect();
        Self {
            max_engines,
            stopping: false,
            dirs: BTreeMap::new(),
            engines,
            failed: BTreeMap::new(),
            next: file.next.max(1),
            path,
        }
    }

    /// All engines in name order.
    pub fn engines(&self) -> impl Iterator<Item = (&String, &Engine)> {
        self.engines.iter()
    }

    /// Why engines of a project fail at start, while they do.
    pub fn trouble(&self, project: &str) -> Option<&str> {
        self.failed.get(project).map(|failed| failed.why.as_str())
    }

    /// All such reasons, with their projects.
    pub fn troubles(&self) -> impl Iterator<Item = (&String, &str)> {
        self.failed.iter().map(|(project, failed)| (project, failed.why.as_str()))
    }

    /// The worker asks for work. False when it is to end instead.
    pub fn asked(&mut self, worker: &str) -> bool {
        let Some(engine) = self.engines.get_mut(worker) else { return !crate::engine_process::is_engine(worker) };
        if engine.phase == Phase::Starting {
            engine.phase = Phase::Ready;
        }
        engine.phase == Phase::Ready && !engine.is_outdated && !self.stopping
    }

    /// Files of the project may have changed: its engines end as soon as they are idle.
    pub fn outdate(&mut self, project: &str) {
        for engine in self.engines.values_mut().filter(|engine| engine.record.project == project) {
            engine.is_outdated = true;
        }
        self.failed.remove(project);
    }

    /// The worker took a run.
    pub fn took(&mut self, worker: &str) {
        if let Some(engine) = self.engines.get_mut(worker) {
            engine.is_proven = true;
            self.failed.remove(&engine.record.project);
        }
    }

    /// Decides what to do; engines that it wants to start are in the table when it returns, which is to be saved before they are.
    pub fn plan(&mut self, demand: &BTreeMap<String, u64>, busy: &BTreeMap<String, ClaimId>, now: Instant) -> Plan {
        let mut plan = Plan::default();
        if self.stopping {
            return plan;
        }
        self.overdue(busy, now, &mut plan);
        self.retire_outdated(busy, now, &mut plan);
        let staying = self.engines.values().filter(|engine| engine.is_staying()).count() as u64;
        for _ in self.max_engines..staying {
            let idle = self.first_idle(busy, |_| true);
            self.retire(idle, now, &mut plan);
        }
        for (project, offered) in demand {
            let there = self.free_of(project, busy);
            for _ in there..*offered {
                self.provide(project, demand, busy, now, &mut plan);
            }
        }
        plan
    }

    /// One more engine for a project: a new one if there is room, else room is made.
    fn provide(
        &mut self,
        project: &str,
        demand: &BTreeMap<String, u64>,
        busy: &BTreeMap<String, ClaimId>,
        now: Instant,
        plan: &mut Plan,
    ) {
        if let Some(failed) = self.failed.get(project)
            && now < failed.not_before
        {
            plan.look_no_later_than(failed.not_before);
            return;
        }
        let alive = self.engines.values().filter(|engine| engine.phase != Phase::Ended).count() as u64;
        if alive < self.max_engines {
            self.add(project, now, plan);
            return;
        }
        let leaving = self.engines.values().any(|engine| matches!(engine.phase, Phase::Retiring(_)));
        if !leaving {
            let spare =
                |other: &str| other != project && self.free_of(other, busy) > demand.get(other).copied().unwrap_or(0);
            let idle = self.first_idle(busy, spare);
            self.retire(idle, now, plan);
        }
    }

    fn add(&mut self, project: &str, now: Instant, plan: &mut Plan) {
        let Some(dir) = self.dirs.get(project).cloned() else { return };
        let worker = worker_name(self.next);
        self.next += 1;
        let record = EngineRecord { worker: worker.clone(), project: project.to_owned(), pid: 0, start_time: 0 };
        self.engines.insert(worker.clone(), Engine { since: now, ..Engine::new(record) });
        plan.launch.push((worker, project.to_owned(), dir));
    }

    fn retire(&mut self, worker: Option<String>, now: Instant, plan: &mut Plan) {
        let Some(worker) = worker else { return };
        if let Some(engine) = self.engines.get_mut(&worker) {
            engine.phase = Phase::Retiring(now + PATIENCE);
            plan.look_no_later_than(now + PATIENCE);
            plan.retire.push(worker);
        }
    }

    fn retire_outdated(&mut self, busy: &BTreeMap<String, ClaimId>, now: Instant, plan: &mut Plan) {
        let outdated =
            self.engines.iter().filter(|(worker, engine)| engine.is_outdated && engine.is_free(worker, busy));
        let outdated: Vec<String> = outdated.map(|(worker, _)| worker.clone()).collect();
        for worker in outdated {
            self.retire(Some(worker), now, plan);
        }
    }

    fn overdue(&self, busy: &BTreeMap<String, ClaimId>, now: Instant, plan: &mut Plan) {
        for (worker, engine) in &self.engines {
            let limit = match engine.phase {
                Phase::Retiring(limit) => limit,
                Phase::Starting => engine.since + START_LIMIT,
                Phase::Ready | Phase::Ended => continue,
            };
            if busy.contains_key(worker) || engine.record.pid == 0 {
                continue;
            }
            if limit <= now {
                plan.kill.push(engine.record.process());
            } else {
                plan.look_no_later_than(limit);
            }
        }
    }

    /// Engines of a project that can take a run now or soon.
    fn free_of(&self, project: &str, busy: &BTreeMap<String, ClaimId>) -> u64 {
        let free =
            |(worker, engine): &(&String, &Engine)| engine.record.project == project && engine.is_free(worker, busy);
        self.engines.iter().filter(free).count() as u64
    }

    /// The oldest free engine of the projects that can spare one.
    fn first_idle(&self, busy: &BTreeMap<String, ClaimId>, can_spare: impl Fn(&str) -> bool) -> Option<String> {
        let free = self
            .engines
            .iter()
            .filter(|(worker, engine)| engine.is_free(worker, busy) && can_spare(&engine.record.project));
        free.min_by_key(|(_, engine)| engine.since).map(|(worker, _)| worker.clone())
    }

    /// The process runs.
    pub fn started(&mut self, worker: &str, pid: u32, start_time: u64) {
        if let Some(engine) = self.engines.get_mut(worker) {
            engine.record.pid = pid;
            engine.record.start_time = start_time;
        }
        self.save();
    }

    /// There is no process.
    pub fn failed_to_start(&mut self, worker: &str, why: String) {
        self.note_failed_start(worker, why);
        self.forget(worker);
    }

    /// The process has ended: which one, and what it was killed for.
    pub fn ended(&mut self, worker: &str) -> Option<(ProcessId, Option<String>)> {
        let engine = self.engines.get_mut(worker)?;
        let was_told = matches!(engine.phase, Phase::Retiring(_)) || engine.is_outdated || engine.killed_for.is_some();
        let has_settled = engine.phase == Phase::Ready && engine.since.elapsed() > SETTLED;
        engine.is_proven |= was_told || has_settled;
        engine.phase = Phase::Ended;
        Some((engine.record.process(), engine.killed_for.clone()))
    }

    /// It is about to be killed: its process, when there is one.
    pub fn killed(&mut self, worker: &str, reason: &str) -> Option<ProcessId> {
        let engine =
            self.engines.get_mut(worker).filter(|engine| engine.record.pid != 0 && engine.phase != Phase::Ended)?;
        engine.killed_for = Some(reason.to_owned());
        Some(engine.record.process())
    }

    /// An engine that ended before it did any work: the next start of its project waits a little longer each time.
    pub fn note_failed_start(&mut self, worker: &str, why: String) {
        let Some(engine) = self.engines.get(worker).filter(|engine| !engine.is_proven) else { return };
        let project = engine.record.project.clone();
        tracing::warn!("an engine of project {project} ended before it took a run: {why}");
        let count = self.failed.get(&project).map_or(0, |failed| failed.count) + 1;
        let pause = FIRST_PAUSE.saturating_mul(1 << count.min(10)).min(LONGEST_PAUSE);
        self.failed.insert(project, FailedStarts { count, not_before: Instant::now() + pause, why });
    }

    /// The machines know of its end.
    pub fn forget(&mut self, worker: &str) {
        if self.engines.remove(worker).is_some() {
            self.save();
        }
    }

    /// Writes the file that outlives the server.
    pub fn save(&self) {
        let running = self.engines.values().filter(|engine| engine.record.pid != 0);
        let file = EngineFile { next: self.next, engines: running.map(|engine| engine.record.clone()).collect() };
        if let Err(error) = file.write(&self.path) {
            tracing::error!("{} cannot be written ({error}): engines may be lost over a restart", self.path.display());
        }
    }
}

impl Engine {
    fn new(record: EngineRecord) -> Self {
        Self {
            record,
            phase: Phase::Starting,
            since: Instant::now(),
            is_proven: false,
            is_outdated: false,
            killed_for: None,
        }
    }

    fn is_staying(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Ready)
    }

    fn is_free(&self, worker: &str, busy: &BTreeMap<String, ClaimId>) -> bool {
        self.is_staying() && !busy.contains_key(worker)
    }
}

impl Plan {
    fn look_no_later_than(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |earlier| earlier.min(at)));
    }
}
