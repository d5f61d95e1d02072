//! What goes over HTTP: plain serde types shared by server and client.
//!
//! They are separate from the inner types of `mirab-core` and `mirab-flow` and converted by hand, so that an inner change cannot
//! change the interface by accident. Instants are seconds since the Unix epoch as JSON numbers (`*_at`), durations are seconds
//! (`*_s`). Optional fields that are `None` are `null`, never left out, in answers; in requests they may be left out.
mod flow;
mod lease;
mod problem;
mod queue;
mod resource;
mod run;
mod server;

pub use flow::*;
pub use lease::*;
pub use problem::*;
pub use queue::*;
pub use resource::*;
pub use run::*;
pub use server::*;

/// Units asked for by resource name, as in `{"gpu": 1}`; kept in name order.
pub type Needs = std::collections::BTreeMap<String, u64>;
