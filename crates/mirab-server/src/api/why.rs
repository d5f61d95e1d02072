//! Why a run or a task is not further.
use super::App;
use super::convert::{self, word};
use super::extract::Segment;
use super::problem::{ApiError, ApiResult};
use super::runs::read;
use axum::Json;
use axum::extract::State as Shared;
use mirab_core::ClaimId;
use mirab_flow::{RunRecord, Shown, State};
use mirab_wire as wire;

/// Say why a run, or a task of a live run, is not further
#[utoipa::path(get, path = "/api/runs/{id}/why", tag = "runs",
    params(("id" = u64, Path, description = "Id of the run, or of a task of a live run")), responses(
    (status = 200, description = "What it waits for", body = wire::Why),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn why(Shared(app): Shared<App>, Segment(id): Segment<u64>) -> ApiResult<Json<wire::Why>> {
    let supervisor = app.supervisor.clone();
    let live = app.host.query(move |orchestrator, now| {
        let why = orchestrator.why(now, ClaimId(id))?;
        let project = orchestrator.run(why.who.run)?.project.clone();
        let trouble =
            supervisor.table().trouble(&project).map(str::to_owned).filter(|_| why.shown == Shown::As(State::Pending));
        let reason = match trouble {
            Some(trouble) => format!("{}; {}", why.reason, engines_fail(&project, &trouble)),
            None => why.reason,
        };
        let waiting = why.waiting.into_iter().map(|row| convert::waiting(orchestrator, row)).collect();
        Some(wire::Why {
            id,
            kind: convert::kind(why.who.is_task),
            run_id: why.who.run.0,
            project,
            name: why.who.name,
            state: why.shown.as_str().into(),
            reason,
            error: why.error.map(convert::failure),
            waiting,
        })
    });
    if let Some(why) = live.await? {
        return Ok(Json(why));
    }
    let Some(record) = read(&app, id).await? else { return Err(ApiError::unknown_run_or_task(id)) };
    Ok(Json(ended(record)))
}

/// A run that is not live.
fn ended(record: RunRecord) -> wire::Why {
    wire::Why {
        id: record.id.0,
        kind: convert::kind(false),
        run_id: record.id.0,
        project: record.project,
        name: record.flow,
        state: word(record.state, None).into(),
        reason: record.message.unwrap_or_else(|| "it has ended".into()),
        error: record.error.map(convert::failure),
        waiting: Vec::new(),
    }
}

/// Said wherever someone may wonder why nothing starts.
pub(super) fn engines_fail(project: &str, why: &str) -> String {
    format!("engines of project {project} end before they take a run ({why}): see their logs in the server's home")
}
