//! What one decision costs: `cargo run --release -p mirab-sim --bin bench-gate -- [claims waiting]`.
//!
//! Each turn ends one body, takes the start that this allows, and submits one new claim, with three needs each: a pool, a semaphore,
//! and the cap of one of 200 flows. Beside it, in the same run and in turn, a bare binary heap of the same depth: pop and push.
use mirab_core::{ClaimId, Ended, Fence, Gate, GateOptions, ResourceConfig, Submission, Time};
use mirab_sim::Rng;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;
use std::time::Instant;

const FLOWS: u64 = 200;
const PRIORITIES: u64 = 8;
const TURNS: u64 = 200_000;
const ROUNDS: usize = 5;

struct Line {
    gate: Gate,
    caps: Vec<String>,
    running: VecDeque<(ClaimId, Fence)>,
    rng: Rng,
    next: u64,
}

impl Line {
    fn of(depth: u64) -> Self {
        let caps: Vec<String> = (0..FLOWS).map(|flow| format!("flow:bench/{flow}")).collect();
        let mut gate = Gate::new(GateOptions::default());
        let totals = caps.iter().map(|cap| (cap.as_str(), 4)).chain([("pool:engines", 16), ("db", 10)]);
        for (name, permits) in totals {
            gate.declare(Time(0), ResourceConfig::semaphore(name, permits)).expect("a plain name");
        }
        let mut line = Self { gate, caps, running: VecDeque::new(), rng: Rng::new(7), next: 0 };
        while line.gate.waiting() < depth {
            line.submit();
            line.collect();
        }
        line
    }

    fn submit(&mut self) {
        self.next += 1;
        let flow = usize::try_from(self.rng.below(FLOWS)).unwrap_or(0);
        let needs = [("pool:engines", 1), ("db", 1), (self.caps[flow].as_str(), 1)];
        let priority = i32::try_from(self.rng.below(PRIORITIES)).unwrap_or(0);
        let id = ClaimId(self.next);
        let claim = Submission { id, kind: "bench", needs: &needs, priority, parent: None, place: None };
        self.gate.submit(Time(self.next), claim).expect("known names");
    }

    fn collect(&mut self) {
        while let Some(start) = self.gate.poll_start() {
            self.running.push_back((start.id, start.fence));
        }
    }

    fn turn(&mut self) {
        let (id, fence) = self.running.pop_front().expect("something always runs");
        self.gate.release(Time(self.next), id, fence, Ended::ByItself);
        self.collect();
        self.submit();
        self.collect();
    }
}

/// A line of bare entries of 24 bytes: priority, order, id.
struct Bare {
    heap: BinaryHeap<(u64, u64, u64)>,
    rng: Rng,
    next: u64,
}

impl Bare {
    fn of(depth: u64) -> Self {
        let mut bare = Self { heap: BinaryHeap::new(), rng: Rng::new(7), next: 0 };
        (0..depth).for_each(|_| bare.push());
        bare
    }

    fn push(&mut self) {
        self.next += 1;
        self.heap.push((self.rng.below(PRIORITIES), u64::MAX - self.next, self.next));
    }

    fn turn(&mut self) {
        black_box(self.heap.pop());
        self.push();
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

/// What callgrind counts: so many turns, once all that allocates has done so.
const COUNTED: u64 = 20_000;

#[inline(never)]
fn counted_turns(line: &mut Line) {
    (0..COUNTED).for_each(|_| line.turn());
}

/// `bench-gate instructions`: a fixed amount of work at 100,000 waiting, for `bench/instructions`.
fn instructions() {
    let mut line = Line::of(100_000);
    (0..COUNTED).for_each(|_| line.turn());
    counted_turns(&mut line);
    println!("{COUNTED} turns");
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("instructions") {
        return instructions();
    }
    let depth = std::env::args().nth(1).map_or(100_000, |depth| depth.parse().expect("a number of waiting claims"));
    let (mut line, mut bare) = (Line::of(depth), Bare::of(depth));
    // Warm up: what allocates does so now.
    measure(|| line.turn());
    measure(|| bare.turn());
    let before = line.gate.counters();
    let rounds = (0..ROUNDS).map(|_| (measure(|| line.turn()), measure(|| bare.turn())));
    let (gate, heap): (Vec<u64>, Vec<u64>) = rounds.unzip();
    let (gate, heap, after) = (median(gate), median(heap).max(1), line.gate.counters());
    let (starts, looks) = (after.starts - before.starts, after.evaluations - before.evaluations);
    assert_eq!(
        (line.gate.waiting(), starts),
        (depth, TURNS * ROUNDS as u64),
        "the line is steady, every turn starts one"
    );
    println!("claims waiting                       {depth}");
    println!("gate: release, start, submit         {gate} ns");
    println!("binary heap: pop, push               {heap} ns");
    println!("ratio                                {}.{}", gate / heap, gate * 10 / heap % 10);
    println!("candidates looked at for each start  {}.{:02}", looks / starts, looks * 100 / starts % 100);
}
