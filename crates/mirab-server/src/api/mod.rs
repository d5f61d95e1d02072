//! The HTTP API, a file for each resource. A route and its part of the OpenAPI document come from the same line.
pub(crate) mod auth;
mod convert;
mod events;
mod extract;
mod flows;
mod health;
mod leases;
mod limits;
mod pools;
mod problem;
mod projects;
mod queue;
mod resources;
mod runs;
mod settings;
mod tasks;
mod why;

use crate::catalog::Catalog;
use crate::host::Host;
use crate::limits::Limits;
use crate::projects::Projects;
use crate::supervisor::Supervisor;
use crate::wakers::Wakers;
use auth::Access;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::{IntoResponse, Json, Response};
use mirab_store::Reader;
pub(crate) use problem::ApiError;
pub(crate) use resources::detail;
use std::sync::{Arc, LazyLock, RwLock};
use tokio::sync::watch;
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Largest body: a flow's result may be long.
const BODY_LIMIT: usize = 64 << 20;

/// All that handlers need.
#[derive(Clone)]
pub(crate) struct App {
    pub host: Host,
    pub reader: Reader,
    pub wakers: Wakers,
    pub supervisor: Supervisor,
    pub catalog: Arc<RwLock<Catalog>>,
    pub projects: Projects,
    pub limits: Limits,
    pub max_engines_ceiling: u64,
    pub access: Access,
    /// True once the server is to end: long polls answer then.
    pub stopping: watch::Receiver<bool>,
}

/// The routes with their document.
fn routes() -> OpenApiRouter<App> {
    let info = InfoBuilder::new().title("Mirab").version(env!("CARGO_PKG_VERSION")).build();
    let api = OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info).build())
        .routes(routes!(runs::create, runs::list))
        .routes(routes!(runs::get, runs::patch))
        .routes(routes!(runs::cancel))
        .routes(routes!(events::of_run))
        .routes(routes!(tasks::of_run))
        .routes(routes!(why::why))
        .routes(routes!(pools::list))
        .routes(routes!(pools::lease))
        .routes(routes!(leases::heartbeat))
        .routes(routes!(leases::complete))
        .routes(routes!(leases::fail))
        .routes(routes!(leases::settle))
        .routes(routes!(leases::cooldown))
        .routes(routes!(tasks::claim))
        .routes(routes!(tasks::end_claim))
        .routes(routes!(queue::list));
    api.routes(routes!(resources::list))
        .routes(routes!(resources::get, limits::put, limits::patch, limits::delete))
        .routes(routes!(limits::resolve))
        .routes(routes!(flows::list))
        .routes(routes!(flows::get))
        .routes(routes!(projects::add))
        .routes(routes!(settings::get, settings::patch))
        .routes(routes!(health::get))
        .routes(routes!(document))
}

/// Show this document
#[utoipa::path(get, path = "/api/openapi.json", tag = "settings", responses(
    (status = 200, description = "The OpenAPI document of this version", body = Object),
))]
async fn document() -> Json<&'static OpenApi> {
    static DOCUMENT: LazyLock<OpenApi> = LazyLock::new(openapi);
    Json(&DOCUMENT)
}

/// The OpenAPI document of this version.
#[must_use]
pub fn openapi() -> OpenApi {
    routes().into_openapi()
}

/// The whole service.
pub(crate) fn router(app: App) -> Router {
    let (routes, _) = routes().split_for_parts();
    routes
        .fallback(nothing_there)
        .method_not_allowed_fallback(nothing_there)
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(axum::middleware::from_fn_with_state(app.clone(), auth::guard))
        .with_state(app)
}

async fn nothing_there(request: Request) -> Response {
    let detail =
        format!("there is no {} {}: GET /api/openapi.json lists what there is", request.method(), request.uri().path());
    ApiError::not_found(detail).into_response()
}
