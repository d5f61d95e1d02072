//! A writer with its machines and a store in memory, and workers that speak to it as the handlers of the API do.
use crate::clock::Clock;
use crate::effects;
use crate::host::Host;
use crate::supervisor::Orders;
use crate::sync::thread::JoinHandle;
use crate::wakers::{Listener, Topic, Wakers};
use mirab_core::{ClaimId, ResourceConfig, Time};
use mirab_flow::{
    Driver, FlowSpec, Leased, NewRun, NewTask, Options, Orchestrator, Outcome, POOL, ProjectRecord, State, TakeLease,
};
use mirab_store::MemoryStore;
use shuttle::future::block_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub const PROJECT: &str = "shop";

pub struct World {
    pub host: Host,
    pub wakers: Wakers,
    writer: JoinHandle<()>,
}

impl World {
    /// One unit of `db`, and as many engines as anyone asks for.
    pub fn start() -> Self {
        let resources = vec![ResourceConfig::semaphore("db", 1)];
        let options = Options { resources, slots: 8, max_slots: 8, ..Options::default() };
        let driver = Driver::open(MemoryStore::default(), options, Clock.now()).unwrap();
        let wakers = Wakers::default();
        let (host, writer) = Host::start(driver, Clock, effects::carry_out(wakers.clone(), Orders)).unwrap();
        Self { host, wakers, writer }
    }

    /// Nobody speaks to the writer any more: it ends, and nobody is left who listens.
    pub fn end(self) {
        assert_eq!((self.host.unavailable(), self.wakers.topics()), (None, 0));
        let used = block_on(self.host.query(|o, _| o.gate().resource("db").map(|db| (db.used, db.waiters))));
        assert_eq!(used, Ok(Some((0, 0))));
        self.host.stop();
        self.writer.join().unwrap();
    }
}

pub async fn serve(host: &Host) {
    let told = host.call(|o, now| {
        o.add_project(now, ProjectRecord { name: PROJECT.into(), path: "/srv/shop".into() });
        let flow = FlowSpec { project: PROJECT.into(), name: "nightly".into(), ..FlowSpec::default() };
        assert_eq!(o.set_flows(now, PROJECT, vec![flow]), []);
    });
    told.await.unwrap();
}

pub async fn submit(host: &Host) {
    let new = NewRun { flow: "nightly".into(), ..NewRun::default() };
    host.call(move |o, now| o.create_run(now, new)).await.unwrap().unwrap();
}

pub fn offers(wakers: &Wakers) -> Listener {
    wakers.listen(offer())
}

fn offer() -> Topic {
    Topic::Offer { pool: POOL.into(), project: PROJECT.into() }
}

pub async fn look(host: &Host, worker: &str) -> Option<Leased> {
    let ask = TakeLease { pool: POOL.into(), project: PROJECT.into(), worker: worker.into(), request_id: "1".into() };
    host.call(move |o, now| o.take_lease(now, ask)).await.unwrap().unwrap()
}

/// The long poll of a worker, as the API has it: armed, then a look, then the wait.
pub async fn take(host: &Host, wakers: &Wakers, worker: &str) -> Leased {
    let listener = offers(wakers);
    loop {
        let offered = listener.armed();
        if let Some(leased) = look(host, worker).await {
            return leased;
        }
        offered.await;
    }
}

/// The same of a worker that may be told to end: it passes on the wake-up for an offer that it may have had.
pub async fn take_or_end(host: &Host, wakers: &Wakers, worker: &str, is_to_end: &Arc<AtomicBool>) -> Option<Leased> {
    let (offers, retired) = (offers(wakers), wakers.listen(Topic::Retire(worker.into())));
    loop {
        let (offered, told) = (offers.armed(), retired.armed());
        let asked = Arc::clone(is_to_end);
        if host.call(move |_, _| asked.load(Ordering::SeqCst)).await.unwrap() {
            wakers.wake_one(&offer());
            return None;
        }
        if let Some(leased) = look(host, worker).await {
            return Some(leased);
        }
        tokio::select! { biased; () = offered => {}, () = told => {} }
    }
}

pub async fn tell_to_end(host: &Host, wakers: &Wakers, worker: &str, is_to_end: Arc<AtomicBool>) {
    host.call(move |_, _| is_to_end.store(true, Ordering::SeqCst)).await.unwrap();
    wakers.wake_all(&Topic::Retire(worker.into()));
}

/// The long poll of a task, as the API has it: what may come is registered for on the writer's thread, with the look.
pub async fn claim(host: &Host, wakers: &Wakers, lease: &Leased, key: usize) -> ClaimId {
    let (id, fence) = (lease.id, lease.fence);
    let new =
        NewTask { key: key.to_string(), name: "load".into(), needs: vec![("db".into(), 1)], ..NewTask::default() };
    loop {
        let (wakers, new) = (wakers.clone(), new.clone());
        let look = move |o: &mut Orchestrator, now: Time| {
            let status = o.claim_task(now, id, fence, new).unwrap();
            let listener = wakers.listen(Topic::Task(status.id.0));
            let changed = listener.armed();
            (status, listener, changed)
        };
        let (status, _listener, changed) = host.call(look).await.unwrap();
        if status.state == State::Running {
            return status.id;
        }
        changed.await;
    }
}

pub async fn release(host: &Host, lease: &Leased, task: ClaimId) {
    let (id, fence) = (lease.id, lease.fence);
    host.call(move |o, now| o.end_task(now, id, fence, task, Outcome::Completed, None)).await.unwrap().unwrap();
}
