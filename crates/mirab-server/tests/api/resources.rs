//! Resources, whatever they are called.
use crate::harness::{code, flow, server};
use mirab_wire::CreateRun;
use serde_json::json;

#[test]
fn odd_names_are_created_read_and_used() {
    let names = ["a/b", "a b", "%2F", "ünïcode", "日本", "🙂", "..", ".", "?#&=+", "x'\"<>"];
    let config: String = names.iter().map(|name| format!("{} = 2\n", json!(name))).collect();
    let (_world, server) = server(&format!("[resources]\n{config}"), &[flow("nightly", json!({}))]);
    for name in names {
        let detail = server.client.resource(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((detail.resource.name.as_str(), detail.resource.permits), (name, Some(2)));
        let resources = [(name.to_owned(), 1)].into();
        let run = server.create(CreateRun { flow: "nightly".into(), resources, ..Default::default() }).unwrap();
        let used = server.client.resource(name).unwrap();
        assert_eq!((used.resource.used, used.holders[0].id), (1, run.id), "{name}");
        server.client.cancel_run(run.id).unwrap();
    }
    // Composed or not, it is one name.
    assert_eq!(server.client.resource("u\u{308}nïcode").unwrap().resource.name, "ünïcode");
}

#[test]
fn all_kinds_are_listed_with_their_origin() {
    let config = "[server]\nproject = \"shop\"\n[resources]\ndb = 4\napi = { kind = \"token_bucket\", rate = 0.5, burst = 3 }\n\
                  \"key:*\" = 1\neu = { kind = \"semaphore\", permits = 7, shard = \"eu\" }";
    let (_world, server) = server(config, &[flow("nightly", json!({"max_concurrent": 2}))]);
    let resources = [("key:acme".to_owned(), 1), ("api".to_owned(), 2)].into();
    server.create(CreateRun { flow: "nightly".into(), resources, ..Default::default() }).unwrap();
    let all = server.client.resources().unwrap().resources;
    let shown: Vec<_> = all
        .iter()
        .map(|each| (each.name.as_str(), each.kind.as_str(), each.used, each.free, each.declared_as.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("api", "token_bucket", 0, 1, "api"),
            ("db", "semaphore", 0, 4, "db"),
            ("eu", "semaphore", 0, 7, "eu"),
            ("flow:shop/nightly", "semaphore", 1, 1, "flow:shop/nightly"),
            ("key:*", "pattern", 0, 1, "key:*"),
            ("key:acme", "semaphore", 1, 0, "key:*"),
            ("pool:default", "semaphore", 1, 7, "pool:default"),
        ]
    );
    let of = |name: &str| all.iter().find(|each| each.name == name).unwrap();
    assert!(of("db").origin.as_deref().unwrap().ends_with("shop/mirab.toml:5"), "{:?}", of("db").origin);
    assert!(of("key:acme").origin.as_deref().unwrap().ends_with("mirab.toml:7"));
    assert_eq!(
        (of("pool:default").origin.as_deref(), of("api").rate, of("api").burst, of("eu").shard.as_str()),
        (None, Some(0.5), Some(3), "eu")
    );
    assert_eq!(code(server.client.resource("dbb")), "NotFound");
    let other_shard = [("eu".to_owned(), 1)].into();
    let refused = server.create(CreateRun { flow: "nightly".into(), resources: other_shard, ..Default::default() });
    assert_eq!(code(refused), "ResourceOnOtherShard");
}

#[test]
fn case_e13_every_limit_that_applies_to_a_run_is_told_with_its_value_and_origin() {
    let config = "[server]\nproject = \"shop\"\n[resources]\n\"api:*\" = 2\n\"tag:heavy\" = 3\nrate = { kind = \"token_bucket\", rate = 0.5, burst = 4 }";
    let options = json!({"max_concurrent": 5, "tags": ["heavy"], "resources": {"api:acme": 1, "rate": 1}});
    let (_world, server) = server(config, &[flow("nightly", options)]);
    let run = server.submit("nightly");
    let limits: Vec<_> = run.needs.keys().map(|name| server.client.resolve(name).unwrap()).collect();
    let told: Vec<_> = limits
        .iter()
        .map(|limit| {
            let line =
                limit.origin.as_deref().and_then(|origin| origin.rsplit_once("mirab.toml:")).map(|(_, line)| line);
            (limit.name.as_str(), limit.declared_as.as_str(), limit.limit.as_str(), line)
        })
        .collect();
    let expected = [
        ("api:acme", "api:*", "a semaphore of 2", Some("5")),
        ("flow:shop/nightly", "flow:shop/nightly", "a semaphore of 5", None),
        ("pool:default", "pool:default", "a semaphore of 8", None),
        ("rate", "rate", "a token bucket of 0.5 per second with burst 4", Some("7")),
        ("tag:heavy", "tag:heavy", "a semaphore of 3", Some("6")),
    ];
    assert_eq!(told, expected);
    // And each is the one that counts.
    for limit in limits.iter().filter(|limit| limit.name != "rate") {
        assert_eq!(server.client.resource(&limit.name).unwrap().holders[0].id, run.id, "{}", limit.name);
    }
}
