//! Takes one lease after the other.
use crate::lease_keeper::{AWAY_PAUSE, OnStop};
use crate::link::Link;
use crate::running_lease::RunningLease;
use crate::{Home, Result};
use mirab_wire::{Heartbeat, Lease, LeaseAnswer, LeaseRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LEASE_WAIT_S: f64 = 20.0;
/// An idle engine whose server stays away so long ends.
const ORPHAN_LIMIT: Duration = Duration::from_secs(10);

/// A worker of one pool for the runs of one project.
pub struct Worker {
    link: Arc<Link>,
    name: String,
    project: String,
    pool: String,
    orphan_limit: Duration,
    hand_offs: AtomicU64,
    started: u128,
}

impl Worker {
    /// A worker of the server at `home`. `name` is unique among workers.
    pub fn new(home: Home, name: &str, project: &str, pool: &str) -> Self {
        Self {
            link: Arc::new(Link::new(home)),
            name: name.into(),
            project: project.into(),
            pool: pool.into(),
            orphan_limit: ORPHAN_LIMIT,
            hand_offs: AtomicU64::new(0),
            started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos(),
        }
    }

    /// Ends an idle worker whose server has been away for so long.
    #[must_use]
    pub fn orphan_limit(mut self, limit: Duration) -> Self {
        self.orphan_limit = limit;
        self
    }

    /// Waits for work. `None`: this worker is to end, told by the server or because the server stays away.
    pub fn next(&self, on_stop: OnStop) -> Result<Option<RunningLease>> {
        let mut request = self.request();
        let mut away_since = None;
        loop {
            match self.link.call(|client| client.lease(&self.pool, &request)) {
                Ok(LeaseAnswer { lease: Some(lease), .. }) => match self.take_up(&lease)? {
                    TakenUp::Stored => {
                        return Ok(Some(RunningLease::start(Arc::clone(&self.link), lease, on_stop)));
                    }
                    TakenUp::TooLate => request = self.request(),
                    TakenUp::ServerAway => return Ok(None),
                },
                Ok(LeaseAnswer { retire: true, .. }) => return Ok(None),
                Ok(_) => {
                    away_since = None;
                    request = self.request();
                }
                // The same request again: if its answer was lost on the way, the same lease comes back.
                Err(error) if error.is_passing() => {
                    if away_since.get_or_insert_with(Instant::now).elapsed() >= self.orphan_limit {
                        return Ok(None);
                    }
                    std::thread::sleep(AWAY_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The first heartbeat. No code of the body may run before it is stored that the run executes: were this process killed in
    /// between, the run would count as not begun, and its body would be executed a second time.
    fn take_up(&self, lease: &Lease) -> Result<TakenUp> {
        let since = Instant::now();
        let beat = Heartbeat { fence: lease.fence, wait_s: 0.0 };
        loop {
            match self.link.call(|client| client.heartbeat(lease.id, &beat)) {
                Ok(_) => return Ok(TakenUp::Stored),
                Err(error) if error.is_stale() => return Ok(TakenUp::TooLate),
                Err(error) if error.is_passing() && since.elapsed() < self.orphan_limit => {
                    std::thread::sleep(AWAY_PAUSE);
                }
                Err(error) if error.is_passing() => return Ok(TakenUp::ServerAway),
                Err(error) => return Err(error),
            }
        }
    }

    fn request(&self) -> LeaseRequest {
        let number = self.hand_offs.fetch_add(1, Ordering::Relaxed);
        LeaseRequest {
            worker: self.name.clone(),
            project: self.project.clone(),
            // Unlike those of an earlier process of the same name.
            request_id: format!("{}-{}-{number}", self.name, self.started),
            wait_s: LEASE_WAIT_S,
        }
    }
}

/// What became of a hand-off.
enum TakenUp {
    /// The server knows that the run executes here.
    Stored,
    /// The run was given on, or cancelled.
    TooLate,
    /// Whoever serves next gives it to somebody else.
    ServerAway,
}
