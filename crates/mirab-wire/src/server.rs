//! Health, settings, and the discovery file by which clients find the server of a home.
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Answer of `GET /api/health`; status 503 while the store cannot commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` or `store_unavailable`.
    pub status: String,
    /// What is wrong, when something is.
    pub detail: Option<String>,
    /// Version of the server.
    pub version: String,
    /// Starts executed out of order (must be 0).
    pub priority_inversions: u64,
    /// Second releases of one lease, which changed nothing.
    pub double_releases: u64,
}

/// Answer of `GET /api/settings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Settings {
    /// Engine processes that may be alive.
    pub max_engines: u64,
    /// The most that `max_engines` can be set to.
    pub max_engines_ceiling: u64,
}

/// Body of `PATCH /api/settings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchSettings {
    /// From 1 to the ceiling; removing a busy engine lets its run finish.
    #[serde(default)]
    pub max_engines: Option<u64>,
}

/// `<home>/server.json`: where the server of this home answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Base URL that a client on this machine can dial, such as `http://127.0.0.1:4747`.
    pub url: String,
    /// Process id of the server.
    pub pid: u32,
}
