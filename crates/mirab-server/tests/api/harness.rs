//! A server with a home and a project of its own, and a worker in the test.
use mirab_client::{Client, ClientError, Home};
use mirab_server::{Running, ServeError, ServeOptions, start};
use mirab_wire as wire;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take that is waited for by a signal: generous, since it is only reached when something is wrong.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Parts of a server that is to be started.
pub struct World {
    pub dir: TempDir,
    options: ServeOptions,
}

impl World {
    /// A project `shop` with these flows and this `mirab.toml`. Engines are only started where a test asks for them.
    pub fn new(config: &str, flows: &[Value]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let project = write_project(&dir.path().join("shop"), config, flows);
        let mut options = ServeOptions::new(dir.path().join("home"), vec![project], interpreter());
        (options.host, options.port, options.max_engines) = (Some("127.0.0.1".into()), Some(0), Some(1));
        Self { dir, options }
    }

    pub fn with(mut self, change: impl FnOnce(&mut ServeOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// So many engines at once, whatever the machine has.
    pub fn engines(self, count: u64) -> Self {
        let config = self.dir.path().join("shop/mirab.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text.replace("[server]", "[server]\nengines_per_cpu = 64")).unwrap();
        self.with(|options| options.max_engines = Some(count))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn try_start(&self) -> Result<Server, ServeError> {
        let running = start(self.options.clone())?;
        let client = Client::of_home(&Home::at(running.home())).unwrap();
        Ok(Server { running, client })
    }

    pub fn start(&self) -> Server {
        self.try_start().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// A server of which the test's own workers are the only ones: its engines never come up.
pub fn server(config: &str, flows: &[Value]) -> (World, Server) {
    let world = World::new(config, flows).engines(8);
    std::fs::write(world.path("shop/engine-fails"), "").unwrap();
    let server = world.start();
    (world, server)
}

pub fn write_project(dir: &Path, config: &str, flows: &[Value]) -> PathBuf {
    std::fs::create_dir_all(dir).unwrap();
    let config = if config.contains("[server]") { config.to_owned() } else { format!("[server]\n{config}") };
    std::fs::write(dir.join("mirab.toml"), config).unwrap();
    std::fs::write(dir.join("flows.json"), json!({"flows": flows, "broken": []}).to_string()).unwrap();
    dir.to_owned()
}

fn interpreter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/interpreter.py")
}

/// A flow with options; it takes any parameters.
pub fn flow(name: &str, options: Value) -> Value {
    json!({"name": name, "file": "flows.py", "function": name, "options": options, "params": [], "any_params": true})
}

pub struct Server {
    pub running: Running,
    pub client: Client,
}

impl Server {
    pub fn submit(&self, flow: &str) -> wire::Run {
        self.submit_with(flow, json!({}))
    }

    pub fn submit_with(&self, flow: &str, params: Value) -> wire::Run {
        let params: Map<String, Value> = params.as_object().unwrap().clone();
        self.create(wire::CreateRun { flow: flow.into(), params, ..Default::default() }).unwrap()
    }

    pub fn create(&self, run: wire::CreateRun) -> Result<wire::Run, ClientError> {
        self.client.create_run(&run)
    }

    pub fn worker(&self, name: &str) -> Worker {
        Worker { client: Client::at(self.running.url(), None), name: name.into(), project: "shop".into() }
    }

    pub fn run(&self, id: u64) -> wire::Run {
        self.client.run(id).unwrap()
    }

    /// Waits for a run to reach a state. There is no call that waits for it yet, so this looks again and again.
    pub fn until(&self, id: u64, state: &str) -> wire::Run {
        until(&format!("run {id} to be {state}"), || Some(self.run(id)).filter(|run| run.state == state))
    }

    pub fn events(&self, id: u64) -> Vec<wire::Event> {
        self.client.run_events(id).unwrap().events
    }
}

/// Looks until there is something.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up, "waited too long for {what}");
        std::thread::yield_now();
    }
}

/// A worker of the test.
#[derive(Clone)]
pub struct Worker {
    pub client: Client,
    pub name: String,
    pub project: String,
}

static REQUESTS: AtomicU64 = AtomicU64::new(1);

impl Worker {
    pub fn request(&self, wait_s: f64) -> wire::LeaseRequest {
        let request_id = format!("r{}", REQUESTS.fetch_add(1, Ordering::Relaxed));
        wire::LeaseRequest { worker: self.name.clone(), project: self.project.clone(), request_id, wait_s }
    }

    pub fn ask(&self, request: &wire::LeaseRequest) -> Option<wire::Lease> {
        self.client.lease("default", request).unwrap().lease
    }

    /// Takes the next run, however long that takes, and takes it up.
    pub fn take(&self) -> wire::Lease {
        let lease = self.ask(&self.request(LIMIT.as_secs_f64())).expect("a run in time");
        self.beat(&lease);
        lease
    }

    pub fn take_now(&self) -> Option<wire::Lease> {
        self.ask(&self.request(0.0))
    }

    pub fn beat(&self, lease: &wire::Lease) -> bool {
        self.client.heartbeat(lease.id, &wire::Heartbeat { fence: lease.fence, wait_s: 0.0 }).unwrap().cancel
    }

    pub fn complete(&self, lease: &wire::Lease) {
        self.client.complete(lease.id, &wire::Complete { fence: lease.fence, result: None }).unwrap();
    }

    pub fn claim(
        &self,
        lease: &wire::Lease,
        key: &str,
        needs: &[(&str, u64)],
        wait_s: f64,
    ) -> Result<wire::Claim, ClientError> {
        let resources = needs.iter().map(|(name, units)| ((*name).to_owned(), *units)).collect();
        let (name, tags) = ("load".to_owned(), Vec::new());
        let request = wire::ClaimRequest {
            fence: lease.fence,
            key: key.into(),
            name,
            resources,
            tags,
            retries: 0,
            retry_delay_s: 0.0,
            max_concurrent: None,
            parent: None,
            wait_s,
        };
        self.client.claim(lease.id, &request)
    }

    pub fn end_claim(&self, lease: &wire::Lease, claim: u64) {
        let end = wire::EndClaim { fence: lease.fence, outcome: wire::Outcome::Completed, error: None };
        self.client.end_claim(lease.id, claim, &end).unwrap();
    }
}

/// The code of a refusal.
pub fn code<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> String {
    problem(answer).code
}

pub fn problem<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> wire::Problem {
    match answer {
        Err(ClientError::Problem(problem)) => problem,
        other => panic!("expected a problem, got {other:?}"),
    }
}

/// A call as anyone could make it: status, content type, body.
pub fn raw(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let agent = ureq::Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .build()
        .new_agent();
    let mut answer = agent.run(request.body(body.to_owned()).unwrap()).unwrap();
    let kind = answer.headers().get("content-type").map_or(String::new(), |kind| kind.to_str().unwrap().to_owned());
    (answer.status().as_u16(), kind, answer.body_mut().read_to_string().unwrap())
}

pub const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
