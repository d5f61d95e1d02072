//! The single writer: one thread owns the machines and the store.
//!
//! Calls that are waiting together are applied together and committed once (group commit). Only then are they answered and the
//! effects carried out, so nothing is promised that a crash can take back.
use crate::clock::Clock;
use mirab_core::Time;
use mirab_flow::{Driver, Effect, Journal, Orchestrator, STORE_RETRY, StoreUnavailable};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
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
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || {
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

#[cfg(test)]
mod tests {
    use super::*;
    use mirab_flow::{Fact, Options, ProjectRecord, Stored};
    use mirab_store::MemoryStore;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Says when it is asked to commit, and goes on when it is let.
    struct Slow {
        inner: MemoryStore,
        asked: Sender<usize>,
        go_on: Receiver<()>,
        is_full: Arc<AtomicBool>,
    }

    impl Journal for Slow {
        type Error = String;

        fn commit(&mut self, facts: &[Fact]) -> Result<(), String> {
            self.asked.send(facts.iter().filter(|fact| matches!(fact, Fact::Project(_))).count()).unwrap();
            self.go_on.recv().unwrap();
            if self.is_full.load(Ordering::SeqCst) {
                return Err("full".into());
            }
            self.inner.commit(facts).map_err(|error| error.to_string())
        }

        fn load(&mut self) -> Result<Stored, String> {
            self.inner.load().map_err(|error| error.to_string())
        }
    }

    struct Bench {
        host: Host,
        asked: Receiver<usize>,
        go_on: Sender<()>,
        is_full: Arc<AtomicBool>,
        effects: Arc<AtomicUsize>,
        writer: JoinHandle<()>,
    }

    fn bench() -> Bench {
        let ((asks, asked), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
        let (is_full, effects) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let journal = Slow { inner: MemoryStore::default(), asked: asks, go_on: goes_on, is_full: is_full.clone() };
        let clock = Clock::start();
        let driver =
            Driver::open(journal, Options { slots: 1, max_slots: 1, ..Options::default() }, clock.now()).unwrap();
        let carried = effects.clone();
        let (host, writer) = Host::start(driver, clock, move |_| {
            carried.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
        Bench { host, asked, go_on, is_full, effects, writer }
    }

    fn serve(host: &Host, name: &str) -> impl Future<Output = Result<(), StoreUnavailable>> + use<> {
        let (host, name) = (host.clone(), name.to_owned());
        async move {
            host.call(move |orchestrator, now| {
                orchestrator.add_project(now, ProjectRecord { name, path: String::new() })
            })
            .await
        }
    }

    /// Starts all of them, and returns once they are with the writer.
    async fn put_all(host: &Host, count: usize) -> Vec<tokio::task::JoinHandle<Result<(), StoreUnavailable>>> {
        let calls = (0..count).map(|number| tokio::spawn(serve(host, &number.to_string()))).collect();
        tokio::task::yield_now().await;
        calls
    }

    #[tokio::test]
    async fn calls_that_wait_together_are_committed_together() {
        let Bench { host, asked, go_on, effects, .. } = bench();
        let first = put_all(&host, 1).await;
        assert_eq!(asked.recv(), Ok(1));
        let rest = put_all(&host, 50).await;
        let count = tokio::spawn({
            let host = host.clone();
            async move { host.query(|orchestrator, _| orchestrator.projects().len()).await }
        });
        tokio::task::yield_now().await;
        // Nobody is answered and nothing happens before the commit.
        assert!(!first[0].is_finished() && effects.load(Ordering::SeqCst) == 0);
        go_on.send(()).unwrap();
        assert_eq!(asked.recv(), Ok(50));
        go_on.send(()).unwrap();
        for call in first.into_iter().chain(rest) {
            call.await.unwrap().unwrap();
        }
        assert_eq!(count.await.unwrap(), Ok(50));
        assert!(asked.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_failed_commit_is_told_to_all_of_its_group() {
        let Bench { host, asked, go_on, is_full, effects, .. } = bench();
        let first = put_all(&host, 1).await;
        asked.recv().unwrap();
        let rest = put_all(&host, 20).await;
        is_full.store(true, Ordering::SeqCst);
        go_on.send(()).unwrap();
        asked.recv().unwrap();
        go_on.send(()).unwrap();
        for call in first.into_iter().chain(rest) {
            assert!(call.await.unwrap().unwrap_err().why.contains("full"));
        }
        assert_eq!((effects.load(Ordering::SeqCst), host.unavailable().as_deref()), (0, Some("full")));
        assert_eq!(host.query(|orchestrator, _| orchestrator.projects().len()).await, Ok(0));
        // It tries again by itself, and is well once that succeeds.
        is_full.store(false, Ordering::SeqCst);
        asked.recv().unwrap();
        go_on.send(()).unwrap();
        go_on.send(()).unwrap();
        serve(&host, "later").await.unwrap();
        assert_eq!((host.unavailable(), effects.load(Ordering::SeqCst) > 0), (None, true));
    }

    #[tokio::test]
    async fn a_writer_that_has_ended_is_said() {
        let Bench { host, writer, .. } = bench();
        host.stop();
        writer.join().unwrap();
        assert!(host.query(|_, _| ()).await.unwrap_err().why.contains("stopping"));
    }
}
