//! One method per route.
use crate::http::{Endpoint, agent, encode};
use crate::{Home, Result};
use mirab_wire as wire;
use serde::de::DeserializeOwned;

const NO_BODY: Option<&()> = None;

/// A server, typed. Every method is one blocking call.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
}

/// Which runs to list; `None` means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// State, as in product words: `Running`, `Completed`, ...
    pub state: Option<String>,
    /// Short name of the flow.
    pub flow: Option<String>,
    /// Project.
    pub project: Option<String>,
    /// At most so many.
    pub limit: Option<u64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<u64>,
}

impl RunFilter {
    fn query(&self) -> String {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let pairs = [
            ("state", self.state.clone()),
            ("flow", self.flow.clone()),
            ("project", self.project.clone()),
            ("limit", number(self.limit)),
            ("cursor", number(self.cursor)),
        ];
        let given = pairs.into_iter().filter_map(|(key, value)| value.map(|value| format!("{key}={}", encode(&value))));
        given.collect::<Vec<_>>().join("&")
    }
}

impl Client {
    /// The server of a home.
    pub fn of_home(home: &Home) -> Result<Self> {
        Self::with_agent(home, agent())
    }

    pub(crate) fn with_agent(home: &Home, agent: ureq::Agent) -> Result<Self> {
        let base = home.server()?.url.trim_end_matches('/').to_owned();
        Ok(Self { endpoint: Endpoint { agent, base, token: home.token()? } })
    }

    /// A server at a base URL such as `http://127.0.0.1:4747`.
    pub fn at(url: &str, token: Option<String>) -> Self {
        Self { endpoint: Endpoint { agent: agent(), base: url.trim_end_matches('/').to_owned(), token } }
    }

    /// The base URL.
    pub fn url(&self) -> &str {
        &self.endpoint.base
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.endpoint.call("GET", path, NO_BODY, 0.0)
    }

    /// `POST /runs`.
    pub fn create_run(&self, run: &wire::CreateRun) -> Result<wire::Run> {
        self.endpoint.call("POST", "/api/runs", Some(run), 0.0)
    }

    /// `GET /runs`.
    pub fn runs(&self, filter: &RunFilter) -> Result<wire::RunList> {
        self.get(&format!("/api/runs?{}", filter.query()))
    }

    /// `GET /runs/{id}`.
    pub fn run(&self, id: u64) -> Result<wire::Run> {
        self.get(&format!("/api/runs/{id}"))
    }

    /// `GET /runs/{id}/events`.
    pub fn run_events(&self, id: u64) -> Result<wire::EventList> {
        self.get(&format!("/api/runs/{id}/events"))
    }

    /// `GET /runs/{id}/tasks`.
    pub fn run_tasks(&self, id: u64) -> Result<wire::TaskRunList> {
        self.get(&format!("/api/runs/{id}/tasks"))
    }

    /// `GET /runs/{id}/why`.
    pub fn why(&self, id: u64) -> Result<wire::Why> {
        self.get(&format!("/api/runs/{id}/why"))
    }

    /// `POST /runs/{id}/cancel`.
    pub fn cancel_run(&self, id: u64) -> Result<wire::Run> {
        self.endpoint.call("POST", &format!("/api/runs/{id}/cancel"), NO_BODY, 0.0)
    }

    /// `PATCH /runs/{id}`.
    pub fn patch_run(&self, id: u64, patch: &wire::PatchRun) -> Result<wire::Run> {
        self.endpoint.call("PATCH", &format!("/api/runs/{id}"), Some(patch), 0.0)
    }

    /// `GET /queue`.
    pub fn queue(&self, limit: u64) -> Result<wire::Queue> {
        self.get(&format!("/api/queue?limit={limit}"))
    }

    /// `GET /pools`.
    pub fn pools(&self) -> Result<Vec<wire::Pool>> {
        self.get("/api/pools")
    }

    /// `GET /resources`.
    pub fn resources(&self) -> Result<wire::ResourceList> {
        self.get("/api/resources")
    }

    /// `GET /resources/{name}`.
    pub fn resource(&self, name: &str) -> Result<wire::ResourceDetail> {
        self.get(&format!("/api/resources/{}", encode(name)))
    }

    /// `PUT /resources/{name}`.
    pub fn put_resource(&self, name: &str, change: &wire::ResourceChange) -> Result<wire::ResourceDetail> {
        self.endpoint.call("PUT", &format!("/api/resources/{}", encode(name)), Some(change), 0.0)
    }

    /// `PATCH /resources/{name}`.
    pub fn patch_resource(&self, name: &str, change: &wire::ResourceChange) -> Result<wire::ResourceDetail> {
        self.endpoint.call("PATCH", &format!("/api/resources/{}", encode(name)), Some(change), 0.0)
    }

    /// `DELETE /resources/{name}`.
    pub fn delete_resource(&self, name: &str) -> Result<()> {
        self.endpoint.call_unit("DELETE", &format!("/api/resources/{}", encode(name)), &())
    }

    /// `GET /resources/{name}/resolve`.
    pub fn resolve(&self, name: &str) -> Result<wire::Resolution> {
        self.get(&format!("/api/resources/{}/resolve", encode(name)))
    }

    /// `GET /flows`.
    pub fn flows(&self) -> Result<wire::FlowList> {
        self.get("/api/flows")
    }

    /// `GET /flows/{name}`, by `project/flow` or a short name that is unique.
    pub fn flow(&self, name: &str) -> Result<wire::Flow> {
        self.get(&format!("/api/flows/{}", encode(name)))
    }

    /// `GET /settings`.
    pub fn settings(&self) -> Result<wire::Settings> {
        self.get("/api/settings")
    }

    /// `PATCH /settings`.
    pub fn patch_settings(&self, patch: &wire::PatchSettings) -> Result<wire::Settings> {
        self.endpoint.call("PATCH", "/api/settings", Some(patch), 0.0)
    }

    /// `GET /health`; the answer of a server that cannot commit is a health too, not an error.
    pub fn health(&self) -> Result<wire::Health> {
        self.endpoint.call_any_status("/api/health")
    }

    /// `POST /projects`.
    pub fn add_project(&self, project: &wire::AddProject) -> Result<wire::Project> {
        // The server looks at the directory's flows meanwhile, for which it takes up to a minute.
        self.endpoint.call("POST", "/api/projects", Some(project), 60.0)
    }

    /// `POST /pools/{pool}/lease`.
    pub fn lease(&self, pool: &str, request: &wire::LeaseRequest) -> Result<wire::LeaseAnswer> {
        self.endpoint.call("POST", &format!("/api/pools/{}/lease", encode(pool)), Some(request), request.wait_s)
    }

    /// `POST /leases/{id}/heartbeat`.
    pub fn heartbeat(&self, lease: u64, beat: &wire::Heartbeat) -> Result<wire::HeartbeatAnswer> {
        self.endpoint.call("POST", &format!("/api/leases/{lease}/heartbeat"), Some(beat), beat.wait_s)
    }

    /// `POST /leases/{id}/complete`.
    pub fn complete(&self, lease: u64, report: &wire::Complete) -> Result<()> {
        self.endpoint.call_unit("POST", &format!("/api/leases/{lease}/complete"), report)
    }

    /// `POST /leases/{id}/fail`.
    pub fn fail(&self, lease: u64, report: &wire::Fail) -> Result<()> {
        self.endpoint.call_unit("POST", &format!("/api/leases/{lease}/fail"), report)
    }

    /// `POST /leases/{id}/settle`.
    pub fn settle(&self, lease: u64, settle: &wire::Settle) -> Result<()> {
        self.endpoint.call_unit("POST", &format!("/api/leases/{lease}/settle"), settle)
    }

    /// `POST /leases/{id}/cooldown`.
    pub fn cooldown(&self, lease: u64, cooldown: &wire::Cooldown) -> Result<()> {
        self.endpoint.call_unit("POST", &format!("/api/leases/{lease}/cooldown"), cooldown)
    }

    /// `POST /leases/{id}/claims`.
    pub fn claim(&self, lease: u64, request: &wire::ClaimRequest) -> Result<wire::Claim> {
        self.endpoint.call("POST", &format!("/api/leases/{lease}/claims"), Some(request), request.wait_s)
    }

    /// `DELETE /leases/{id}/claims/{claim}`.
    pub fn end_claim(&self, lease: u64, claim: u64, end: &wire::EndClaim) -> Result<wire::EndClaimAnswer> {
        self.endpoint.call("DELETE", &format!("/api/leases/{lease}/claims/{claim}"), Some(end), 0.0)
    }
}
