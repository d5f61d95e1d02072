//! Who may call: beyond loopback whoever has the token, on loopback whoever is on this machine; never a page from elsewhere.
use super::App;
use super::problem::ApiError;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;

/// What a server lets through.
#[derive(Clone)]
pub(crate) struct Access {
    pub token: Arc<str>,
    /// Other machines can reach the server.
    pub is_beyond_loopback: bool,
}

/// Lets through what may be answered.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    match app.access.check(request.method(), request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

impl Access {
    fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
        if !self.is_beyond_loopback && !is_local_name(headers) {
            return Err(ApiError::foreign_host());
        }
        if !matches!(*method, Method::GET | Method::HEAD) && is_of_another_page(headers) {
            return Err(ApiError::foreign_page());
        }
        if self.needs_token(path) && !carries(headers, &self.token) {
            return Err(ApiError::unauthorized());
        }
        Ok(())
    }

    /// The health tells nothing that needs protection. Serving a directory executes its code as this server's owner, which is not
    /// for everyone on this machine.
    fn needs_token(&self, path: &str) -> bool {
        path == "/api/projects" || (self.is_beyond_loopback && path != "/api/health")
    }
}

/// A browser says on whose behalf it calls; programs say nothing of the kind.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if matches!(site, Some(b"cross-site" | b"same-site")) {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    // With its port, as in Host. A page without an origin of its own says "null".
    let page = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, page)| page);
    let own = headers.get(HOST).and_then(|host| host.to_str().ok());
    !matches!((page, own), (Some(page), Some(own)) if page.eq_ignore_ascii_case(own))
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
    use axum::http::HeaderName;

    fn status(is_beyond_loopback: bool, method: Method, path: &str, headers: &[(&'static str, &str)]) -> u16 {
        let access = Access { token: "secret".into(), is_beyond_loopback };
        let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let checked = access.check(&method, path, &headers.collect());
        checked.map_or_else(|refused| refused.into_response().status().as_u16(), |()| 200)
    }

    #[test]
    fn serving_a_directory_takes_the_token_everywhere() {
        let good: &[_] = &[("authorization", "Bearer secret")];
        for beyond in [false, true] {
            assert_eq!(status(beyond, Method::POST, "/api/projects", &[]), 401);
            assert_eq!(status(beyond, Method::POST, "/api/projects", &[("authorization", "Bearer wrong!")]), 401);
            assert_eq!(status(beyond, Method::POST, "/api/projects", good), 200);
            assert_eq!(status(beyond, Method::GET, "/api/health", &[]), 200);
        }
        assert_eq!(
            (status(false, Method::POST, "/api/runs", &[]), status(true, Method::POST, "/api/runs", &[])),
            (200, 401)
        );
    }

    #[test]
    fn a_page_of_another_site_changes_nothing() {
        let with = |name, value| {
            status(false, Method::POST, "/api/runs/1/cancel", &[("host", "localhost:4747"), (name, value)])
        };
        for own in ["http://localhost:4747", "HTTP://LOCALHOST:4747", "https://localhost:4747"] {
            assert_eq!(with("origin", own), 200, "{own}");
        }
        for foreign in
            ["http://localhost:4748", "http://localhost", "http://example.org:4747", "null", "", "localhost:4747"]
        {
            assert_eq!(with("origin", foreign), 401, "{foreign}");
        }
        for (site, wanted) in [("cross-site", 401), ("same-site", 401), ("same-origin", 200), ("none", 200)] {
            assert_eq!(with("sec-fetch-site", site), wanted, "{site}");
        }
        assert_eq!(status(false, Method::DELETE, "/api/leases/1/claims/2", &[("origin", "http://localhost")]), 401);
        assert_eq!(status(false, Method::GET, "/api/runs", &[("origin", "http://example.org")]), 200);
        let token: &[_] = &[("origin", "http://example.org"), ("authorization", "Bearer secret")];
        assert_eq!(status(true, Method::POST, "/api/runs/1/cancel", token), 401);
    }

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
