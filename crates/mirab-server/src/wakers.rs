//! Who waits for what: long polls and heartbeats park here, effects wake them.
use crate::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

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
    topics: Arc<Mutex<HashMap<Topic, Waiting>>>,
}

#[derive(Default)]
struct Waiting {
    notify: Arc<Notify>,
    /// Counted apart from the references, which futures hold too.
    listeners: usize,
}

impl Wakers {
    /// Registers interest; see [`Listener::armed`].
    pub fn listen(&self, topic: Topic) -> Listener {
        let mut topics = self.lock();
        let waiting = topics.entry(topic.clone()).or_default();
        waiting.listeners += 1;
        let notify = Arc::clone(&waiting.notify);
        drop(topics);
        Listener { wakers: self.clone(), topic, notify }
    }

    /// Wakes one listener. When none waits just now there is nothing to remember: whoever comes next looks at the state first.
    pub fn wake_one(&self, topic: &Topic) {
        if let Some(waiting) = self.lock().get(topic) {
            waiting.notify.notify_one();
        }
    }

    /// Wakes all listeners of a topic.
    pub fn wake_all(&self, topic: &Topic) {
        if let Some(waiting) = self.lock().get(topic) {
            waiting.notify.notify_waiters();
        }
    }

    /// How many topics someone waits for.
    #[cfg(test)]
    pub fn topics(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, Waiting>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An interest in a topic; gone when dropped.
pub(crate) struct Listener {
    wakers: Wakers,
    topic: Topic,
    notify: Arc<Notify>,
}

impl Listener {
    /// A future that ends with the next wake-up from now on. Make it, look at the state then, and wait for it last (as `polls` does): so no
    /// wake-up is lost between the look and the wait.
    pub fn armed(&self) -> Pin<Box<OwnedNotified>> {
        let mut armed = Box::pin(Arc::clone(&self.notify).notified_owned());
        armed.as_mut().enable();
        armed
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut topics = self.wakers.lock();
        if let Entry::Occupied(mut entry) = topics.entry(self.topic.clone()) {
            entry.get_mut().listeners -= 1;
            if entry.get().listeners == 0 {
                entry.remove();
            }
        }
    }
}
