//! The real binary against an HTTP server that says exactly what the test wants.
// Each test file uses a part of it.
#![allow(dead_code)]
use mirab_client::Home;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// `METHOD PATH`, and the body.
type Request = (String, Value);
type Script = dyn Fn(&str, usize) -> (u16, Value) + Send + Sync;

/// A server, and a home that names it.
pub struct Scripted {
    pub home: TestHome,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    /// `answer` gets `METHOD PATH`, and how many requests for just that came before.
    pub fn start(answer: impl Fn(&str, usize) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let home = TestHome::new();
        home.names(&format!("http://{}", listener.local_addr().unwrap()));
        let seen = Arc::<Mutex<Vec<Request>>>::default();
        let (script, log): (Arc<Script>, _) = (Arc::new(answer), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                std::thread::spawn(move || serve(&stream.unwrap(), &*script, &log));
            }
        });
        Self { home, seen }
    }

    /// The same answer to everything.
    pub fn saying(status: u16, body: Value) -> Self {
        Self::start(move |_, _| (status, body.clone()))
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub fn mirab(&self, args: &str) -> Said {
        self.home.mirab(args)
    }
}

fn serve(stream: &TcpStream, script: &Script, seen: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    while let Some((what, body)) = read_request(&mut reader) {
        let before = {
            let mut seen = seen.lock().unwrap();
            seen.push((what.clone(), body));
            seen.iter().filter(|(each, _)| *each == what).count() - 1
        };
        let (status, body) = script(&what, before);
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
        let mut writer = stream;
        let _ = writer.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let what = line.rsplit_once(' ')?.0.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((what, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

/// What a command printed, and its exit code.
#[derive(Debug)]
pub struct Said {
    pub exit: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { exit: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A directory that is removed at the end of the test.
pub struct TestHome(PathBuf);

impl TestHome {
    pub fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("mirab-cli-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub fn names(&self, url: &str) {
        let file = Home::at(&self.0).server_path();
        std::fs::write(file, json!({"url": url, "pid": 1}).to_string()).unwrap();
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The command with this home and nothing of the environment that could change what it does.
    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mirab"));
        for name in ["MIRAB_PYTHON", "MIRAB_LOG", "MIRAB_HOST", "MIRAB_PORT", "MIRAB_MAX_ENGINES"] {
            command.env_remove(name);
        }
        command.env("MIRAB_HOME", &self.0).current_dir(&self.0).args(args.split_whitespace());
        command
    }

    /// The same with an interpreter that has the package of this repository.
    pub fn command_with_python(&self, args: &str) -> Command {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src");
        let mut command = self.command(args);
        command.env("MIRAB_PYTHON", interpreter()).env("PYTHONPATH", package).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// A program in this directory.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn mirab(&self, args: &str) -> Said {
        self.command(args).output().unwrap().into()
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The interpreter that the tests of the repository use.
pub fn interpreter() -> PathBuf {
    std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()).into()
}

/// Looks until there is something; generous, since the limit is only reached when something is wrong.
pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up, "waited too long");
        std::thread::yield_now();
    }
}

/// So many seconds ago, and half a second more, so that a test has time to print it.
pub fn ago(seconds: f64) -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() - seconds - 0.5
}

pub fn problem(status: u16, code: &str, detail: &str) -> (u16, Value) {
    (status, json!({"type": "about:blank", "title": "t", "status": status, "code": code, "detail": detail}))
}

pub fn run(id: u64, state: &str) -> Value {
    json!({
        "id": id, "project": "shop", "flow": "nightly", "state": state, "message": null, "params": {"rows": 10},
        "priority": 5, "tags": [], "needs": {"db": 1}, "attempt": 0, "created_at": ago(3_720.0), "due_at": ago(3_720.0),
        "started_at": null, "ended_at": null, "result": null, "error": null,
    })
}

/// `base` with some fields replaced.
pub fn with(mut base: Value, fields: Value) -> Value {
    let (Some(base_fields), Value::Object(fields)) = (base.as_object_mut(), fields) else { panic!("not objects") };
    base_fields.extend(fields);
    base
}
