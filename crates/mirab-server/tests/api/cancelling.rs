//! Cancel.
use crate::harness::{LIMIT, flow, server};
use mirab_wire::{Fail, Failure, Heartbeat};
use serde_json::json;
use std::sync::mpsc;

#[test]
fn a_cancel_wakes_the_heartbeat() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({"resources": {"db": 1}}))]);
    let run = server.submit("nightly");
    let worker = server.worker("w");
    let lease = worker.take();
    let (answer, answered) = mpsc::channel();
    let (listener, beat) = (worker.clone(), Heartbeat { fence: lease.fence, wait_s: 10.0 });
    let asked = std::time::Instant::now();
    std::thread::spawn(move || answer.send(listener.client.heartbeat(run.id, &beat)));
    assert_eq!(server.client.cancel_run(run.id).unwrap().state, "Cancelling");
    assert!(answered.recv_timeout(LIMIT).unwrap().unwrap().cancel);
    assert!(asked.elapsed().as_secs_f64() < 9.0, "it answered because the wait was over");
    // Its units are its own until its body has ended.
    assert_eq!(server.client.resource("db").unwrap().resource.used, 1);
    let error = Failure { kind: "Cancelled".into(), message: "asked to".into(), traceback: None };
    worker.client.fail(lease.id, &Fail { fence: lease.fence, error, cancelled: true }).unwrap();
    assert_eq!(server.run(run.id).state, "Cancelled");
    assert_eq!(server.client.resource("db").unwrap().resource.used, 0);
}

#[test]
fn what_waits_ends_at_once_and_cancelling_again_changes_nothing() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({"resources": {"db": 1}}))]);
    let first = server.submit("nightly");
    let second = server.submit("nightly");
    assert_eq!(server.client.cancel_run(second.id).unwrap().state, "Cancelled");
    assert_eq!(server.client.cancel_run(second.id).unwrap().state, "Cancelled");
    // One that was offered but not taken up gives its unit back.
    assert_eq!(server.client.cancel_run(first.id).unwrap().state, "Cancelled");
    assert_eq!(server.client.resource("db").unwrap().resource.used, 0);
    assert_eq!(server.worker("w").take_now(), None);
}
