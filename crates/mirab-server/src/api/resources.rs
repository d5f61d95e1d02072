//! Resources, who uses them and who waits.
use super::App;
use super::convert;
use super::extract::Segment;
use super::problem::{ApiError, ApiResult};
use crate::catalog;
use crate::config::Declarations;
use axum::Json;
use axum::extract::State;
use mirab_config::did_you_mean;
use mirab_core::{DEFAULT_SHARD, Limit, ResourceView, check_declared};
use mirab_flow::Orchestrator;
use mirab_wire as wire;

const SHOWN_WAITERS: usize = 100;

/// List all resources
///
/// Names that a pattern stands for are listed while they are held or waited for.
#[utoipa::path(get, path = "/api/resources", tag = "resources", responses(
    (status = 200, description = "The resources in name order", body = wire::ResourceList),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(State(app): State<App>) -> ApiResult<Json<wire::ResourceList>> {
    let catalog = app.catalog.clone();
    let resources =
        app.host.query(move |orchestrator, _| all(orchestrator, catalog::read(&catalog).declarations())).await?;
    Ok(Json(wire::ResourceList { resources }))
}

/// Show a resource
///
/// The name is percent-encoded: `a/b` is `a%2Fb`.
#[utoipa::path(get, path = "/api/resources/{name}", tag = "resources",
    params(("name" = String, Path, description = "Its name, percent-encoded")), responses(
    (status = 200, description = "The resource with its holders and first waiters", body = wire::ResourceDetail),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn get(
    State(app): State<App>,
    Segment(name): Segment<String>,
) -> ApiResult<Json<wire::ResourceDetail>> {
    let catalog = app.catalog.clone();
    let query =
        move |orchestrator: &Orchestrator, _| detail(orchestrator, catalog::read(&catalog).declarations(), &name);
    app.host.query(query).await?.map(Json)
}

/// A resource with its holders and first waiters.
pub(crate) fn detail(
    orchestrator: &Orchestrator,
    declarations: &Declarations,
    name: &str,
) -> ApiResult<wire::ResourceDetail> {
    // The product's own names cannot be declared, but they can be looked at.
    let name = check_declared(name).unwrap_or_else(|_| name.to_owned());
    let all = all(orchestrator, declarations);
    let Some(resource) = all.iter().find(|resource| resource.name == name).cloned() else {
        return Err(not_there(orchestrator, &name, &all));
    };
    let gate = orchestrator.gate();
    let holders = gate.holders(&name).into_iter().map(|lease| convert::holder(orchestrator, lease)).collect();
    let first_waiters = gate.first_waiters(&name, SHOWN_WAITERS).into_iter().map(|id| id.0).collect();
    Ok(wire::ResourceDetail { resource, holders, first_waiters })
}

fn not_there(orchestrator: &Orchestrator, name: &str, all: &[wire::Resource]) -> ApiError {
    let detail = if orchestrator.gate().is_declared(name) {
        format!("resource {name:?} is covered by a pattern and nobody holds it or waits for it now")
    } else {
        format!(
            "no resource {name:?} is declared{}",
            did_you_mean(name, all.iter().map(|resource| resource.name.as_str()))
        )
    };
    ApiError::not_found(detail)
}

fn all(orchestrator: &Orchestrator, declarations: &Declarations) -> Vec<wire::Resource> {
    let mut all: Vec<wire::Resource> =
        orchestrator.resources().into_iter().map(|view| resource(view, declarations)).collect();
    for declared in declarations.iter() {
        let config = &declared.config;
        // Patterns, and what belongs to other shards, have no units of their own here.
        if config.name.contains('*') || config.shard != DEFAULT_SHARD {
            all.push(wire::Resource {
                used: 0,
                free: i64::try_from(config.limit.capacity()).unwrap_or(i64::MAX),
                waiters: 0,
                shard: config.shard.clone(),
                declared_as: config.name.clone(),
                origin: Some(declared.place.origin()),
                ..limits(&config.name, &config.limit)
            });
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.dedup_by(|a, b| a.name == b.name);
    all
}

fn resource(view: ResourceView, declarations: &Declarations) -> wire::Resource {
    wire::Resource {
        used: view.used,
        free: view.free,
        waiters: view.waiters,
        origin: declarations.origin(&view.declared_as),
        declared_as: view.declared_as,
        ..limits(&view.name, &view.limit)
    }
}

fn limits(name: &str, limit: &Limit) -> wire::Resource {
    let (kind, permits, rate, burst) = match *limit {
        _ if name.contains('*') => ("pattern", permits_of(limit), rate_of(limit), burst_of(limit)),
        Limit::Semaphore { .. } => ("semaphore", permits_of(limit), None, None),
        Limit::TokenBucket { .. } => ("token_bucket", None, rate_of(limit), burst_of(limit)),
    };
    wire::Resource {
        name: name.to_owned(),
        kind: kind.into(),
        permits,
        rate,
        burst,
        shard: DEFAULT_SHARD.into(),
        used: 0,
        free: 0,
        waiters: 0,
        declared_as: name.to_owned(),
        origin: None,
    }
}

fn permits_of(limit: &Limit) -> Option<u64> {
    matches!(limit, Limit::Semaphore { .. }).then(|| limit.capacity())
}

fn burst_of(limit: &Limit) -> Option<u64> {
    matches!(limit, Limit::TokenBucket { .. }).then(|| limit.capacity())
}

fn rate_of(limit: &Limit) -> Option<f64> {
    match limit {
        Limit::TokenBucket { rate, .. } => Some(rate.as_f64()),
        Limit::Semaphore { .. } => None,
    }
}
