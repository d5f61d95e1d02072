//! `mirab serve` with the real server: it starts, takes further directories, ends, and says what keeps it from starting.
mod scripted;

use scripted::{Said, TestHome};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

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
}

impl Server {
    /// Returns once the server has said where it is.
    fn start(home: &TestHome, args: &str) -> Self {
        let mut command = home.command_with_python(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, line }
    }

    /// Asks it to end, as a service manager does.
    fn stop(mut self) -> Option<i32> {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap().code()
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
    assert!(server.line.ends_with(&format!(" (home {shown})\n")), "{}", server.line);
    let second = mirab(&home, "serve lab --port 80");
    assert!(second.exit == 0 && second.out.starts_with("added lab to the server at http://"), "{second:?}");
    assert!(second.err.contains("--port had no effect"), "{second:?}");
    let flows: Value = serde_json::from_str(&mirab(&home, "flows --json").out).unwrap();
    let names: Vec<_> = flows["flows"].as_array().unwrap().iter().map(|flow| flow["project"].as_str()).collect();
    assert_eq!(names, [Some("lab"), Some("shop")]);
    let said = mirab(&home, "serve nowhere");
    assert!(said.exit == 2 && said.err.contains("nowhere is not a directory"), "{said:?}");
    let said = mirab(&home, "submit nightly");
    assert!(said.exit == 4 && said.err.starts_with("error[UnknownFlow]"), "{said:?}");
    assert_eq!(server.stop(), Some(0));
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
    let said = mirab(&home, "flows");
    assert!(said.out.contains("bad.py did not import: ModuleNotFoundError") && said.out.contains("shop/nightly"));
}
