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
    topics: Arc<Mutex<HashMap<Topic, Waiting>>>,
}

#[derive(Default)]
struct Waiting {
    notify: Arc<Notify>,
    /// Counted apart from the references, which futures hold too.
    listeners: usize,
}

impl Wakers {
    /// Registers interest. Enable the listener's future first and look at the state then: so no wake-up is lost between the two.
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, Waiting>> {
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
        if let Entry::Occupied(mut entry) = topics.entry(self.topic.clone()) {
            entry.get_mut().listeners -= 1;
            if entry.get().listeners == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_forgotten_with_its_last_listener_whatever_futures_are_left() {
        let wakers = Wakers::default();
        let (first, second) = (wakers.listen(Topic::Task(1)), wakers.listen(Topic::Task(1)));
        let future = Arc::clone(&first.notify).notified_owned();
        drop(first);
        assert_eq!(wakers.lock().len(), 1);
        drop(second);
        assert_eq!(wakers.lock().len(), 0);
        drop(future);
    }
}
