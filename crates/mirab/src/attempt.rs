//! One attempt of a task: its body, and the report of how it ended, whatever happens to it.
use crate::cell::TaskCell;
use crate::context::Context;
use crate::failure::TaskError;
use crate::foreign::{guarded, let_go};
use crate::pool::{Body, Output};
use crate::shard::Shard;
use mirab_flow::scheduler::{Again, TaskOutcome, TaskStart};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{self, Poll};

type BodyFuture = Pin<Box<dyn Future<Output = Output> + Send>>;

/// An attempt that executes, or is about to. Dropped before it has reported, it has lost its runtime.
pub(crate) struct Attempt {
    shard: Arc<Shard>,
    task: Arc<TaskCell>,
    start: TaskStart,
    body: Option<BodyFuture>,
    has_reported: bool,
}

impl Attempt {
    /// Hands it to where it executes.
    pub fn launch(shard: Arc<Shard>, task: Arc<TaskCell>, start: TaskStart) {
        let (runtime, is_blocking) = (shard.runtime.clone(), task.pool.executor.is_blocking());
        shard.enter();
        let attempt = Self { shard, task, start, body: None, has_reported: false };
        if is_blocking {
            drop(runtime.spawn_blocking(move || attempt.run()));
        } else {
            drop(runtime.spawn(attempt));
        }
    }

    /// Executes on this thread.
    fn run(mut self) {
        let next = if self.task.is_stopped(self.start.fence) {
            self.conclude(Report::Stopped)
        } else {
            let output = guarded(|| match self.begin() {
                Some(Body::Thread(call)) => call(),
                _ => Err(lost_payload()),
            });
            self.report(output.unwrap_or_else(panicked))
        };
        self.shard.leave();
        if let Some((task, start)) = next {
            Self::launch(Arc::clone(&self.shard), task, start);
        }
    }

    fn begin(&self) -> Option<Body> {
        let payload = self.task.payload(self.start.attempt)?;
        let context = Context::new(Arc::clone(&self.task), Arc::clone(&self.shard), self.start);
        self.task.pool.executor.begin(context, payload)
    }

    fn poll_body(&mut self, context: &mut task::Context<'_>) -> Poll<Output> {
        if self.body.is_none() {
            let Some(Body::Future(body)) = self.begin() else { return Poll::Ready(Err(lost_payload())) };
            self.body = Some(body);
        }
        self.body.as_mut().map_or(Poll::Pending, |body| body.as_mut().poll(context))
    }

    /// `None` while it goes on.
    fn advance(&mut self, context: &mut task::Context<'_>) -> Option<Report> {
        let fence = self.start.fence;
        if self.task.is_stopped(fence) {
            return Some(Report::Stopped);
        }
        match guarded(|| self.poll_body(context)) {
            Ok(Poll::Ready(output)) => return Some(Report::Ended(output)),
            Err(panic) => return Some(Report::Ended(panicked(panic))),
            Ok(Poll::Pending) => {}
        }
        self.task.register_body(context.waker());
        // Asked between the look above and the note of whom to wake.
        self.task.is_stopped(fence).then_some(Report::Stopped)
    }

    fn report(&mut self, output: Output) -> Option<Next> {
        #[cfg(feature = "sqlite")]
        let output = self.encode(output);
        let (value, outcome) = match output {
            Ok(value) => (Ok(value), TaskOutcome::Success),
            Err(error) => {
                let message = guarded(|| error.cause.to_string());
                let message = message.unwrap_or_else(|panic| format!("an error whose text cannot be told: {panic}"));
                let outcome = TaskOutcome::Failure { message, again: error.again };
                (Err(Some(error.cause)), outcome)
            }
        };
        self.task.note(self.start.attempt, value);
        self.finish(outcome)
    }

    /// A result that cannot be stored is a failure that no further attempt mends.
    #[cfg(feature = "sqlite")]
    fn encode(&self, output: Output) -> Output {
        let value = output?;
        let Some(coder) = &self.task.coder else { return Ok(value) };
        match guarded(|| coder.encode_result(&*value)).unwrap_or_else(|panic| Err(panic.into())) {
            Ok(blob) => self.task.note_result(blob),
            Err(why) => {
                let_go(value);
                let mut error = TaskError::new(format!("the result cannot be stored: {why}"));
                error.again = Again::Never;
                return Err(error);
            }
        }
        Ok(value)
    }

    fn finish(&mut self, outcome: TaskOutcome) -> Option<Next> {
        self.has_reported = true;
        self.shard.finish(self.start.id, self.start.fence, outcome)
    }

    /// The body is over: it goes, and what it held with it, before its units are given on. It may panic in going.
    fn conclude(&mut self, report: Report) -> Option<Next> {
        let dropped = guarded(|| drop(self.body.take()));
        match (report, dropped) {
            (Report::Stopped, _) => {
                self.task.note(self.start.attempt, Err(None));
                self.finish(TaskOutcome::Stopped)
            }
            (Report::Ended(Ok(value)), Err(panic)) => {
                let_go(value);
                self.report(panicked(panic))
            }
            (Report::Ended(output), _) => self.report(output),
        }
    }

    /// Executes what it can now: its body, and attempts that start when that ends. `Ready` when there is nothing left for it.
    fn go_on(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        for _ in 0..MOST_AT_ONCE {
            let Some(report) = self.advance(context) else { return Poll::Pending };
            let Some((task, start)) = self.conclude(report) else { return Poll::Ready(()) };
            (self.task, self.start, self.has_reported) = (task, start, false);
        }
        // Others have their turn; until the next poll it counts as launched.
        self.shard.enter();
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// An attempt that starts because another one ended.
type Next = (Arc<TaskCell>, TaskStart);

/// So many attempts execute one after the other before the runtime's other tasks have their turn.
const MOST_AT_ONCE: usize = 16;

enum Report {
    Ended(Output),
    Stopped,
}

impl Future for Attempt {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.body.is_some() {
            this.shard.enter();
        }
        let polled = this.go_on(context);
        this.shard.leave();
        polled
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.has_reported {
            return;
        }
        let_go(self.body.take());
        // Nothing else may start on a runtime that has gone.
        self.shard.cancel_all();
        self.task.note(self.start.attempt, Err(None));
        // Everything is cancelled, so nothing starts for it.
        drop(self.finish(TaskOutcome::Stopped));
    }
}

impl Shard {
    /// A virtual clock stands still while a body is about to do something.
    fn enter(&self) {
        if let Some(clock) = self.clock.as_virtual() {
            clock.busy.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn leave(&self) {
        if let Some(clock) = self.clock.as_virtual() {
            clock.busy.fetch_sub(1, Ordering::SeqCst);
            clock.touch();
        }
    }
}

fn panicked(text: String) -> Output {
    Err(TaskError::new(format!("the executor panicked: {text}")))
}

/// A payload is kept while an attempt may need it, so this tells of a bug.
fn lost_payload() -> TaskError {
    let mut error = TaskError::new("the payload is not there any more");
    error.again = Again::Never;
    error
}
