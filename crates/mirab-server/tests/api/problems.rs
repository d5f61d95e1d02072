//! Requests that cannot be answered.
use crate::harness::{JSON, flow, raw, server};
use mirab_wire::Problem;
use serde_json::json;

#[test]
fn every_refusal_is_a_problem_with_a_code() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    let url = server.running.url();
    let text: &[(&str, &str)] = &[("content-type", "text/plain")];
    let foreign: &[(&str, &str)] = &[("origin", "http://example.org")];
    for (method, path, headers, body, status, code, detail) in [
        ("GET", "/api/none", JSON, "", 404, "NotFound", "there is no GET /api/none"),
        ("GET", "/", JSON, "", 404, "NotFound", "there is no GET /"),
        ("DELETE", "/api/runs", JSON, "", 404, "NotFound", "there is no DELETE /api/runs"),
        ("POST", "/api/runs", JSON, "{", 400, "BadRequest", "the body cannot be used: EOF"),
        ("POST", "/api/runs", JSON, "{}", 400, "BadRequest", "missing field `flow`"),
        (
            "POST",
            "/api/runs",
            JSON,
            r#"{"flow": "nightly", "parms": {}}"#,
            400,
            "BadRequest",
            "unknown field `parms`, expected one of",
        ),
        ("POST", "/api/runs", JSON, r#"{"flow": 1}"#, 400, "BadRequest", "expected a string"),
        ("POST", "/api/runs", JSON, r#" ["nightly", {}]"#, 400, "BadRequest", "it is a list, expected an object"),
        ("PUT", "/api/resources/db", JSON, "[null,3]", 400, "BadRequest", "it is a list, expected an object"),
        (
            "POST",
            "/api/runs",
            JSON,
            r#"{"flow": "nightly", "tags": ["a\u200bb"]}"#,
            422,
            "InvalidResource",
            "U+200B, which nobody sees",
        ),
        ("POST", "/api/runs", text, r#"{"flow": "nightly"}"#, 400, "BadRequest", "expected application/json"),
        ("GET", "/api/runs?stat=Running", JSON, "", 400, "BadRequest", "unknown field `stat`"),
        ("GET", "/api/runs?limit=x", JSON, "", 400, "BadRequest", "the query cannot be used"),
        ("GET", "/api/runs/x", JSON, "", 400, "BadRequest", "the path cannot be used"),
        ("GET", "/api/resources/%ff", JSON, "", 400, "BadRequest", "the path cannot be used"),
        ("GET", "/api/runs/9", JSON, "", 404, "UnknownRun", "unknown run 9"),
        ("GET", "/api/flows/none", JSON, "", 404, "UnknownFlow", "no flow named"),
        ("PATCH", "/api/settings", JSON, r#"{"max_engines": 0}"#, 400, "BadRequest", "max_engines is 0, expected 1 to"),
        ("POST", "/api/projects", JSON, r#"{"path": "/none"}"#, 401, "Unauthorized", "the token is missing or wrong"),
        ("POST", "/api/runs/9/cancel", foreign, "", 401, "Unauthorized", "a page of another site"),
    ] {
        let (answered, kind, body) = raw(method, &format!("{url}{path}"), headers, body);
        let problem: Problem = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert_eq!(
            (answered, problem.status, problem.code.as_str()),
            (status, status, code),
            "{method} {path}: {body}"
        );
        assert_eq!(kind, "application/problem+json");
        assert!(problem.detail.contains(detail), "{method} {path}: {}", problem.detail);
    }
}
