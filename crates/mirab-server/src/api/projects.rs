//! Directories that are served besides.
use super::App;
use super::extract::Body;
use super::problem::{ApiError, ApiResult};
use axum::Json;
use axum::extract::State;
use mirab_wire as wire;

/// Serve one more directory
///
/// One that is served already is read again.
#[utoipa::path(post, path = "/api/projects", tag = "flows", request_body = wire::AddProject, responses(
    (status = 200, description = "The project as it is served now", body = wire::Project),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn add(
    State(app): State<App>,
    Body(request): Body<wire::AddProject>,
) -> ApiResult<Json<wire::Project>> {
    let added = app.projects.add(&app.host, &app.supervisor, request.path.into()).await;
    added.map(Json).map_err(|error| match error {
        crate::projects::AddError::Store(error) => error.into(),
        crate::projects::AddError::Config(detail) => ApiError::invalid_config(detail),
        crate::projects::AddError::Refused(detail) => ApiError::bad_request(detail),
    })
}
