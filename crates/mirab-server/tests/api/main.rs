//! The API against a real server, with workers that speak the protocol over HTTP.
mod gate;
mod harness;

mod cancelling;
mod engines;
mod limits;
mod problems;
mod projects;
mod queue;
mod resources;
mod runs;
mod serving;
mod spec;
mod store;
mod tasks;
mod workers;
