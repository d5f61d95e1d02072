//! One subcommand a file: its arguments, and what it does.
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod flows;
pub(crate) mod priority;
pub(crate) mod ps;
pub(crate) mod queue;
pub(crate) mod resources;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod submit;
pub(crate) mod why;
