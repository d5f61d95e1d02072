//! What the machine keeps of each live task, as small as can be: what tasks have in common is kept once.
use super::limits;
use super::spec::{On, TaskId, TaskSpec};
use mirab_core::{Fence, Place, Refusal, Time, check_requested, tag_limit};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What alike tasks have in common.
#[derive(Debug)]
pub(super) struct Shape {
    /// As it was submitted.
    pub spec: TaskSpec,
    /// Pool slot and resources, with clean names.
    pub needs: Vec<(String, u64)>,
    /// Limits of its tags, where they are declared.
    pub tags: Vec<String>,
    /// What the gate learns durations by.
    pub kind: String,
}

impl Shape {
    /// Checked as far as it does not depend on limits.
    pub fn new(spec: &TaskSpec) -> Result<Self, Refusal> {
        let mut needs = vec![(limits::slot_name(&spec.pool), 1)];
        for (name, units) in &spec.resources {
            needs.push((check_requested(name)?, *units));
        }
        let tags = spec.tags.iter().map(|tag| tag_limit(tag)).collect::<Result<_, _>>()?;
        Ok(Self { spec: spec.clone(), needs, tags, kind: format!("{}/{}", spec.pool, spec.kind) })
    }
}

/// Where a live task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It comes after so many tasks that have not ended.
    Blocked(u32),
    /// It joins the line at that instant; after a failure too.
    Due(Time),
    /// In line since then.
    Queued(Time),
    Running(Fence),
    Stopping(Fence, super::StopReason),
}

/// A live task.
#[derive(Debug)]
pub(super) struct Record {
    pub shape: Arc<Shape>,
    pub stage: Stage,
    pub priority: i32,
    /// Attempts that were started.
    pub attempts: u32,
    /// Its place in the line, once it has one: for life.
    pub place: Option<Place>,
    pub not_before: Option<Time>,
    pub start_by: Option<Time>,
    /// When the attempt that executes is stopped.
    pub deadline: Option<Time>,
    /// What most tasks do not have.
    pub more: Option<Box<More>>,
}

#[derive(Debug, Default)]
pub(super) struct More {
    pub key: Option<(Arc<str>, u64)>,
    /// Tasks that come after it.
    pub dependants: Vec<(TaskId, On)>,
    /// What it comes after; kept by a durable machine only, as are the next two.
    pub after: Vec<(TaskId, On)>,
    /// Resources on which nothing passes it any more.
    pub delayed: Vec<String>,
    /// Attempts that went with the process that executed them.
    pub lost: u32,
}

impl Record {
    pub fn key(&self) -> Option<&(Arc<str>, u64)> {
        self.more.as_ref()?.key.as_ref()
    }

    /// Attempts that went with the process that executed them: they are no failures.
    pub fn lost(&self) -> u32 {
        self.more.as_ref().map_or(0, |more| more.lost)
    }

    /// The fence of the attempt that executes.
    pub fn fence(&self) -> Option<Fence> {
        match self.stage {
            Stage::Running(fence) | Stage::Stopping(fence, _) => Some(fence),
            Stage::Blocked(_) | Stage::Due(_) | Stage::Queued(_) => None,
        }
    }
}

/// Shapes of which unused ones are kept are at least so many.
const KEPT: usize = 1_024;

/// All shapes that tasks have.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    by_spec: BTreeSet<BySpec>,
    /// The one asked for last: mostly it is asked for again.
    last: Option<Arc<Shape>>,
    /// When there are so many, unused ones go.
    crowded: usize,
}

impl Shapes {
    /// The shape of a spec that is known.
    pub fn get(&mut self, spec: &TaskSpec) -> Option<Arc<Shape>> {
        if let Some(last) = self.last.as_ref().filter(|last| last.spec == *spec) {
            return Some(Arc::clone(last));
        }
        let found = self.by_spec.get(spec).map(|BySpec(shape)| Arc::clone(shape));
        self.last.clone_from(&found);
        found
    }

    /// The pool has gone: a shape that is known is one whose pool is there.
    pub fn forget(&mut self, pool: &str) {
        self.by_spec.retain(|BySpec(shape)| shape.spec.pool != pool);
        self.last = None;
    }

    pub fn insert(&mut self, shape: Shape) -> Arc<Shape> {
        let shape = Arc::new(shape);
        if self.by_spec.len() >= self.crowded.max(KEPT) {
            self.by_spec.retain(|BySpec(shape)| Arc::strong_count(shape) > 1);
            self.crowded = 2 * self.by_spec.len();
        }
        self.by_spec.insert(BySpec(Arc::clone(&shape)));
        self.last = Some(Arc::clone(&shape));
        shape
    }
}

#[derive(Debug)]
struct BySpec(Arc<Shape>);

impl Borrow<TaskSpec> for BySpec {
    fn borrow(&self) -> &TaskSpec {
        &self.0.spec
    }
}

impl PartialEq for BySpec {
    fn eq(&self, other: &Self) -> bool {
        self.0.spec == other.0.spec
    }
}

impl Eq for BySpec {}

impl PartialOrd for BySpec {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BySpec {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.spec.cmp(&other.0.spec)
    }
}
