//! What an executor gives when an attempt fails.
use mirab_flow::scheduler::Again;
use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

type BoxError = Box<dyn StdError + Send + Sync>;

/// The error of an executor, shared by all who await its task.
#[derive(Clone)]
pub struct Cause(Arc<BoxError>);

impl Cause {
    /// The error itself, to be downcast.
    #[must_use]
    pub fn get(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &**self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.get(), f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.get(), f)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.get().source()
    }
}

/// A failed attempt. Made of any error by `?`; another attempt follows as the task's retries say.
///
/// [`Retryable`] and [`Permanent`] say more about that.
#[derive(Debug)]
pub struct TaskError {
    pub(crate) cause: Cause,
    pub(crate) again: Again,
}

impl TaskError {
    /// A failure told by an error or a text.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self { cause: Cause(Arc::new(cause.into())), again: Again::ByPolicy }
    }

    fn again(mut self, again: Again) -> Self {
        self.again = again;
        self
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for TaskError {
    fn from(error: E) -> Self {
        let mut error = Some(error);
        let any: &mut dyn Any = &mut error;
        if let Some(retryable) = any.downcast_mut::<Option<Retryable>>().and_then(Option::take) {
            let again = retryable.retry_after.map_or(Again::ByPolicy, |pause| Again::After(crate::clock::nanos(pause)));
            return TaskError::new(retryable.cause).again(again);
        }
        if let Some(Permanent(cause)) = any.downcast_mut::<Option<Permanent>>().and_then(Option::take) {
            return TaskError::new(cause).again(Again::Never);
        }
        TaskError::new(error.expect("it was not taken above"))
    }
}

/// A failure after which another attempt may do better, at a known time: the far side said `Retry-After`.
///
/// ```
/// use mirab::{Retryable, TaskError};
/// use std::time::Duration;
/// let error: TaskError = Retryable::new("429: too many requests").retry_after(Duration::from_secs(3)).into();
/// assert_eq!(error.to_string(), "429: too many requests");
/// ```
#[derive(Debug)]
pub struct Retryable {
    cause: BoxError,
    retry_after: Option<Duration>,
}

impl Retryable {
    /// Told by an error or a text; the task's retries say how often and when.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self { cause: cause.into(), retry_after: None }
    }

    /// The next attempt follows after exactly so long, instead of a drawn pause.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }
}

/// A failure that no further attempt would mend: the task fails at once.
#[derive(Debug)]
pub struct Permanent(BoxError);

impl Permanent {
    /// Told by an error or a text.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(cause.into())
    }
}

impl fmt::Display for Retryable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StdError for Retryable {}
impl StdError for Permanent {}
