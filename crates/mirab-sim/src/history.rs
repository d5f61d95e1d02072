//! Random histories, played on the model and on a subject side by side.
//!
//! [`run_history`] makes a history from a seed, plays it, and compares every answer, start, refusal, view and timer after every step.
//! A difference is reported with the seed and with the shortest list of steps that still shows it.
mod compare;
mod generate;
mod host;
mod op;
mod play;
mod shrink;

use crate::subject::Subject;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use generate::generate;
pub use host::{Host, HostClaim, HostLease};
pub use op::{History, Op};
pub use play::Player;

/// A history on which model and subject differ, or on which an invariant is broken.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The history, shrunk.
    pub history: History,
    /// Which step, counted from 0; the number of steps when it happened while everything drained.
    pub step: usize,
    /// What differs.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let History { seed, aging, declared, ops } = &self.history;
        writeln!(f, "seed {seed}, step {}: {}", self.step, self.what)?;
        writeln!(f, "  aging {aging:?}, declared {declared:?}")?;
        ops.iter().enumerate().try_for_each(|(index, op)| writeln!(f, "  {index}: {op:?}"))
    }
}

/// Plays the history of a seed; gives the hash of the whole trace.
///
/// # Errors
/// The first difference, with the history shrunk.
pub fn run_history<S: Subject>(seed: u64) -> Result<u64, Box<Failure>> {
    let history = generate(seed);
    play::<S>(&history).map_err(|failure| Box::new(shrink::shrink::<S>(failure)))
}

/// Plays a given history. A panic of the subject is a failure like any other.
fn play<S: Subject>(history: &History) -> Result<u64, Failure> {
    let mut player = Player::<S>::new(history);
    let mut step = 0;
    let mut all = || {
        for op in &history.ops {
            player.step(op)?;
            step += 1;
        }
        player.drain()
    };
    let result = catch_unwind(AssertUnwindSafe(&mut all));
    let what = match result {
        Ok(Ok(())) => return Ok(player.trace()),
        Ok(Err(what)) => what,
        Err(panic) => format!("panic: {:?}", panic.downcast_ref::<String>()),
    };
    Err(Failure { history: history.clone(), step, what })
}
