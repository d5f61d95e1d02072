//! What happened to a run.
use super::App;
use super::convert;
use super::extract::{Args, Segment};
use super::problem::{ApiError, ApiResult};
use super::runs::{blocking, stored};
use axum::Json;
use axum::extract::State;
use mirab_core::ClaimId;
use mirab_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

const PAGE: u32 = 1_000;
const LARGEST_PAGE: u32 = 10_000;

/// Which events to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventArgs {
    /// Only events after this sequence number.
    #[serde(default)]
    after: u64,
    /// At most so many, from 1 to 10000; 1000 when left out.
    limit: Option<u32>,
}

/// List the events of a run and its tasks, oldest first
#[utoipa::path(get, path = "/api/runs/{id}/events", tag = "runs",
    params(("id" = u64, Path, description = "Id of the run"), EventArgs), responses(
    (status = 200, description = "Its events", body = wire::EventList),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn of_run(
    State(app): State<App>,
    Segment(id): Segment<u64>,
    Args(args): Args<EventArgs>,
) -> ApiResult<Json<wire::EventList>> {
    let limit = args.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("limit is {limit}, expected 1 to {LARGEST_PAGE}")));
    }
    let reader = app.reader.clone();
    let events = blocking(move || reader.events(ClaimId(id), args.after, limit)).await??;
    if events.is_empty() {
        stored(&app, id).await?;
    }
    Ok(Json(wire::EventList { events: events.into_iter().map(convert::event).collect() }))
}
