//! Settings that change while the server runs.
use super::App;
use super::extract::Body;
use super::problem::{ApiError, ApiResult};
use crate::config::check_engines;
use axum::Json;
use axum::extract::State;
use mirab_wire as wire;

/// Show the settings
#[utoipa::path(get, path = "/api/settings", tag = "settings", responses(
    (status = 200, description = "The settings", body = wire::Settings),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn get(State(app): State<App>) -> ApiResult<Json<wire::Settings>> {
    let max_engines = app.host.query(|orchestrator, _| orchestrator.slots()).await?;
    Ok(Json(wire::Settings { max_engines, max_engines_ceiling: app.max_engines_ceiling }))
}

/// Change settings
///
/// Kept over a restart, until it is changed again or given as a flag or in the environment.
#[utoipa::path(patch, path = "/api/settings", tag = "settings", request_body = wire::PatchSettings, responses(
    (status = 200, description = "The settings now", body = wire::Settings),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn patch(
    State(app): State<App>,
    Body(request): Body<wire::PatchSettings>,
) -> ApiResult<Json<wire::Settings>> {
    if let Some(count) = request.max_engines {
        check_engines(count, app.max_engines_ceiling)
            .map_err(|why| ApiError::bad_request(format!("max_engines {why}")))?;
        let set = app.host.call(move |orchestrator, now| orchestrator.set_slots(now, count)).await?;
        app.supervisor.table().max_engines = set;
        app.supervisor.look_again();
    }
    get(State(app)).await
}
