//! A server that runs, and how it ends.
use crate::home::Home;
use crate::host::Host;
use crate::serve_error::ServeError;
use crate::supervisor::Supervisor;
use axum::Router;
use axum::serve::ListenerExt;
use mirab_store::PageLimit;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Calls that are being answered have so long to end when the server stops.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// What a running server consists of.
pub(crate) struct Parts {
    pub host: Host,
    pub writer: JoinHandle<()>,
    pub supervisor: Supervisor,
    pub home: Home,
    pub page_limit: PageLimit,
    pub stop: watch::Sender<bool>,
}

/// A server that answers requests. Dropping it ends it as a crash would; [`Running::stop`] ends it in order.
pub struct Running {
    url: String,
    home: PathBuf,
    page_limit: PageLimit,
    inner: Option<Inner>,
}

struct Inner {
    parts: Parts,
    runtime: Runtime,
    server: tokio::task::JoinHandle<()>,
}

impl Running {
    pub(crate) fn begin(
        parts: Parts,
        runtime: Runtime,
        listener: TcpListener,
        router: Router,
    ) -> Result<Self, ServeError> {
        let bound = listener.local_addr()?;
        let listener = {
            let _in_runtime = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        // Small answers must not wait for more to send.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let mut stopping = parts.stop.subscribe();
        let until_stopped = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
        let server = runtime.spawn(async move {
            if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(until_stopped).await {
                tracing::error!("the server stopped listening: {error}");
            }
        });
        let url = parts.home.announce(bound)?;
        let (home, page_limit) = (parts.home.dir().to_owned(), parts.page_limit.clone());
        Ok(Self { url, home, page_limit, inner: Some(Inner { parts, runtime, server }) })
    }

    /// Base URL that a client on this machine can dial.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The home directory, absolute.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// For tests of what happens when the disk is full.
    #[must_use]
    pub fn page_limit(&self) -> PageLimit {
        self.page_limit.clone()
    }

    /// From now on SIGINT and SIGTERM end this process only as [`Signals::wait`] says.
    ///
    /// # Errors
    /// When the system does not tell of signals.
    pub(crate) fn signals(&self) -> Result<Signals<'_>, ServeError> {
        let Some(inner) = &self.inner else { unreachable!("only stopping takes it out") };
        let _in_runtime = inner.runtime.enter();
        let (interrupted, terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Signals { runtime: &inner.runtime, interrupted, terminated })
    }

    /// Answers what is being asked, ends idle engines, and leaves busy ones to the next server of this home: gives how many
    /// runs go on.
    pub fn stop(mut self) -> u64 {
        let Some(Inner { parts, runtime, server }) = self.inner.take() else { return 0 };
        let going_on = runtime.block_on(async {
            parts.supervisor.hire_no_more();
            let _ = parts.stop.send(true);
            let going_on = parts.supervisor.end_idle().await;
            if tokio::time::timeout(STOP_LIMIT, server).await.is_err() {
                tracing::warn!("some calls did not end within {} seconds", STOP_LIMIT.as_secs());
            }
            going_on
        });
        parts.home.withdraw();
        end(parts, runtime);
        going_on
    }
}

/// Signals that end a server in order.
pub(crate) struct Signals<'a> {
    runtime: &'a Runtime,
    interrupted: Signal,
    terminated: Signal,
}

impl Signals<'_> {
    /// Waits for the first of them.
    pub fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupted.recv() => {}
                _ = self.terminated.recv() => {}
            }
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(Inner { parts, runtime, .. }) = self.inner.take() {
            end(parts, runtime);
        }
    }
}

/// The home is let go only when nothing can write to it any more.
fn end(parts: Parts, runtime: Runtime) {
    runtime.shutdown_timeout(STOP_LIMIT);
    parts.host.stop();
    if parts.writer.join().is_err() {
        tracing::error!("the writer had failed");
    }
    drop(parts.home);
}
