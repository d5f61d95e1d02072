//! Effects and events as small tuples.
use super::seconds::{Clock, seconds};
use mirab_flow::scheduler::{StopReason, TaskEffect, TaskEnd, TaskEvent, What};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What the first element of an effect says.
const START: u8 = 0;
const STOP: u8 = 1;
const ENDED: u8 = 2;

/// `(0, id, fence, attempt, deadline)`, `(1, id, fence, why)` or `(2, id, end, message, timed out)`.
pub fn effect_tuple(py: Python<'_>, clock: Clock, effect: TaskEffect) -> PyResult<Bound<'_, PyTuple>> {
    match effect {
        TaskEffect::Start(start) => {
            let deadline = start.deadline.map(|at| clock.seconds(at));
            (START, start.id.0, start.fence.0, start.attempt, deadline).into_pyobject(py)
        }
        TaskEffect::Stop { id, fence, why } => (STOP, id.0, fence.0, reason(why)).into_pyobject(py),
        TaskEffect::Ended { id, end } => {
            let (word, message, timed_out) = end_parts(end);
            (ENDED, id.0, word, message, timed_out).into_pyobject(py)
        }
    }
}

/// How a task ended: the word for it, why, and whether it was its timeout.
pub fn end_parts(end: TaskEnd) -> (&'static str, Option<String>, bool) {
    match end {
        TaskEnd::Completed => ("Completed", None, false),
        TaskEnd::Failed { message, timed_out } => ("Failed", Some(message), timed_out),
        TaskEnd::Cancelled => ("Cancelled", None, false),
        TaskEnd::Expired => ("Expired", None, false),
        TaskEnd::Skipped { reason } => ("Skipped", Some(reason), false),
    }
}

fn reason(why: StopReason) -> &'static str {
    match why {
        StopReason::Cancelled => "cancelled",
        StopReason::TimedOut => "timed_out",
    }
}

/// `(at, id, what, details)`.
pub fn event_tuple(py: Python<'_>, clock: Clock, event: TaskEvent) -> PyResult<Bound<'_, PyTuple>> {
    let details = PyDict::new(py);
    let what = match event.what {
        What::Submitted => "submitted",
        What::Queued => "queued",
        What::Started { attempt, waited } => {
            details.set_item("attempt", attempt)?;
            details.set_item("waited", seconds(waited))?;
            "started"
        }
        What::Retrying { attempt, pause, at_most, message } => {
            details.set_item("attempt", attempt)?;
            details.set_item("pause", seconds(pause))?;
            details.set_item("at_most", seconds(at_most))?;
            details.set_item("message", message)?;
            "retrying"
        }
        What::Stopping(why) => {
            details.set_item("reason", reason(why))?;
            "stopping"
        }
        What::Reprioritised(priority) => {
            details.set_item("priority", priority)?;
            "reprioritised"
        }
        What::Ended(end) => {
            let (state, message, timed_out) = end_parts(end);
            details.set_item("state", state)?;
            details.set_item("message", message)?;
            details.set_item("timed_out", timed_out)?;
            "ended"
        }
    };
    (clock.seconds(event.at), event.id.0, what, details).into_pyobject(py)
}
