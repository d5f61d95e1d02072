//! Changing limits: what is sent to a server, and what becomes of the files when there is none.
mod scripted;

use scripted::{Said, Scripted, TestHome, problem, with};
use serde_json::{Value, json};

fn db() -> Value {
    json!({
        "name": "db", "kind": "semaphore", "permits": 2, "rate": null, "burst": null, "shard": "default", "used": 1,
        "free": 1, "waiters": 0, "declared_as": "db", "origin": "/srv/shop/mirab.toml:3", "holders": [], "first_waiters": [],
    })
}

fn sent(permits: Value, rate: Value, burst: Value) -> Value {
    json!({"kind": null, "permits": permits, "rate": rate, "burst": burst, "shard": null})
}

#[test]
fn what_is_given_is_sent() {
    for (args, body) in [
        ("db 2", sent(json!(2), Value::Null, Value::Null)),
        ("db --rate 50 --burst 100", sent(Value::Null, json!(50.0), json!(100))),
        ("db --burst 100", sent(Value::Null, Value::Null, json!(100))),
        ("db --rate 0.5", sent(Value::Null, json!(0.5), Value::Null)),
    ] {
        let server = Scripted::saying(200, db());
        let said = server.mirab(&format!("resources set {args}"));
        assert_eq!((said.exit, said.out.lines().next().unwrap()), (0, "db: semaphore, 2"), "{args}: {}", said.err);
        assert_eq!(server.seen(), [("PATCH /api/resources/db".to_owned(), body)], "{args}");
    }
    let server = Scripted::saying(200, db());
    for args in [
        "db",
        "db many",
        "db -3",
        "db --rate x",
        "db --rate nan",
        "db --rate inf",
        "db --rate 0",
        "db 3 --rate 1",
        "db 1.5",
    ] {
        let said = server.mirab(&format!("resources set {args}"));
        assert_eq!((said.exit, said.out.as_str()), (2, ""), "{args}: {}", said.err);
    }
    assert_eq!(server.seen(), []);
}

#[test]
fn a_new_name_is_declared_when_all_is_given() {
    let server = Scripted::start(|what, _| match what.starts_with("PATCH") {
        true => problem(422, "UnknownResource", "unknown resource `a/b`"),
        false => (200, with(db(), json!({"name": "a/b", "permits": 0}))),
    });
    let said = server.mirab("resources set a/b 0");
    assert_eq!((said.exit, said.out.lines().next().unwrap()), (0, "a/b: semaphore, 0 (paused)"));
    let seen: Vec<String> = server.seen().into_iter().map(|(what, _)| what).collect();
    assert_eq!(seen, ["PATCH /api/resources/a%2Fb", "PUT /api/resources/a%2Fb"]);
    // Half a token bucket is none.
    let said = server.mirab("resources set a/b --rate 5");
    assert_eq!((said.exit, said.err.contains("error[UnknownResource]")), (4, true), "{}", said.err);
}

#[test]
fn who_wins_is_told_with_those_who_do_not() {
    let server = Scripted::saying(
        200,
        json!({
            "name": "api:eu", "declared_as": "api:*", "why": "a pattern that fixes 4 characters before its `*` and 0 after",
            "origin": "/srv/shop/mirab.toml:3", "limit": "a semaphore of 1",
            "losers": [{"declared_as": "*:eu", "why": "less exact", "origin": null}],
        }),
    );
    let said = server.mirab("resources resolve api:eu");
    let told = "api:eu: a semaphore of 1, as api:* (/srv/shop/mirab.toml:3): a pattern that fixes 4 characters before its `*` and 0 \
                after\n  not *:eu: less exact\n";
    assert_eq!((said.exit, said.out.as_str()), (0, told));
    let said = server.mirab("--json resources resolve api:eu");
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["declared_as"], "api:*");
    let (status, refusal) = problem(409, "ResourceInUse", "resource \"db\" is held by 2 and waited for by 5");
    let said = Scripted::saying(status, refusal).mirab("resources delete db");
    assert_eq!((said.exit, said.out.as_str()), (4, ""));
    assert!(said.err.starts_with("error[ResourceInUse]: "), "{}", said.err);
}

/// A home that no server holds, and a directory to stand in.
struct Shop {
    home: TestHome,
    dir: TestHome,
}

impl Shop {
    fn new(config: &str) -> Self {
        let shop = Self { home: TestHome::new(), dir: TestHome::new() };
        std::fs::write(shop.dir.path().join("mirab.toml"), config).unwrap();
        shop
    }

    fn mirab(&self, args: &str) -> Said {
        let mut command = self.home.command(&format!("resources {args}"));
        command.current_dir(self.dir.path()).output().unwrap().into()
    }

    fn refused(&self, args: &str, code: &str) {
        let said = self.mirab(args);
        assert_eq!((said.exit, said.out.as_str()), (4, ""), "{args}: {}", said.err);
        assert!(said.err.starts_with(&format!("error[{code}]")), "{args}: {}", said.err);
    }
}

fn config_in(dir: &TestHome) -> String {
    std::fs::read_to_string(dir.path().join("mirab.toml")).unwrap_or_default()
}

const CONFIG: &str = "[resources]\ndb = 4      # the shared one\n";

#[test]
fn without_a_server_the_files_are_changed() {
    let shop = Shop::new(CONFIG);
    let said = shop.mirab("set db 2");
    assert_eq!((said.exit, said.out.lines().next().unwrap()), (0, "db: semaphore, 2"), "{}", said.err);
    assert!(said.err.starts_with("note: no server is running"), "{}", said.err);
    assert_eq!(config_in(&shop.dir), CONFIG.replace("db = 4", "db = 2"));
    // A new name goes to the home.
    let said = shop.mirab("set api --rate 50 --burst 100 --json");
    let api: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.exit, &api["rate"], &api["burst"]), (0, &json!(50.0), &json!(100)), "{}", said.err);
    assert_eq!(shop.mirab("set api --burst 20").exit, 0);
    assert_eq!(config_in(&shop.home), "[resources]\napi = { kind = \"token_bucket\", rate = 50.0, burst = 20 }\n");
    assert_eq!(
        shop.mirab("set api --burst 30 --shard us").out.lines().next().unwrap(),
        "api: token bucket, 50/s, burst 30"
    );
    let said = shop.mirab("delete api");
    assert_eq!((said.exit, said.out.as_str()), (0, "api is declared no more\n"), "{}", said.err);
    assert_eq!(config_in(&shop.home), "[resources]\n");
}

#[test]
fn without_a_server_the_same_is_refused() {
    let shop = Shop::new(CONFIG);
    shop.refused("set pool:x 1", "InvalidResource");
    shop.refused("set a*b* 1", "InvalidResource");
    shop.refused("set api --rate 1e308 --burst 1", "InvalidResource");
    shop.refused("set dbb --rate 5", "UnknownResource");
    shop.refused("delete dbb", "UnknownResource");
    assert_eq!((config_in(&shop.dir).as_str(), config_in(&shop.home).as_str()), (CONFIG, ""));
    std::fs::write(shop.dir.path().join("mirab.toml"), "[resources]\ndb = -1\n").unwrap();
    shop.refused("set db 3", "InvalidConfig");
}

#[test]
fn a_home_that_a_server_holds_is_not_changed_behind_its_back() {
    let shop = Shop::new(CONFIG);
    // It is alive, and nobody answers where it says.
    let _held = mirab_server::Offline::open(shop.home.path(), shop.dir.path()).unwrap();
    let server = json!({"url": "http://127.0.0.1:1", "pid": std::process::id()});
    std::fs::write(shop.home.path().join("server.json"), server.to_string()).unwrap();
    for args in ["set db 2", "delete db"] {
        let said = shop.mirab(args);
        assert_eq!((said.exit, said.out.as_str()), (3, ""), "{args}: {}", said.err);
        assert!(said.err.contains("does not answer at http://127.0.0.1:1/"), "{args}: {}", said.err);
    }
    assert_eq!(config_in(&shop.dir), CONFIG);
}
