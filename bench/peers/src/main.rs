//! The gate beside the public crate `cronoq-core`, its nearest equivalent: one pool, one semaphore of 10, four classes, no finished task
//! kept on either side, virtual time. Each turn ends one body, takes the start that this allows, and submits one new piece of work.
//!
//! `cargo run --release --bin bench-peers [claims waiting ...]` measures both in turn, five times, and compares the medians.
use cronoq_core::{Action, Core, CoreConfig, LeaseId, Outcome, PoolConfig, Priority, ResourceConfig, TaskSpec};
use mirab_core::{ClaimId, Ended, Fence, Gate, Submission};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const SLOTS: u32 = 16;
const PERMITS: u32 = 10;
const TURNS: u64 = 100_000;
const ROUNDS: usize = 5;

/// A cheap sequence of classes, the same on both sides.
struct Classes(u64);

impl Classes {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 62) as usize
    }
}

struct Ours {
    gate: Gate,
    running: VecDeque<(ClaimId, Fence)>,
    classes: Classes,
    next: u64,
}

impl Ours {
    fn of(depth: u64) -> Self {
        let mut gate = Gate::default();
        for (name, permits) in [("pool:default", SLOTS), ("sem", PERMITS)] {
            let resource = mirab_core::ResourceConfig::semaphore(name, permits.into());
            gate.declare(mirab_core::Time(0), resource).expect("a plain name");
        }
        let mut ours = Self { gate, running: VecDeque::new(), classes: Classes(7), next: 0 };
        while ours.gate.waiting() < depth {
            ours.submit();
        }
        ours
    }

    fn submit(&mut self) {
        self.next += 1;
        let priority = self.classes.next() as i32;
        let needs = [("pool:default", 1), ("sem", 1)];
        let claim =
            Submission { id: ClaimId(self.next), kind: "k", needs: &needs, priority, parent: None, place: None };
        self.gate.submit(mirab_core::Time(self.next), claim).expect("known names");
        self.collect();
    }

    fn collect(&mut self) {
        while let Some(start) = self.gate.poll_start() {
            self.running.push_back((start.id, start.fence));
        }
    }

    fn turn(&mut self) {
        let (id, fence) = self.running.pop_front().expect("something always runs");
        self.gate.release(mirab_core::Time(self.next), id, fence, Ended::ByItself);
        self.collect();
        self.submit();
    }
}

struct Theirs {
    core: Core<u64>,
    running: VecDeque<LeaseId>,
    classes: Classes,
    next: u64,
}

impl Theirs {
    fn of(depth: u64) -> Self {
        let core = Core::new(CoreConfig {
            pools: vec![PoolConfig::fixed("default", SLOTS)],
            resources: vec![ResourceConfig::semaphore("sem", PERMITS)],
            retention: Duration::ZERO,
            retention_max: 0,
            ..CoreConfig::default()
        });
        let mut theirs = Self { core, running: VecDeque::new(), classes: Classes(7), next: 0 };
        while theirs.next < depth + u64::from(PERMITS) {
            theirs.submit();
        }
        theirs
    }

    fn submit(&mut self) {
        self.next += 1;
        let task = TaskSpec::new(self.next).priority(Priority::ALL[self.classes.next()]).resource("sem", 1);
        self.core.submit(cronoq_core::Time(self.next), task).expect("a known resource");
        self.collect();
    }

    fn collect(&mut self) {
        while let Some(action) = self.core.poll_action() {
            if let Action::Dispatch(start) = action {
                self.running.push_back(start.lease);
            }
        }
    }

    fn turn(&mut self) {
        let lease = self.running.pop_front().expect("something always runs");
        self.core.complete(cronoq_core::Time(self.next), lease, Outcome::Success);
        self.collect();
        self.submit();
    }
}

/// Nanoseconds a turn.
fn measure(mut turn: impl FnMut()) -> u64 {
    let begin = Instant::now();
    (0..TURNS).for_each(|_| turn());
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX) / TURNS
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

fn compare(depth: u64) {
    let (mut ours, mut theirs) = (Ours::of(depth), Theirs::of(depth));
    measure(|| ours.turn());
    measure(|| theirs.turn());
    let rounds = (0..ROUNDS).map(|_| (measure(|| ours.turn()), measure(|| theirs.turn())));
    let (gate, core): (Vec<u64>, Vec<u64>) = rounds.unzip();
    let (gate, core) = (median(gate).max(1), median(core));
    let (whole, tenth) = (core / gate, core * 10 / gate % 10);
    println!(
        "{depth:>9} waiting: mirab-core {gate} ns, cronoq-core {core} ns a turn: {whole}.{tenth} times its throughput (bar 2)"
    );
}

fn main() {
    let depths: Vec<u64> = std::env::args().skip(1).map(|depth| depth.parse().expect("a number")).collect();
    for depth in if depths.is_empty() { vec![100_000, 1_000_000] } else { depths } {
        compare(depth);
    }
}
