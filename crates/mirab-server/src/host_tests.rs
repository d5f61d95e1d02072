//! The writer alone, on a journal that is held up. Apart from `host`, which the model checker compiles as it stands.
use crate::clock::Clock;
use crate::host::Host;
use mirab_flow::{Driver, Fact, Journal, Options, ProjectRecord, StoreUnavailable, Stored};
use mirab_store::MemoryStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

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
    let driver = Driver::open(journal, Options { slots: 1, max_slots: 1, ..Options::default() }, clock.now()).unwrap();
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
        host.call(move |orchestrator, now| orchestrator.add_project(now, ProjectRecord { name, path: String::new() }))
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
