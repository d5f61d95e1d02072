//! The single writer: one thread owns the machines and the store.
//!
//! Calls that are waiting together are applied together and committed once (group commit). Only then are they answered and the
//! effects carried out, so nothing is promised that a crash can take back.
use crate::clock::Clock;
use crate::sync::Mutex;
use crate::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use crate::sync::thread::{self, JoinHandle};
use mirab_core::Time;
use mirab_flow::{Driver, Effect, Journal, Orchestrator, STORE_RETRY, StoreUnavailable};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// At most so many calls share a commit: enough to use an fsync well, few enough to answer the first of them soon.
const GROUP: usize = 512;

/// A timer that is served so late, in nanoseconds, says that the server was away.
const STALL: u64 = 2 * mirab_core::SECOND;

type Answer = Box<dyn FnOnce(Result<(), StoreUnavailable>) + Send>;
type Command = Box<dyn FnOnce(&mut Orchestrator, Time) -> Answer + Send>;
type Query = Box<dyn FnOnce(Result<&Orchestrator, StoreUnavailable>, Time) + Send>;

enum Job {
    Command(Command),
    Query(Query),
    Stop,
}

/// A handle to the writer; clones share it.
#[derive(Clone)]
pub(crate) struct Host {
    jobs: Sender<Job>,
    unavailable: Arc<Mutex<Option<String>>>,
}

impl Host {
    /// Starts the writer's thread. `carry_out` gets the effects of each commit, on that thread: it must not block.
    pub fn start<J: Journal + Send + 'static>(
        driver: Driver<J>,
        clock: Clock,
        carry_out: impl FnMut(Vec<Effect>) + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (jobs, queue) = mpsc::channel();
        let host = Self { jobs, unavailable: Arc::default() };
        let unavailable = Arc::clone(&host.unavailable);
        let mut writer = Writer { driver, clock, queue, carry_out, unavailable, quiet_until: Time(0) };
        let thread = thread::Builder::new().name("writer".into()).spawn(move || {
            let _dies = DieWithTheWriter;
            while writer.turn() {}
        })?;
        Ok((host, thread))
    }

    /// Applies a command; answers once all that it changed is stored.
    pub async fn call<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Orchestrator, Time) -> R + Send + 'static,
    ) -> Result<R, StoreUnavailable> {
        let (reply, answer) = oneshot::channel();
        let command: Command = Box::new(move |orchestrator, now| {
            let result = command(orchestrator, now);
            Box::new(move |committed| drop(reply.send(committed.map(|()| result))))
        });
        self.put(Job::Command(command), answer).await
    }

    /// Reads from the machines; never sees anything that is not stored.
    pub async fn query<R: Send + 'static>(
        &self,
        query: impl FnOnce(&Orchestrator, Time) -> R + Send + 'static,
    ) -> Result<R, StoreUnavailable> {
        let (reply, answer) = oneshot::channel();
        let query: Query = Box::new(move |orchestrator, now| {
            let _ = reply.send(orchestrator.map(|orchestrator| query(orchestrator, now)));
        });
        self.put(Job::Query(query), answer).await
    }

    /// What the store said when it failed last; `None` once a commit succeeded since.
    pub fn unavailable(&self) -> Option<String> {
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the writer once it has done what was asked before.
    pub fn stop(&self) {
        let _ = self.jobs.send(Job::Stop);
    }

    async fn put<R>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<R, StoreUnavailable>>,
    ) -> Result<R, StoreUnavailable> {
        let stopped = || StoreUnavailable { why: "the server is stopping".into() };
        self.jobs.send(job).map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

/// A server whose machines are broken must not go on answering. What is stored is whole: a restart goes on from there.
struct DieWithTheWriter;

impl Drop for DieWithTheWriter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(
                "the writer failed on a bug: the server ends, and goes on from its store when it is started again"
            );
            std::process::abort();
        }
    }
}

struct Writer<J: Journal, F> {
    driver: Driver<J>,
    clock: Clock,
    queue: Receiver<Job>,
    carry_out: F,
    unavailable: Arc<Mutex<Option<String>>>,
    /// After a failed commit timers rest until then: what they change could not be stored either.
    quiet_until: Time,
}

impl<J: Journal, F: FnMut(Vec<Effect>)> Writer<J, F> {
    /// Waits for calls or a timer, and does one group. False when it is to end.
    fn turn(&mut self) -> bool {
        let mut group = match self.wait() {
            Ok(job) => vec![job],
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        group.extend(self.queue.try_iter().take(GROUP - 1));
        self.step(group)
    }

    fn wait(&self) -> Result<Job, RecvTimeoutError> {
        let Some((at, _)) = self.driver.poll_timeout() else {
            return self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected);
        };
        let nanos = at.max(self.quiet_until).since(self.clock.now());
        self.queue.recv_timeout(Duration::from_nanos(nanos))
    }

    fn step(&mut self, group: Vec<Job>) -> bool {
        let now = self.clock.now();
        let (mut answers, mut queries, mut goes_on) = (Vec::new(), Vec::new(), true);
        if self.driver.poll_timeout().is_some_and(|(due, _)| now.since(due) > STALL) {
            // This thread was held up (by a slow disk, or the process was stopped): heartbeats may be waiting to be read.
            self.driver.apply(now, |orchestrator| orchestrator.renew_leases(now));
        }
        if now >= self.quiet_until {
            // Before anything else: what is due by now happened before the calls, and readers are told of this moment.
            self.driver.apply(now, |orchestrator| orchestrator.handle_timeout(now));
        }
        for job in group {
            match job {
                Job::Command(command) => {
                    answers.push(self.driver.apply(now, |orchestrator| command(orchestrator, now)))
                }
                Job::Query(query) => queries.push(query),
                Job::Stop => goes_on = false,
            }
        }
        let committed = self.driver.commit(now);
        self.note(&committed, now);
        let outcome = committed.as_ref().map(|_| ()).map_err(Clone::clone);
        answers.into_iter().for_each(|answer| answer(outcome.clone()));
        if let Ok(effects) = committed {
            (self.carry_out)(effects);
        }
        for query in queries {
            query(outcome.clone().map(|()| self.driver.orchestrator()), now);
        }
        goes_on
    }

    fn note(&mut self, committed: &Result<Vec<Effect>, StoreUnavailable>, now: Time) {
        let unavailable = self.driver.unavailable().map(str::to_owned);
        if committed.is_err() {
            self.quiet_until = now.plus(STORE_RETRY);
        }
        let mut shown = self.unavailable.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown != unavailable {
            match &unavailable {
                Some(why) => tracing::error!("the store cannot be written: {why}"),
                None => tracing::info!("the store can be written again"),
            }
            *shown = unavailable;
        }
    }
}
