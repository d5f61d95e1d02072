//! A real HTTP server of a few lines that answers from a script, and a home that names it.
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What the script says to one request.
pub enum Answer {
    /// An answer with this status and body.
    Json(u16, Value),
    /// The connection is cut after the request was read: its answer is lost.
    Drop,
    /// No answer as long as the client waits.
    Hold,
}

impl Answer {
    pub fn json(status: u16, body: Value) -> Self {
        Self::Json(status, body)
    }
}

pub fn problem(status: u16, code: &str) -> Answer {
    let body = json!({"type": "about:blank", "title": "t", "status": status, "code": code, "detail": "d"});
    Answer::json(status, body)
}

pub fn lease(id: u64, fence: u64) -> Answer {
    let lease = json!({
        "id": id, "fence": fence, "ttl_s": 15.0, "heartbeat_s": 5.0, "flow": "nightly", "file": "nightly.py",
        "function": "nightly", "params": {}, "attempt": 1,
    });
    Answer::json(200, json!({"lease": lease, "retire": false}))
}

type Script = Arc<dyn Fn(usize, &Value) -> Answer + Send + Sync>;

#[derive(Default)]
struct Scripts {
    by_end: HashMap<String, Script>,
    seen: HashMap<String, Vec<Value>>,
}

/// Answers requests whose path ends in a scripted text; the longest such text wins.
pub struct ScriptedServer {
    port: u16,
    scripts: Arc<Mutex<Scripts>>,
}

impl ScriptedServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let scripts = Arc::new(Mutex::new(Scripts::default()));
        let shared = Arc::clone(&scripts);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let scripts = Arc::clone(&shared);
                std::thread::spawn(move || serve(&scripts, stream.unwrap()));
            }
        });
        Self { port, scripts }
    }

    /// `answer` gets how many such requests came before, and the body.
    pub fn on(&self, end: &str, answer: impl Fn(usize, &Value) -> Answer + Send + Sync + 'static) {
        self.scripts.lock().unwrap().by_end.insert(end.into(), Arc::new(answer));
    }

    pub fn seen(&self, end: &str) -> Vec<Value> {
        self.scripts.lock().unwrap().seen.get(end).cloned().unwrap_or_default()
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn serve(scripts: &Mutex<Scripts>, stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((path, body)) = read_request(&mut reader) {
        match decide(scripts, &path, &body) {
            Answer::Drop => return,
            // The client gives up first: reading ends when it closes.
            Answer::Hold => return drop(reader.read_to_end(&mut Vec::new())),
            Answer::Json(status, body) => {
                let body = body.to_string();
                let head =
                    format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
                let _ = (&stream).write_all(format!("{head}\r\n\r\n{body}").as_bytes());
            }
        }
    }
}

fn decide(scripts: &Mutex<Scripts>, path: &str, body: &Value) -> Answer {
    let (number, script) = {
        let mut scripts = scripts.lock().unwrap();
        let ends = scripts.by_end.keys().filter(|end| path.ends_with(end.as_str()));
        let Some(end) = ends.max_by_key(|end| end.len()).cloned() else {
            return problem(404, "NotScripted");
        };
        let seen = scripts.seen.entry(end.clone()).or_default();
        seen.push(body.clone());
        (seen.len() - 1, Arc::clone(&scripts.by_end[&end]))
    };
    script(number, body)
}

fn read_request(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
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
    Some((path, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

/// A directory that is removed at the end of the test.
pub struct TestHome(PathBuf);

impl TestHome {
    pub fn empty() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("mirab-client-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn of(server: &ScriptedServer) -> Self {
        let home = Self::empty();
        write_server_file(&home.file(), &server.url());
        home
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("server.json")
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn write_server_file(path: &Path, url: &str) {
    std::fs::write(path, json!({"url": url, "pid": 1}).to_string()).unwrap();
}
