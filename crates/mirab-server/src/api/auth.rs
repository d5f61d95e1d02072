//! Beyond loopback every call but the health needs the token.
use super::App;
use super::problem::ApiError;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

pub(crate) async fn require_token(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_open = request.uri().path() == "/api/health";
    match &app.token {
        Some(token) if !is_open && !carries(request.headers(), token) => ApiError::unauthorized().into_response(),
        _ => next.run(request).await,
    }
}

fn carries(headers: &HeaderMap, token: &str) -> bool {
    let given = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    given.is_some_and(|given| is_same(given.trim().as_bytes(), token.as_bytes()))
}

/// Takes as long whether the first or the last byte differs.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
