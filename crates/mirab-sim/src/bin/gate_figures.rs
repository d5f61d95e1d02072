//! What the gate costs beside the decision itself: `cargo run --release -p mirab-sim --bin gate-figures [measure ...]`.
//!
//! Each line says what was measured, the bar, and whether it was reached. Work is counted, not timed, wherever it can be; memory is what
//! the allocator hands out.
use mirab_core::{ClaimId, Ended, Fence, Gate, Limit, Rate, ResourceConfig, SECOND, Submission, Time};
use mirab_sim::allocations::{Counting, in_use};
use std::fmt::Display;
use std::hint::black_box;
use std::time::Instant;

const MILLION: u64 = 1_000_000;

#[global_allocator]
static COUNTING: Counting = Counting;

fn report(what: &str, bar: impl Display, value: impl Display, reached: bool) {
    println!("{what:<62} {bar:>12} {value:>14}  {}", if reached { "ok" } else { "MISSED" });
}

fn submit(gate: &mut Gate, id: u64, needs: &[(&str, u64)], priority: i32) {
    let claim = Submission { id: ClaimId(id), kind: "bench", needs, priority, parent: None, place: None };
    gate.submit(Time(id), claim).expect("known names");
}

fn gate_with(totals: &[(&str, u64)]) -> Gate {
    let mut gate = Gate::default();
    for (name, permits) in totals {
        gate.declare(Time(0), ResourceConfig::semaphore(name, *permits)).expect("a plain name");
    }
    gate
}

/// Claims of 200 flows at 8 priorities, all waiting for one name.
fn blocked(gate: &mut Gate, waiting: u64) {
    let flows: Vec<String> = (0..200).map(|flow| format!("flow:bench/{flow}")).collect();
    for flow in &flows {
        gate.declare(Time(0), ResourceConfig::semaphore(flow, 4)).expect("a plain name");
    }
    for id in 0..waiting {
        let flow = &flows[usize::try_from(id % 200).unwrap_or(0)];
        submit(gate, 1_000 + id, &[("gate", 1), (flow, 1)], i32::try_from(id / 200 % 8).unwrap_or(0));
    }
}

fn one_unit_freed() {
    let mut gate = gate_with(&[("gate", 1)]);
    submit(&mut gate, 1, &[("gate", 1)], 0);
    let first = gate.poll_start().expect("it is free");
    blocked(&mut gate, MILLION);
    let before = gate.counters();
    gate.release(Time(2 * MILLION), first.id, first.fence, Ended::ByItself);
    let after = gate.counters();
    let (starts, looks) = (after.starts - before.starts, after.evaluations - before.evaluations);
    let text = format!("{looks} / {starts}");
    report("1 unit freed, 1,000,000 wait: claims evaluated / started", "1 / 1", text, (looks, starts) == (1, 1));
}

fn memory_of_waiting() {
    let mut gate = gate_with(&[("gate", 1)]);
    submit(&mut gate, 1, &[("gate", 1)], 0);
    let before = in_use();
    blocked(&mut gate, MILLION);
    let each = (in_use() - before) / MILLION;
    report("bytes for a waiting claim, 1,000,000 wait", 200, each, each <= 200);
    black_box(gate);
}

/// Keys of a pattern of buckets: each has given its token, and is not full again. Then time passes, and all are idle.
fn keys_of_buckets() {
    let mut gate = Gate::default();
    let rate = Rate::per(1, 3_600).expect("positive");
    let limit = Limit::TokenBucket { rate, burst: 1 };
    gate.declare(Time(0), ResourceConfig { limit, ..ResourceConfig::semaphore("api:*", 1) }).expect("a pattern");
    let before = in_use();
    for id in 0..MILLION {
        submit(&mut gate, id, &[(&format!("api:{id}"), 1)], 0);
        let start = gate.poll_start().expect("a full bucket");
        gate.release(Time(id), start.id, start.fence, Ended::ByItself);
    }
    let each = (in_use() - before) / MILLION;
    report("bytes for a live key of a pattern of buckets, 1,000,000 live", 300, each, each <= 300);
    gate.handle_timeout(Time(2 * 3_600 * SECOND));
    let left = in_use().saturating_sub(before) / MILLION;
    report("... and once they are idle", 30, left, left <= 30 && gate.resources().is_empty());
}

/// Keys of a pattern of semaphores, each held: the key's own bytes, beside leases of as many different claims on one name.
fn keys_of_semaphores() {
    let hold = |pattern: bool| {
        let mut gate = gate_with(&[("lock:*", 1), ("many", u64::MAX / 2)]);
        let before = in_use();
        let mut held: Vec<(ClaimId, Fence)> = Vec::with_capacity(usize::try_from(MILLION).unwrap_or(0));
        let own = in_use();
        for id in 0..MILLION {
            let (name, units) = if pattern { (format!("lock:{id}"), 1) } else { ("many".into(), id + 1) };
            submit(&mut gate, id, &[(&name, units)], 0);
            let start = gate.poll_start().expect("it is free");
            held.push((start.id, start.fence));
        }
        let used = in_use() - own;
        for (id, fence) in held {
            gate.release(Time(MILLION), id, fence, Ended::ByItself);
        }
        (used / MILLION, in_use().saturating_sub(before) / MILLION)
    };
    let ((keys, idle), (leases, _)) = (hold(true), hold(false));
    let each = keys.saturating_sub(leases);
    report("bytes for a held key of a pattern, beyond its lease", 300, each, each <= 300);
    report("... and once they are idle", 30, idle, idle <= 30);
}

/// The last of many grants comes at the very nanosecond that the closed form gives: not one too many, not one too few.
fn bucket_drift() {
    let rates = [
        (1, 604_800, 20_000, "one per week"),
        (1, 10, 100_000, "0.1 per second"),
        (19, 10, 100_000, "1.9 per second"),
        (MILLION, 1, 100_000, "10^6 per second"),
    ];
    for (units, seconds, grants, name) in rates {
        let mut gate = gate_of_bucket(units, seconds, 2);
        let fires = run_bucket(&mut gate, grants);
        // The bucket starts with two tokens: grant number n + 2 comes at the first nanosecond at which n tokens have come. With a burst of
        // 1 the part of a nanosecond that a grant comes late would overflow and be lost.
        let exact = (u128::from(grants - 1) * u128::from(seconds) * u128::from(SECOND)).div_ceil(u128::from(units));
        let last = gate.poll_timeout().map_or(0, |(at, _)| u128::from(at.0));
        let drift = last.cast_signed() - exact.cast_signed();
        let text = format!("{drift}, {}.{:02}", fires / grants, fires * 100 / grants % 100);
        let what = format!("bucket of {name}: drift in ns, timer fires per grant");
        report(&what, "0, 1", text, drift == 0 && fires <= grants);
    }
}

fn gate_of_bucket(units: u64, seconds: u64, burst: u64) -> Gate {
    let mut gate = Gate::default();
    let limit = Limit::TokenBucket { rate: Rate::per(units, seconds).expect("positive"), burst };
    gate.declare(Time(0), ResourceConfig { limit, ..ResourceConfig::semaphore("api", 1) }).expect("a name");
    gate
}

/// Grants one token after the other as the gate's own timer asks; gives how often it fired.
fn run_bucket(gate: &mut Gate, grants: u64) -> u64 {
    let mut fires = 0;
    for id in 1..=grants + 1 {
        submit_at(gate, id);
    }
    while gate.counters().starts < grants {
        let (at, _) = gate.poll_timeout().expect("tokens are to come");
        gate.handle_timeout(at);
        fires += 1;
        while let Some(start) = gate.poll_start() {
            gate.release(at, start.id, start.fence, Ended::ByItself);
        }
    }
    fires
}

fn submit_at(gate: &mut Gate, id: u64) {
    let claim = Submission { id: ClaimId(id), kind: "k", needs: &[("api", 1)], priority: 0, parent: None, place: None };
    gate.submit(Time(0), claim).expect("a known name");
    while let Some(start) = gate.poll_start() {
        gate.release(Time(0), start.id, start.fence, Ended::ByItself);
    }
}

fn explained() {
    let mut gate = gate_with(&[("gate", 1), ("pool:engines", 4)]);
    submit(&mut gate, 1, &[("gate", 1)], 0);
    blocked(&mut gate, 10_000);
    let line = gate.line(10_000);
    let begin = Instant::now();
    for id in &line {
        black_box(gate.explain(*id));
    }
    let millis = begin.elapsed().as_millis();
    report("ms to explain 10,000 waiting claims", 50, millis, millis < 50);
}

/// For callgrind: one start of an unrelated claim, with `waiting` blocked on another name.
fn unrelated(waiting: u64) {
    let mut gate = gate_with(&[("gate", 1), ("free", 4)]);
    submit(&mut gate, 1, &[("gate", 1)], 0);
    blocked(&mut gate, waiting);
    let mut id = 10 * MILLION;
    let mut turn = |gate: &mut Gate| {
        id += 1;
        unrelated_turn(gate, id);
    };
    (0..100).for_each(|_| turn(&mut gate));
    (0..100).for_each(|_| turn(&mut gate));
}

#[inline(never)]
fn unrelated_turn(gate: &mut Gate, id: u64) {
    submit(gate, id, &[("free", 1)], 0);
    while let Some(start) = gate.poll_start() {
        if start.id == ClaimId(id) {
            gate.release(Time(id), start.id, start.fence, Ended::ByItself);
        }
    }
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if let ["unrelated", waiting] = asked.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        unrelated(waiting.parse().expect("a number"));
        return;
    }
    println!("{:<62} {:>12} {:>14}", "measure", "bar", "value");
    one_unit_freed();
    memory_of_waiting();
    keys_of_buckets();
    keys_of_semaphores();
    bucket_drift();
    explained();
}
