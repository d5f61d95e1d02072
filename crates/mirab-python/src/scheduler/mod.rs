//! The embedded scheduler as Python classes: `mirab_flow`'s machine, called on the event loop's thread. Instants and durations are seconds.
mod effects;
mod machine;
mod seconds;
mod spec;
mod views;

pub use machine::Machine;
pub use spec::Spec;
