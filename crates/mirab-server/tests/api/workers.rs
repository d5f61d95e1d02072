//! The worker protocol: leases, lost answers, hand-overs, old fences.
use crate::harness::{LIMIT, code, flow, server};
use mirab_wire::{Complete, Fail, Failure, Heartbeat};
use serde_json::json;
use std::sync::mpsc;

#[test]
fn a_lost_answer_is_given_again() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    let (first, second) = (server.submit("nightly"), server.submit("nightly"));
    let worker = server.worker("w");
    let request = worker.request(0.0);
    let lease = worker.ask(&request).unwrap();
    assert_eq!(worker.ask(&request).as_ref(), Some(&lease));
    worker.beat(&lease);
    assert_eq!(worker.ask(&request).as_ref(), Some(&lease));
    assert_eq!(lease.id, first.id);
    worker.complete(&lease);
    // Once that work is done the same request is a new one.
    assert_eq!(worker.ask(&request).unwrap().id, second.id);
}

#[test]
fn two_hundred_hand_overs_between_two_workers_lose_no_wake_up() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({"resources": {"db": 1}}))]);
    let (done, ended) = mpsc::channel();
    for name in ["w1", "w2"] {
        let (worker, done) = (server.worker(name), done.clone());
        std::thread::spawn(move || {
            while let Ok(answer) = worker.client.lease("default", &worker.request(60.0)) {
                let Some(lease) = answer.lease else { continue };
                worker.beat(&lease);
                worker.complete(&lease);
                if done.send(lease.id).is_err() {
                    return;
                }
            }
        });
    }
    for _ in 0..200 {
        let run = server.submit("nightly");
        // A lost wake-up would leave this until the poll ends, after a minute.
        assert_eq!(ended.recv_timeout(LIMIT), Ok(run.id));
    }
    for _ in 0..100 {
        server.submit("nightly");
    }
    for _ in 0..100 {
        ended.recv_timeout(LIMIT).expect("a unit that is given back starts the next one");
    }
}

#[test]
fn an_old_fence_can_write_nothing() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    let run = server.submit("nightly");
    let worker = server.worker("w");
    let lease = worker.take();
    let (id, fence) = (lease.id, lease.fence + 1);
    assert_eq!(code(worker.client.complete(id, &Complete { fence, result: None })), "StaleLease");
    assert_eq!(code(worker.client.heartbeat(id, &Heartbeat { fence, wait_s: 0.0 })), "StaleLease");
    assert_eq!(
        code(worker.client.fail(id, &Fail { fence, error: Failure::default(), cancelled: false })),
        "StaleLease"
    );
    assert_eq!(server.run(run.id).state, "Running");
    worker.complete(&lease);
    assert_eq!(code(worker.client.complete(id, &Complete { fence: lease.fence, result: None })), "StaleLease");
}

#[test]
fn a_failed_run_is_tried_again_without_holding_anything_meanwhile() {
    let (_world, server) = server(
        "[resources]\ndb = 1",
        &[flow("nightly", json!({"resources": {"db": 1}, "retries": 1, "retry_delay_s": 0.2}))],
    );
    let run = server.submit("nightly");
    let worker = server.worker("w");
    let error = Failure { kind: "ValueError".into(), message: "no rows".into(), traceback: Some("Traceback".into()) };
    let fail = |lease: &mirab_wire::Lease| {
        worker.client.fail(lease.id, &Fail { fence: lease.fence, error: error.clone(), cancelled: false }).unwrap();
    };
    fail(&worker.take());
    let waiting = server.run(run.id);
    assert_eq!((waiting.state.as_str(), waiting.error.as_ref()), ("AwaitingRetry", Some(&error)));
    assert_eq!(server.client.resource("db").unwrap().resource.used, 0);
    let again = worker.take();
    assert_eq!((again.id, again.attempt), (run.id, 2));
    fail(&again);
    let failed = server.run(run.id);
    assert_eq!((failed.state.as_str(), failed.attempt, failed.error), ("Failed", 2, Some(error)));
}

#[test]
fn a_worker_of_another_pool_or_project_gets_nothing() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    server.submit("nightly");
    let mut worker = server.worker("w");
    worker.project = "other".into();
    assert_eq!(worker.take_now(), None);
    assert_eq!(code(worker.client.lease("gpu", &worker.request(0.0))), "UnknownPool");
}

#[test]
fn an_engine_of_no_server_is_sent_away() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    server.submit("nightly");
    let stranger = server.worker("engine-4711");
    let answer = stranger.client.lease("default", &stranger.request(60.0)).unwrap();
    assert!(answer.retire && answer.lease.is_none());
}
