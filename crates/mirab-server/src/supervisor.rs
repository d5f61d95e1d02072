//! Owns the engine processes: starts them where runs are offered, retires them where others need the room, sees them end.
//!
//! Who is busy is not noted here: the leases say it. Every decision is taken on the writer's thread, between two steps, so no
//! engine is given a run at the very moment it is retired.
use crate::engine_process::{EngineProcess, Launcher, is_engine};
use crate::engine_table::{EngineTable, Phase, Plan};
use crate::host::Host;
use crate::log_file::last_line;
use crate::process::{Exit, describe_exit, peek_exit, signal_group_of, wait_for_exit};
use crate::wakers::{Topic, Wakers};
use mirab_core::ClaimId;
use mirab_flow::{Orchestrator, StoreUnavailable};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How soon something is tried again that the store refused.
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// With nothing to do, it looks again all the same.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// What the supervisor is told.
pub(crate) enum Order {
    /// Offers, settings or engines changed: look again.
    LookAgain,
    /// End this worker because of this run; if it is a local engine by killing it.
    Kill { worker: String, run: ClaimId, reason: String },
    /// The process has ended.
    Ended { worker: String, child: Option<Child> },
}

/// Where orders are sent; exists before the supervisor does.
pub(crate) type Orders = UnboundedSender<Order>;

/// A handle to the supervisor; clones share it.
#[derive(Clone)]
pub(crate) struct Supervisor {
    host: Host,
    wakers: Wakers,
    launcher: Arc<Launcher>,
    orders: Orders,
    table: Arc<Mutex<EngineTable>>,
}

/// The channel on which a supervisor will be told.
pub(crate) fn orders() -> (Orders, UnboundedReceiver<Order>) {
    unbounded_channel()
}

impl Supervisor {
    /// Adopts the engines of an earlier server and starts to follow orders.
    pub async fn start(
        host: Host,
        wakers: Wakers,
        launcher: Launcher,
        table: EngineTable,
        (orders, inbox): (Orders, UnboundedReceiver<Order>),
    ) -> Self {
        let table = Arc::new(Mutex::new(table));
        let supervisor = Self { host, wakers, launcher: Arc::new(launcher), orders, table };
        supervisor.adopt().await;
        tokio::spawn(supervisor.clone().follow(inbox));
        supervisor
    }

    /// Says that something changed which may call for engines, or free some.
    pub fn look_again(&self) {
        let _ = self.orders.send(Order::LookAgain);
    }

    /// The table, to read it or to note what a worker did. Never held across an await.
    pub fn table(&self) -> MutexGuard<'_, EngineTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on no engine is given a run or started.
    pub fn hire_no_more(&self) {
        self.table().stopping = true;
    }

    /// Ends what is idle and lets what is busy go on: those engines find the next server of this home. Gives how many are busy.
    pub async fn end_idle(&self) -> u64 {
        let Ok(busy) = self.host.query(|orchestrator, _| busy(orchestrator)).await else { return 0 };
        for (worker, engine) in self.table().engines() {
            if !busy.contains_key(worker) && engine.phase != Phase::Ended {
                signal_group_of(&engine.record.process(), Signal::TERM);
            }
        }
        busy.len() as u64
    }

    async fn adopt(&self) {
        let records: Vec<_> = self.table().engines().map(|(_, engine)| engine.record.clone()).collect();
        let mut lost = Vec::new();
        for record in records {
            match EngineProcess::adopt(&record) {
                Some(process) => self.watch(record.worker, process),
                None => lost.push(record.worker),
            }
        }
        let known: Vec<String> = self.table().engines().map(|(worker, _)| worker.clone()).collect();
        // An engine may hold a lease though it is missing in the table: then it was never recorded, or the table was lost.
        if let Ok(leases) = self.host.query(|orchestrator, _| busy(orchestrator)).await {
            lost.extend(leases.into_keys().filter(|worker| is_engine(worker) && !known.contains(worker)));
        }
        for worker in lost {
            self.bury(worker, None, "engine process ended while the server was away".into());
        }
    }

    async fn follow(self, mut inbox: UnboundedReceiver<Order>) {
        let mut look_at = Some(Instant::now());
        loop {
            let pause = look_at.map_or(LOOK_AGAIN, |at| at.saturating_duration_since(Instant::now()));
            match tokio::time::timeout(pause, inbox.recv()).await {
                Ok(None) => return,
                Ok(Some(order)) => self.obey(order).await,
                Err(_) => {}
            }
            while let Ok(order) = inbox.try_recv() {
                self.obey(order).await;
            }
            look_at = self.look().await;
        }
    }

    async fn obey(&self, order: Order) {
        match order {
            Order::LookAgain => {}
            Order::Kill { worker, run, reason } => self.kill(worker, run, reason),
            Order::Ended { worker, child } => self.ended(worker, child).await,
        }
    }

    /// Compares what is there with what is wanted. Gives the instant at which to look again at the latest.
    async fn look(&self) -> Option<Instant> {
        let table = Arc::clone(&self.table);
        let plan = self.host.query(move |orchestrator, _| {
            let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
            table.plan(&orchestrator.demand().into_iter().collect(), &busy(orchestrator), Instant::now())
        });
        let Ok(Plan { launch, retire, kill, look_at }) = plan.await else {
            return Some(Instant::now() + STORE_PAUSE);
        };
        for worker in retire {
            self.wakers.wake_all(&Topic::Retire(worker));
        }
        for process in kill {
            signal_group_of(&process, Signal::KILL);
        }
        if !launch.is_empty() {
            self.table().save();
        }
        for (worker, project, dir) in launch {
            self.launch(worker, project, dir);
        }
        look_at
    }

    fn launch(&self, worker: String, project: String, dir: PathBuf) {
        match self.launcher.launch(&worker, &project, &dir) {
            Ok(process) => {
                self.table().started(&worker, process.pid, process.start_time);
                self.watch(worker, process);
            }
            Err(error) => {
                let why = format!("{} cannot be started: {error}", self.launcher.python.display());
                self.table().failed_to_start(&worker, why);
                self.look_again();
            }
        }
    }

    /// Reports the end of a process within moments, however it came about.
    fn watch(&self, worker: String, process: EngineProcess) {
        let orders = self.orders.clone();
        let name = worker.clone();
        let watching = std::thread::Builder::new().name(format!("watch {name}")).spawn(move || {
            while let Ok(false) = wait_for_exit(&process.pidfd, LOOK_AGAIN) {}
            let _ = orders.send(Order::Ended { worker, child: process.child });
        });
        if let Err(error) = watching {
            tracing::error!("{name} cannot be watched ({error}): its end shows when its lease lapses");
        }
    }

    async fn ended(&self, worker: String, child: Option<Child>) {
        // First noted, then signalled, and reaped last: until then its id, and its group's, can be no stranger's.
        let ended = self.table().ended(&worker);
        let status = child.as_ref().and_then(|child| peek_exit(child.id()));
        if let Some((process, _)) = &ended
            && status != Some(Exit::Code(0))
        {
            // What its body started must not go on without it, holding nothing.
            signal_group_of(process, Signal::KILL);
        }
        if let Some(mut child) = child {
            let _ = child.wait();
        }
        let Some((_, killed_for)) = ended else { return };
        let reason = killed_for.unwrap_or_else(|| describe_exit(status));
        let words = self.last_words(&worker).await;
        let why = words.map_or_else(|| reason.clone(), |words| format!("{reason}: {words}"));
        self.table().note_failed_start(&worker, why);
        self.bury(worker, None, reason);
    }

    /// The last thing an engine said, for a reason that a person can act on.
    async fn last_words(&self, worker: &str) -> Option<String> {
        let log = self.launcher.log_path(worker);
        tokio::task::spawn_blocking(move || last_line(&log)).await.ok().flatten()
    }

    /// Tells the machines that a worker is gone, as often as it takes, and only then forgets it. With a run, nothing happens to
    /// another one that the worker has by then.
    fn bury(&self, worker: String, run: Option<ClaimId>, reason: String) {
        let supervisor = self.clone();
        tokio::spawn(async move {
            loop {
                let (name, reason) = (worker.clone(), reason.clone());
                let told = supervisor.host.call(move |orchestrator, now| {
                    if run.is_none() || run.as_ref() == busy(orchestrator).get(&name) {
                        orchestrator.worker_lost(now, &name, &reason);
                    }
                });
                match told.await {
                    Ok(()) => break,
                    Err(StoreUnavailable { .. }) => tokio::time::sleep(STORE_PAUSE).await,
                }
            }
            supervisor.table().forget(&worker);
            supervisor.look_again();
        });
    }

    /// By the time it comes to that, the run may have ended and the worker have its next one, which is not to be hit: the lease
    /// is looked at on the writer's thread, where no other one can be taken meanwhile.
    fn kill(&self, worker: String, run: ClaimId, reason: String) {
        let supervisor = self.clone();
        tokio::spawn(async move {
            let (table, name, why) = (Arc::clone(&supervisor.table), worker.clone(), reason.clone());
            let killed = supervisor.host.query(move |orchestrator, _| {
                let still_has_it = busy(orchestrator).get(&name) == Some(&run);
                still_has_it.then(|| kill_local(&table, &name, &why))
            });
            // When the store is away nothing is known: the order is given again by the machines that are rebuilt from it.
            if let Ok(Some(false)) = killed.await {
                // Not ours to kill: for a remote worker the lapse of its lease is enough.
                supervisor.bury(worker, Some(run), reason);
            }
        });
    }
}

/// False when there is no such process here.
fn kill_local(table: &Mutex<EngineTable>, worker: &str, reason: &str) -> bool {
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    let process = table.killed(worker, reason);
    if let Some(process) = &process {
        // Under the lock: an engine that is not marked as ended was not reaped either, so its id is no other process's.
        signal_group_of(process, Signal::KILL);
    }
    process.is_some()
}

/// The run of each worker that has one.
fn busy(orchestrator: &Orchestrator) -> BTreeMap<String, ClaimId> {
    orchestrator.leases_of_workers().into_iter().collect()
}

/// What readers are shown of the engines.
pub(crate) fn shown(table: &EngineTable, busy: &BTreeMap<String, ClaimId>) -> Vec<mirab_wire::Engine> {
    let engine = |(worker, engine): (&String, &crate::engine_table::Engine)| {
        let run = busy.get(worker);
        let state = match engine.phase {
            Phase::Retiring(_) => "retiring",
            _ if run.is_some() => "busy",
            Phase::Starting => "starting",
            Phase::Ready | Phase::Ended => "idle",
        };
        mirab_wire::Engine {
            worker: worker.clone(),
            project: engine.record.project.clone(),
            pid: engine.record.pid,
            run_id: run.map(|id| id.0),
            state: state.into(),
        }
    };
    table.engines().map(engine).collect()
}
