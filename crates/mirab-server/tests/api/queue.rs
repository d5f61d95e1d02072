//! What waits, and why.
use crate::harness::{flow, server};
use serde_json::json;

#[test]
fn every_waiting_run_says_what_it_is_short_of_and_who_has_it() {
    let config = "[resources]\ndb = 1\ngpu = 2";
    let both = flow("both", json!({"resources": {"db": 1, "gpu": 2}}));
    let (_world, server) = server(
        config,
        &[flow("db", json!({"resources": {"db": 1}})), flow("gpu", json!({"resources": {"gpu": 1}})), both],
    );
    let (db, gpu) = (server.submit("db"), server.submit("gpu"));
    let waiting = server.submit("both");
    assert_eq!(waiting.state, "AwaitingResource");
    let queue = server.client.queue(10).unwrap();
    assert_eq!((queue.total, queue.waiting.len()), (1, 1));
    let row = &queue.waiting[0];
    assert_eq!((row.id, row.kind.as_str(), row.run_id, row.position), (waiting.id, "run", waiting.id, 1));
    assert_eq!((row.project.as_str(), row.name.as_str(), row.state.as_str()), ("shop", "both", "AwaitingResource"));
    let blocked: Vec<_> =
        row.blocked_on.iter().map(|on| (on.resource.as_str(), on.need, on.free, on.holders[0].run_id)).collect();
    assert_eq!(blocked, [("db", 1, 0, db.id), ("gpu", 2, 1, gpu.id)]);
    assert_eq!(row.blocked_on[0].holders[0].name, "db");
    let why = server.client.why(waiting.id).unwrap();
    assert_eq!((why.state.as_str(), why.waiting.len()), ("AwaitingResource", 1));
    assert!(why.reason.contains("`db`") && why.reason.contains("`gpu`"), "{}", why.reason);
    let held = server.client.resource("db").unwrap();
    assert_eq!((held.resource.used, held.resource.free, held.resource.waiters), (1, 0, 1));
    assert_eq!((held.holders[0].run_id, held.first_waiters), (db.id, vec![waiting.id]));
}

#[test]
fn waiting_for_an_engine_is_a_reason_of_its_own() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    for _ in 0..8 {
        server.submit("nightly");
    }
    let ninth = server.submit("nightly");
    assert_eq!(ninth.state, "Queued");
    let why = server.client.why(ninth.id).unwrap();
    assert!(why.reason.contains("all 8 engines are busy"), "{}", why.reason);
    let pools = server.client.pools().unwrap();
    assert_eq!(
        pools.iter().map(|pool| (pool.name.as_str(), pool.slots, pool.used, pool.waiting)).collect::<Vec<_>>(),
        [("default", 8, 8, 1)]
    );
}

#[test]
fn the_line_is_in_order_of_rank() {
    let flows =
        [flow("low", json!({"resources": {"db": 1}})), flow("high", json!({"resources": {"db": 1}, "priority": 9}))];
    let (_world, server) = server("[resources]\ndb = 1", &flows);
    server.submit("low");
    let (low, high) = (server.submit("low").id, server.submit("high").id);
    let line: Vec<_> = server.client.queue(10).unwrap().waiting.iter().map(|row| (row.position, row.id)).collect();
    assert_eq!(line, [(1, high), (2, low)]);
    assert_eq!(server.client.queue(1).unwrap().waiting.len(), 1);
    let filtered: serde_json::Value = get(&format!("{}/api/queue?project=none", server.running.url()));
    assert_eq!((filtered["waiting"].as_array().unwrap().len(), &filtered["total"]), (0, &json!(2)));
}

#[test]
fn a_row_names_the_latest_who_passed_it_and_why_names_all() {
    // Nothing is kept idle for what waits for a paused resource.
    let flows =
        [flow("large", json!({"resources": {"db": 10, "gpu": 1}})), flow("small", json!({"resources": {"db": 1}}))];
    let (_world, server) = server("[resources]\ndb = 10\ngpu = 0", &flows);
    let large = server.submit("large").id;
    let small: Vec<u64> = (0..7).map(|_| server.submit("small").id).collect();
    let on_db = |row: &mirab_wire::Waiting| {
        let blocker = row.blocked_on.iter().find(|on| on.resource == "db").unwrap();
        (blocker.passed_by.clone(), blocker.passed_by_total)
    };
    assert_eq!(on_db(&server.client.why(large).unwrap().waiting[0]), (small.clone(), 7));
    assert_eq!(on_db(&server.client.queue(10).unwrap().waiting[0]), (small[2..].to_vec(), 7));
}

fn get(url: &str) -> serde_json::Value {
    serde_json::from_str(&crate::harness::raw("GET", url, &[], "").2).unwrap()
}
