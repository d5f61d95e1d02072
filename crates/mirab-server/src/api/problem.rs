//! Every error of the API, with its code and HTTP status, in one place.
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mirab_flow::{RunRecord, StoreUnavailable};
use mirab_store::StoreError;
use mirab_wire::Problem;

/// A refused request.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: &'static str,
    detail: String,
}

/// Answer of a handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// The status of each code; a code that is not listed is an error of the server.
fn status_of(code: &str) -> StatusCode {
    match code {
        "UnknownPool" | "UnknownFlow" | "UnknownRun" | "UnknownTask" | "NotFound" => StatusCode::NOT_FOUND,
        "UnknownResource"
        | "ResourceExceedsCapacity"
        | "InvalidResource"
        | "ResourceOnOtherShard"
        | "TemplateError" => StatusCode::UNPROCESSABLE_ENTITY,
        // A task is told by the code; its claim was understood and can never be granted.
        "ResourceDeadlock" | "InvalidParams" | "InvalidConfig" => StatusCode::UNPROCESSABLE_ENTITY,
        "BadRequest" => StatusCode::BAD_REQUEST,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "ResourceInUse" | "ConfigConflict" | "StaleLease" | "RunEnded" => StatusCode::CONFLICT,
        "QueueFull" => StatusCode::TOO_MANY_REQUESTS,
        "StoreUnavailable" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl ApiError {
    /// The request makes no sense as it is written.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self { code: "BadRequest", detail: detail.into() }
    }

    /// Parameters do not fit the flow.
    pub fn invalid_params(detail: String) -> Self {
        Self { code: "InvalidParams", detail }
    }

    /// A `mirab.toml` cannot be used, or not together with the others.
    pub fn invalid_config(detail: String) -> Self {
        Self { code: "InvalidConfig", detail }
    }

    /// A file was edited by hand and says something else.
    pub fn config_conflict(detail: String) -> Self {
        Self { code: "ConfigConflict", detail }
    }

    /// No run has this id.
    pub fn unknown_run(id: u64) -> Self {
        Self { code: "UnknownRun", detail: format!("unknown run {id}: no run has this id on this server") }
    }

    /// The run has ended: nothing about it can be changed any more.
    pub fn run_ended(run: &RunRecord) -> Self {
        let (id, state) = (run.id.0, run.state);
        let detail = format!("run {id} has ended ({state}), its priority cannot be changed any more: submit a new run");
        Self { code: "RunEnded", detail }
    }

    /// Neither a run nor a task that is live has this id.
    pub fn unknown_run_or_task(id: u64) -> Self {
        let detail = format!("unknown run {id}: no run, and no task of a live run, has this id on this server");
        Self { code: "UnknownRun", detail }
    }

    /// No flow has this name.
    pub fn unknown_flow(detail: String) -> Self {
        Self { code: "UnknownFlow", detail }
    }

    /// Nothing is served at this path.
    pub fn not_found(detail: String) -> Self {
        Self { code: "NotFound", detail }
    }

    /// The token is missing or wrong.
    pub fn unauthorized() -> Self {
        let detail = "the token is missing or wrong: send the header \"Authorization: Bearer TOKEN\" with the token from the file \
                      \"token\" in the server's home";
        Self { code: "Unauthorized", detail: detail.into() }
    }

    /// The call names another host than this machine.
    pub fn foreign_host() -> Self {
        let detail = "the header Host names another machine: call this server as localhost, or by its address";
        Self { code: "Unauthorized", detail: detail.into() }
    }

    /// A page of another site calls.
    pub fn foreign_page() -> Self {
        let detail = "the call comes from a page of another site (its headers Origin and Sec-Fetch-Site say so): only pages of this \
                      server may change anything, call it from a program instead";
        Self { code: "Unauthorized", detail: detail.into() }
    }

    /// As it goes over the wire.
    pub fn into_problem(self) -> Problem {
        let status = status_of(self.code);
        Problem {
            kind: "about:blank".into(),
            title: status.canonical_reason().unwrap_or_default().into(),
            status: status.as_u16(),
            code: self.code.into(),
            detail: self.detail,
        }
    }

    /// The server went wrong; what exactly is for its log.
    pub fn internal(why: &impl std::fmt::Display) -> Self {
        tracing::error!("a request failed: {why}");
        Self { code: "Internal", detail: "the server failed on this request: its log says more".into() }
    }
}

impl From<mirab_flow::Error> for ApiError {
    fn from(error: mirab_flow::Error) -> Self {
        Self { code: error.code(), detail: error.to_string() }
    }
}

impl From<mirab_core::Refusal> for ApiError {
    fn from(refusal: mirab_core::Refusal) -> Self {
        Self { code: refusal.code(), detail: refusal.to_string() }
    }
}

impl From<StoreUnavailable> for ApiError {
    fn from(error: StoreUnavailable) -> Self {
        Self { code: error.code(), detail: error.to_string() }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self { code: "StoreUnavailable", detail: format!("the store could not be read ({error}): try again") }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (status_of(self.code), Json(self.into_problem())).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}
