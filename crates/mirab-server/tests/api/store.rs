//! A store that cannot be written: nothing is promised, nothing starts, nothing is lost.
use crate::harness::{code, flow, problem, raw, server, until};
use mirab_client::RunFilter;
use mirab_wire::CreateRun;
use serde_json::json;

#[test]
fn a_full_disk_is_told_and_work_goes_on_when_there_is_space() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({"resources": {"db": 1}}))]);
    let first = server.submit("nightly");
    let worker = server.worker("w");
    let lease = worker.take();
    server.running.page_limit().set(Some(1));
    // Larger than what the file still has room for.
    let params = json!({"rows": "x".repeat(100_000)}).as_object().unwrap().clone();
    let large = || server.create(CreateRun { flow: "nightly".into(), params: params.clone(), ..Default::default() });
    let refused = problem(large());
    assert_eq!((refused.code.as_str(), refused.status), ("StoreUnavailable", 503));
    assert!(refused.detail.contains("nothing was accepted"), "{}", refused.detail);
    let health = server.client.health().unwrap();
    assert_eq!(health.status, "store_unavailable");
    assert!(health.detail.unwrap().contains("full"));
    assert_eq!(raw("GET", &format!("{}/api/health", server.running.url()), &[], "").0, 503);
    // What was there is there still: the run that executes keeps its lease and its units.
    assert_eq!(server.client.runs(&RunFilter::default()).unwrap().runs.len(), 1);
    assert_eq!(server.client.resource("db").unwrap().resource.used, 1);
    assert_eq!(code(large()), "StoreUnavailable");
    server.running.page_limit().set(None);
    until("the store to be back", || Some(server.client.health().unwrap()).filter(|health| health.status == "ok"));
    let accepted = large().unwrap();
    assert_eq!(accepted.state, "AwaitingResource");
    worker.complete(&lease);
    assert_eq!((server.run(first.id).state.as_str(), worker.take().id), ("Completed", accepted.id));
}
