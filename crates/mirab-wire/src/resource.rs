//! Resources and who uses them.
use crate::Holder;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A resource as the gate has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// `semaphore`, `token_bucket` or `pattern` (each matching name gets its own limit).
    pub kind: String,
    /// Units at once, for a semaphore (or a pattern of them).
    pub permits: Option<u64>,
    /// Units per second, for a token bucket.
    pub rate: Option<f64>,
    /// Most tokens, for a token bucket.
    pub burst: Option<u64>,
    /// Shard it belongs to.
    pub shard: String,
    /// Units held now: the sum of the leases.
    pub used: u64,
    /// Free units now; whole tokens for a token bucket; negative after a total was lowered below its use.
    pub free: i64,
    /// Claims that wait and need it.
    pub waiters: u64,
    /// The declaration that it comes from: its own name, or a pattern such as `api:*`.
    pub declared_as: String,
    /// Where it was declared, as `/srv/shop/mirab.toml:3`; `None` for the product's own (`pool:default`, `flow:shop/nightly`).
    pub origin: Option<String>,
}

/// Answer of `GET /api/resources`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceList {
    /// In name order.
    pub resources: Vec<Resource>,
}

/// Answer of `GET /api/resources/{name}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceDetail {
    /// The resource.
    #[serde(flatten)]
    pub resource: Resource,
    /// All who hold units, oldest first.
    pub holders: Vec<Holder>,
    /// The first in line that need it, best rank first, at most 100 ids.
    pub first_waiters: Vec<u64>,
}
