//! What a shard puts into the store with each step, and what waits for that.
use crate::cell::TaskCell;
use crate::error::Error;
use crate::shard::{Action, Shard};
use mirab_flow::scheduler::{TaskFact, TaskId, TaskOutcome};
use mirab_store::{Blob, Entry, TaskStoreError, TaskWriter};
use std::sync::Arc;

/// The store, as one shard writes it.
pub(crate) struct Journal {
    writer: Arc<TaskWriter>,
    shard: u8,
    /// To be committed with the next facts.
    entries: Vec<Entry>,
}

impl Journal {
    pub fn new(writer: Arc<TaskWriter>, shard: u8) -> Self {
        Self { writer, shard, entries: Vec::new() }
    }

    pub fn payload(&mut self, id: TaskId, blob: Blob) {
        self.entries.push(Entry::Payload(id, blob));
    }

    pub fn result(&mut self, id: TaskId, blob: Blob) {
        self.entries.push(Entry::Result(id, blob));
    }

    /// Commits what a step has left; then, on the writer's thread, what the step wants done is done. Called under the lock of the shard, so that
    /// steps are stored in their order.
    pub fn put(&mut self, shard: &Arc<Shard>, facts: Vec<TaskFact>, actions: Vec<Action>) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.extend(facts.into_iter().map(|fact| Entry::Fact(self.shard, fact)));
        if entries.is_empty() && actions.is_empty() {
            return;
        }
        let shard = Arc::clone(shard);
        self.writer.put(entries, move |stored| match stored {
            Ok(()) => shard.carry_out(actions, false),
            Err(error) => shard.store_failed(&error, actions),
        });
    }
}

impl Shard {
    /// Nothing is accepted and nothing starts any more. What was to start has not.
    fn store_failed(self: &Arc<Self>, error: &Arc<TaskStoreError>, actions: Vec<Action>) {
        self.step(|state, _| state.failed = Some(Arc::clone(error)));
        self.cancel_all();
        for action in actions {
            match action {
                Action::Launch(task, start) => {
                    task.note(start.attempt, Err(None));
                    // Nothing starts for it: all were cancelled.
                    let _ = self.finish(start.id, start.fence, TaskOutcome::Stopped);
                }
                Action::Accept(task) => task.accept(Err(Arc::clone(error))),
                action => self.carry_out(vec![action], false),
            }
        }
    }
}

impl TaskCell {
    /// Waits until the task is stored.
    pub async fn stored(&self) -> Result<(), Error> {
        std::future::poll_fn(|context| self.poll_accepted(context.waker())).await.map_err(Error::Store)
    }
}
