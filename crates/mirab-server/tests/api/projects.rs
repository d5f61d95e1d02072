//! Several directories in one server.
use crate::harness::{World, code, flow, problem, server, write_project};
use mirab_server::ServeError;
use mirab_wire::{AddProject, CreateRun};
use serde_json::json;

fn add(path: &std::path::Path) -> AddProject {
    AddProject { path: path.to_string_lossy().into_owned() }
}

#[test]
fn a_directory_is_added_to_the_running_server() {
    let (world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({}))]);
    let other = write_project(
        &world.path("other"),
        "project = \"books\"\n[resources]\ndb = 1",
        &[flow("nightly", json!({})), flow("read", json!({}))],
    );
    let project = server.client.add_project(&add(&other)).unwrap();
    assert_eq!(
        (project.name.as_str(), project.path.as_str()),
        ("books", other.canonicalize().unwrap().to_str().unwrap())
    );
    let list = server.client.flows().unwrap();
    let flows: Vec<_> = list.flows.iter().map(|flow| (flow.project.as_str(), flow.found.name.as_str())).collect();
    assert_eq!(flows, [("books", "nightly"), ("shop", "nightly"), ("books", "read")]);
    assert_eq!(list.projects.len(), 2);
    // A short name does while it is unique.
    assert_eq!(server.submit("read").project, "books");
    let ambiguous = problem(server.create(CreateRun { flow: "nightly".into(), ..Default::default() }));
    assert!(
        ambiguous.detail.contains("books/nightly") && ambiguous.detail.contains("shop/nightly"),
        "{}",
        ambiguous.detail
    );
    assert_eq!(server.submit("books/nightly").project, "books");
    assert_eq!(
        (server.client.flow("books/nightly").unwrap().live_runs, server.client.flow("shop/nightly").unwrap().live_runs),
        (1, 0)
    );
    let mut worker = server.worker("w");
    worker.project = "books".into();
    assert_eq!(worker.take().flow, "read");
    // Served again, it is looked at again.
    write_project(&other, "project = \"books\"\n[resources]\ndb = 1", &[flow("write", json!({}))]);
    server.client.add_project(&add(&other)).unwrap();
    assert_eq!(server.submit("write").project, "books");
    assert_eq!(code(server.client.flow("read")), "UnknownFlow");
}

#[test]
fn an_added_directory_brings_its_resources() {
    let (world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({}))]);
    let lab = write_project(
        &world.path("lab"),
        "[resources]\ngpu = 1\n\"api:*\" = 2",
        &[flow("train", json!({"resources": {"gpu": 1, "api:x": 2}}))],
    );
    server.client.add_project(&add(&lab)).unwrap();
    assert_eq!(server.submit("train").project, "lab");
    assert_eq!(server.client.resource("gpu").unwrap().resource.permits, Some(1));
}

#[test]
fn a_directory_that_does_not_fit_is_refused() {
    let (world, server) = server("[resources]\ndb = 1", &[flow("nightly", json!({}))]);
    let refused = |name: &str, config: &str| {
        let dir = write_project(&world.path(name), config, &[]);
        let refused = problem(server.client.add_project(&add(&dir)));
        assert_eq!((refused.code.as_str(), refused.status), ("InvalidConfig", 422), "{}", refused.detail);
        refused.detail
    };
    let differs = refused("a", "[resources]\ndb = 2");
    let full = |name: &str| world.path(name).canonicalize().unwrap().join("mirab.toml").display().to_string();
    let (here, there) = (full("a"), full("shop"));
    assert!(differs.starts_with(&format!("{here}:3:1: resource \"db\" is a semaphore of 2 here")), "{differs}");
    assert!(differs.contains(&format!("but a semaphore of 1 at {there}:")), "{differs}");
    assert!(refused("e", "[resources]\ndb =").starts_with(&full("e")));
    let doubled = refused("b", "project = \"shop\"");
    assert!(doubled.contains("project \"shop\" is served already, from"), "{doubled}");
    let elsewhere = refused("c", "port = 80");
    assert!(
        elsewhere.contains("mirab.toml:2:1: [server] port is read from the first served directory only"),
        "{elsewhere}"
    );
    let nowhere = problem(server.client.add_project(&add("/none".as_ref())));
    assert!(nowhere.code == "BadRequest" && nowhere.detail.contains("/none is not a directory"), "{}", nowhere.detail);
    let dir = write_project(&world.path("d"), "", &[]);
    std::fs::write(dir.join("discovery-fails"), "").unwrap();
    let failed = problem(server.client.add_project(&add(&dir)));
    assert_eq!(failed.code, "BadRequest");
    let failed = failed.detail;
    assert!(failed.contains("interpreter.py failed") && failed.contains("SyntaxError: bad"), "{failed}");
    assert_eq!(server.client.flows().unwrap().projects.len(), 1);
}

#[test]
fn two_directories_with_one_name_cannot_be_served() {
    let world = World::new("", &[]);
    let second = write_project(&world.path("deeper/shop"), "", &[]);
    let error = world.with(|options| options.dirs.push(second)).try_start().err().unwrap();
    assert!(matches!(&error, ServeError::DoubledProject { name, .. } if name == "shop"), "{error}");
}

#[test]
fn a_broken_file_does_not_take_the_others_down() {
    let world = World::new("", &[]);
    let broken = json!([{"file": "bad.py", "error": {"type": "SyntaxError", "message": "bad", "traceback": null}}]);
    let mut odd = flow("odd", json!({}));
    odd["options"]["on_overlap"] = json!("queue");
    let found = json!({"flows": [flow("nightly", json!({})), odd], "broken": broken});
    std::fs::write(world.path("shop/flows.json"), found.to_string()).unwrap();
    std::fs::write(world.path("shop/engine-fails"), "").unwrap();
    let server = world.start();
    let project = server.client.flows().unwrap().projects.remove(0);
    let files: Vec<_> =
        project.broken.iter().map(|broken| (broken.file.as_str(), broken.error.kind.as_str())).collect();
    assert_eq!(files, [("bad.py", "SyntaxError"), ("flows.py", "ValueError")]);
    assert_eq!(server.submit("nightly").state, "Pending");
}
