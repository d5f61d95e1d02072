//! Whether the server can do its work.
use super::App;
use super::why::engines_fail;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use mirab_core::Counters;
use mirab_wire as wire;

/// Say whether the server can do its work
#[utoipa::path(get, path = "/api/health", tag = "settings", responses(
    (status = 200, description = "All is well", body = wire::Health),
    (status = 503, description = "The store cannot be written", body = wire::Health),
))]
pub(crate) async fn get(State(app): State<App>) -> (StatusCode, Json<wire::Health>) {
    let counters = app.host.query(|orchestrator, _| orchestrator.gate().counters()).await;
    let unavailable = app.host.unavailable().or_else(|| counters.as_ref().err().map(|error| error.why.clone()));
    let counters: Counters = counters.unwrap_or_default();
    let (status, word) = match unavailable {
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
        None => (StatusCode::OK, "ok"),
    };
    let health = wire::Health {
        status: word.into(),
        detail: unavailable.or_else(|| troubles(&app)),
        version: env!("CARGO_PKG_VERSION").into(),
        priority_inversions: counters.priority_inversions,
        double_releases: counters.double_releases,
    };
    (status, Json(health))
}

/// Engines that fail at start, and files that cannot be used, do not make the server ill, but someone should know.
fn troubles(app: &App) -> Option<String> {
    let table = app.supervisor.table();
    let engines = table.troubles().map(|(project, why)| engines_fail(project, why));
    let all: Vec<String> = engines.chain(app.limits.trouble()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
