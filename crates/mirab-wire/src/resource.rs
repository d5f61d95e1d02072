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

/// Body of `PUT` and `PATCH /api/resources/{name}`. `PUT` says all that the kind needs, `PATCH` what is to change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceChange {
    /// `semaphore` or `token_bucket`; where it is left out, what the other fields say.
    pub kind: Option<String>,
    /// Units at once; 0 pauses. For a semaphore.
    pub permits: Option<u64>,
    /// Units per second, above 0. For a token bucket.
    pub rate: Option<f64>,
    /// Most tokens, at least 1. For a token bucket.
    pub burst: Option<u64>,
    /// Shard it belongs to; `default` where it is left out.
    pub shard: Option<String>,
}

impl ResourceChange {
    /// Is it all that a new resource needs?
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.permits.is_some() || (self.rate.is_some() && self.burst.is_some())
    }
}

/// Answer of `GET /api/resources/{name}/resolve`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resolution {
    /// The name asked for.
    pub name: String,
    /// The declaration that wins.
    pub declared_as: String,
    /// Why, in words.
    pub why: String,
    /// Where the winner is declared.
    pub origin: Option<String>,
    /// Kind and limit that this name has for itself.
    pub limit: String,
    /// Other declarations that match, the nearest first.
    pub losers: Vec<Loser>,
}

/// A declaration that matches a name, and does not win.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Loser {
    /// The pattern.
    pub declared_as: String,
    /// Why it does not win, in words.
    pub why: String,
    /// Where it is declared.
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
