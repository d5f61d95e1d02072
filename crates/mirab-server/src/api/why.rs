//! Why a run is not further.
use super::App;
use super::convert::{self, word};
use super::extract::Segment;
use super::problem::ApiResult;
use super::runs::stored;
use axum::Json;
use axum::extract::State as Shared;
use mirab_core::ClaimId;
use mirab_flow::{Shown, State};
use mirab_wire as wire;

/// Say why a run is not further
#[utoipa::path(get, path = "/api/runs/{id}/why", tag = "runs", params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 200, description = "What it waits for", body = wire::Why),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn why(Shared(app): Shared<App>, Segment(id): Segment<u64>) -> ApiResult<Json<wire::Why>> {
    let supervisor = app.supervisor.clone();
    let live = app.host.query(move |orchestrator, now| {
        let why = orchestrator.why(now, ClaimId(id))?;
        let project = &orchestrator.run(ClaimId(id))?.project;
        let trouble =
            supervisor.table().trouble(project).map(str::to_owned).filter(|_| why.shown == Shown::As(State::Pending));
        let reason = trouble
            .map_or(why.reason.clone(), |trouble| format!("{}; {}", why.reason, engines_fail(project, &trouble)));
        let waiting = why.waiting.into_iter().map(|row| convert::waiting(orchestrator, row)).collect();
        Some(wire::Why { id, state: why.shown.as_str().into(), reason, waiting })
    });
    if let Some(why) = live.await? {
        return Ok(Json(why));
    }
    let record = stored(&app, id).await?;
    let state = word(record.state, None).to_owned();
    let reason = record.message.unwrap_or_else(|| "it has ended".into());
    Ok(Json(wire::Why { id, state, reason, waiting: Vec::new() }))
}

/// Said wherever someone may wonder why nothing starts.
pub(super) fn engines_fail(project: &str, why: &str) -> String {
    format!("engines of project {project} end before they take a run ({why}): see their logs in the server's home")
}
