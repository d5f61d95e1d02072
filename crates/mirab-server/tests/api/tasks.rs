//! Tasks inside runs.
use crate::harness::{LIMIT, code, flow, server};
use mirab_wire::{EndClaim, Failure, Outcome};
use serde_json::json;
use std::sync::mpsc;

#[test]
fn the_second_task_waits_for_the_first_and_says_so() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({}))]);
    server.submit("nightly");
    server.submit("nightly");
    let (a, b) = (server.worker("a"), server.worker("b"));
    let (lease_a, lease_b) = (a.take(), b.take());
    let first = a.claim(&lease_a, "load-1", &[("db", 1)], 0.0).unwrap();
    assert_eq!((first.state.as_str(), first.attempt), ("Running", 1));
    let second = b.claim(&lease_b, "load-1", &[("db", 1)], 0.0).unwrap();
    assert_eq!((second.state.as_str(), second.fence), ("AwaitingResource", 0));
    let row = server.client.queue(10).unwrap().waiting.remove(0);
    assert_eq!(
        (row.id, row.kind.as_str(), row.run_id, row.name.as_str()),
        (second.id, "task", lease_b.id, "nightly/load")
    );
    assert_eq!((row.blocked_on[0].holders[0].id, row.blocked_on[0].holders[0].kind.as_str()), (first.id, "task"));
    let why = server.client.why(second.id).unwrap();
    assert_eq!((why.kind.as_str(), why.run_id, why.name.as_str()), ("task", lease_b.id, "nightly/load"));
    assert_eq!((why.state.as_str(), &why.reason), ("AwaitingResource", &why.waiting[0].reason));
    let executing = server.client.why(first.id).unwrap();
    assert_eq!((executing.state.as_str(), executing.waiting.len()), ("Running", 0));
    let (answer, answered) = mpsc::channel();
    let (waiter, lease) = (b.clone(), lease_b.clone());
    std::thread::spawn(move || answer.send(waiter.claim(&lease, "load-1", &[("db", 1)], 60.0)));
    a.end_claim(&lease_a, first.id);
    // The same key is the same claim.
    let started = answered.recv_timeout(LIMIT).unwrap().unwrap();
    assert_eq!((started.id, started.state.as_str()), (second.id, "Running"));
    b.end_claim(&lease_b, second.id);
    b.end_claim(&lease_b, second.id);
    let tasks = server.client.run_tasks(lease_b.id).unwrap().tasks;
    assert_eq!(
        tasks.iter().map(|task| (task.id, task.state.as_str(), task.name.as_str())).collect::<Vec<_>>(),
        [(second.id, "Completed", "load")]
    );
}

#[test]
fn a_thousand_hand_overs_between_two_tasks_lose_no_wake_up() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({}))]);
    let (done, ended) = mpsc::channel();
    for name in ["a", "b"] {
        server.submit("nightly");
        let (worker, done) = (server.worker(name), done.clone());
        std::thread::spawn(move || {
            let lease = worker.take();
            for number in 0..200 {
                let claim = worker.claim(&lease, &number.to_string(), &[("db", 1)], 60.0).unwrap();
                assert_eq!(claim.state, "Running");
                worker.end_claim(&lease, claim.id);
                done.send(number).unwrap();
            }
        });
    }
    for _ in 0..400 {
        ended.recv_timeout(LIMIT).expect("a task that ends starts the next one");
    }
}

#[test]
fn what_can_never_start_is_refused_to_the_task() {
    let (_world, server) = server("[resources]\ndb = 2\ngpu = 2", &[flow("nightly", json!({"resources": {"db": 1}}))]);
    server.submit("nightly");
    let worker = server.worker("w");
    let lease = worker.take();
    assert_eq!(code(worker.claim(&lease, "1", &[("dbb", 1)], 0.0)), "UnknownResource");
    assert_eq!(code(worker.claim(&lease, "2", &[("gpu", 9)], 0.0)), "ResourceExceedsCapacity");
    assert_eq!(code(worker.claim(&lease, "3", &[("gpu", 0)], 0.0)), "InvalidResource");
    // It shares what its run holds, and no more than that.
    assert_eq!(worker.claim(&lease, "4", &[("db", 1)], 0.0).unwrap().state, "Running");
    assert_eq!(code(worker.claim(&lease, "5", &[("db", 2)], 0.0)), "ResourceExceedsCapacity");
    // Asked again it is answered the same.
    assert_eq!(code(worker.claim(&lease, "2", &[("gpu", 9)], 0.0)), "ResourceExceedsCapacity");
}

#[test]
fn a_failed_task_is_tried_again_after_its_delay() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({}))]);
    server.submit("nightly");
    let worker = server.worker("w");
    let lease = worker.take();
    let request = |wait_s| mirab_wire::ClaimRequest {
        fence: lease.fence,
        key: "k".into(),
        name: "load".into(),
        resources: [("db".to_owned(), 1)].into(),
        tags: vec![],
        retries: 1,
        retry_delay_s: 0.2,
        max_concurrent: None,
        parent: None,
        wait_s,
    };
    let claim = worker.client.claim(lease.id, &request(0.0)).unwrap();
    let error = Some(Failure { kind: "IOError".into(), message: "no".into(), traceback: None });
    let end = EndClaim { fence: lease.fence, outcome: Outcome::Failed, error };
    let answer = worker.client.end_claim(lease.id, claim.id, &end).unwrap();
    assert_eq!(answer.retry_in_s, Some(0.2));
    assert_eq!(worker.client.claim(lease.id, &request(0.0)).unwrap().state, "AwaitingRetry");
    let again = worker.client.claim(lease.id, &request(60.0)).unwrap();
    assert_eq!((again.id, again.state.as_str(), again.attempt), (claim.id, "Running", 2));
    assert_eq!(worker.client.end_claim(lease.id, claim.id, &end).unwrap().retry_in_s, None);
}
