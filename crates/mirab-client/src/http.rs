//! One JSON call over HTTP: timeouts, the token, and the reading of problems.
use crate::{ClientError, Result};
use mirab_wire::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use ureq::http::{Request, Response, StatusCode};
use ureq::{Agent, Body};

/// How long an answer may take beyond the wait that was asked for.
const GRACE: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
const MAX_ANSWER: u64 = 256 << 20;

/// A pool of kept-alive connections; clones share it.
pub(crate) fn agent() -> Agent {
    Agent::config_builder()
        // A proxy named by the environment is meant for the outside, never for a server found through the home.
        .proxy(None)
        .http_status_as_error(false)
        .no_delay(true)
        .timeout_connect(Some(CONNECT))
        .max_idle_connections(64)
        .max_idle_connections_per_host(64)
        .build()
        .new_agent()
}

/// A server and how to talk to it.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub agent: Agent,
    pub base: String,
    pub token: Option<String>,
}

impl Endpoint {
    /// Calls and reads the JSON answer.
    pub fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&impl Serialize>,
        wait_s: f64,
    ) -> Result<T> {
        let url = format!("{}{path}", self.base);
        let text = self.text(method, &url, body, wait_s)?;
        serde_json::from_str(&text).map_err(|error| bad_answer(&url, error))
    }

    /// Calls where the answer says nothing but that it was done.
    pub fn call_unit(&self, method: &str, path: &str, body: &impl Serialize) -> Result<()> {
        self.text(method, &format!("{}{path}", self.base), Some(body), 0.0).map(drop)
    }

    /// Reads a resource whose representation is the answer under an error status too.
    pub fn call_any_status<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let url = format!("{}{path}", self.base);
        let (status, text) = self.exchange("GET", &url, None::<&()>, GRACE)?;
        serde_json::from_str(&text)
            .or_else(|error| refusal(&url, status, &text).map_or_else(|| Err(bad_answer(&url, error)), Err))
    }

    fn text(&self, method: &str, url: &str, body: Option<&impl Serialize>, wait_s: f64) -> Result<String> {
        let timeout = GRACE + Duration::try_from_secs_f64(wait_s).unwrap_or_default();
        let (status, text) = self.exchange(method, url, body, timeout)?;
        refusal(url, status, &text).map_or(Ok(text), Err)
    }

    fn exchange(
        &self,
        method: &str,
        url: &str,
        body: Option<&impl Serialize>,
        timeout: Duration,
    ) -> Result<(StatusCode, String)> {
        let mut response = self.send(method, url, body, timeout)?;
        let text = response.body_mut().with_config().limit(MAX_ANSWER).read_to_string();
        Ok((response.status(), text.map_err(|error| unreachable(url, error))?))
    }

    fn send(
        &self,
        method: &str,
        url: &str,
        body: Option<&impl Serialize>,
        timeout: Duration,
    ) -> Result<Response<Body>> {
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let sent = match body {
            Some(body) => {
                let json = serde_json::to_vec(body).map_err(|error| bad_answer(url, error))?;
                let request = request.header("content-type", "application/json").body(json);
                let request = request.map_err(|error| bad_answer(url, error))?;
                let config = self.agent.configure_request(request).timeout_global(Some(timeout));
                // DELETE carries a body here: the fence.
                self.agent.run(config.allow_non_standard_methods(true).build())
            }
            None if method != "GET" => {
                let request = request.body(Vec::new()).map_err(|error| bad_answer(url, error))?;
                self.agent.run(self.agent.configure_request(request).timeout_global(Some(timeout)).build())
            }
            None => {
                let request = request.body(()).map_err(|error| bad_answer(url, error))?;
                self.agent.run(self.agent.configure_request(request).timeout_global(Some(timeout)).build())
            }
        };
        sent.map_err(|error| unreachable(url, error))
    }
}

/// One path segment or query value, with everything but unreserved characters encoded.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(byte as char),
            // A dot is encoded too: a segment of dots alone would be taken for a step in the path.
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn refusal(url: &str, status: StatusCode, text: &str) -> Option<ClientError> {
    if status.is_success() {
        return None;
    }
    let problem = serde_json::from_str::<Problem>(text);
    Some(problem.map_or_else(|_| bad_answer(url, format!("status {status}")), ClientError::Problem))
}

fn unreachable(url: &str, error: ureq::Error) -> ClientError {
    ClientError::Unreachable { url: url.to_owned(), cause: error.to_string() }
}

fn bad_answer(url: &str, cause: impl ToString) -> ClientError {
    ClientError::BadAnswer { url: url.to_owned(), cause: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn names_of_any_kind_become_one_segment() {
        assert_eq!(encode("a/b c%"), "a%2Fb%20c%25");
        assert_eq!(encode(".."), "%2E%2E");
        assert_eq!(encode("ü"), "%C3%BC");
    }
}
