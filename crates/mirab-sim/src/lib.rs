//! Virtual time, the plain-list reference model, generators of histories.
//!
//! [`Model`] says what the gate must do; [`history`] plays random histories on both and compares every answer after every step.
mod amount;
mod model;
mod rng;
mod subject;

pub use amount::Amount;
pub use model::Model;
pub use rng::Rng;
pub use subject::Subject;
mod world;
pub use world::{Arrival, World, stream};
