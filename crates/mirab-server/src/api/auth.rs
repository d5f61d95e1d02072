//! Who may call: beyond loopback whoever has the token, on loopback whoever is on this machine.
use super::App;
use super::problem::ApiError;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// Lets through what may be answered; the health tells nothing that needs protection.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_open = request.uri().path() == "/api/health";
    match &app.token {
        Some(token) if !is_open && !carries(request.headers(), token) => ApiError::unauthorized().into_response(),
        None if !is_local_name(request.headers()) => ApiError::foreign_host().into_response(),
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

/// A page from elsewhere can make a browser on this machine call this server under a name of its own, never under one of these.
fn is_local_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let host = host.to_str().unwrap_or("?");
    let without_port = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()))
        .map_or(host, |(name, _)| name);
    let name = without_port.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        let is_local = |host: &'static str| is_local_name(&HeaderMap::from_iter([(HOST, host.parse().unwrap())]));
        for host in ["127.0.0.1:4747", "127.0.0.1", "localhost:80", "LOCALHOST", "[::1]:4747", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["example.org", "example.org:4747", "localhost.example.org", "127.0.0.1.example.org:80", ""] {
            assert!(!is_local(host), "{host}");
        }
    }
}
