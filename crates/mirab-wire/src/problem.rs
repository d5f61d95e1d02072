//! `application/problem+json` (RFC 9457) with Mirab's stable `code`.
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error answer. `code` is stable and listed in `docs/reference/errors.md`; `detail` is for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the code says what kind of problem it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Short name of the HTTP status.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Stable error code, such as `UnknownResource`.
    pub code: String,
    /// What was wrong, what was expected, what to do.
    pub detail: String,
}
