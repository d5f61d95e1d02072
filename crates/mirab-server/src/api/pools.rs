//! Pools, and the long poll by which workers take work.
use super::App;
use super::extract::{Body, Segment};
use super::problem::ApiResult;
use crate::polls::WorkPoll;
use axum::Json;
use axum::extract::State;
use mirab_core::SECOND;
use mirab_flow::{LEASE_LIFE, Leased, Orchestrator, POOL, TakeLease};
use mirab_wire as wire;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

const LONGEST_WAIT: Duration = Duration::from_secs(60);
const HEARTBEAT_S: f64 = 5.0;

/// List the pools
#[utoipa::path(get, path = "/api/pools", tag = "queue", responses(
    (status = 200, description = "The pools in name order", body = Vec<wire::Pool>),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(State(app): State<App>) -> ApiResult<Json<Vec<wire::Pool>>> {
    let engines = app.host.query(|orchestrator, _| orchestrator.gate().resource(mirab_flow::DEFAULT_POOL)).await?;
    let mut pools: Vec<wire::Pool> = crate::catalog::read(&app.catalog)
        .pools()
        .map(|pool| wire::Pool { name: pool.name.clone(), slots: pool.slots.unwrap_or_default(), used: 0, waiting: 0 })
        .collect();
    pools.extend(engines.map(|pool| wire::Pool {
        name: POOL.into(),
        slots: pool.limit.capacity(),
        used: pool.used,
        waiting: pool.waiters,
    }));
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(pools))
}

/// Take a run to execute
///
/// A long poll. The same `request_id` again gives the same lease again while it is live.
#[utoipa::path(post, path = "/api/pools/{pool}/lease", tag = "workers", request_body = wire::LeaseRequest,
    params(("pool" = String, Path, description = "Name of the pool")), responses(
    (status = 200, description = "A lease, or none within the wait", body = wire::LeaseAnswer),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn lease(
    State(app): State<App>,
    Segment(pool): Segment<String>,
    Body(request): Body<wire::LeaseRequest>,
) -> ApiResult<Json<wire::LeaseAnswer>> {
    let wait = Wait::of(request.wait_s);
    let ask = TakeLease { pool, project: request.project, worker: request.worker, request_id: request.request_id };
    let poll = WorkPoll::of(&app.wakers, &ask);
    let mut is_first = true;
    loop {
        let (answer, news) = poll.look(take(&app, ask.clone())).await;
        let answer = answer?;
        if answer.retire {
            poll.pass_on();
        }
        if answer.lease.is_some() || answer.retire || wait.is_over() {
            return Ok(Json(answer));
        }
        if std::mem::take(&mut is_first) {
            // A worker that has become idle may be in the way of another project, or one too many.
            app.supervisor.look_again();
        }
        if wait_or_stop(&app, wait.at_most(Duration::MAX), news).await.is_stopping() {
            let retire = crate::engine_process::is_engine(&ask.worker);
            return Ok(Json(wire::LeaseAnswer { lease: None, retire }));
        }
    }
}

/// Whether a worker is to end is asked on the writer's thread, where engines are retired too: it is never given a run besides.
async fn take(app: &App, ask: TakeLease) -> ApiResult<wire::LeaseAnswer> {
    let supervisor = app.supervisor.clone();
    let leased = app.host.call(move |orchestrator, now| {
        // A repeated request is answered as before even then: its worker may execute already.
        if !supervisor.table().asked(&ask.worker) && !is_repeated(orchestrator, &ask) {
            return Ok(wire::LeaseAnswer { lease: None, retire: true });
        }
        let worker = ask.worker.clone();
        let leased = orchestrator.take_lease(now, ask)?;
        if leased.is_some() {
            supervisor.table().took(&worker);
        }
        Ok::<_, mirab_flow::Error>(wire::LeaseAnswer { lease: leased.map(lease_of), retire: false })
    });
    Ok(leased.await??)
}

fn is_repeated(orchestrator: &Orchestrator, ask: &TakeLease) -> bool {
    let leases = orchestrator.leases_of_workers();
    let run = leases.into_iter().find(|(worker, _)| *worker == ask.worker).map(|(_, run)| run);
    let lease = run.and_then(|run| orchestrator.lease(run));
    lease.is_some_and(|lease| lease.request_id.as_ref() == Some(&ask.request_id))
}

#[expect(clippy::cast_precision_loss, reason = "a duration for the worker to know")]
fn lease_of(leased: Leased) -> wire::Lease {
    wire::Lease {
        id: leased.id.0,
        fence: leased.fence.0,
        ttl_s: LEASE_LIFE as f64 / SECOND as f64,
        heartbeat_s: HEARTBEAT_S,
        flow: leased.flow,
        file: leased.file,
        function: leased.function,
        params: leased.params,
        attempt: leased.attempt,
    }
}

/// How long a call may wait.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    until: Instant,
}

impl Wait {
    /// So many seconds, as far as they make sense.
    pub fn of(seconds: f64) -> Self {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Self { until: Instant::now() + wait.min(LONGEST_WAIT) }
    }

    pub fn is_over(self) -> bool {
        self.until <= Instant::now()
    }

    pub fn at_most(self, limit: Duration) -> Instant {
        Instant::now().checked_add(limit).map_or(self.until, |limit| limit.min(self.until))
    }
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// There is something to look at.
    News,
    /// The time is over.
    TimeOut,
    /// The server is to end.
    Stopping,
}

impl Woken {
    pub fn is_stopping(self) -> bool {
        self == Woken::Stopping
    }
}

pub(super) async fn wait_or_stop(app: &App, until: Instant, news: impl Future<Output = ()>) -> Woken {
    let mut stopping = app.stopping.clone();
    tokio::select! {
        () = news => Woken::News,
        () = tokio::time::sleep_until(until) => Woken::TimeOut,
        _ = stopping.wait_for(|stopping| *stopping) => Woken::Stopping,
    }
}
