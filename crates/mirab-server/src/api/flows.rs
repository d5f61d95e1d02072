//! Flows and the directories they come from.
use super::App;
use super::extract::{Args, Segment};
use super::problem::{ApiError, ApiResult};
use crate::catalog;
use axum::Json;
use axum::extract::State;
use mirab_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which flows to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FlowArgs {
    /// Only those of this project.
    project: Option<String>,
}

/// List flows and served directories
#[utoipa::path(get, path = "/api/flows", tag = "flows", params(FlowArgs), responses(
    (status = 200, description = "Flows in name order, and the served directories", body = wire::FlowList),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(State(app): State<App>, Args(args): Args<FlowArgs>) -> ApiResult<Json<wire::FlowList>> {
    let catalog = app.catalog.clone();
    let flows = app.host.query(move |orchestrator, _| {
        let catalog = catalog::read(&catalog);
        let is_wanted = |project: &str| args.project.as_deref().is_none_or(|wanted| wanted == project);
        let projects: Vec<_> = catalog.projects().filter(|project| is_wanted(&project.name)).collect();
        let mut flows = Vec::new();
        for project in &projects {
            flows.extend(project.found.flows.iter().map(|found| wire::Flow {
                project: project.name.clone(),
                live_runs: orchestrator.live_runs(&project.name, &found.name),
                found: found.clone(),
            }));
        }
        flows.sort_by(|a, b| (&a.found.name, &a.project).cmp(&(&b.found.name, &b.project)));
        wire::FlowList { flows, projects: projects.into_iter().map(catalog::ServedProject::shown).collect() }
    });
    Ok(Json(flows.await?))
}

/// Show a flow, by `project/flow` (percent-encoded) or its short name while that is unique
#[utoipa::path(get, path = "/api/flows/{name}", tag = "flows",
    params(("name" = String, Path, description = "Its name, percent-encoded")), responses(
    (status = 200, description = "The flow", body = wire::Flow),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn get(State(app): State<App>, Segment(name): Segment<String>) -> ApiResult<Json<wire::Flow>> {
    let catalog = app.catalog.clone();
    let flow = app.host.query(move |orchestrator, _| {
        let spec = orchestrator.find_flow(&name)?;
        let found = catalog::read(&catalog).flow(&spec.project, &spec.name).cloned();
        let found = found.ok_or_else(|| ApiError::unknown_flow(format!("flow {name:?} is not served")))?;
        let live_runs = orchestrator.live_runs(&spec.project, &spec.name);
        Ok::<_, ApiError>(wire::Flow { project: spec.project.clone(), found, live_runs })
    });
    flow.await?.map(Json)
}
