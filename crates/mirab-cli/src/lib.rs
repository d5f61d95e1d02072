//! The `mirab` command: a subcommand a file under `commands`, each a few calls of the typed client and a table.
//!
//! [`run`] is the only way in; the binary and the Python package share it. Expected errors end with an exit code that
//! `mirab help` lists; a panic is caught at the edge and told as a bug.
mod cli;
mod commands;
mod failure;
mod given;
mod output;
mod session;
mod table;
mod timestamp;
mod when;

pub use cli::run;
