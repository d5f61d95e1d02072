//! Runs: created, listed, shown.
use crate::harness::{code, flow, problem, server};
use mirab_client::RunFilter;
use mirab_wire::CreateRun;
use serde_json::json;

#[test]
fn a_run_goes_from_submission_to_completed() {
    let (_world, server) =
        server("[resources]\ndb = 1", &[flow("nightly", json!({"resources": {"db": 1}, "priority": 5}))]);
    let run = server.submit_with("nightly", json!({"rows": 3}));
    assert_eq!((run.state.as_str(), run.project.as_str(), run.priority), ("Pending", "shop", 5));
    assert_eq!(run.needs, [("db".to_owned(), 1), ("pool:default".to_owned(), 1)].into());
    let worker = server.worker("w");
    let lease = worker.take();
    assert_eq!((lease.id, lease.flow.as_str(), lease.file.as_str(), lease.attempt), (run.id, "nightly", "flows.py", 1));
    assert_eq!(lease.params["rows"], 3);
    let result = Some(json!({"rows": 3}));
    worker.client.complete(lease.id, &mirab_wire::Complete { fence: lease.fence, result: result.clone() }).unwrap();
    let run = server.run(run.id);
    assert_eq!((run.state.as_str(), run.attempt, run.result), ("Completed", 1, result));
    assert!(run.created_at > 1.6e9 && run.started_at <= run.ended_at);
    let states: Vec<_> = server.events(run.id).into_iter().filter_map(|event| event.state).collect();
    assert_eq!(states, ["Waiting", "Pending", "Running", "Completed"]);
}

#[test]
fn requests_that_make_no_sense_are_refused_before_anything_is_stored() {
    let param = json!([{"name": "rows", "required": true, "annotation": "int", "default": null}]);
    let typed = json!({"name": "typed", "file": "a.py", "function": "typed", "options": {}, "params": param});
    let (_world, server) = server("[resources]\ndb = 2", &[flow("nightly", json!({})), typed]);
    let run = |flow: &str| CreateRun { flow: flow.into(), ..Default::default() };
    let with = |name: &str, units| CreateRun { resources: [(name.to_owned(), units)].into(), ..run("nightly") };
    let unknown = problem(server.create(with("dbb", 1)));
    assert_eq!((unknown.code.as_str(), unknown.status, unknown.kind.as_str()), ("UnknownResource", 422, "about:blank"));
    assert!(unknown.detail.contains("did you mean db?"), "{}", unknown.detail);
    assert_eq!(code(server.create(with("db", 9))), "ResourceExceedsCapacity");
    assert_eq!(code(server.create(with("db", 0))), "InvalidResource");
    assert_eq!(code(server.create(with("flow:shop/x", 1))), "InvalidResource");
    assert_eq!(code(server.create(run("nightli"))), "UnknownFlow");
    let missing = problem(server.create(run("typed")));
    assert_eq!((missing.code.as_str(), missing.status), ("InvalidParams", 422));
    let params = json!({"rows": "many"}).as_object().unwrap().clone();
    assert_eq!(code(server.create(CreateRun { params, ..run("typed") })), "InvalidParams");
    assert_eq!(code(server.create(CreateRun { scheduled_at: Some(-1.0), ..run("nightly") })), "BadRequest");
    assert_eq!(server.client.runs(&RunFilter::default()).unwrap().runs, []);
    assert_eq!(code(server.client.run(4711)), "UnknownRun");
    assert_eq!(code(server.client.run_events(4711)), "UnknownRun");
    assert_eq!(code(server.client.run_tasks(4711)), "UnknownRun");
    let nobody = problem(server.client.why(4711));
    assert_eq!(nobody.code, "UnknownRun");
    assert!(nobody.detail.contains("no task of a live run, has this id") && !nobody.detail.contains("GET"));
    assert_eq!(code(server.client.cancel_run(4711)), "UnknownRun");
}

#[test]
fn the_same_key_is_the_same_run() {
    let (_world, server) = server("", &[flow("nightly", json!({})), flow("other", json!({}))]);
    let request = CreateRun { flow: "nightly".into(), idempotency_key: Some("k".into()), ..Default::default() };
    let first = server.create(request.clone()).unwrap();
    let worker = server.worker("w");
    let lease = worker.take();
    worker.complete(&lease);
    // Ended or not, in another order or not: it stays the same.
    let again = server.create(CreateRun { flow: "shop/nightly".into(), ..request.clone() }).unwrap();
    assert_eq!((again.id, again.state.as_str()), (first.id, "Completed"));
    let other = problem(server.create(CreateRun { flow: "other".into(), ..request.clone() }));
    assert_eq!(other.code, "BadRequest");
    assert!(other.detail.contains("use a new key"), "{}", other.detail);
    let params = json!({"a": 1}).as_object().unwrap().clone();
    assert_eq!(code(server.create(CreateRun { params, ..request })), "BadRequest");
}

#[test]
fn a_repeated_request_is_the_same_after_its_priority_was_edited() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    let request = |priority| CreateRun {
        flow: "nightly".into(),
        priority: Some(priority),
        idempotency_key: Some("k".into()),
        ..Default::default()
    };
    let first = server.create(request(1)).unwrap();
    assert_eq!(code(server.create(request(2))), "BadRequest");
    server.client.patch_run(first.id, &mirab_wire::PatchRun { priority: 9 }).unwrap();
    assert_eq!(server.create(request(1)).map(|run| (run.id, run.priority)).unwrap(), (first.id, 9));
}

#[test]
fn a_repeated_request_is_the_same_however_it_spells_a_name() {
    let (_world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({}))]);
    let resources = [(" db ".to_owned(), 1)].into();
    let request =
        CreateRun { flow: "nightly".into(), idempotency_key: Some("k".into()), resources, ..Default::default() };
    let first = server.create(request.clone()).unwrap();
    assert_eq!(server.create(request.clone()).unwrap().id, first.id);
    let resources = [("db".to_owned(), 1)].into();
    assert_eq!(server.create(CreateRun { resources, ..request }).unwrap().id, first.id);
}

#[test]
fn lists_are_filtered_and_paged() {
    let (_world, server) =
        server("[resources]\ndb = 1", &[flow("a", json!({"resources": {"db": 1}})), flow("b", json!({}))]);
    let ids: Vec<u64> = (0..5).map(|_| server.submit("a").id).collect();
    let b = server.submit("b").id;
    let list = |filter: RunFilter| server.client.runs(&filter).unwrap();
    let all = RunFilter::default;
    let page = list(RunFilter { limit: Some(2), ..all() });
    assert_eq!(page.runs.iter().map(|run| run.id).collect::<Vec<_>>(), [b, ids[4]]);
    let next = list(RunFilter { limit: Some(2), cursor: page.next_cursor, ..all() });
    assert_eq!(next.runs.iter().map(|run| run.id).collect::<Vec<_>>(), [ids[3], ids[2]]);
    let state = |state: &str| list(RunFilter { state: Some(state.into()), ..all() }).runs;
    assert_eq!((state("AwaitingResource").len(), state("Queued").len(), state("Pending").len()), (4, 0, 2));
    assert_eq!(state("AwaitingResource,Pending").len(), 6);
    assert!(state("AwaitingResource").iter().all(|run| run.state == "AwaitingResource"));
    let flow = |flow: &str| list(RunFilter { flow: Some(flow.into()), ..all() }).runs.len();
    assert_eq!((flow("a"), flow("shop/b"), flow("none")), (5, 1, 0));
    assert_eq!(list(RunFilter { project: Some("other".into()), ..all() }).runs, []);
    let unknown = problem(server.client.runs(&RunFilter { state: Some("Done".into()), ..all() }));
    assert!(unknown.detail.contains("\"Done\" is no state, expected one of Queued"), "{}", unknown.detail);
    assert_eq!(code(server.client.runs(&RunFilter { limit: Some(0), ..all() })), "BadRequest");
}

#[test]
fn a_second_run_is_skipped_while_the_first_is_active() {
    let options = json!({"max_concurrent": 1, "on_overlap": "skip"});
    let (_world, server) = server("", &[flow("nightly", options)]);
    let first = server.submit("nightly");
    let second = server.submit("nightly");
    assert_eq!((second.state.as_str(), second.message.as_deref()), ("Skipped", Some("previous run still active")));
    assert!(
        server
            .events(second.id)
            .iter()
            .any(|event| event.kind == "run.skipped" && event.reason == "previous run still active")
    );
    let worker = server.worker("w");
    let lease = worker.take();
    assert_eq!(lease.id, first.id);
    worker.complete(&lease);
    assert_eq!(server.submit("nightly").state, "Pending");
}

#[test]
fn a_scheduled_run_joins_the_line_when_it_is_due() {
    let (_world, server) = server("", &[flow("nightly", json!({}))]);
    let now = server.submit("nightly").created_at;
    let later = CreateRun { flow: "nightly".into(), scheduled_at: Some(now + 0.3), ..Default::default() };
    let run = server.create(later).unwrap();
    assert_eq!(run.state, "Scheduled");
    let worker = server.worker("w");
    let first = worker.take();
    worker.complete(&first);
    // The long poll is what waits.
    let lease = worker.take();
    assert_eq!(lease.id, run.id);
    assert!(server.run(run.id).started_at.unwrap() >= now + 0.3);
}
