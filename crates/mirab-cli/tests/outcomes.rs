//! Submitting, waiting, cancelling: what is sent, what is printed, and the exit codes.
mod scripted;

use scripted::{Scripted, TestHome, problem, run, with};
use serde_json::json;
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_submission_sends_what_was_given_and_prints_id_and_state() {
    let server = Scripted::saying(201, run(41, "AwaitingResource"));
    let said = server.mirab("submit nightly -p rows=3 --tag a --resource gpu=2 --priority -1 --key k --at 12.5");
    assert_eq!((said.exit, said.out.as_str()), (0, "run 41 AwaitingResource\n"));
    let sent = json!({
        "flow": "nightly", "params": {"rows": 3}, "priority": -1, "tags": ["a"], "resources": {"gpu": 2},
        "scheduled_at": 12.5, "idempotency_key": "k",
    });
    assert_eq!(server.seen(), [("POST /api/runs".to_owned(), sent)]);
}

#[test]
fn waiting_follows_the_run_over_a_restart_of_the_server() {
    let server = Scripted::start(|what, before| match (what, before) {
        ("POST /api/runs", _) => (201, run(41, "Queued")),
        (_, 0) => (200, run(41, "Running")),
        (_, 1) => problem(503, "StoreUnavailable", "the disk is full"),
        _ => (200, with(run(41, "Completed"), json!({"result": 10}))),
    });
    let said = server.mirab("submit nightly --wait");
    assert_eq!((said.exit, said.out.as_str()), (0, "run 41 Queued\nrun 41 Completed\n10\n"));
    let said = server.mirab("submit nightly --wait --json");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&said.out).unwrap()["result"], 10);
}

#[test]
fn a_run_that_did_not_complete_is_told_with_its_reason() {
    let server = Scripted::start(|what, _| match what {
        "POST /api/runs" => (201, run(41, "Pending")),
        _ => (200, with(run(41, "Failed"), json!({"error": {"type": "ValueError", "message": "no rows"}}))),
    });
    let said = server.mirab("submit nightly --wait");
    assert_eq!((said.exit, said.out.as_str()), (1, "run 41 Pending\nrun 41 Failed: ValueError: no rows\n"));
}

#[test]
fn a_run_that_is_skipped_at_once_is_waited_for_no_longer() {
    let skipped = with(run(41, "Skipped"), json!({"message": "previous run still active"}));
    let server = Scripted::saying(201, skipped);
    let said = server.mirab("submit nightly --wait");
    assert_eq!((said.exit, said.out.as_str()), (1, "run 41 Skipped: previous run still active\n"));
    assert_eq!(server.mirab("submit nightly").exit, 0);
}

#[test]
fn cancel_goes_on_after_a_refusal_and_keeps_its_exit_code() {
    let server = Scripted::start(|what, _| match what {
        "POST /api/runs/7/cancel" => problem(404, "UnknownRun", "unknown run 7: no run has this id"),
        _ => (200, run(41, "Cancelling")),
    });
    let said = server.mirab("cancel 7 41");
    assert_eq!((said.exit, said.out.as_str()), (4, "run 41 Cancelling\n"));
    let told = "error[UnknownRun]: unknown run 7: no run has this id\n\
                hint: `mirab ps` lists the runs of this home, `mirab queue` the tasks that wait\n";
    assert_eq!(said.err, told);
}

#[test]
fn cancelling_what_has_ended_says_so() {
    let server = Scripted::saying(200, run(1, "Completed"));
    let said = server.mirab("cancel 1");
    assert_eq!((said.exit, said.out.as_str()), (0, "run 1 had ended already: Completed\n"));
    // It ended between the look and the cancel.
    let server = Scripted::start(|what, _| (200, run(1, if what.starts_with("GET") { "Running" } else { "Failed" })));
    assert_eq!(server.mirab("cancel 1").out, "run 1 had ended already: Failed\n");
    let server = Scripted::start(|what, _| (200, run(1, if what.starts_with("GET") { "Queued" } else { "Cancelled" })));
    assert_eq!(server.mirab("cancel 1").out, "run 1 Cancelled\n");
}

#[test]
fn a_number_for_a_text_is_refused_with_the_way_to_quote_it() {
    let detail = r#"parameter "name" of flow "nightly" is the number 7, expected str"#;
    let (status, refusal) = problem(422, "InvalidParams", detail);
    let server = Scripted::saying(status, refusal);
    let said = server.mirab("submit nightly -p rows=3 -p name=7");
    assert!(said.err.ends_with("hint: to give it as text, quote it: -p name='\"7\"'\n"), "{}", said.err);
    let said = server.mirab("submit nightly -p rows=3");
    assert!(said.exit == 4 && !said.err.contains("hint"), "{}", said.err);
}

#[test]
fn each_kind_of_error_has_its_exit_code() {
    let home = TestHome::new();
    let said = home.mirab("ps");
    assert_eq!(said.exit, 3);
    let told = format!("error: no server is running on the home {}\nhint: start one", home.path().display());
    assert!(said.err.starts_with(&told), "{}", said.err);
    // Nobody listens on port 1.
    home.names("http://127.0.0.1:1");
    assert_eq!(home.mirab("why 3").exit, 3);
    assert_eq!(home.mirab("why three").exit, 2);
    assert_eq!(home.mirab("submit f -p a=1 -p a=2").exit, 2);
    assert_eq!(home.mirab("").exit, 2);
    assert_eq!(home.mirab("--version").exit, 0);
    let (status, internal) = problem(500, "Internal", "the server failed on this request");
    assert_eq!(Scripted::saying(status, internal).mirab("queue").exit, 70);
    assert_eq!(Scripted::saying(200, json!({"hello": "world"})).mirab("queue").exit, 3);
}

#[test]
fn help_lists_the_exit_codes() {
    let said = TestHome::new().mirab("help");
    assert_eq!(said.exit, 0);
    for line in ["Exit codes:", "  3   no server", "  70  a bug"] {
        assert!(said.out.contains(line), "{}", said.out);
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let runs: Vec<_> = (0..2_000).map(|id| run(id, "Completed")).collect();
    let server = Scripted::saying(200, json!({"runs": runs, "next_cursor": null}));
    let mut command = server.home.command("ps");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
}
