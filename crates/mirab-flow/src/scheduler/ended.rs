//! Tasks that have ended, the last of them.
use super::by_id::ById;
use super::record::Shape;
use super::spec::{TaskEnd, TaskId};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is remembered of a task that has ended.
#[derive(Debug)]
pub(super) struct EndedTask {
    pub end: TaskEnd,
    pub attempts: u32,
    pub priority: i32,
    /// With a key only: what a repeated submission is held against.
    pub keyed: Option<Box<Keyed>>,
}

#[derive(Debug)]
pub(super) struct Keyed {
    pub key: Arc<str>,
    /// Of the payload.
    pub digest: u64,
    pub shape: Arc<Shape>,
}

/// As many as are to be remembered, oldest forgotten first.
#[derive(Debug)]
pub(super) struct Ended {
    by_id: ById<EndedTask>,
    order: VecDeque<TaskId>,
    retained: usize,
}

impl Ended {
    pub fn new(retained: usize) -> Self {
        Self { by_id: ById::default(), order: VecDeque::new(), retained }
    }

    pub fn get(&self, id: TaskId) -> Option<&EndedTask> {
        self.by_id.get(id)
    }

    /// Remembers one; gives the one that is forgotten for it.
    pub fn push(&mut self, id: TaskId, task: EndedTask) -> Option<(TaskId, EndedTask)> {
        if self.retained == 0 {
            return Some((id, task));
        }
        self.by_id.insert(id, task);
        self.order.push_back(id);
        if self.order.len() <= self.retained {
            return None;
        }
        let oldest = self.order.pop_front()?;
        Some((oldest, self.by_id.remove(oldest)?))
    }
}
