//! Why something waits, in one sentence.
use super::settle::signed;
use super::{DEFAULT_POOL, Orchestrator};
use crate::error::Error;
use crate::run::{Run, told};
use crate::state::State;
use crate::task_run::TaskRun;
use crate::views::WaitingRow;
use mirab_core::{AHEAD_LIMIT, Blocked, ClaimId, Explanation, InCircle, Refusal, SECOND, Time};

impl Orchestrator {
    /// Names every resource that is short. An engine is none: it is named only when nothing else is short.
    pub(super) fn reason(&self, now: Time, explanation: &Explanation) -> String {
        let resources = explanation.blocked_on.iter().filter(|blocked| blocked.resource != DEFAULT_POOL);
        let mut parts: Vec<String> = resources.map(|blocked| self.about(now, blocked)).collect();
        if parts.is_empty() {
            parts.extend(explanation.blocked_on.iter().map(|blocked| self.about_engines(blocked)));
        }
        if parts.is_empty() { "it is next".into() } else { parts.join("; ") }
    }

    fn about_engines(&self, blocked: &Blocked) -> String {
        match blocked.capacity {
            0 => "engines are paused: max_engines is 0".into(),
            _ if blocked.free > 0 => "an engine is kept for work ahead of it".into(),
            1 => "the only engine is busy".into(),
            all => format!("all {all} engines are busy"),
        }
    }

    fn about(&self, now: Time, blocked: &Blocked) -> String {
        let Blocked { resource, need, free, capacity, .. } = blocked;
        if self.undeclared.contains(resource) {
            return format!("`{resource}` is not declared any more: declare it again, or cancel what waits for it");
        }
        if *capacity == 0 {
            return format!("`{resource}` is paused: its total is 0");
        }
        if need > capacity {
            return format!("needs {need} of `{resource}`, whose total was lowered to {capacity}");
        }
        if *free >= signed(*need) {
            return match blocked.behind.first() {
                Some(&id) => format!("`{resource}` has {free} free, kept for {} ahead of it", self.named(id)),
                None => format!("`{resource}` has {free} free, kept for work ahead of it"),
            };
        }
        let short = format!("needs {need} of `{resource}`, {free} of {capacity} free");
        match blocked.tokens_at {
            // The time is that of the tokens: whoever is ahead takes them first.
            Some(at) if blocked.ahead == 0 => format!("{short}, enough in {}", span(at.since(now))),
            Some(_) => format!("{short}, {} ahead of it", count_ahead(blocked.ahead)),
            None => short + &self.held_by(now, blocked),
        }
    }

    fn held_by(&self, now: Time, blocked: &Blocked) -> String {
        let Some((first, _, since)) = blocked.holders.first() else { return String::new() };
        let held = format!(": held by {} for {}", self.named(*first), span(now.since(*since)));
        match blocked.holders_total {
            0 | 1 => held,
            2 => held + " and 1 other",
            all => format!("{held} and {} others", all - 1),
        }
    }

    /// `run 7 (nightly)`, or `task 9 (nightly/load) of run 7`.
    fn named(&self, id: ClaimId) -> String {
        match self.describe(id) {
            Some(who) if who.is_task => format!("task {} ({}) of run {}", id.0, who.name, who.run.0),
            Some(who) => format!("run {} ({})", id.0, who.name),
            None => format!("run {}", id.0),
        }
    }

    /// A circle is told with the names of its runs and tasks, which the gate does not know.
    pub(super) fn in_words(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::ResourceDeadlock { circle } => {
                let told: Vec<String> = circle.iter().map(|at| self.about_circle(at, &circle)).collect();
                Error::Deadlock { told: told.join("; ") }
            }
            other => other.into(),
        }
    }

    /// Of all that a run holds, what the others wait for.
    fn about_circle(&self, at: &InCircle, circle: &[InCircle]) -> String {
        let is_wanted = |name: &&String| circle.iter().any(|other| other.wants.contains(name));
        let holds: Vec<&str> = at.holds.iter().filter(is_wanted).map(String::as_str).collect();
        let flow = self.run(at.run).map_or_else(String::new, |run| format!(" ({}/{})", run.project, run.flow));
        let task = self.task(at.task).map_or_else(|| at.task.0.to_string(), |task| task.name.clone());
        let (holds, wants) = (holds.join(", "), at.wants.join(", "));
        format!("run {}{flow} holds {holds} and its task {task} waits for {wants}", at.run.0)
    }

    /// Of a task the gate's own words are all there is to say while it waits.
    pub(super) fn reason_of_task(&self, now: Time, task: &TaskRun, waiting: &[WaitingRow]) -> String {
        match task.state() {
            State::Waiting => waiting.first().map_or_else(|| "it is next".into(), |row| row.reason.clone()),
            State::AwaitingRetry => format!("its next attempt is due in {}", span(task.record.due_at.since(now))),
            state if state.is_terminal() => match &task.record.error {
                Some(error) => told(error),
                None => format!("it ended {} ago", span(now.since(task.since))),
            },
            _ => format!("it has been executing for {}", span(now.since(task.since))),
        }
    }

    pub(super) fn reason_of_run(&self, now: Time, run: &Run, waiting: &[WaitingRow]) -> String {
        match run.state() {
            State::Scheduled => format!("due in {}", span(run.record.due_at.since(now))),
            State::AwaitingRetry => format!("its next attempt is due in {}", span(run.record.due_at.since(now))),
            State::Pending => format!("offered to an engine for {}", span(now.since(run.since))),
            State::Cancelling => format!("asked to stop {} ago", span(now.since(run.since))),
            State::Waiting if self.parked.contains(&run.record.id) => {
                format!("its project {:?} is not served: serve its directory again", run.record.project)
            }
            State::Waiting => waiting.first().map_or_else(|| "it is next".into(), |row| row.reason.clone()),
            _ => match waiting {
                [] => format!("it has been executing for {}", span(now.since(run.since))),
                [row] => format!("its task {} waits: {}", row.name, row.reason),
                [row, ..] => format!("{} of its tasks wait, first {}: {}", waiting.len(), row.name, row.reason),
            },
        }
    }
}

/// The gate counts up to a limit.
fn count_ahead(ahead: u64) -> String {
    if ahead >= AHEAD_LIMIT { "1,000+".into() } else { ahead.to_string() }
}

/// A span of time as people say it.
fn span(nanos: u64) -> String {
    let seconds = nanos / SECOND;
    match seconds {
        0..10 => format!("{}.{} s", seconds, nanos % SECOND / (SECOND / 10)),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}
