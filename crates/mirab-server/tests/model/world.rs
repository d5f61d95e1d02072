//! A writer with its machines and a store in memory, and workers that speak to it as the handlers of the API do.
use crate::clock::Clock;
use crate::effects;
use crate::host::Host;
use crate::polls::{self, WorkPoll};
use crate::supervisor::Orders;
use crate::sync::thread::JoinHandle;
use crate::wakers::{Listener, Topic, Wakers};
use mirab_core::{ClaimId, ResourceConfig};
use mirab_flow::{Driver, FlowSpec, Leased, NewRun, NewTask, Options, Outcome, POOL, ProjectRecord, State, TakeLease};
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
        let resources = [("db".into(), ResourceConfig::semaphore("db", 1))].into();
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
    wakers.listen(Topic::Offer { pool: POOL.into(), project: PROJECT.into() })
}

fn ask(worker: &str) -> TakeLease {
    TakeLease { pool: POOL.into(), project: PROJECT.into(), worker: worker.into(), request_id: "1".into() }
}

pub async fn look(host: &Host, worker: &str) -> Option<Leased> {
    let ask = ask(worker);
    host.call(move |o, now| o.take_lease(now, ask)).await.unwrap().unwrap()
}

/// The loop of a worker's long poll, as the API has it.
pub async fn take(host: &Host, wakers: &Wakers, worker: &str) -> Leased {
    let poll = WorkPoll::of(wakers, &ask(worker));
    loop {
        let (leased, news) = poll.look(look(host, worker)).await;
        if let Some(leased) = leased {
            return leased;
        }
        news.await;
    }
}

/// The same of a worker that may be told to end.
pub async fn take_or_end(host: &Host, wakers: &Wakers, worker: &str, is_to_end: &Arc<AtomicBool>) -> Option<Leased> {
    let poll = WorkPoll::of(wakers, &ask(worker));
    loop {
        let (ask, asked) = (ask(worker), Arc::clone(is_to_end));
        let take = host.call(
            move |o, now| {
                if asked.load(Ordering::SeqCst) { Err(()) } else { Ok(o.take_lease(now, ask).unwrap()) }
            },
        );
        let (taken, news) = poll.look(take).await;
        match taken.unwrap() {
            Err(()) => {
                poll.pass_on();
                return None;
            }
            Ok(Some(leased)) => return Some(leased),
            Ok(None) => news.await,
        }
    }
}

pub async fn tell_to_end(host: &Host, wakers: &Wakers, worker: &str, is_to_end: Arc<AtomicBool>) {
    host.call(move |_, _| is_to_end.store(true, Ordering::SeqCst)).await.unwrap();
    wakers.wake_all(&Topic::Retire(worker.into()));
}

pub fn task(key: usize) -> NewTask {
    NewTask { key: key.to_string(), name: "load".into(), needs: vec![("db".into(), 1)], ..NewTask::default() }
}

/// The loop of a task's long poll, as the API has it.
pub async fn claim(host: &Host, wakers: &Wakers, lease: &Leased, key: usize) -> ClaimId {
    let of = (lease.id, lease.fence);
    loop {
        let wakers = wakers.clone();
        let claim = host.call(move |o, now| polls::claim(o, now, &wakers, of, task(key)));
        let (status, changed) = claim.await.unwrap().unwrap();
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
