//! Starting a server, and what keeps it from starting.
use crate::harness::{World, flow, raw, server, until};
use mirab_client::{Client, Home};
use mirab_server::{DiscoveryError, ServeError};
use mirab_wire::Problem;
use serde_json::json;

fn error(world: &World) -> ServeError {
    match world.try_start() {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[test]
fn clients_find_the_server_through_the_home() {
    let (world, server) = server("", &[flow("nightly", json!({}))]);
    let client = Client::of_home(&Home::at(world.path("home"))).unwrap();
    let health = client.health().unwrap();
    assert_eq!((health.status.as_str(), client.url()), ("ok", server.running.url()));
    server.running.stop();
    assert!(!world.path("home/server.json").exists());
}

#[test]
fn a_second_server_on_one_home_learns_of_the_first() {
    let (world, server) = server("", &[]);
    let error = error(&world);
    assert!(matches!(&error, ServeError::AlreadyServing { url } if url == server.running.url()), "{error}");
}

#[test]
fn what_keeps_a_server_from_starting_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let in_use = error(&World::new("", &[]).with(|options| options.port = Some(port)));
    assert!(matches!(in_use, ServeError::PortInUse { .. }) && in_use.to_string().contains("--port"), "{in_use}");
    let nowhere = error(&World::new("", &[]).with(|options| options.dirs = vec!["/none".into()]));
    assert!(nowhere.to_string().contains("/none is not a directory"), "{nowhere}");
    let config = error(&World::new("[resources]\ndb = -1", &[]));
    assert!(matches!(config, ServeError::Config(_)) && config.to_string().contains("mirab.toml:3:1: "), "{config}");
    let python = error(&World::new("", &[]).with(|options| options.python = "/none/python".into()));
    assert!(matches!(python, ServeError::Discovery(DiscoveryError::NoPython { .. })), "{python}");
    let world = World::new("", &[]);
    std::fs::write(world.path("shop/no-package"), "").unwrap();
    let package = error(&world);
    assert!(matches!(package, ServeError::Discovery(DiscoveryError::NoPackage { .. })), "{package}");
    assert!(package.to_string().contains("pip install mirab"), "{package}");
    let host = error(&World::new("", &[]).with(|options| options.host = Some("203.0.113.1".into())));
    assert!(matches!(host, ServeError::Listen { .. }), "{host}");
}

#[test]
fn beyond_loopback_every_call_but_the_health_needs_the_token() {
    let world = World::new("", &[flow("nightly", json!({}))]).with(|options| options.host = Some("0.0.0.0".into()));
    std::fs::write(world.path("shop/engine-fails"), "").unwrap();
    let server = world.start();
    let url = server.running.url();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let token = std::fs::read_to_string(world.path("home/token")).unwrap();
    let status = |path: &str, header: &str| raw("GET", &format!("{url}{path}"), &[("authorization", header)], "");
    assert_eq!(status("/api/health", "").0, 200);
    for wrong in ["", "Bearer ", "Bearer x", &token, &format!("Bearer {token}x")] {
        let (code, _, body) = status("/api/runs", wrong);
        assert_eq!(
            (code, serde_json::from_str::<Problem>(&body).unwrap().code.as_str()),
            (401, "Unauthorized"),
            "{wrong}"
        );
        // Nor does anyone learn what there is.
        assert_eq!(status("/api/none", wrong).0, 401);
    }
    assert_eq!(status("/api/runs", &format!("Bearer {token}")).0, 200);
    assert_eq!(Client::of_home(&Home::at(world.path("home"))).unwrap().flows().unwrap().flows.len(), 1);
}

#[test]
fn a_page_from_elsewhere_cannot_call_under_its_own_name() {
    let (_world, server) = server("", &[]);
    let answer = |host: &str| raw("GET", &format!("{}/api/runs", server.running.url()), &[("host", host)], "").0;
    assert_eq!((answer("example.org"), answer("localhost:1")), (401, 200));
}

#[test]
fn settings_are_kept_until_they_are_given_anew() {
    let world = World::new("", &[]).engines(2).with(|options| options.max_engines = None);
    let server = world.start();
    assert_eq!(server.client.settings().unwrap().max_engines, 1);
    let patch = mirab_wire::PatchSettings { max_engines: Some(3) };
    assert_eq!(server.client.patch_settings(&patch).unwrap().max_engines, 3);
    server.running.stop();
    let server = world.start();
    assert_eq!(server.client.settings().unwrap().max_engines, 3);
    server.running.stop();
    let world = world.with(|options| options.max_engines = Some(2));
    let server = world.start();
    assert_eq!(server.client.settings().unwrap().max_engines, 2);
    server.running.stop();
    // A flag outranks what was set, and does not outlive its server.
    let server = world.with(|options| options.max_engines = None).start();
    assert_eq!(server.client.settings().unwrap().max_engines, 3);
}

#[test]
fn a_restart_keeps_what_waits_and_what_is_held() {
    let flows = [flow("nightly", json!({"resources": {"db": 1}}))];
    let world = World::new("[resources]\ndb = 1", &flows).engines(8);
    std::fs::write(world.path("shop/engine-fails"), "").unwrap();
    let server = world.start();
    let (first, second) = (server.submit("nightly"), server.submit("nightly"));
    let lease = server.worker("w").take();
    // As a crash would.
    drop(server);
    let server = world.start();
    assert_eq!(
        (server.run(first.id).state.as_str(), server.run(second.id).state.as_str()),
        ("Running", "AwaitingResource")
    );
    assert_eq!(server.client.resource("db").unwrap().holders[0].id, first.id);
    let third = server.submit("nightly");
    assert_eq!(third.state, "AwaitingResource");
    let worker = server.worker("w");
    worker.beat(&lease);
    worker.complete(&lease);
    assert_eq!(worker.take().id, second.id);
}

#[test]
fn a_project_with_unfinished_runs_is_served_again() {
    let (world, first) = server("", &[]);
    let other = crate::harness::write_project(&world.path("other"), "", &[flow("read", json!({}))]);
    std::fs::write(other.join("engine-fails"), "").unwrap();
    let broken = crate::harness::write_project(&world.path("broken"), "", &[flow("tear", json!({}))]);
    first.client.add_project(&mirab_wire::AddProject { path: broken.to_string_lossy().into_owned() }).unwrap();
    first.submit("tear");
    first.client.add_project(&mirab_wire::AddProject { path: other.to_string_lossy().into_owned() }).unwrap();
    let run = first.submit("read");
    drop(first);
    // What only a first directory may say does not matter here, and a mistake keeps no other project from being served.
    std::fs::write(other.join("mirab.toml"), "[server]\nmax_engines = 1\n").unwrap();
    std::fs::write(broken.join("mirab.toml"), "[resources]\ndb = -1\n").unwrap();
    let server = world.start();
    assert_eq!(server.client.flow("read").unwrap().project, "other");
    let mut worker = server.worker("w");
    worker.project = "other".into();
    assert_eq!(worker.take().id, run.id);
}

#[test]
fn engines_that_fail_at_start_are_not_started_without_end() {
    let (world, server) = server("", &[flow("nightly", json!({}))]);
    let run = server.submit("nightly");
    let detail = until("the trouble to show", || server.client.health().unwrap().detail);
    assert!(detail.contains("project shop") && detail.contains("ImportError: no engine today"), "{detail}");
    let why = server.client.why(run.id).unwrap();
    assert!(why.reason.contains("ImportError"), "{}", why.reason);
    let logs = || {
        std::fs::read_dir(world.path("home/logs"))
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("engine-"))
            .count()
    };
    let (before, since) = (logs(), std::time::Instant::now());
    until("a few more tries", || (logs() >= before + 3).then_some(()));
    // Doubling from 200 ms, three more tries take at least 0.4 + 0.8 s.
    assert!(since.elapsed().as_secs_f64() > 0.5, "{:?}", since.elapsed());
}
