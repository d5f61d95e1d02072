//! Limits: declared, changed and taken away while work runs; and which declaration a name goes by.
use super::App;
use super::extract::{Body, Segment};
use super::problem::{ApiError, ApiResult};
use super::resources;
use crate::catalog;
use crate::config::describe;
use crate::limits::{Edit, EditError};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use mirab_core::{DEFAULT_SHARD, Limit, Match, ResourceConfig, check_declared};
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
    let name = check_declared(&name)?;
    let config = config_of(&name, &change)?;
    set(app, config).await
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
    let name = check_declared(&name)?;
    let known = catalog::read(&app.catalog).declarations().get(&name);
    let Some(known) = known else {
        // The gate's own words, with the nearest names.
        let refused = app.host.query(move |orchestrator, _| orchestrator.check_removal(&name).err()).await?;
        return Err(refused.map_or_else(|| ApiError::not_found("nothing declares it in a file".into()), ApiError::from));
    };
    let config = config_of(&name, &completed(change, &known))?;
    set(app, config).await
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
    let name = check_declared(&name)?;
    app.limits.edit(&app.host, Edit::Remove(name)).await?;
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

async fn set(app: App, config: ResourceConfig) -> ApiResult<Json<wire::ResourceDetail>> {
    let name = config.name.clone();
    app.limits.edit(&app.host, Edit::Set(config)).await?;
    resources::get(State(app), Segment(name)).await
}

/// What is left out is taken from what is declared.
fn completed(change: wire::ResourceChange, known: &ResourceConfig) -> wire::ResourceChange {
    let shard = Some(change.shard.unwrap_or_else(|| known.shard.clone()));
    let to_bucket = change.kind.as_deref() == Some("token_bucket") || change.rate.is_some() || change.burst.is_some();
    match known.limit {
        Limit::TokenBucket { rate, burst } if change.permits.is_none() => wire::ResourceChange {
            rate: Some(change.rate.unwrap_or_else(|| rate.as_f64())),
            burst: Some(change.burst.unwrap_or(burst)),
            shard,
            ..change
        },
        Limit::Semaphore { permits } if !to_bucket => {
            wire::ResourceChange { permits: Some(change.permits.unwrap_or(permits)), shard, ..change }
        }
        _ => wire::ResourceChange { shard, ..change },
    }
}

fn config_of(name: &str, change: &wire::ResourceChange) -> ApiResult<ResourceConfig> {
    let wrong = |why: String| ApiError::from(mirab_core::Refusal::invalid(name, why));
    let config = match (change.kind.as_deref(), change.permits, change.rate, change.burst) {
        (Some("semaphore") | None, Some(permits), None, None) => ResourceConfig::semaphore(name, permits),
        (Some("token_bucket") | None, None, Some(rate), Some(burst)) => {
            ResourceConfig::token_bucket(name, rate, burst)?
        }
        (Some(kind), ..) if kind != "semaphore" && kind != "token_bucket" => {
            return Err(wrong(format!("kind is {kind:?}, expected \"semaphore\" or \"token_bucket\"")));
        }
        _ => {
            return Err(wrong(
                "expected permits for a semaphore, or rate and burst for a token bucket, and not of both".into(),
            ));
        }
    };
    match change.shard.as_deref().map(str::trim) {
        Some("") => Err(wrong("the shard is empty, expected a name, or no shard at all".into())),
        Some(shard) => Ok(config.in_shard(shard)),
        None => Ok(config.in_shard(DEFAULT_SHARD)),
    }
}

impl From<EditError> for ApiError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Store(error) => error.into(),
            EditError::Refused(refusal) => refusal.into(),
            EditError::Config(why) => ApiError::invalid_config(why),
            EditError::Conflict(why) => ApiError::config_conflict(why),
        }
    }
}
