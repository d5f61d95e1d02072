//! `mirab serve` with the real server: it starts, takes further directories, ends, and says what keeps it from starting.
mod scripted;

use scripted::{Said, TestHome, until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

const FLOW: &str = "from mirab import flow\n\n@flow\ndef nightly(rows: int = 10):\n    return rows\n";

/// A directory below the home with one flow in it.
fn project(home: &TestHome, name: &str) -> PathBuf {
    let dir = home.path().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("flows.py"), FLOW).unwrap();
    dir
}

struct Server {
    child: Child,
    line: String,
    rest: BufReader<ChildStdout>,
    warnings: PathBuf,
}

impl Server {
    /// Returns once the server has said where it is.
    fn start(home: &TestHome, args: &str) -> Self {
        let mut command = home.command_with_python(args);
        let warnings = home.path().join("warnings");
        let stderr = std::fs::File::create(&warnings).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        let mut rest = BufReader::new(child.stdout.take().unwrap());
        rest.read_line(&mut line).unwrap();
        Self { child, line, rest, warnings }
    }

    /// Waits until standard error has so many lines.
    fn warnings(&self, lines: usize) -> String {
        until(|| {
            let text = std::fs::read_to_string(&self.warnings).unwrap();
            (text.lines().count() >= lines).then_some(text)
        })
    }

    /// Asks it to end, as a service manager does; gives its exit code, and what it said on the way out.
    fn stop(mut self) -> (Option<i32>, String) {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        let mut said = String::new();
        self.rest.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mirab(home: &TestHome, args: &str) -> Said {
    home.command_with_python(args).output().unwrap().into()
}

#[test]
fn a_second_serve_adds_its_directories_to_the_first() {
    let home = TestHome::new();
    project(&home, "shop");
    project(&home, "lab");
    let server = Server::start(&home, "serve shop --port 0");
    let shown = home.path().display();
    assert!(server.line.starts_with("serving shop at http://127.0.0.1:"), "{}", server.line);
    assert!(server.line.ends_with(&format!(" (home {shown}): 1 flow\n")), "{}", server.line);
    let second = mirab(&home, "serve lab --port 80");
    assert!(second.exit == 0 && second.out.starts_with("added lab to the server at http://"), "{second:?}");
    assert!(second.out.ends_with(": 1 flow\n"), "{second:?}");
    assert!(second.err.contains("--port had no effect"), "{second:?}");
    let flows: Value = serde_json::from_str(&mirab(&home, "flows --json").out).unwrap();
    let names: Vec<_> = flows["flows"].as_array().unwrap().iter().map(|flow| flow["project"].as_str()).collect();
    assert_eq!(names, [Some("lab"), Some("shop")]);
    let said = mirab(&home, "serve nowhere");
    assert!(said.exit == 2 && said.err.contains("nowhere is not a directory"), "{said:?}");
    let said = mirab(&home, "submit nightly");
    assert!(said.exit == 4 && said.err.starts_with("error[UnknownFlow]"), "{said:?}");
    assert_eq!(server.stop(), (Some(0), String::new()));
    assert_eq!(mirab(&home, "ps").exit, 3);
}

#[test]
fn what_keeps_the_server_from_starting_is_told_with_a_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let home = TestHome::new();
    project(&home, "shop");
    std::fs::write(project(&home, "typo").join("mirab.toml"), "[server]\nprot = 1\n").unwrap();
    let bare = home.script("bare", &format!("exec {} -S \"$@\"", scripted::interpreter().display()));
    for (args, exit, told) in [
        (format!("serve shop --port {port}"), 5, "is in use by another program\nhint: "),
        ("serve typo --port 0".into(), 5, "mirab.toml:2:1: "),
        ("serve shop --port 0 --python /nowhere/python".into(), 5, "/nowhere/python cannot be started"),
        ("serve nowhere --port 0".into(), 2, "nowhere is not a directory\nhint: "),
        ("serve shop --port 0 --max-engines 0".into(), 5, "--max-engines is 0"),
    ] {
        let said = mirab(&home, &args);
        assert!(said.exit == exit && said.err.contains(told), "{args}: {said:?}");
    }
    let mut command = home.command("serve shop --port 0");
    let said = Said::from(command.env_remove("PYTHONPATH").env("MIRAB_PYTHON", bare).output().unwrap());
    assert!(said.exit == 5 && said.err.contains("has no package mirab"), "{said:?}");
}

#[test]
fn a_file_that_does_not_import_is_told_and_the_rest_is_served() {
    let home = TestHome::new();
    let dir = project(&home, "shop");
    std::fs::write(dir.join("bad.py"), "import mirab\nimport nothing_of_this_name\n").unwrap();
    let server = Server::start(&home, "serve shop --port 0");
    assert!(server.line.starts_with("serving shop"), "{}", server.line);
    let told = format!("{}/bad.py did not import: ModuleNotFoundError: No module named", dir.display());
    let warned = server.warnings(1);
    assert!(warned.starts_with(&format!("warning: {told}")) && warned.lines().count() == 1, "{warned}");
    let again = mirab(&home, "serve shop");
    assert_eq!((again.exit, again.out.as_str()), (0, "looked again at shop: 1 flow\n"));
    assert!(again.err.starts_with(&format!("warning: {told}")), "{}", again.err);
    let said = mirab(&home, "flows");
    assert!(said.out.contains("bad.py did not import: ModuleNotFoundError") && said.out.contains("shop/nightly"));
}

#[test]
fn a_directory_without_flows_is_warned_of() {
    let home = TestHome::new();
    for name in ["empty", "bare"] {
        std::fs::create_dir_all(home.path().join(name)).unwrap();
    }
    let server = Server::start(&home, "serve empty --port 0");
    assert!(server.line.ends_with(": 0 flows\n"), "{}", server.line);
    let told = |name: &str| format!("warning: no flows found in {}\n", home.path().join(name).display());
    assert_eq!(server.warnings(1), told("empty"));
    let added = mirab(&home, "serve bare");
    assert_eq!((added.exit, added.err), (0, told("bare")));
}

#[test]
fn runs_that_go_on_without_the_server_are_counted_when_it_ends() {
    let home = TestHome::new();
    let gate = home.path().join("gate");
    // Opening a FIFO to read waits until somebody opens it to write.
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let wait = format!("    open({gate:?}).close()\n");
    std::fs::write(project(&home, "shop").join("flows.py"), FLOW.replace("    return", &(wait + "    return")))
        .unwrap();
    let server = Server::start(&home, "serve shop --port 0");
    mirab(&home, "submit nightly");
    until(|| mirab(&home, "ps").out.contains("Running").then_some(()));
    let told = "1 run goes on; serve again on this home to collect it\n";
    assert_eq!(server.stop(), (Some(0), told.to_owned()));
    std::fs::write(&gate, "").unwrap();
    let server = Server::start(&home, "serve shop --port 0");
    until(|| mirab(&home, "ps").out.contains("Completed").then_some(()));
    server.stop();
}
