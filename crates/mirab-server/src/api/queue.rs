//! The line.
use super::App;
use super::convert;
use super::extract::Args;
use super::problem::{ApiError, ApiResult};
use super::why::engines_fail;
use crate::supervisor;
use axum::Json;
use axum::extract::State;
use mirab_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

const PAGE: usize = 100;
const LARGEST_PAGE: usize = 10_000;
/// A row names so many of those who passed it on a resource, the latest; `why` names all that are remembered.
const SHOWN_PASSERS: usize = 5;

/// How much of the line to show.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct QueueArgs {
    /// At most so many, from 1 to 10000; 100 when left out.
    limit: Option<usize>,
    /// Only what waits in this project, of the first 10000 in line.
    project: Option<String>,
}

/// Show the line and the engines
#[utoipa::path(get, path = "/api/queue", tag = "queue", params(QueueArgs), responses(
    (status = 200, description = "What waits, in order of rank", body = wire::Queue),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(State(app): State<App>, Args(args): Args<QueueArgs>) -> ApiResult<Json<wire::Queue>> {
    let limit = args.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("limit is {limit}, expected 1 to {LARGEST_PAGE}")));
    }
    let supervisor = app.supervisor.clone();
    let queue = app.host.query(move |orchestrator, now| {
        let view = orchestrator.queue(now, if args.project.is_some() { LARGEST_PAGE } else { limit });
        let is_wanted = |project: &String| args.project.as_ref().is_none_or(|wanted| wanted == project);
        let rows = view.waiting.into_iter().filter(|row| is_wanted(&row.project)).take(limit);
        let mut waiting: Vec<_> = rows.map(|row| briefly(convert::waiting(orchestrator, row))).collect();
        let table = supervisor.table();
        for row in waiting.iter_mut().filter(|row| row.state == "Queued") {
            if let Some(why) = table.trouble(&row.project) {
                row.reason = format!("{}; {}", row.reason, engines_fail(&row.project, why));
            }
        }
        let busy = orchestrator.leases_of_workers().into_iter().collect();
        wire::Queue { waiting, total: view.total, engines: supervisor::shown(&table, &busy) }
    });
    Ok(Json(queue.await?))
}

fn briefly(mut row: wire::Waiting) -> wire::Waiting {
    for blocker in &mut row.blocked_on {
        let untold = blocker.passed_by.len().saturating_sub(SHOWN_PASSERS);
        blocker.passed_by.drain(..untold);
    }
    row
}
