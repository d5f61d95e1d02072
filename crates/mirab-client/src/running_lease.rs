//! A lease whose body executes here: its reports and the claims of its tasks.
use crate::lease_keeper::{AWAY_PAUSE, LeaseKeeper, OnStop, Stop};
use crate::link::Link;
use crate::{Client, ClientError, Result};
use mirab_wire::{
    Claim, ClaimRequest, Complete, Cooldown, EndClaim, EndClaimAnswer, Fail, Failure, Lease, Outcome, Problem, Settle,
};
use serde_json::Value;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a report is tried while the server is away.
const REPORT_FOR: Duration = Duration::from_secs(600);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// One poll of a claim; short, so that a claim of a server that went away without a word is soon repeated.
const CLAIM_WAIT_S: f64 = 5.0;
/// How soon a waiting claim notices that the run is to stop.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// It is stored.
    Accepted,
    /// The lease was not ours any more; nothing was stored.
    Stale,
}

/// One attempt of a run, kept alive until it is reported.
pub struct RunningLease {
    link: Arc<Link>,
    lease: Lease,
    keeper: LeaseKeeper,
}

impl RunningLease {
    pub(crate) fn start(link: Arc<Link>, lease: Lease, on_stop: OnStop) -> Self {
        let keeper = LeaseKeeper::start(Arc::clone(&link), &lease, on_stop);
        Self { link, lease, keeper }
    }

    /// What to execute.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Why the body is to stop, if it is.
    pub fn stop(&self) -> Option<Stop> {
        self.keeper.stop()
    }

    /// Reports that the flow returned. The lease stays alive until the report is stored.
    pub fn complete(&self, result: Option<Value>) -> Result<Reported> {
        let report = Complete { fence: self.lease.fence, result };
        self.report(|client| client.complete(self.lease.id, &report))
    }

    /// Reports that the flow raised, or was stopped by a cancel.
    pub fn fail(&self, error: Failure, cancelled: bool) -> Result<Reported> {
        let report = Fail { fence: self.lease.fence, error, cancelled };
        self.report(|client| client.fail(self.lease.id, &report))
    }

    fn report(&self, call: impl Fn(&Client) -> Result<()>) -> Result<Reported> {
        let reported = match self.insist(call) {
            Ok(()) => Reported::Accepted,
            Err(error) if error.is_stale() => Reported::Stale,
            // The lease stays: the body's end can still be reported in other words.
            Err(error) => return Err(error),
        };
        self.keeper.end();
        Ok(reported)
    }

    /// Gives the lease up without a word: for one that is stale.
    pub fn abandon(&self) {
        self.keeper.end();
    }

    /// Waits until the task may start. Survives a restart of the server, since the key names the claim; ends early with
    /// [`ClientError::Stopped`] when the run is to stop. The fence and the wait of `request` are filled in here.
    pub fn claim(&self, mut request: ClaimRequest) -> Result<Claim> {
        request.fence = self.lease.fence;
        request.wait_s = CLAIM_WAIT_S;
        loop {
            match self.poll_claim(&request) {
                Ok(claim) if claim.state == "Running" => return Ok(claim),
                Ok(claim) if is_terminal(&claim.state) => return Err(ended_claim(&request, &claim)),
                Ok(_) => {}
                Err(error) if error.is_stale() => return Err(ClientError::Stopped(Stop::Stale)),
                Err(error) if error.is_passing() => {
                    self.keeper.wait(AWAY_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One poll in a thread of its own, so that a cancel does not wait for its answer.
    fn poll_claim(&self, request: &ClaimRequest) -> Result<Claim> {
        if let Some(stop) = self.keeper.stop() {
            return Err(ClientError::Stopped(stop));
        }
        let (answer, answers) = mpsc::channel();
        let (link, id, request) = (Arc::clone(&self.link), self.lease.id, request.clone());
        std::thread::spawn(move || answer.send(link.call(|client| client.claim(id, &request))));
        loop {
            match answers.recv_timeout(STOP_CHECK) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(stop) = self.keeper.stop() {
                        return Err(ClientError::Stopped(stop));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("the polling thread sends before it ends"),
            }
        }
    }

    /// Reports that a task's body has ended; says whether it is to be tried again.
    pub fn end_claim(&self, claim: u64, outcome: Outcome, error: Option<Failure>) -> Result<EndClaimAnswer> {
        let end = EndClaim { fence: self.lease.fence, outcome, error };
        let answer = self.insist(|client| client.end_claim(self.lease.id, claim, &end));
        answer.map_err(stop_when_stale)
    }

    /// Corrects what the run, or the task of this claim, was charged for a token bucket. Saying it twice does no harm.
    pub fn settle(&self, claim: Option<u64>, resource: &str, actual: u64) -> Result<()> {
        let settle = Settle { fence: self.lease.fence, claim, resource: resource.into(), actual };
        let told = self.insist(|client| client.settle(self.lease.id, &settle));
        told.map_err(stop_when_stale)
    }

    /// Asks that nothing which needs a token bucket starts for so many seconds.
    pub fn cooldown(&self, claim: Option<u64>, resource: &str, seconds: f64) -> Result<()> {
        let cooldown = Cooldown { fence: self.lease.fence, claim, resource: resource.into(), seconds };
        let told = self.insist(|client| client.cooldown(self.lease.id, &cooldown));
        told.map_err(stop_when_stale)
    }

    /// Repeats a call while the server is away or cannot commit.
    fn insist<T>(&self, call: impl Fn(&Client) -> Result<T>) -> Result<T> {
        let until = Instant::now() + REPORT_FOR;
        let mut pause = FIRST_PAUSE;
        loop {
            match self.link.call(&call) {
                Err(error) if error.is_passing() && Instant::now() < until => std::thread::sleep(pause),
                answer => return answer,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn stop_when_stale(error: ClientError) -> ClientError {
    if error.is_stale() { ClientError::Stopped(Stop::Stale) } else { error }
}

fn is_terminal(state: &str) -> bool {
    matches!(state, "Completed" | "Failed" | "Cancelled" | "Crashed" | "Skipped" | "Expired")
}

/// A claim that ended before its body began: its run is ending, or its key was used before.
fn ended_claim(request: &ClaimRequest, claim: &Claim) -> ClientError {
    if claim.state == "Cancelled" {
        return ClientError::Stopped(Stop::Cancel);
    }
    let detail = format!(
        "task '{}' cannot start: its claim '{}' has already ended as {}; call it under a new key",
        request.name, request.key, claim.state
    );
    let kind = "about:blank".to_owned();
    ClientError::Problem(Problem { kind, title: "Gone".into(), status: 410, code: "ClaimEnded".into(), detail })
}
