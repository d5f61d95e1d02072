//! Tasks inside a run: listed by anyone, claimed and ended by the run's worker.
use super::App;
use super::convert::{self, word};
use super::extract::{Body, Segment};
use super::pools::{Wait, wait_or_stop};
use super::problem::{ApiError, ApiResult};
use super::runs::{blocking, shown_states, stored};
use crate::discovery::nanos;
use crate::polls;
use axum::Json;
use axum::extract::State as Shared;
use mirab_core::{ClaimId, Fence, SECOND};
use mirab_flow::{NewTask, Outcome, State, TaskStatus};
use mirab_wire as wire;
use std::time::Duration;

/// A claim that waits for its next attempt is looked at so often: its delay ends without a word.
const RETRY_LOOK: Duration = Duration::from_millis(50);

/// List the tasks of a run, of all its attempts, in the order of call
#[utoipa::path(get, path = "/api/runs/{id}/tasks", tag = "runs", params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 200, description = "Its tasks", body = wire::TaskRunList),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn of_run(Shared(app): Shared<App>, Segment(id): Segment<u64>) -> ApiResult<Json<wire::TaskRunList>> {
    let reader = app.reader.clone();
    let records = blocking(move || reader.tasks(ClaimId(id))).await??;
    if records.is_empty() {
        stored(&app, id).await?;
    }
    let waiting = records.iter().filter(|task| task.state == State::Waiting).map(|task| task.id).collect();
    let shown = shown_states(&app, waiting).await;
    let tasks = records.into_iter().map(|task| {
        let word = word(task.state, shown.get(&task.id).copied());
        convert::task(task, word)
    });
    Ok(Json(wire::TaskRunList { tasks: tasks.collect() }))
}

/// Claim what a task inside a run needs
///
/// A long poll that answers when the task may start, cannot start, or the wait is over; the same key asks about the same claim.
#[utoipa::path(post, path = "/api/leases/{id}/claims", tag = "workers", request_body = wire::ClaimRequest,
    params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 200, description = "Where the claim stands", body = wire::Claim),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn claim(
    Shared(app): Shared<App>,
    Segment(lease): Segment<u64>,
    Body(request): Body<wire::ClaimRequest>,
) -> ApiResult<Json<wire::Claim>> {
    let wait = Wait::of(request.wait_s);
    let (fence, new) = (Fence(request.fence), new_task(request)?);
    loop {
        let (wakers, asked) = (app.wakers.clone(), new.clone());
        let answer = app
            .host
            .call(move |orchestrator, now| polls::claim(orchestrator, now, &wakers, (ClaimId(lease), fence), asked));
        let (status, changed) = answer.await??;
        let is_waiting = matches!(status.state, State::Waiting | State::AwaitingRetry);
        if !is_waiting || wait.is_over() {
            return Ok(Json(claim_of(status)));
        }
        let at_most = if status.state == State::AwaitingRetry { RETRY_LOOK } else { Duration::MAX };
        if wait_or_stop(&app, wait.at_most(at_most), changed).await.is_stopping() {
            return Ok(Json(claim_of(status)));
        }
    }
}

fn new_task(request: wire::ClaimRequest) -> ApiResult<NewTask> {
    if request.max_concurrent == Some(0) {
        return Err(ApiError::bad_request("max_concurrent is 0, expected at least 1, or nothing for no cap"));
    }
    let retry_delay = nanos(request.retry_delay_s).ok_or_else(|| {
        ApiError::bad_request(format!("retry_delay_s is {}, expected seconds of 0 or more", request.retry_delay_s))
    })?;
    Ok(NewTask {
        key: request.key,
        name: request.name,
        needs: request.resources.into_iter().collect(),
        tags: request.tags,
        retries: request.retries,
        retry_delay,
        max_concurrent: request.max_concurrent,
        parent: request.parent.map(ClaimId),
    })
}

fn claim_of(status: TaskStatus) -> wire::Claim {
    let state = match status.state {
        State::Waiting => "AwaitingResource",
        other => other.as_str(),
    };
    wire::Claim { id: status.id.0, fence: status.fence.0, state: state.into(), attempt: status.attempt }
}

/// End a task inside a run
///
/// Its units are given back. Saying it again changes nothing.
#[utoipa::path(delete, path = "/api/leases/{id}/claims/{claim}", tag = "workers", request_body = wire::EndClaim,
    params(("id" = u64, Path, description = "Id of the run"), ("claim" = u64, Path, description = "Id of the task run")), responses(
    (status = 200, description = "Whether it is to be tried again", body = wire::EndClaimAnswer),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn end_claim(
    Shared(app): Shared<App>,
    Segment((lease, task)): Segment<(u64, u64)>,
    Body(request): Body<wire::EndClaim>,
) -> ApiResult<Json<wire::EndClaimAnswer>> {
    let outcome = match request.outcome {
        wire::Outcome::Completed => Outcome::Completed,
        wire::Outcome::Failed => Outcome::Failed,
        wire::Outcome::Cancelled => Outcome::Cancelled,
    };
    let failure = request.error.map(convert::inner_failure);
    let ended = app.host.call(move |orchestrator, now| {
        orchestrator.end_task(now, ClaimId(lease), Fence(request.fence), ClaimId(task), outcome, failure)
    });
    #[expect(clippy::cast_precision_loss, reason = "a delay for the worker to sleep")]
    let retry_in_s = ended.await??.map(|nanos| nanos as f64 / SECOND as f64);
    Ok(Json(wire::EndClaimAnswer { retry_in_s }))
}
