//! Limits: declared, changed and taken away while work runs; and which declaration a name goes by.
use super::App;
use super::extract::{Body, Segment};
use super::problem::{ApiError, ApiResult};
use super::resources;
use crate::catalog;
use crate::config::describe;
use crate::limits::{EditError, Wanted};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use mirab_core::{Match, ResourceConfig, check_declared};
use mirab_wire as wire;

/// Declare a resource, or give one another limit
///
/// Takes effect in the same step and is written to the file that declares the name, a new one to `mirab.toml` in the home.
#[utoipa::path(put, path = "/api/resources/{name}", tag = "resources", request_body = wire::ResourceChange,
    params(("name" = String, Path, description = "Its name or pattern, percent-encoded")), responses(
    (status = 200, description = "The resource as it is now", body = wire::ResourceDetail),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn put(
    State(app): State<App>,
    Segment(name): Segment<String>,
    Body(change): Body<wire::ResourceChange>,
) -> ApiResult<Json<wire::ResourceDetail>> {
    change_to(app, Wanted::whole(&name, &change)?).await
}

/// Change a limit
///
/// What is left out stays. Raising starts what may start now; lowering below what is in use takes nothing back; 0 permits pause.
#[utoipa::path(patch, path = "/api/resources/{name}", tag = "resources", request_body = wire::ResourceChange,
    params(("name" = String, Path, description = "Its name or pattern, percent-encoded")), responses(
    (status = 200, description = "The resource as it is now", body = wire::ResourceDetail),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn patch(
    State(app): State<App>,
    Segment(name): Segment<String>,
    Body(change): Body<wire::ResourceChange>,
) -> ApiResult<Json<wire::ResourceDetail>> {
    change_to(app, Wanted::fields(&name, change)?).await
}

/// Take a resource away
///
/// Refused while it is held or waited for.
#[utoipa::path(delete, path = "/api/resources/{name}", tag = "resources",
    params(("name" = String, Path, description = "Its name or pattern, percent-encoded")), responses(
    (status = 204, description = "It is declared no more"),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn delete(State(app): State<App>, Segment(name): Segment<String>) -> ApiResult<StatusCode> {
    app.limits.change(Wanted::gone(&name)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which declaration a name goes by, and why
#[utoipa::path(get, path = "/api/resources/{name}/resolve", tag = "resources",
    params(("name" = String, Path, description = "A name as work asks for it, percent-encoded")), responses(
    (status = 200, description = "The declaration that wins, and those that do not", body = wire::Resolution),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn resolve(
    State(app): State<App>,
    Segment(name): Segment<String>,
) -> ApiResult<Json<wire::Resolution>> {
    let name = check_declared(&name).unwrap_or(name);
    let resolution = app.host.query(move |orchestrator, _| orchestrator.gate().resolve(&name)).await??;
    let catalog = catalog::read(&app.catalog);
    let origin = |declared_as: &str| catalog.declarations().origin(declared_as);
    let config = ResourceConfig { limit: resolution.limit, ..ResourceConfig::semaphore(&resolution.name, 1) };
    let losers = resolution.losers.iter().map(|(declared_as, how)| wire::Loser {
        declared_as: declared_as.clone(),
        why: format!("{}, which is less exact", in_words(*how)),
        origin: origin(declared_as),
    });
    Ok(Json(wire::Resolution {
        why: in_words(resolution.why),
        origin: origin(&resolution.declared_as),
        limit: describe(&config),
        losers: losers.collect(),
        name: resolution.name,
        declared_as: resolution.declared_as,
    }))
}

fn in_words(how: Match) -> String {
    match how {
        Match::Exact => "it is declared by this very name".into(),
        Match::Pattern { prefix, suffix } => {
            format!("a pattern that fixes {prefix} characters before its `*` and {suffix} after")
        }
    }
}

async fn change_to(app: App, wanted: Wanted) -> ApiResult<Json<wire::ResourceDetail>> {
    let name = wanted.name().to_owned();
    app.limits.change(wanted).await?;
    resources::get(State(app), Segment(name)).await
}

impl From<EditError> for ApiError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Store(error) => error.into(),
            EditError::Refused(refusal) => refusal.into(),
            EditError::Config(why) => ApiError::invalid_config(why),
            EditError::Conflict(why) | EditError::Meanwhile(why) | EditError::Unsettled(why) => {
                ApiError::config_conflict(why)
            }
        }
    }
}
