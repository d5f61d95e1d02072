//! A task to submit.
use crate::clock::{Clock, When, nanos};
use crate::value::Payload;
use mirab_core::Time;
use mirab_flow::scheduler::{Admission, On, Retry, TaskId, TaskSpec};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// A task: a payload for the executor of a pool, and what it needs to start.
///
/// ```
/// use mirab::Task;
/// use std::time::Duration;
/// let task = Task::new("hi").pool("llm").priority(5).resource("gpu", 1).timeout(Duration::from_secs(30)).retries(3);
/// ```
#[derive(Clone, Debug)]
pub struct Task<P> {
    payload: P,
    /// Empty: the only pool there is.
    pub(crate) spec: TaskSpec,
    priority: Option<i32>,
    key: Option<(String, u64)>,
    not_before: Option<When>,
    start_by: Option<When>,
    after: Vec<(TaskId, On)>,
}

impl<P: Send + 'static> Task<P> {
    /// A task that is tried once, in the pool of a scheduler that has only one. A text in quotes is a payload for who takes a `String`.
    #[must_use]
    pub fn new(payload: P) -> Self {
        let (priority, key, not_before, start_by) = (None, None, None, None);
        Self { payload, spec: TaskSpec::new(""), priority, key, not_before, start_by, after: Vec::new() }
    }

    /// The pool that executes it.
    #[must_use]
    pub fn pool(mut self, name: &str) -> Self {
        self.spec.pool = name.into();
        self
    }

    /// Higher first; the pool's unless it is said.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Units that it needs of a resource. Said twice, they add up; said at all, the pool's default for that resource does not count.
    #[must_use]
    pub fn resource(mut self, name: &str, units: u64) -> Self {
        self.spec.resources.push((name.into(), units));
        self
    }

    /// Submitted again with this key and the same payload and options, it is the same task while that lives or is remembered; with others it is
    /// refused with `KeyConflict`. Priority and times do not count.
    #[must_use]
    pub fn key(self, key: &str) -> Self
    where
        P: Hash,
    {
        let mut hasher = DefaultHasher::new();
        self.payload.hash(&mut hasher);
        let digest = hasher.finish();
        self.key_and_digest(key, digest)
    }

    /// The same for a payload without `Hash`: a digest that tells payloads apart.
    #[must_use]
    pub fn key_and_digest(mut self, key: &str, digest: u64) -> Self {
        self.key = Some((key.into(), digest));
        self
    }

    /// It joins the line at an instant, or after so long.
    #[must_use]
    pub fn not_before(mut self, when: impl Into<When>) -> Self {
        self.not_before = Some(when.into());
        self
    }

    /// Unless its first attempt starts within so long, it ends expired and has consumed nothing.
    #[must_use]
    pub fn start_within(self, pause: Duration) -> Self {
        self.start_by(pause)
    }

    /// Unless its first attempt starts by then, it ends expired and has consumed nothing.
    #[must_use]
    pub fn start_by(mut self, when: impl Into<When>) -> Self {
        self.start_by = Some(when.into());
        self
    }

    /// An attempt that has not ended after so long is stopped, and has failed.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(nanos(timeout));
        self
    }

    /// So many further attempts after a failure, each after a pause drawn between nothing and 1 s, 2 s, 4 s, up to 5 min.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.spec.retry.retries = retries;
        self
    }

    /// The first pause is at most so long, instead of 1 s; each further one may be twice as long.
    #[must_use]
    pub fn retry_delay(mut self, base: Duration) -> Self {
        self.spec.retry = Retry { base: nanos(base), ..self.spec.retry };
        self
    }

    /// No pause is longer, instead of 5 min.
    #[must_use]
    pub fn retry_max_delay(mut self, cap: Duration) -> Self {
        self.spec.retry = Retry { cap: nanos(cap), ..self.spec.retry };
        self
    }

    /// A tag: a declared resource `tag:<name>` limits the tasks that carry it.
    #[must_use]
    pub fn tag(mut self, tag: &str) -> Self {
        self.spec.tags.push(tag.into());
        self
    }

    /// What durations are learned by, within the pool: one of a few names.
    #[must_use]
    pub fn kind(mut self, kind: &str) -> Self {
        self.spec.kind = kind.into();
        self
    }

    /// It joins the line once that task has completed; should it end otherwise, this one is skipped.
    #[must_use]
    pub fn after(self, earlier: impl Into<TaskId>) -> Self {
        self.after_on(earlier, On::Success)
    }

    /// It joins the line once that task has ended like that; should it end otherwise, this one is skipped.
    #[must_use]
    pub fn after_on(mut self, earlier: impl Into<TaskId>, on: On) -> Self {
        self.after.push((earlier.into(), on));
        self
    }

    /// Takes it apart: `priority` is its pool's.
    pub(crate) fn unpack(self, clock: &Clock, priority: i32) -> (Payload, TaskSpec, Admission) {
        let (key, digest) = self.key.map_or((None, 0), |(key, digest)| (Some(key), digest));
        let now = if self.not_before.is_some() || self.start_by.is_some() { clock.now() } else { Time(0) };
        let admission = Admission {
            priority: self.priority.unwrap_or(priority),
            key,
            digest,
            not_before: self.not_before.map(|when| when.from(now)),
            start_by: self.start_by.map(|when| when.from(now)),
            after: self.after,
        };
        (Box::new(self.payload), self.spec, admission)
    }
}
