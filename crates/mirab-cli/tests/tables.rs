//! What the listing commands print, word for word.
mod scripted;

use scripted::{Scripted, ago, run, with};
use serde_json::{Value, json};

/// Compared line by line, so that a failure shows them.
fn check(out: &str, expected: &[&str]) {
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

fn waiting() -> Value {
    json!({
        "id": 42, "kind": "task", "run_id": 41, "project": "shop", "name": "nightly/load", "state": "AwaitingResource",
        "priority": 5, "position": 1, "since": ago(192.0), "reason": "waits for 1 of db, held by run 40",
        "unsatisfiable": false,
        "promise": {"at": ago(-63.0), "earliest": ago(-31.0), "latest": ago(-121.0), "decided_by": "db", "known": 3, "assumed": 0},
        "blocked_on": [{
            "resource": "db", "need": 1, "free": 0, "capacity": 7, "holders_total": 7, "behind": [39], "ahead": 3,
            "tokens_at": null, "passed_by": [44, 45], "passed_by_total": 2,
            "holders": [
                {"id": 40, "kind": "run", "run_id": 40, "name": "hourly", "units": 2, "since": ago(7_200.0)},
                {"id": 38, "kind": "task", "run_id": 37, "name": "hourly/load", "units": 1, "since": ago(65.0)},
            ],
        }],
    })
}

#[test]
fn ps_lists_runs_and_says_when_there_are_more() {
    let failed = json!({
        "attempt": 2, "started_at": ago(100.0), "ended_at": ago(88.0), "message": "attempt 2 of 2",
        "error": {"type": "ValueError", "message": "no\nrows", "traceback": null},
    });
    let done = json!({"attempt": 1, "started_at": 100.0, "ended_at": 100.25, "priority": -10});
    let runs = [with(run(1042, "Failed"), failed), run(41, "Queued"), with(run(7, "Completed"), done)];
    let server = Scripted::saying(200, json!({"runs": runs, "next_cursor": 7}));
    let said = server.mirab("ps --state failed --flow shop/nightly --limit 3");
    check(
        &said.out,
        &[
            "  ID  FLOW          STATE      PRIO  TRY  CREATED        TOOK    SAYS",
            "1042  shop/nightly  Failed        5    2  1 h 2 min ago  12 s    ValueError: no\\nrows",
            "  41  shop/nightly  Queued        5    0  1 h 2 min ago  -",
            "   7  shop/nightly  Completed   -10    1  1 h 2 min ago  0.25 s",
            "the newest 3; there are more: raise --limit to see them",
        ],
    );
    assert_eq!(said.exit, 0);
    assert_eq!(server.seen()[0].0, "GET /api/runs?state=Failed&flow=nightly&project=shop&limit=3");
}

#[test]
fn queue_shows_the_line_and_the_engines() {
    let engine = json!({"worker": "engine-1", "project": "shop", "pid": 4711, "run_id": 40, "state": "busy"});
    let idle = json!({"worker": "engine-12", "project": "lab", "pid": 99, "run_id": null, "state": "idle"});
    let server = Scripted::saying(200, json!({"waiting": [waiting()], "total": 20, "engines": [engine, idle]}));
    let said = server.mirab("queue");
    check(
        &said.out,
        &[
            "POS  ID  WHAT                              PRIO  WAITING     REASON",
            "  1  42  task shop/nightly/load of run 41     5  3 min 12 s  waits for 1 of db, held by run 40",
            "the first 1 of 20 that wait: raise --limit to see more",
            "",
            "ENGINE     PROJECT   PID  STATE  RUN",
            "engine-1   shop     4711  busy    40",
            "engine-12  lab        99  idle     -",
        ],
    );
    assert_eq!((said.exit, server.seen()[0].0.as_str()), (0, "GET /api/queue?limit=50"));
}

#[test]
fn an_empty_queue_says_so() {
    let server = Scripted::saying(200, json!({"waiting": [], "total": 0, "engines": []}));
    check(&server.mirab("queue").out, &["nothing waits", "", "no engines: one starts when a run can"]);
    let server = Scripted::saying(200, json!({"runs": [], "next_cursor": null}));
    check(&server.mirab("ps").out, &["no runs"]);
}

fn why(kind: &str, fields: Value) -> Value {
    let of = json!({"id": 41, "kind": kind, "run_id": 41, "project": "shop", "name": "nightly", "error": null, "waiting": []});
    with(of, fields)
}

#[test]
fn why_names_the_run_of_a_task() {
    let reason = "needs 1 of `db`";
    let of = json!({"id": 42, "name": "nightly/load", "state": "AwaitingResource", "reason": reason});
    let said = Scripted::saying(200, why("task", of)).mirab("why 42");
    check(&said.out, &["task 42 (shop/nightly/load) of run 41 is AwaitingResource: needs 1 of `db`"]);
}

#[test]
fn why_shows_where_a_failed_run_failed() {
    let error = json!({"type": "ValueError", "message": "no rows", "traceback": "Traceback:\n  at \u{1b}[1m\nValueError: no rows\n"});
    let fields = json!({"state": "Failed", "reason": "ValueError: no rows", "error": error});
    let said = Scripted::saying(200, why("run", fields.clone())).mirab("why 41");
    let told = ["run 41 is Failed: ValueError: no rows", "  Traceback:", "    at \\u{1b}[1m", "  ValueError: no rows"];
    check(&said.out, &told);
    // It was tried again, and went well.
    let later = with(fields, json!({"state": "Completed", "reason": "it has ended"}));
    check(&Scripted::saying(200, why("run", later)).mirab("why 41").out, &["run 41 is Completed: it has ended"]);
}

#[test]
fn why_names_holders_and_those_ahead() {
    let bucket = json!({
        "resource": "api", "need": 5, "free": 2, "capacity": 100, "holders": [], "holders_total": 0, "behind": [39, 38],
        "ahead": 1000, "tokens_at": ago(-63.0), "passed_by": [], "passed_by_total": 0,
    });
    let first = with(bucket.clone(), json!({"resource": "api:eu", "behind": [], "ahead": 0}));
    let mut task = waiting();
    task["blocked_on"].as_array_mut().unwrap().extend([bucket, first]);
    let why = why("run", json!({"state": "Running", "reason": "1 of its tasks waits", "waiting": [task]}));
    let said = Scripted::saying(200, why).mirab("why 41");
    check(
        &said.out,
        &[
            "run 41 is Running: 1 of its tasks waits",
            "  task 42 (shop/nightly/load) of run 41: number 1 in line, priority 5, waiting for 3 min 12 s",
            "  waits for 1 of db, held by run 40",
            "  expected to start in 1 min 2 s, between 30 s and 2 min from now, when db is free (durations known of 3 holders)",
            "    db: needs 1, 0 of 7 free",
            "      held by run 40 (hourly): 2 units, taken 2 h ago",
            "      held by task 38 of run 37 (hourly/load): 1 unit, taken 1 min 5 s ago",
            "      held by 5 more: `mirab resources db` lists them",
            "      must not pass 39, which waits for it too",
            "      3 ahead of it in line",
            "      passed by 44, 45 while it waited",
            "    api: needs 5, 2 of 100 free",
            "      must not pass 39, 38, which wait for it too",
            "      1,000+ ahead of it in line",
            "      its tokens will have come in 1 min 2 s, unless those ahead take them",
            "    api:eu: needs 5, 2 of 100 free",
            "      its tokens will have come in 1 min 2 s",
        ],
    );
}

fn resources() -> [Value; 4] {
    let db = json!({
        "name": "db", "kind": "semaphore", "permits": 4, "rate": null, "burst": null, "shard": "default", "used": 3,
        "free": 1, "waiters": 12, "declared_as": "db", "origin": "mirab.toml:3",
    });
    let bucket = json!({"name": "api:eu", "kind": "token_bucket", "permits": null, "rate": 50.0, "burst": 100,
        "used": 0, "free": 97, "waiters": 0, "declared_as": "api:*", "origin": "mirab.toml:4"});
    let pool = json!({"name": "pool:default", "permits": 1, "used": 1, "free": 0, "waiters": 0,
        "declared_as": "pool:default", "origin": null});
    let gone =
        json!({"name": "x2", "permits": 0, "used": 1, "free": -1, "waiters": 1, "declared_as": "x2", "origin": null});
    [with(db.clone(), bucket), db.clone(), with(db.clone(), pool), with(db, gone)]
}

#[test]
fn resources_are_listed_with_their_use() {
    let said = Scripted::saying(200, json!({"resources": resources()})).mirab("resources");
    check(
        &said.out,
        &[
            "NAME          KIND                    TOTAL  USED  FREE  WAITERS  DECLARED",
            "api:eu        token bucket  50/s, burst 100     0    97        0  mirab.toml:4 as api:*",
            "db            semaphore                   4     3     1       12  mirab.toml:3",
            "pool:default  semaphore                   1     1     0        0  by mirab itself",
            "x2            semaphore          0 (paused)     1    -1        1  no more: declare it again",
        ],
    );
}

#[test]
fn one_resource_is_shown_with_holders_and_waiters() {
    let holder = json!({"id": 40, "kind": "run", "run_id": 40, "name": "hourly", "units": 3, "since": ago(10.0)});
    let [_, db, ..] = resources();
    let detail = with(db, json!({"holders": [holder], "first_waiters": (41..53).collect::<Vec<_>>()}));
    let server = Scripted::saying(200, detail);
    let said = server.mirab("resources tag:gpu/x");
    check(
        &said.out,
        &[
            "db: semaphore, 4",
            "  declared  mirab.toml:3",
            "  used      3",
            "  free      1",
            "  held by   run 40 (hourly): 3 units, taken 10 s ago",
            "  waiters   12, first in line: 41, 42, 43, 44, 45, 46, 47, 48, 49, 50",
        ],
    );
    assert_eq!(server.seen()[0].0, "GET /api/resources/tag%3Agpu%2Fx");
}

#[test]
fn flows_are_listed_with_the_files_that_did_not_import() {
    let flow = json!({
        "project": "shop", "name": "nightly", "file": "nightly.py", "function": "nightly", "live_runs": 2,
        "any_params": true,
        "options": {"max_concurrent": 1, "on_overlap": "skip", "priority": 5, "resources": {"gpu": 1}},
        "params": [
            {"name": "rows", "required": false, "annotation": "int", "default": 10},
            {"name": "day", "required": true, "annotation": null, "default": null},
        ],
    });
    let broken = json!({"file": "bad.py", "error": {"type": "SyntaxError", "message": "invalid syntax"}});
    let project = json!({"name": "shop", "path": "/srv/shop", "broken": [broken]});
    let other = with(flow.clone(), json!({"project": "lab", "name": "study", "params": [], "any_params": false}));
    let said = Scripted::saying(200, json!({"flows": [flow, other], "projects": [project]})).mirab("flows");
    check(
        &said.out,
        &[
            "FLOW          PARAMS           PRIO  CAP  OVERLAP  RESOURCES  LIVE  FILE",
            "lab/study     -                   5    1  skip     gpu=1         2  nightly.py",
            "shop/nightly  rows=10 day ...     5    1  skip     gpu=1         2  nightly.py",
            "/srv/shop/bad.py did not import: SyntaxError: invalid syntax",
        ],
    );
}

#[test]
fn json_is_the_wire_on_one_line() {
    let body = json!({"resources": resources()});
    let said = Scripted::saying(200, body.clone()).mirab("resources --json");
    assert_eq!(said.out.lines().count(), 1);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), body);
}

#[test]
fn priority_is_changed_and_told() {
    let server =
        Scripted::saying(200, with(run(41, "Queued"), json!({"priority": -3, "message": null, "error": null})));
    let said = server.mirab("priority 41 -3");
    check(&said.out, &["run 41 Queued, priority -3"]);
    assert_eq!(server.seen(), [("PATCH /api/runs/41".to_owned(), json!({"priority": -3}))]);
    assert!(server.mirab("--json priority 41 -3").out.contains("\"priority\":-3"));
}
