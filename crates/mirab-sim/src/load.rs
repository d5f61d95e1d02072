//! Mixed loads: work of several kinds that comes at random and shares one to three resources, played on the gate or on a scheduler that
//! protects nobody.
use crate::rng::Rng;
use mirab_core::{ClaimId, Ended, Fence, Gate, ResourceConfig, SECOND, Submission, Time};
use std::collections::{BTreeMap, BTreeSet};

/// How honest durations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durations {
    /// A kind always takes as long.
    Steady,
    /// Between half and one and a half times as long.
    Noisy,
    /// One in ten takes ten times as long, one in ten a tenth.
    Lying,
}

/// A kind of work.
#[derive(Clone, Debug)]
struct Kind {
    needs: Vec<(usize, u64)>,
    mean: u64,
    priority: i32,
}

/// A piece of work.
#[derive(Clone, Debug)]
pub struct Job {
    /// When it comes.
    pub at: u64,
    kind: usize,
    hold: u64,
    /// What a task inside it needs besides, and for how long.
    task: Option<(usize, u64, u64)>,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Total of each resource.
    pub totals: Vec<u64>,
    /// In the order of coming.
    pub jobs: Vec<Job>,
    kinds: Vec<Kind>,
}

const NAMES: [&str; 3] = ["r0", "r1", "r2"];
const KINDS: [&str; 6] = ["k0", "k1", "k2", "k3", "k4", "k5"];

impl Load {
    /// The load of a seed: `percent` of the busiest resource are asked for over time.
    #[must_use]
    pub fn of(seed: u64, percent: u64, durations: Durations, tasks: bool, jobs: u64) -> Self {
        let mut rng = Rng::new(seed);
        let totals: Vec<u64> = (0..rng.between(1, 3)).map(|_| rng.between(2, 10)).collect();
        let kinds: Vec<Kind> = (0..rng.between(2, 6)).map(|_| kind(&mut rng, &totals)).collect();
        // What one job uses of each resource on average, in units times nanoseconds for each unit there is.
        let used = |r: usize| -> u64 {
            let of_kind =
                |k: &Kind| k.needs.iter().filter(|(at, _)| *at == r).map(|(_, units)| units * k.mean).sum::<u64>();
            kinds.iter().map(of_kind).sum::<u64>() / kinds.len() as u64 / totals[r]
        };
        let busiest = (0..totals.len()).map(used).max().unwrap_or(SECOND).max(1);
        let gap = busiest * 100 / percent;
        let mut at = 0;
        let jobs = (0..jobs).map(|_| {
            at += rng.below(2 * gap);
            let kind = usize::try_from(rng.below(kinds.len() as u64)).unwrap_or(0);
            let hold = vary(&mut rng, kinds[kind].mean, durations);
            let held: BTreeSet<usize> = kinds[kind].needs.iter().map(|(r, _)| *r).collect();
            let other = (0..totals.len()).find(|r| !held.contains(r));
            let task = other.filter(|_| tasks && rng.chance(30)).map(|r| (r, rng.between(1, totals[r]), hold / 2));
            Job { at, kind, hold, task }
        });
        Self { jobs: jobs.collect(), totals, kinds }
    }

    fn needs(&self, job: &Job) -> Vec<(&'static str, u64)> {
        self.kinds[job.kind].needs.iter().map(|(r, units)| (NAMES[*r], *units)).collect()
    }

    /// Units times nanoseconds of all jobs, in parts of a million of what there is during `span`.
    fn use_in(&self, span: u64) -> u64 {
        let job = |job: &Job| {
            let units: u64 = self.kinds[job.kind].needs.iter().map(|(_, units)| *units).sum();
            u128::from(units) * u128::from(job.hold)
        };
        let all: u128 = self.jobs.iter().map(job).sum();
        let there = u128::from(self.totals.iter().sum::<u64>()) * u128::from(span.max(1));
        u64::try_from(all * 1_000_000 / there).unwrap_or(0)
    }
}

fn kind(rng: &mut Rng, totals: &[u64]) -> Kind {
    let mut needs: Vec<(usize, u64)> = Vec::new();
    for (r, total) in totals.iter().enumerate() {
        if needs.is_empty() || rng.chance(40) {
            let units = if rng.chance(60) { 1 } else { rng.between(1, *total) };
            needs.push((r, units));
        }
    }
    let mean = rng.between(1, 20) * SECOND;
    Kind { needs, mean, priority: *rng.pick(&[0, 0, 0, 5]).unwrap_or(&0) }
}

fn vary(rng: &mut Rng, mean: u64, durations: Durations) -> u64 {
    match (durations, rng.below(10)) {
        (Durations::Steady, _) => mean,
        (Durations::Noisy, _) => rng.between(mean / 2, mean * 3 / 2),
        (Durations::Lying, 0) => mean * 10,
        (Durations::Lying, 1) => mean / 10,
        (Durations::Lying, _) => mean,
    }
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Use of all resources until the last job ended, in parts of a million.
    pub use_ppm: u64,
    /// Of claims that were promised an instant: how far from it they started, in nanoseconds.
    pub promise_errors: Vec<u64>,
    /// The longest wait counted from when no higher-ranked claim waited for any of its resources, with the number of its resources.
    pub longest_wait: (u64, usize),
    /// The longest that any job held its units: one whose task waits holds them meanwhile.
    pub longest_hold: u64,
    /// Jobs that started.
    pub started: usize,
}

/// Plays a load on the gate.
///
/// # Panics
/// When the gate refuses what it must accept, or something never starts.
#[must_use]
pub fn play(load: &Load) -> Outcome {
    let mut play = Play::new(load);
    while let Some(at) = play.next_instant() {
        play.step(at);
    }
    assert_eq!(play.outcome.started, load.jobs.len(), "every job starts");
    play.outcome.use_ppm = load.use_in(play.now);
    play.outcome
}

struct Play<'a> {
    load: &'a Load,
    gate: Gate,
    now: u64,
    next_job: usize,
    /// Bodies that end, by instant: claim, fence.
    ends: BTreeSet<(u64, ClaimId, Fence)>,
    /// Promised instants of waiting claims.
    promised: BTreeMap<ClaimId, u64>,
    /// Since when no higher-ranked claim waits for what a waiting one needs.
    clear: BTreeMap<ClaimId, u64>,
    /// Running jobs and tasks: fence, and since when.
    fences: BTreeMap<ClaimId, (Fence, u64)>,
    outcome: Outcome,
}

/// Jobs have the ids from 1, their tasks those from here.
const TASKS: u64 = 1 << 32;

impl<'a> Play<'a> {
    fn new(load: &'a Load) -> Self {
        let mut gate = Gate::default();
        for (name, total) in NAMES.iter().zip(&load.totals) {
            gate.declare(Time(0), ResourceConfig::semaphore(name, *total)).expect("a plain name");
        }
        let (ends, promised, clear, fences) = Default::default();
        Self { load, gate, now: 0, next_job: 0, ends, promised, clear, fences, outcome: Outcome::default() }
    }

    fn next_instant(&self) -> Option<u64> {
        let job = self.load.jobs.get(self.next_job).map(|job| job.at);
        let end = self.ends.first().map(|(at, ..)| *at);
        let timer = self.gate.poll_timeout().map(|(at, _)| at.0);
        let work = job.into_iter().chain(end).min()?;
        Some(timer.map_or(work, |timer| timer.min(work)).max(self.now))
    }

    fn step(&mut self, at: u64) {
        self.now = at;
        if let Some(&(end, id, fence)) = self.ends.first()
            && end <= at
        {
            self.ends.pop_first();
            self.end(id, fence);
        } else if self.load.jobs.get(self.next_job).is_some_and(|job| job.at <= at) {
            self.next_job += 1;
            let job = &self.load.jobs[self.next_job - 1];
            let (kind, priority) = (KINDS[job.kind], self.load.kinds[job.kind].priority);
            let needs = self.load.needs(job);
            let id = ClaimId(self.next_job as u64);
            let claim = Submission { id, kind, needs: &needs, priority, parent: None, place: None };
            self.gate.submit(Time(at), claim).expect("known names");
        } else {
            self.gate.handle_timeout(Time(at));
        }
        self.collect();
    }

    /// A body is over; a job whose task has not run yet calls it first.
    fn end(&mut self, id: ClaimId, fence: Fence) {
        if id.0 >= TASKS {
            self.gate.release(Time(self.now), id, fence, Ended::ByItself);
            self.end_job(ClaimId(id.0 - TASKS));
            return;
        }
        let job = &self.load.jobs[usize::try_from(id.0 - 1).expect("a job's number")];
        let Some((r, units, _)) = job.task else { return self.end_job(id) };
        let task = ClaimId(TASKS + id.0);
        let needs = [(NAMES[r], units)];
        let claim = Submission { id: task, kind: "task", needs: &needs, priority: 0, parent: Some(id), place: None };
        self.gate.submit(Time(self.now), claim).expect("known names");
    }

    fn end_job(&mut self, id: ClaimId) {
        let (fence, since) = self.fences.remove(&id).expect("it runs");
        self.outcome.longest_hold = self.outcome.longest_hold.max(self.now - since);
        self.gate.release(Time(self.now), id, fence, Ended::ByItself);
    }

    fn collect(&mut self) {
        loop {
            if let Some(start) = self.gate.poll_start() {
                self.fences.insert(start.id, (start.fence, self.now));
                self.started(start.id, start.fence);
            } else if let Some((task, _)) = self.gate.poll_refused() {
                // Its wait would have closed a circle: the job goes on without it.
                self.end_job(ClaimId(task.0 - TASKS));
            } else {
                break;
            }
        }
        self.look_at_the_line();
    }

    /// Place in the one order: priority, then number; a task has its job's.
    fn rank(&self, id: ClaimId) -> (i32, u64) {
        let number = usize::try_from(id.0 % TASKS - 1).expect("a job's number");
        (-self.load.kinds[self.load.jobs[number].kind].priority, id.0 % TASKS)
    }

    /// One that ranks above and starts at once has not waited, but it was in front all the same.
    fn was_in_front(&mut self, id: ClaimId, needs: &[usize]) {
        let (rank, now) = (self.rank(id), self.now);
        let load = self.load;
        for (other, since) in &mut self.clear {
            let number = usize::try_from(other.0 - 1).expect("a job's number");
            let kind = &load.kinds[load.jobs[number].kind];
            if rank < (-kind.priority, other.0) && kind.needs.iter().any(|(r, _)| needs.contains(r)) {
                *since = now;
            }
        }
    }

    fn started(&mut self, id: ClaimId, fence: Fence) {
        let number = usize::try_from(id.0 % TASKS - 1).expect("a job's number");
        let job = &self.load.jobs[number];
        if id.0 >= TASKS {
            let hold = job.task.map_or(0, |(_, _, hold)| hold);
            let needs: Vec<usize> = job.task.iter().map(|(r, ..)| *r).collect();
            self.was_in_front(id, &needs);
            self.ends.insert((self.now + hold, id, fence));
            return;
        }
        let needs: Vec<usize> = self.load.kinds[job.kind].needs.iter().map(|(r, _)| *r).collect();
        self.was_in_front(id, &needs);
        self.ends.insert((self.now + job.hold, id, fence));
        self.outcome.started += 1;
        if let Some(promised) = self.promised.remove(&id) {
            self.outcome.promise_errors.push(self.now.abs_diff(promised));
        }
        if let Some(since) = self.clear.remove(&id) {
            let resources = self.load.kinds[job.kind].needs.len();
            self.outcome.longest_wait = self.outcome.longest_wait.max((self.now - since, resources));
        }
    }

    /// Who is promised an instant, and who has nobody above any more.
    fn look_at_the_line(&mut self) {
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for id in self.gate.line(usize::MAX) {
            let job = &self.load.jobs[usize::try_from(id.0 % TASKS - 1).expect("a job's number")];
            let needs: Vec<usize> = match job.task.filter(|_| id.0 >= TASKS) {
                Some((r, ..)) => vec![r],
                None => self.load.kinds[job.kind].needs.iter().map(|(r, _)| *r).collect(),
            };
            if needs.iter().any(|r| taken.contains(r)) {
                self.clear.remove(&id);
            } else if id.0 < TASKS {
                self.clear.entry(id).or_insert(self.now);
            }
            taken.extend(needs);
            if id.0 < TASKS && !self.promised.contains_key(&id) {
                let promise = self.gate.explain(id).and_then(|explanation| explanation.promise);
                self.promised.extend(promise.map(|promise| (id, promise.at.0)));
            }
        }
    }
}

/// The same load on a scheduler that starts whatever fits, best rank first, and protects nobody. Without the tasks inside jobs, for which
/// it would hang: gives the use of all resources in parts of a million.
#[must_use]
pub fn play_without_promises(load: &Load) -> u64 {
    let mut free = load.totals.clone();
    let mut waiting: BTreeSet<(i32, usize)> = BTreeSet::new();
    let mut ends: BTreeSet<(u64, usize)> = BTreeSet::new();
    let (mut now, mut next) = (0, 0);
    loop {
        let job = load.jobs.get(next).map(|job| job.at);
        let Some(at) = job.into_iter().chain(ends.first().map(|(at, _)| *at)).min() else { break };
        now = at;
        while let Some(&(end, number)) = ends.first()
            && end <= now
        {
            ends.pop_first();
            load.kinds[load.jobs[number].kind].needs.iter().for_each(|(r, units)| free[*r] += units);
        }
        while load.jobs.get(next).is_some_and(|job| job.at <= now) {
            waiting.insert((-load.kinds[load.jobs[next].kind].priority, next));
            next += 1;
        }
        for (priority, number) in waiting.clone() {
            let job = &load.jobs[number];
            let needs = &load.kinds[job.kind].needs;
            if needs.iter().all(|(r, units)| free[*r] >= *units) {
                needs.iter().for_each(|(r, units)| free[*r] -= units);
                waiting.remove(&(priority, number));
                ends.insert((now + job.hold, number));
            }
        }
    }
    load.use_in(now)
}
