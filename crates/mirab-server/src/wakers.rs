//! Who waits for what: long polls and heartbeats park here, effects wake them.
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What a call can wait for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// Work offered to a pool's workers of a project.
    Offer { pool: String, project: String },
    /// A change of a task inside a run.
    Task(u64),
    /// A run that is to stop.
    Stop(u64),
    /// A worker that is to end.
    Retire(String),
}

/// All topics that someone waits for.
#[derive(Clone, Default)]
pub(crate) struct Wakers {
    topics: Arc<Mutex<HashMap<Topic, Arc<Notify>>>>,
}

impl Wakers {
    /// Registers interest. Enable the listener's future first and look at the state then: so no wake-up is lost between the two.
    pub fn listen(&self, topic: Topic) -> Listener {
        let notify = Arc::clone(self.lock().entry(topic.clone()).or_default());
        Listener { wakers: self.clone(), topic, notify }
    }

    /// Wakes one listener. When none waits just now there is nothing to remember: whoever comes next looks at the state first.
    pub fn wake_one(&self, topic: &Topic) {
        if let Some(notify) = self.lock().get(topic) {
            notify.notify_one();
        }
    }

    /// Wakes all listeners of a topic.
    pub fn wake_all(&self, topic: &Topic) {
        if let Some(notify) = self.lock().get(topic) {
            notify.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, Arc<Notify>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An interest in a topic; gone when dropped.
pub(crate) struct Listener {
    wakers: Wakers,
    topic: Topic,
    pub notify: Arc<Notify>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut topics = self.wakers.lock();
        if let Entry::Occupied(entry) = topics.entry(self.topic.clone()) {
            // The map's and this one: nobody else listens.
            if Arc::strong_count(entry.get()) <= 2 {
                entry.remove();
            }
        }
    }
}
