//! The worker runtime against a server that says exactly what the test wants.
mod server;

use mirab_client::{ClientError, Home, Reported, RunningLease, Stop, Worker};
use serde_json::json;
use server::{Answer, ScriptedServer, TestHome, lease, problem};
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn worker(home: &TestHome) -> Worker {
    Worker::new(Home::at(home.path()), "engine-1", "shop", "default").orphan_limit(Duration::ZERO)
}

fn take(worker: &Worker) -> (RunningLease, mpsc::Receiver<Stop>) {
    let (told, stops) = mpsc::channel();
    let on_stop = Arc::new(move |stop| told.send(stop).unwrap());
    (worker.next(on_stop).unwrap().expect("a lease"), stops)
}

/// Hand-offs are taken up; heartbeats that listen are answered after a long while, so that they do not disturb the script.
fn calm(server: &ScriptedServer) {
    server.on("heartbeat", |_, body| {
        if body["wait_s"] == 0.0 { Answer::json(200, json!({"cancel": false})) } else { Answer::Hold }
    });
}

#[test]
fn a_lost_answer_is_asked_for_again_with_the_same_request() {
    let server = ScriptedServer::start();
    calm(&server);
    server.on("lease", |number, _| if number == 0 { Answer::Drop } else { lease(7, 3) });
    let home = TestHome::of(&server);
    let worker = worker(&home).orphan_limit(Duration::from_secs(30));
    let (lease, _stops) = take(&worker);
    assert_eq!((lease.lease().id, lease.lease().fence), (7, 3));
    let asked = server.seen("lease");
    assert_eq!(asked[0]["request_id"], asked[1]["request_id"]);
}

#[test]
fn hand_offs_have_requests_of_their_own() {
    let server = ScriptedServer::start();
    calm(&server);
    server.on("lease", |_, _| lease(7, 3));
    let home = TestHome::of(&server);
    let worker = worker(&home);
    take(&worker);
    take(&worker);
    let asked = server.seen("lease");
    assert_ne!(asked[0]["request_id"], asked[1]["request_id"]);
}

#[test]
fn retires_when_told_and_when_the_server_stays_away() {
    let server = ScriptedServer::start();
    server.on("lease", |_, _| Answer::json(200, json!({"lease": null, "retire": true})));
    let home = TestHome::of(&server);
    assert!(worker(&home).next(Arc::new(|_| ())).unwrap().is_none());
    let nobody = TestHome::empty();
    assert!(worker(&nobody).next(Arc::new(|_| ())).unwrap().is_none());
}

#[test]
fn a_cancel_is_told_once_and_a_lost_lease_as_stale() {
    let server = ScriptedServer::start();
    server.on("lease", |number, _| lease(7 + number as u64, 1));
    server.on("leases/7/heartbeat", |_, _| Answer::json(200, json!({"cancel": true})));
    server.on("leases/8/heartbeat", |number, _| match number {
        0 => Answer::json(200, json!({"cancel": false})),
        _ => problem(409, "StaleLease"),
    });
    let home = TestHome::of(&server);
    let worker = worker(&home);
    let (cancelled, stops) = take(&worker);
    assert_eq!(stops.recv().unwrap(), Stop::Cancel);
    assert_eq!(cancelled.stop(), Some(Stop::Cancel));
    let (stale, stops) = take(&worker);
    assert_eq!(stops.recv().unwrap(), Stop::Stale);
    assert_eq!(stale.stop(), Some(Stop::Stale));
}

#[test]
fn a_lease_is_given_out_only_once_it_is_taken_up() {
    let server = ScriptedServer::start();
    server.on("lease", |number, _| lease(7 + number as u64, 1));
    server.on("leases/7/heartbeat", |_, _| problem(409, "StaleLease"));
    server.on("leases/8/heartbeat", |number, _| match number {
        0 => problem(503, "StoreUnavailable"),
        1 => Answer::json(200, json!({"cancel": false})),
        _ => Answer::Hold,
    });
    let home = TestHome::of(&server);
    let worker = worker(&home).orphan_limit(Duration::from_secs(30));
    let (taken, stops) = take(&worker);
    assert_eq!(taken.lease().id, 8);
    assert!(server.seen("leases/8/heartbeat").len() >= 2);
    // Of the one that came too late nobody is told: its body never began.
    assert!(stops.try_recv().is_err());
}

#[test]
fn a_lease_that_cannot_be_taken_up_is_left_to_the_next_server() {
    let server = ScriptedServer::start();
    server.on("lease", |_, _| lease(7, 1));
    server.on("heartbeat", |_, _| Answer::Drop);
    let home = TestHome::of(&server);
    assert!(worker(&home).next(Arc::new(|_| ())).unwrap().is_none());
}

#[test]
fn a_report_waits_for_a_server_that_cannot_commit_and_follows_one_that_moved() {
    let first = ScriptedServer::start();
    let second = ScriptedServer::start();
    for server in [&first, &second] {
        calm(server);
        server.on("lease", |_, _| lease(7, 3));
    }
    let home = TestHome::of(&first);
    let (moved, to) = (home.file(), second.url());
    first.on("complete", move |number, _| match number {
        0 => problem(503, "StoreUnavailable"),
        _ => {
            server::write_server_file(&moved, &to);
            Answer::Drop
        }
    });
    second.on("complete", |_, _| Answer::json(200, json!({})));
    let worker = worker(&home);
    let (lease, _stops) = take(&worker);
    assert_eq!(lease.complete(Some(json!(10))).unwrap(), Reported::Accepted);
    assert_eq!(second.seen("complete"), [json!({"fence": 3, "result": 10})]);
}

#[test]
fn a_report_of_a_lost_lease_says_so() {
    let server = ScriptedServer::start();
    calm(&server);
    server.on("lease", |_, _| lease(7, 3));
    server.on("fail", |_, _| problem(409, "StaleLease"));
    let home = TestHome::of(&server);
    let worker = worker(&home);
    let (lease, _stops) = take(&worker);
    assert_eq!(lease.fail(mirab_wire::Failure::default(), false).unwrap(), Reported::Stale);
}

fn request(key: &str) -> mirab_wire::ClaimRequest {
    serde_json::from_value(json!({"fence": 0, "key": key, "name": "load", "resources": {"db": 1}})).unwrap()
}

fn claim(state: &str) -> Answer {
    Answer::json(200, json!({"id": 9, "fence": 1, "state": state, "attempt": 1}))
}

#[test]
fn a_claim_polls_with_one_key_through_a_restart_until_it_runs() {
    let server = ScriptedServer::start();
    calm(&server);
    server.on("lease", |_, _| lease(7, 3));
    server.on("claims", |number, _| match number {
        0 => claim("AwaitingResource"),
        1 => Answer::Drop,
        2 => problem(503, "StoreUnavailable"),
        _ => claim("Running"),
    });
    server.on("claims/9", |_, _| Answer::json(200, json!({"retry_in_s": 1.5})));
    let home = TestHome::of(&server);
    let worker = worker(&home);
    let (lease, _stops) = take(&worker);
    assert_eq!(lease.claim(request("load-1")).unwrap().id, 9);
    let asked = server.seen("claims");
    assert!(asked.iter().all(|body| body["key"] == "load-1" && body["fence"] == 3));
    let end = lease.end_claim(9, mirab_wire::Outcome::Failed, None).unwrap();
    assert_eq!(end.retry_in_s, Some(1.5));
}

#[test]
fn tokens_are_settled_with_the_fence_of_the_lease_once_the_server_is_back() {
    let server = ScriptedServer::start();
    calm(&server);
    server.on("lease", |_, _| lease(7, 3));
    server.on("settle", |number, _| if number == 0 { Answer::Drop } else { Answer::json(204, json!(null)) });
    server.on("cooldown", |_, _| problem(409, "StaleLease"));
    let home = TestHome::of(&server);
    let worker = worker(&home);
    let (lease, _stops) = take(&worker);
    lease.settle(Some(9), "api", 5).unwrap();
    let expected = json!({"fence": 3, "claim": 9, "resource": "api", "actual": 5});
    assert_eq!(server.seen("settle"), [expected.clone(), expected]);
    let stale = lease.cooldown(None, "api", 1.5).unwrap_err();
    assert!(matches!(stale, ClientError::Stopped(Stop::Stale)));
    assert_eq!(server.seen("cooldown"), [json!({"fence": 3, "claim": null, "resource": "api", "seconds": 1.5})]);
}

#[test]
fn a_refused_claim_is_an_error_and_a_waiting_one_ends_with_a_cancel() {
    let server = ScriptedServer::start();
    server.on("lease", |_, _| lease(7, 3));
    let (ask, asked) = mpsc::channel();
    server.on("claims", move |number, _| match number {
        0 => problem(422, "UnknownResource"),
        _ => {
            ask.send(()).unwrap();
            Answer::Hold
        }
    });
    let asked = std::sync::Mutex::new(asked);
    server.on("heartbeat", move |number, _| {
        if number > 0 {
            asked.lock().unwrap().recv().unwrap();
        }
        Answer::json(200, json!({"cancel": number > 0}))
    });
    let home = TestHome::of(&server);
    let worker = worker(&home);
    let (lease, _stops) = take(&worker);
    let refused = lease.claim(request("load-1")).unwrap_err();
    assert_eq!(refused.code(), "UnknownResource");
    let stopped = lease.claim(request("load-2")).unwrap_err();
    assert!(matches!(stopped, ClientError::Stopped(Stop::Cancel)));
}
