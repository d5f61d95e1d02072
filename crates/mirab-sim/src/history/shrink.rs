//! Leaves steps out while what is left still fails.
use super::op::Op;
use super::{Failure, play};
use crate::subject::Subject;

/// Shorter and shorter stretches of steps are left out, then single needs.
pub(super) fn shrink<S: Subject>(mut failure: Failure) -> Failure {
    let mut stretch = failure.history.ops.len();
    while stretch > 0 {
        let mut from = 0;
        while from < failure.history.ops.len() {
            let mut shorter = failure.history.clone();
            shorter.ops.drain(from..(from + stretch).min(failure.history.ops.len()));
            match play::<S>(&shorter) {
                Err(still) => failure = still,
                Ok(_) => from += stretch,
            }
        }
        stretch /= 2;
    }
    fewer_needs::<S>(failure)
}

fn fewer_needs<S: Subject>(mut failure: Failure) -> Failure {
    for step in 0..failure.history.ops.len() {
        let mut index = 0;
        loop {
            let mut shorter = failure.history.clone();
            let Some(Op::Submit { needs, .. }) = shorter.ops.get_mut(step) else { break };
            if index >= needs.len() {
                break;
            }
            needs.remove(index);
            match play::<S>(&shorter) {
                Err(still) => failure = still,
                Ok(_) => index += 1,
            }
        }
    }
    failure
}
