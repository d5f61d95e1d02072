//! The embedded scheduler as Python classes: `mirab_flow`'s machine, called on the event loop's thread. Instants and durations are seconds.
mod alarm;
mod config;
mod effects;
mod machine;
mod restored;
mod seconds;
mod spec;
mod store;
mod views;

pub use alarm::Alarm;
pub use config::read_config;
pub use machine::Machine;
pub use spec::Spec;
pub use store::Store;
