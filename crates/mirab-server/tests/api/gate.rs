//! What goes to the gate while work runs, and what it tells.
use crate::harness::{World, code, flow, problem, server};
use mirab_wire::{Cooldown, CreateRun, PatchRun, Settle};
use serde_json::json;

const BUCKET: &str = "[resources]\napi = { kind = \"token_bucket\", rate = 0.001, burst = 10 }\ndb = 1";

#[test]
fn a_holder_settles_its_tokens() {
    let (_world, server) = server(BUCKET, &[flow("nightly", json!({"resources": {"api": 4}}))]);
    server.submit("nightly");
    let worker = server.worker("w");
    let lease = worker.take();
    let settle = |fence, claim, resource: &str, actual| {
        worker.client.settle(lease.id, &Settle { fence, claim, resource: resource.into(), actual })
    };
    let free = || server.client.resource("api").unwrap().resource.free;
    settle(lease.fence, None, "api", 9).unwrap();
    assert_eq!(free(), 1);
    let claim = worker.claim(&lease, "t", &[("api", 1)], 0.0).unwrap().id;
    settle(lease.fence, Some(claim), "api", 0).unwrap();
    assert_eq!(free(), 1);
    assert_eq!(code(settle(lease.fence + 1, None, "api", 1)), "StaleLease");
    assert_eq!(code(settle(lease.fence, Some(999), "api", 1)), "UnknownTask");
    assert_eq!(code(settle(lease.fence, None, "db", 1)), "InvalidResource");
}

#[test]
fn a_holder_asks_for_a_pause() {
    let (_world, server) = server(BUCKET, &[flow("nightly", json!({}))]);
    server.submit("nightly");
    let worker = server.worker("w");
    let lease = worker.take();
    let cool = |fence, resource: &str, seconds| {
        worker.client.cooldown(lease.id, &Cooldown { fence, claim: None, resource: resource.into(), seconds })
    };
    cool(lease.fence, "api", 3_600.0).unwrap();
    let claim = worker.claim(&lease, "t", &[("api", 1)], 0.0).unwrap();
    assert_eq!(claim.state, "AwaitingResource");
    let why = server.client.why(claim.id).unwrap();
    let at = why.waiting[0].blocked_on[0].tokens_at.unwrap();
    assert!((3_500.0..=3_600.0).contains(&(at - why.waiting[0].since)), "{why:?}");
    assert_eq!(code(cool(lease.fence, "nothing", 1.0)), "UnknownResource");
    assert_eq!(code(cool(lease.fence, "db", 1.0)), "InvalidResource");
    assert_eq!(code(cool(lease.fence, "api", -1.0)), "BadRequest");
    assert_eq!(code(cool(lease.fence + 1, "api", 1.0)), "StaleLease");
}

#[test]
fn case_e14_a_waiting_run_moves_in_the_line() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({"resources": {"db": 1}}))]);
    let worker = server.worker("w");
    let [first, second, third] = [(); 3].map(|()| server.submit("nightly").id);
    let run = server.client.patch_run(third, &PatchRun { priority: 7 }).unwrap();
    assert_eq!((run.priority, run.state.as_str()), (7, "AwaitingResource"));
    let line: Vec<u64> = server.client.queue(10).unwrap().waiting.iter().map(|row| row.id).collect();
    assert_eq!(line, [third, second]);
    let event = server.events(third).pop().unwrap();
    assert_eq!(
        (event.kind.as_str(), event.reason.as_str(), event.cause.as_str()),
        ("run.priority", "from 0 to 7", "api")
    );
    let lease = worker.take();
    worker.complete(&lease);
    let ended = problem(server.client.patch_run(first, &PatchRun { priority: 1 }));
    assert_eq!((ended.status, ended.code.as_str()), (409, "RunEnded"));
    assert_eq!(code(server.client.patch_run(999, &PatchRun { priority: 1 })), "UnknownRun");
}

#[test]
fn what_is_assumed_of_unknown_work_comes_from_the_file() {
    let config = "[server]\n[gate]\nassumed_duration = \"2h\"\n[resources]\ndb = 1";
    let world = World::new(config, &[flow("nightly", json!({"resources": {"db": 1}}))]).engines(8);
    std::fs::write(world.path("shop/engine-fails"), "").unwrap();
    let server = world.start();
    let holder = server.submit("nightly");
    let waits = server.create(CreateRun { flow: "nightly".into(), ..Default::default() }).unwrap();
    let why = server.client.why(waits.id).unwrap();
    let promise = why.waiting[0].promise.clone().unwrap();
    assert!((7_199.0..7_201.0).contains(&(promise.at - holder.created_at)), "{promise:?}");
    assert_eq!((promise.decided_by.as_deref(), promise.known, promise.assumed), (Some("db"), 0, 1));
    assert_eq!(promise.latest, None);
}

#[test]
fn what_a_point_of_priority_is_worth_comes_from_the_file() {
    let needs = json!({"db": 1});
    let flows = [flow("low", json!({"resources": needs})), flow("high", json!({"resources": needs, "priority": 1}))];
    let (_world, server) = server("[server]\n[gate]\naging = \"1ms\"\n[resources]\ndb = 1", &flows);
    server.submit("low");
    let early = server.submit("low");
    let late = loop {
        let run = server.submit("high");
        if run.created_at - early.created_at > 0.002 {
            break run.id;
        }
    };
    let line: Vec<u64> = server.client.queue(10_000).unwrap().waiting.iter().map(|row| row.id).collect();
    let place = |id| line.iter().position(|other| *other == id).unwrap();
    assert!(place(early.id) < place(late), "{} and {late} in {line:?}", early.id);
}
