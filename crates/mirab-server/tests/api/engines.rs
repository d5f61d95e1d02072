//! Engine processes, with an interpreter that executes runs without user code.
use crate::harness::{World, flow, until, write_project};
use mirab_wire::{AddProject, Engine, PatchSettings};
use serde_json::json;
use std::path::Path;

fn engines(server: &crate::harness::Server) -> Vec<Engine> {
    server.client.queue(1).unwrap().engines
}

fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn kill(pid: u32) {
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

fn open(path: &Path) {
    std::fs::write(path, "").unwrap();
}

#[test]
fn an_engine_is_started_kept_and_ended() {
    let world = World::new("", &[flow("nightly", json!({}))]);
    let server = world.start();
    let first = server.submit_with("nightly", json!({"result": 7}));
    assert_eq!(server.until(first.id, "Completed").result, Some(json!(7)));
    let engine = engines(&server).remove(0);
    assert_eq!((engine.worker.as_str(), engine.project.as_str()), ("engine-1", "shop"));
    let second = server.submit("nightly");
    server.until(second.id, "Completed");
    assert_eq!(engines(&server)[0].pid, engine.pid);
    assert_eq!(server.running.stop(), 0);
    until("the idle engine to end with the server", || (!is_alive(engine.pid)).then_some(()));
}

#[test]
fn a_killed_engine_frees_its_units_at_once() {
    let flows = [
        flow("nightly", json!({"resources": {"db": 1}})),
        flow("careful", json!({"resources": {"db": 1}, "crash_retries": 1})),
    ];
    let world = World::new("[resources]\ndb = 1", &flows).engines(2);
    let server = world.start();
    let gate = world.path("gate");
    let params = json!({"until": gate});
    let run = server.submit_with("nightly", params.clone());
    let next = server.submit_with("careful", params);
    server.until(run.id, "Running");
    let pid = engines(&server).iter().find(|engine| engine.run_id == Some(run.id)).unwrap().pid;
    let killed_at = std::time::Instant::now();
    kill(pid);
    let crashed = server.until(run.id, "Crashed");
    assert!(killed_at.elapsed().as_secs_f64() < 1.0, "{:?}", killed_at.elapsed());
    assert_eq!(crashed.message.as_deref(), Some("engine process ended by signal 9"));
    // The one that waited starts; its own crash costs it one of its attempts.
    server.until(next.id, "Running");
    kill(engines(&server).iter().find(|engine| engine.run_id == Some(next.id)).unwrap().pid);
    until("the second attempt", || Some(server.run(next.id)).filter(|run| run.state == "Running" && run.attempt == 2));
    open(&gate);
    assert_eq!(server.until(next.id, "Completed").attempt, 2);
}

#[test]
fn engines_go_where_the_work_is_and_are_never_too_many() {
    let world = World::new("", &[flow("a", json!({}))]);
    let server = world.start();
    let other = write_project(&world.path("other"), "", &[flow("b", json!({}))]);
    server.client.add_project(&AddProject { path: other.to_string_lossy().into_owned() }).unwrap();
    for _ in 0..3 {
        for name in ["a", "b"] {
            let run = server.submit(name);
            until("it to end", || {
                assert!(engines(&server).iter().filter(|engine| is_alive(engine.pid)).count() <= 1);
                (server.run(run.id).state == "Completed").then_some(())
            });
        }
    }
}

#[test]
fn fewer_engines_never_interrupt_work() {
    let world = World::new("", &[flow("nightly", json!({}))]).engines(3);
    let server = world.start();
    let gate = world.path("gate");
    let runs: Vec<u64> = (0..3).map(|_| server.submit_with("nightly", json!({"until": gate})).id).collect();
    for run in &runs {
        server.until(*run, "Running");
    }
    assert_eq!(server.client.patch_settings(&PatchSettings { max_engines: Some(1) }).unwrap().max_engines, 1);
    let waiting = server.submit_with("nightly", json!({"until": gate}));
    assert_eq!((engines(&server).len(), waiting.state.as_str()), (3, "Queued"));
    open(&gate);
    for run in &runs {
        assert_eq!(server.until(*run, "Completed").attempt, 1);
    }
    server.until(waiting.id, "Completed");
    until("one engine to be left", || (engines(&server).len() == 1).then_some(()));
}

#[test]
fn engines_survive_the_server_and_find_the_next_one() {
    let world = World::new("[resources]\ndb = 1", &[flow("nightly", json!({"resources": {"db": 1}}))]).engines(2);
    let server = world.start();
    let gate = world.path("gate");
    let run = server.submit_with("nightly", json!({"until": gate}));
    let waiting = server.submit("nightly");
    server.until(run.id, "Running");
    let pid = engines(&server).iter().find(|engine| engine.run_id == Some(run.id)).unwrap().pid;
    // As a crash would; the port is another one afterwards.
    drop(server);
    assert!(is_alive(pid));
    let server = world.start();
    let engine = engines(&server).into_iter().find(|engine| engine.pid == pid).unwrap();
    assert_eq!((engine.run_id, engine.state.as_str()), (Some(run.id), "busy"));
    assert_eq!(server.run(waiting.id).state, "AwaitingResource");
    open(&gate);
    assert_eq!(server.until(run.id, "Completed").attempt, 1);
    assert_eq!(server.until(waiting.id, "Completed").attempt, 1);
}

#[test]
fn an_engine_of_an_earlier_server_gets_no_new_work() {
    let world = World::new("", &[flow("nightly", json!({}))]).engines(2);
    let server = world.start();
    let gate = world.path("gate");
    let busy = server.submit_with("nightly", json!({"until": gate}));
    server.until(busy.id, "Running");
    let idle = server.submit("nightly");
    server.until(idle.id, "Completed");
    let old: Vec<u32> = engines(&server).iter().map(|engine| engine.pid).collect();
    assert_eq!(old.len(), 2);
    // As a crash would: also the idle one lives on.
    drop(server);
    let server = world.start();
    let next = server.submit_with("nightly", json!({"until": world.path("second")}));
    server.until(next.id, "Running");
    let taker = engines(&server).into_iter().find(|engine| engine.run_id == Some(next.id)).unwrap();
    assert!(!old.contains(&taker.pid), "{taker:?}");
    // The busy one ends once its run has.
    open(&gate);
    assert_eq!(server.until(busy.id, "Completed").attempt, 1);
    for pid in old {
        until("the old engines to end", || (!is_alive(pid)).then_some(()));
    }
    open(&world.path("second"));
    server.until(next.id, "Completed");
}

#[test]
fn an_engine_that_died_while_the_server_was_away_is_known_at_once() {
    let world = World::new("", &[flow("nightly", json!({}))]);
    let server = world.start();
    let run = server.submit_with("nightly", json!({"until": world.path("gate")}));
    server.until(run.id, "Running");
    let pid = engines(&server)[0].pid;
    drop(server);
    kill(pid);
    let server = world.start();
    let crashed = server.until(run.id, "Crashed");
    assert!(crashed.message.unwrap().contains("while the server was away"));
}

#[test]
fn a_graceful_stop_leaves_busy_engines_to_the_next_server() {
    let world = World::new("", &[flow("nightly", json!({}))]);
    let server = world.start();
    let gate = world.path("gate");
    let run = server.submit_with("nightly", json!({"until": gate}));
    server.until(run.id, "Running");
    let pid = engines(&server)[0].pid;
    assert_eq!(server.running.stop(), 1);
    assert!(is_alive(pid));
    let server = world.start();
    open(&gate);
    assert_eq!(server.until(run.id, "Completed").attempt, 1);
}

#[test]
fn a_cancel_reaches_the_body() {
    let world = World::new("", &[flow("nightly", json!({}))]);
    let server = world.start();
    let run = server.submit_with("nightly", json!({"until": world.path("gate")}));
    server.until(run.id, "Running");
    server.client.cancel_run(run.id).unwrap();
    server.until(run.id, "Cancelled");
}

#[test]
fn a_second_look_at_a_directory_brings_new_engines() {
    let world = World::new("", &[flow("nightly", json!({}))]);
    let server = world.start();
    let run = server.submit("nightly");
    server.until(run.id, "Completed");
    let old = engines(&server).remove(0);
    let again = AddProject { path: world.path("shop").to_string_lossy().into_owned() };
    server.client.add_project(&again).unwrap();
    let run = server.submit("nightly");
    server.until(run.id, "Completed");
    assert_ne!(
        engines(&server).into_iter().find(|engine| engine.state != "retiring").map(|engine| engine.pid),
        Some(old.pid)
    );
    until("the old engine to end", || (!is_alive(old.pid)).then_some(()));
    assert_eq!(server.client.health().unwrap().detail, None);
}
