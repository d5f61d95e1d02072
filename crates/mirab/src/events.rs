//! What happens, told to who watches: bounded, and a reader that lags is told how much it missed.
use mirab_core::Time;
use mirab_flow::scheduler::{TaskEvent, TaskId, What};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Something that happened to a task, or how many such things the reader missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something happened to a task.
    Task {
        /// Since the scheduler's start.
        at: Duration,
        /// The task.
        id: TaskId,
        /// What.
        what: What,
    },
    /// The reader was so slow that so many events were dropped for it.
    Missed(u64),
}

/// Events from now on, of all shards. Those of one task come in order.
#[derive(Debug)]
pub struct Events {
    events: broadcast::Receiver<TaskEvent>,
    /// What time it was when the scheduler started.
    start: Time,
}

impl Events {
    /// The next event; `None` once the scheduler was shut down or dropped, its last task has ended, and all of it is told.
    pub async fn next(&mut self) -> Option<Event> {
        match self.events.recv().await {
            Ok(TaskEvent { at, id, what }) => {
                Some(Event::Task { at: Duration::from_nanos(at.since(self.start)), id, what })
            }
            Err(RecvError::Lagged(missed)) => Some(Event::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Where shards put their events.
#[derive(Clone)]
pub(crate) struct Sender(broadcast::Sender<TaskEvent>);

impl Sender {
    pub fn new(capacity: usize) -> Self {
        Self(broadcast::Sender::new(capacity))
    }

    pub fn subscribe(&self, start: Time) -> Events {
        Events { events: self.0.subscribe(), start }
    }

    pub fn send(&self, event: TaskEvent) {
        // Nobody may be reading any more: nothing is lost then.
        drop(self.0.send(event));
    }

    pub fn has_readers(&self) -> bool {
        self.0.receiver_count() > 0
    }
}
