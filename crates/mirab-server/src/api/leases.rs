//! Leases: kept alive and reported by the worker that has them. An old fence is refused.
use super::App;
use super::convert;
use super::extract::{Body, Segment};
use super::pools::{Wait, Woken, wait_or_stop};
use super::problem::{ApiError, ApiResult};
use crate::discovery::nanos;
use crate::polls;
use crate::wakers::Topic;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use mirab_core::{ClaimId, Fence};
use mirab_wire as wire;
use std::time::Duration;

const LONGEST_LISTEN: Duration = Duration::from_secs(10);

/// Keep a lease alive
///
/// Answers after `wait_s`, or at once when a cancel is asked for.
#[utoipa::path(post, path = "/api/leases/{id}/heartbeat", tag = "workers", request_body = wire::Heartbeat,
    params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 200, description = "Whether the body is to stop", body = wire::HeartbeatAnswer),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn heartbeat(
    State(app): State<App>,
    Segment(id): Segment<u64>,
    Body(request): Body<wire::Heartbeat>,
) -> ApiResult<Json<wire::HeartbeatAnswer>> {
    let until = Wait::of(request.wait_s).at_most(LONGEST_LISTEN);
    let listener = app.wakers.listen(Topic::Stop(id));
    loop {
        let fence = Fence(request.fence);
        let beat = app.host.call(move |orchestrator, now| orchestrator.heartbeat(now, ClaimId(id), fence));
        let (cancel, asked_to_stop) = polls::look([&listener], beat).await;
        let cancel = cancel??;
        if cancel || wait_or_stop(&app, until, asked_to_stop).await != Woken::News {
            return Ok(Json(wire::HeartbeatAnswer { cancel }));
        }
    }
}

/// Report that a run's body returned
#[utoipa::path(post, path = "/api/leases/{id}/complete", tag = "workers", request_body = wire::Complete,
    params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 204, description = "Stored"),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn complete(
    State(app): State<App>,
    Segment(id): Segment<u64>,
    Body(report): Body<wire::Complete>,
) -> ApiResult<StatusCode> {
    let stored = app
        .host
        .call(move |orchestrator, now| orchestrator.complete(now, ClaimId(id), Fence(report.fence), report.result));
    stored.await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Report that a run's body raised, or stopped because it was asked to
#[utoipa::path(post, path = "/api/leases/{id}/fail", tag = "workers", request_body = wire::Fail,
    params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 204, description = "Stored"),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn fail(
    State(app): State<App>,
    Segment(id): Segment<u64>,
    Body(report): Body<wire::Fail>,
) -> ApiResult<StatusCode> {
    let failure = convert::inner_failure(report.error);
    let stored = app.host.call(move |orchestrator, now| {
        orchestrator.fail(now, ClaimId(id), Fence(report.fence), failure, report.cancelled)
    });
    stored.await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Say what a call really used of a token bucket
///
/// The difference to what was taken is given back, never above the burst, or owed, down to minus one burst. The last word counts.
#[utoipa::path(post, path = "/api/leases/{id}/settle", tag = "workers", request_body = wire::Settle,
    params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 204, description = "Stored"),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn settle(
    State(app): State<App>,
    Segment(id): Segment<u64>,
    Body(told): Body<wire::Settle>,
) -> ApiResult<StatusCode> {
    let stored = app.host.call(move |orchestrator, now| {
        let (fence, task) = (Fence(told.fence), told.claim.map(ClaimId));
        orchestrator.settle_tokens(now, ClaimId(id), fence, task, &told.resource, told.actual)
    });
    stored.await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Ask that nothing which needs a token bucket starts for some time
///
/// Its capacity stays as it is, and so does a longer pause that was asked for before.
#[utoipa::path(post, path = "/api/leases/{id}/cooldown", tag = "workers", request_body = wire::Cooldown,
    params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 204, description = "Stored"),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn cooldown(
    State(app): State<App>,
    Segment(id): Segment<u64>,
    Body(told): Body<wire::Cooldown>,
) -> ApiResult<StatusCode> {
    let pause = nanos(told.seconds)
        .ok_or_else(|| ApiError::bad_request(format!("seconds is {}, expected seconds of 0 or more", told.seconds)))?;
    let stored = app.host.call(move |orchestrator, now| {
        let (fence, task) = (Fence(told.fence), told.claim.map(ClaimId));
        orchestrator.cool_down(now, ClaimId(id), fence, task, &told.resource, pause)
    });
    stored.await??;
    Ok(StatusCode::NO_CONTENT)
}
