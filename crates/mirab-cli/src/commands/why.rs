//! `mirab why`: one sentence, then everything that stands in the way.
use crate::failure::{Exit, Failure};
use crate::output::clean;
use crate::session::Session;
use crate::when::{now, relative, span};
use mirab_wire::{Blocker, Holder, Promise, Waiting, Why};

/// Say why a run or a task waits: what it needs, who holds it, who goes first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run, or a task of a run that is live
    id: u64,
}

pub(crate) fn execute(args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    let why = session.client()?.why(args.id)?;
    if session.out.json {
        session.out.json(&why)?;
        return Ok(Exit::Success);
    }
    lines(&why, now()).into_iter().try_for_each(|line| session.out.line(line))?;
    Ok(Exit::Success)
}

fn lines(why: &Why, now: f64) -> Vec<String> {
    let mut lines = vec![format!("{} is {}: {}", subject(why), why.state, clean(&why.reason))];
    for waiting in &why.waiting {
        lines.push(format!("  {}", head(waiting, now)));
        // Of a single waiter the sentence above says it already.
        if !why.reason.contains(&waiting.reason) {
            lines.push(format!("  {}", clean(&waiting.reason)));
        }
        lines.extend(waiting.promise.iter().map(|promise| format!("  {}", promised(promise, now))));
        for blocker in &waiting.blocked_on {
            lines.extend(blocker_lines(blocker, now).into_iter().map(|line| format!("    {line}")));
        }
    }
    lines.extend(traceback(why).map(|line| format!("  {}", clean(line))));
    lines
}

/// `run 41`, or `task 42 (shop/nightly/load) of run 41`.
fn subject(why: &Why) -> String {
    if why.kind == "task" {
        format!("task {} ({}/{}) of run {}", why.id, clean(&why.project), clean(&why.name), why.run_id)
    } else {
        format!("run {}", why.id)
    }
}

/// Of what failed, while that is still the latest to say about it.
fn traceback(why: &Why) -> impl Iterator<Item = &str> {
    let has_failed = matches!(why.state.as_str(), "Failed" | "Crashed" | "AwaitingRetry");
    let error = why.error.as_ref().filter(|_| has_failed);
    error.and_then(|error| error.traceback.as_deref()).unwrap_or_default().lines()
}

fn head(waiting: &Waiting, now: f64) -> String {
    let of = if waiting.kind == "task" { format!(" of run {}", waiting.run_id) } else { String::new() };
    format!(
        "{} {} ({}/{}){of}: number {} in line, priority {}, waiting for {}",
        waiting.kind,
        waiting.id,
        clean(&waiting.project),
        clean(&waiting.name),
        waiting.position,
        waiting.priority,
        span(now - waiting.since)
    )
}

fn blocker_lines(blocker: &Blocker, now: f64) -> Vec<String> {
    let Blocker { resource, need, free, capacity, .. } = blocker;
    let mut lines = vec![format!("{}: needs {need}, {free} of {capacity} free", clean(resource))];
    lines.extend(blocker.holders.iter().map(|holder| format!("  held by {}", holding(holder, now))));
    let untold = blocker.holders_total.saturating_sub(blocker.holders.len() as u64);
    if untold > 0 {
        lines.push(format!("  held by {untold} more: `mirab resources {}` lists them", clean(resource)));
    }
    match blocker.behind.as_slice() {
        [] => {}
        [first] => lines.push(format!("  must not pass {first}, which waits for it too")),
        several => lines.push(format!("  must not pass {}, which wait for it too", list(several))),
    }
    if blocker.ahead > 0 {
        lines.push(format!("  {} ahead of it in line", ahead(blocker.ahead)));
    }
    if let Some(at) = blocker.tokens_at {
        let unless = if blocker.ahead > 0 { ", unless those ahead take them" } else { "" };
        lines.push(format!("  its tokens will have come {}{unless}", relative(at, now)));
    }
    if !blocker.passed_by.is_empty() {
        lines.push(format!("  passed by {} while it waited", list(&blocker.passed_by)));
    }
    lines
}

/// `expected to start in 12 s, between 9 s and 20 s from now, when db is free (durations known of 3 holders, assumed of 1)`.
fn promised(promise: &Promise, now: f64) -> String {
    let from_now = |at: f64| span(at - now);
    let range = match promise.latest {
        Some(latest) => format!(", between {} and {} from now", from_now(promise.earliest), from_now(latest)),
        None => format!(", in {} at the soonest", from_now(promise.earliest)),
    };
    let when = promise.decided_by.as_ref().map_or_else(String::new, |name| format!(", when {} is free", clean(name)));
    let rests_on = match (promise.known, promise.assumed) {
        (0, 0) => String::new(),
        (known, 0) => format!(" (durations known of {known} holders)"),
        (known, assumed) => format!(" (durations known of {known} holders, assumed of {assumed})"),
    };
    format!("expected to start {}{range}{when}{rests_on}", relative(promise.at, now))
}

/// The first ten, and how many more.
fn list(ids: &[u64]) -> String {
    let mut told: Vec<String> = ids.iter().take(10).map(u64::to_string).collect();
    if ids.len() > told.len() {
        told.push(format!("{} more", ids.len() - told.len()));
    }
    told.join(", ")
}

/// The server counts to a thousand.
fn ahead(count: u64) -> String {
    if count >= 1_000 { "1,000+".into() } else { count.to_string() }
}

/// `run 40 (nightly): 1 unit, since 12 s ago`.
pub(crate) fn holding(holder: &Holder, now: f64) -> String {
    let units = if holder.units == 1 { "unit" } else { "units" };
    format!("{}: {} {units}, taken {}", who(holder), holder.units, relative(holder.since, now))
}

fn who(holder: &Holder) -> String {
    let of = if holder.kind == "task" { format!(" of run {}", holder.run_id) } else { String::new() };
    format!("{} {}{of} ({})", holder.kind, holder.id, clean(&holder.name))
}
