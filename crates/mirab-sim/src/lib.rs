//! Virtual time, the plain-list reference model, generators of histories.
//!
//! [`Model`] says what the gate must do; [`history`] plays random histories on both and compares every answer after every step;
//! [`invariants`] hold whatever the rules are; [`World`] tells a single case in a few lines.
pub mod allocations;
mod amount;
pub mod history;
pub mod invariants;
pub mod load;
mod model;
mod rng;
mod subject;
mod trace;
mod world;

pub use amount::Amount;
pub use history::run_history;
pub use model::Model;
pub use rng::Rng;
pub use subject::Subject;
pub use trace::Trace;
pub use world::{Arrival, World, stream};
