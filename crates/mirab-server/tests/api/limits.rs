//! Limits that change while work runs.
use super::harness::{World, code, flow, problem, server, until};
use mirab_server::{Offline, OfflineError};
use mirab_wire::ResourceChange;
use serde_json::json;

const CONFIG: &str = "\
[server]
[resources]
db = 2      # the shared one
\"api:*\" = 1
api = { kind = \"token_bucket\", rate = 5, burst = 10 }
";

fn permits(permits: u64) -> ResourceChange {
    ResourceChange { permits: Some(permits), ..ResourceChange::default() }
}

#[test]
fn a_changed_limit_counts_at_once_and_is_written_with_comments_kept() {
    let (world, server) = server(CONFIG, &[flow("wide", json!({"resources": {"db": 2}}))]);
    assert_eq!(server.client.patch_resource("db", &permits(3)).unwrap().resource.permits, Some(3));
    let text = std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap();
    assert!(text.contains("db = 3      # the shared one"), "{text}");
    let bucket = ResourceChange { rate: Some(7.0), ..ResourceChange::default() };
    let changed = server.client.patch_resource("api", &bucket).unwrap().resource;
    assert_eq!((changed.rate, changed.burst), (Some(7.0), Some(10)));
    assert!(std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap().contains("rate = 7, burst = 10"));
    // Lowered to 0 it is paused: what comes waits, and is let go when it is raised again.
    server.client.patch_resource("db", &permits(0)).unwrap();
    let run = server.submit("wide");
    assert_eq!(run.state, "AwaitingResource");
    assert_eq!(code(server.client.delete_resource("db")), "ResourceInUse");
    server.client.patch_resource("db", &permits(2)).unwrap();
    assert_eq!(server.run(run.id).state, "Pending");
    assert_eq!(code(server.client.delete_resource("db")), "ResourceInUse");
}

#[test]
fn case_e2_a_waiter_above_a_lowered_total_is_marked_until_it_is_raised() {
    let (_world, server) = server(CONFIG, &[flow("wide", json!({"resources": {"db": 2}}))]);
    let holder = server.submit("wide");
    let run = server.submit("wide");
    let is_marked = || server.client.why(run.id).unwrap().waiting[0].unsatisfiable;
    assert!(!is_marked());
    server.client.patch_resource("db", &permits(1)).unwrap();
    assert!(is_marked());
    let event = server.events(run.id).pop().unwrap();
    assert_eq!(
        (event.kind.as_str(), event.reason.as_str()),
        ("resource.unsatisfiable", "needs 2 of `db`, whose total was lowered to 1")
    );
    server.client.patch_resource("db", &permits(2)).unwrap();
    assert!(!is_marked());
    server.client.cancel_run(holder.id).unwrap();
    assert_eq!(server.run(run.id).state, "Pending");
}

#[test]
fn new_names_go_to_the_home_and_can_be_deleted() {
    let (world, server) = server(CONFIG, &[]);
    for name in ["a/b", "a b", "%2F", "ünïcode", "🙂", "tag:gpu", "slow:*"] {
        server.client.put_resource(name, &permits(4)).unwrap();
        assert_eq!(server.client.resource(name).unwrap().resource.permits, Some(4), "{name}");
    }
    let text = std::fs::read_to_string(world.path("home/mirab.toml")).unwrap();
    assert!(text.contains("\"a/b\" = 4"), "{text}");
    for name in ["a/b", "a b", "%2F", "ünïcode", "🙂", "tag:gpu", "slow:*"] {
        server.client.delete_resource(name).unwrap();
    }
    assert_eq!(std::fs::read_to_string(world.path("home/mirab.toml")).unwrap().trim(), "[resources]");
    assert_eq!(code(server.client.delete_resource("a/b")), "UnknownResource");
}

#[test]
fn case_r14_nonsense_is_refused_and_changes_nothing() {
    let (world, server) = server(CONFIG, &[]);
    let before = std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap();
    for name in ["  ", "{x}", "a*b*", "pool:x", "flow:shop/x", "backfill:1", "a\nb"] {
        assert_eq!(code(server.client.put_resource(name, &permits(1))), "InvalidResource", "{name:?}");
    }
    let bucket = |rate, burst| ResourceChange { rate: Some(rate), burst: Some(burst), ..ResourceChange::default() };
    for change in [bucket(1e308, 1), bucket(-1.0, 1), bucket(0.0, 1), bucket(1.0, 0), ResourceChange::default()] {
        assert_eq!(code(server.client.put_resource("x", &change)), "InvalidResource", "{change:?}");
    }
    assert_eq!(code(server.client.patch_resource("dbb", &permits(1))), "UnknownResource");
    assert_eq!(std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap(), before);
    assert!(!world.path("home/mirab.toml").exists());
}

#[test]
fn case_r15_an_edit_by_hand_is_not_lost() {
    let (world, server) = server(CONFIG, &[]);
    let path = world.path("shop/mirab.toml");
    // Before the server has looked, a change of the same name is told. Should it have looked just then, the next edit is tried.
    let edit = |permits: u64| {
        let text = std::fs::read_to_string(&path).unwrap();
        let line = text.lines().find(|line| line.starts_with("db = ")).unwrap();
        std::fs::write(&path, text.replace(line, &format!("db = {permits}"))).unwrap();
    };
    let conflict = (10..30).find_map(|by_hand| {
        edit(by_hand);
        let told = server.client.patch_resource("db", &permits(5));
        told.is_err().then(|| (by_hand, code(told)))
    });
    let (by_hand, told) = conflict.expect("an edit that was not seen yet is not overwritten");
    assert_eq!(told, "ConfigConflict");
    // And a change of another name keeps it.
    server.client.patch_resource("api:*", &permits(3)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"api:*\" = 3") && text.contains(&format!("db = {by_hand}")), "{text}");
    let changed = || server.client.resource("db").unwrap().resource.permits.filter(|permits| *permits == by_hand);
    until("the edit is taken over", changed);
}

#[test]
fn a_file_that_cannot_be_used_is_told_and_nothing_is_written() {
    let (world, server) = server(CONFIG, &[]);
    let path = world.path("shop/mirab.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("db = 2", "db = -3")).unwrap();
    for name in ["api:*", "db", "new"] {
        assert_eq!(code(server.client.put_resource(name, &permits(5))), "InvalidConfig", "{name}");
    }
    assert!(!world.path("home/mirab.toml").exists());
    std::fs::write(&path, text.replace("db = 2", "db = 3")).unwrap();
    let changed = || server.client.resource("db").unwrap().resource.permits.filter(|permits| *permits == 3);
    until("the mended file is read", changed);
    assert_eq!(server.client.put_resource("new", &permits(5)).unwrap().resource.permits, Some(5));
}

#[test]
fn case_e9_resolve_says_who_wins_and_why() {
    let (_world, server) = server("[resources]\n\"api:*\" = 1\n\"*:eu\" = 2\n\"api:acme\" = 5\n", &[]);
    let by_pattern = server.client.resolve("api:eu").unwrap();
    assert_eq!(by_pattern.declared_as, "api:*");
    assert_eq!(by_pattern.losers.iter().map(|loser| loser.declared_as.as_str()).collect::<Vec<_>>(), ["*:eu"]);
    assert_eq!(server.client.resolve("api:acme").unwrap().declared_as, "api:acme");
    assert_eq!(code(server.client.resolve("db")), "UnknownResource");
}

#[test]
fn case_d16_each_tenant_has_its_own_limit_by_a_parameter_of_its_run() {
    let per_tenant = flow("sync", json!({"resources": {"api:{{ order.tenant }}": 1}}));
    let (_world, server) = server("[resources]\n\"api:*\" = 1\n", &[per_tenant]);
    let submit = |tenant: &str| server.submit_with("sync", json!({"order": {"tenant": tenant}}));
    let (first, second, other) = (submit("acme"), submit("acme"), submit("zeta"));
    assert_eq!([first.state, second.state, other.state], ["Pending", "AwaitingResource", "Pending"]);
    let create = |params: serde_json::Value| mirab_wire::CreateRun {
        flow: "sync".into(),
        params: params.as_object().cloned().unwrap_or_default(),
        ..mirab_wire::CreateRun::default()
    };
    for params in
        [json!({}), json!({"order": {"tenant": ""}}), json!({"order": {"tenant": null}}), json!({"order": []})]
    {
        let refused = problem(server.create(create(params.clone())));
        assert_eq!(refused.code, "TemplateError", "{params}");
        assert!(refused.detail.contains("`order.tenant`"), "{}", refused.detail);
    }
    // A value is no way around the pattern.
    assert_eq!(code(server.create(create(json!({"order": {"tenant": "*"}})))), "InvalidResource");
}

#[test]
fn a_key_is_repeated_with_names_that_hold_parameters() {
    let (_world, server) = server("[resources]\n\"api:*\" = 9\n", &[flow("sync", json!({}))]);
    let request = |tenant: &str| mirab_wire::CreateRun {
        flow: "sync".into(),
        params: json!({"tenant": tenant, "other": "acme"}).as_object().cloned().unwrap(),
        // Two ways to say one name: their units are summed.
        resources: [("api:{{ tenant }}".into(), 1), ("api:{other}".into(), 2)].into(),
        idempotency_key: Some("k".into()),
        ..Default::default()
    };
    let first = server.create(request("acme")).unwrap();
    assert_eq!(first.needs["api:acme"], 3);
    assert_eq!(server.create(request("acme")).unwrap().id, first.id);
    assert_eq!(code(server.create(request("zeta"))), "BadRequest");
}

#[test]
fn a_replaced_declaration_leaves_its_shard() {
    let (world, server) =
        server("[resources]\napi = { kind = \"semaphore\", permits = 2, shard = \"eu\" }  # far\n", &[]);
    assert_eq!(server.client.resource("api").unwrap().resource.shard, "eu");
    let here = server.client.put_resource("api", &permits(2)).unwrap().resource;
    assert_eq!((here.shard.as_str(), here.permits), ("default", Some(2)));
    assert_eq!(server.client.resolve("api").unwrap().declared_as, "api");
    let text = std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap();
    assert!(text.contains("api = { kind = \"semaphore\", permits = 2 }  # far"), "{text}");
    // And moves to another one, where this gate does not count it.
    let there = ResourceChange { shard: Some("us".into()), ..permits(3) };
    assert_eq!(server.client.patch_resource("api", &there).unwrap().resource.shard, "us");
    assert_eq!(code(server.client.resolve("api")), "ResourceOnOtherShard");
}

#[test]
fn a_limit_that_cannot_be_stored_is_not_in_force() {
    // Names so long that the leases of eight runs need more pages than the store has.
    let names: Vec<String> = (0..12).map(|number| format!("{number:03}{}", "n".repeat(190))).collect();
    let needs: serde_json::Map<String, serde_json::Value> =
        names.iter().map(|name| (name.clone(), json!(1))).chain([("db".to_owned(), json!(1))]).collect();
    let lines: Vec<String> = names.iter().map(|name| format!("{name} = 100")).collect();
    let config = format!("[resources]\ndb = 0\n{}\n", lines.join("\n"));
    let (world, server) = server(&config, &[flow("wide", json!({"resources": needs}))]);
    let runs: Vec<u64> = (0..8).map(|_| server.submit("wide").id).collect();
    server.running.page_limit().set(Some(1));
    let before = std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap();
    assert_eq!(code(server.client.patch_resource("db", &permits(8))), "StoreUnavailable");
    assert_eq!(std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap(), before);
    server.running.page_limit().set(None);
    until("the store to be back", || Some(server.client.health().unwrap()).filter(|health| health.status == "ok"));
    assert_eq!(server.client.resource("db").unwrap().resource.permits, Some(0));
    assert!(runs.iter().all(|id| server.run(*id).state == "AwaitingResource"));
    server.client.patch_resource("db", &permits(8)).unwrap();
    assert!(runs.iter().all(|id| server.run(*id).state == "Pending"));
}

#[test]
fn changes_of_two_fields_at_once_lose_neither() {
    let (_world, server) = server(CONFIG, &[]);
    let url = server.running.url().to_owned();
    for round in 1..=30_u32 {
        let change = |change: ResourceChange| {
            let client = mirab_client::Client::at(&url, None);
            std::thread::spawn(move || client.patch_resource("api", &change).unwrap())
        };
        let rate = change(ResourceChange { rate: Some(f64::from(round)), ..ResourceChange::default() });
        let burst = change(ResourceChange { burst: Some(u64::from(round) + 10), ..ResourceChange::default() });
        rate.join().unwrap();
        burst.join().unwrap();
        let now = server.client.resource("api").unwrap().resource;
        assert_eq!((now.rate, now.burst), (Some(f64::from(round)), Some(u64::from(round) + 10)));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_and_nothing_changes() {
    let (world, server) = server(CONFIG, &[]);
    // What would be renamed to the file cannot be made, whoever runs the test.
    std::fs::create_dir(world.path(&format!("shop/.mirab.toml.{}.new", std::process::id()))).unwrap();
    let before = std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap();
    let refused = problem(server.client.patch_resource("db", &permits(7)));
    assert_eq!(refused.code, "InvalidConfig");
    assert!(refused.detail.contains("cannot be written") && refused.detail.contains("nothing was changed"));
    assert_eq!(server.client.resource("db").unwrap().resource.permits, Some(2));
    assert_eq!(std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap(), before);
}

#[test]
fn more_than_a_file_can_say_is_refused() {
    let (world, server) = server(CONFIG, &[]);
    assert_eq!(code(server.client.put_resource("db", &permits(u64::MAX))), "InvalidResource");
    let bucket = ResourceChange { burst: Some(u64::MAX), ..ResourceChange::default() };
    assert_eq!(code(server.client.patch_resource("api", &bucket)), "InvalidResource");
    assert!(!world.path("home/mirab.toml").exists());
}

#[test]
fn health_tells_of_a_file_that_cannot_be_used_until_it_is_mended() {
    let (world, server) = server(CONFIG, &[]);
    let path = world.path("shop/mirab.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let detail = || server.client.health().unwrap().detail;
    let told = || detail().filter(|detail| detail.contains("shop/mirab.toml:"));
    std::fs::write(&path, text.replace("db = 2", "db = -3")).unwrap();
    let told = until("health to tell of it", told);
    assert!(told.contains("limits stay as they were"), "{told}");
    assert_eq!(server.client.resource("db").unwrap().resource.permits, Some(2));
    std::fs::write(&path, text).unwrap();
    until("health to forget it", || detail().is_none_or(|detail| !detail.contains("mirab.toml")).then_some(()));
}

#[test]
fn what_was_edited_while_the_server_started_is_seen() {
    let world = World::new(CONFIG, &[]).engines(8);
    let path = world.path("shop/mirab.toml");
    // The fake interpreter, which looks for flows once the files are read, edits the file.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(world.path("shop/edit-while-starting"), text.replace("db = 2", "db = 6")).unwrap();
    let server = world.start();
    let changed = || server.client.resource("db").unwrap().resource.permits.filter(|permits| *permits == 6);
    until("the edit is seen", changed);
}

#[test]
fn without_a_server_what_stored_work_uses_stays() {
    let (world, server) = server(CONFIG, &[flow("wide", json!({"resources": {"db": 2}}))]);
    server.submit("wide");
    drop(server);
    let before = std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap();
    let open = || Offline::open(&world.path("home"), &world.path("shop")).unwrap();
    let elsewhere = ResourceChange { shard: Some("us".into()), ..permits(2) };
    for refused in [open().delete("db").err(), open().set("db", elsewhere).err()] {
        let Some(OfflineError::Refused(problem)) = refused else { panic!("{refused:?}") };
        assert_eq!(problem.code, "ResourceInUse");
    }
    assert_eq!(std::fs::read_to_string(world.path("shop/mirab.toml")).unwrap(), before);
    let changed = open().set("db", permits(3)).unwrap();
    assert_eq!((changed.resource.permits, changed.resource.used), (Some(3), 2));
    open().delete("api").unwrap();
    let server = world.start();
    assert_eq!(server.client.resource("db").unwrap().resource.permits, Some(3));
    assert_eq!(code(server.client.resource("api")), "NotFound");
}

#[test]
fn a_file_that_is_empty_for_a_while_takes_nothing_away_until_it_stays_so() {
    let (world, server) = server(CONFIG, &[]);
    let path = world.path("shop/mirab.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let detail = || server.client.health().unwrap().detail.unwrap_or_default();
    let told = || Some(detail()).filter(|detail| detail.contains("shop/mirab.toml no more"));
    std::fs::write(&path, "").unwrap();
    let why = until("health to tell of it", told);
    assert!(why.contains("\"api\" and 2 others stand in") && why.contains("have not changed for 5 s"), "{why}");
    // A change of another name leaves them alone, too.
    server.client.put_resource("other", &permits(1)).unwrap();
    assert_eq!(server.client.resource("db").unwrap().resource.permits, Some(2));
    std::fs::write(&path, text.replace("db = 2      # the shared one\n", "")).unwrap();
    let only_one = || Some(detail()).filter(|detail| detail.contains("\"db\" stands in"));
    until("the rest to be seen", only_one);
    assert_eq!(server.client.resource("db").unwrap().resource.permits, Some(2));
    // Nobody writes any more: it is meant.
    until("the name to go", || server.client.resource("db").is_err().then_some(()));
    assert_eq!(detail(), "");
    assert_eq!(server.client.resource("other").unwrap().resource.permits, Some(1));
}
