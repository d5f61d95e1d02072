//! A load played on the gate, or on a scheduler that protects nobody.
use super::{Job, KINDS, Load, NAMES};
use mirab_core::{ClaimId, Ended, Fence, Gate, ResourceConfig, Submission, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Use of all resources until the last job ended, in parts of a million.
    pub use_ppm: u64,
    /// Of claims that were promised an instant: how far from it they started, in nanoseconds.
    pub promise_errors: Vec<u64>,
    /// Waits counted from when no higher-ranked claim waited for any of its resources, in nanoseconds, with the numbers of these resources.
    pub waits: Vec<(u64, Vec<usize>)>,
    /// The longest that each resource was held in one go, in nanoseconds: a job whose task waits holds its own meanwhile.
    pub longest_holds: Vec<u64>,
    /// Jobs that started.
    pub started: usize,
}

impl Outcome {
    /// The longest that any resource was held in one go, in nanoseconds.
    #[must_use]
    pub fn longest_hold(&self) -> u64 {
        self.longest_holds.iter().copied().max().unwrap_or(0)
    }

    /// What the contract allows a claim to wait for these resources: the longest hold of each, and one delay on each.
    #[must_use]
    pub fn bound(&self, resources: &[usize]) -> u64 {
        resources.iter().map(|r| 2 * self.longest_holds[*r]).sum()
    }
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
        let outcome = Outcome { longest_holds: vec![0; load.totals.len()], ..Outcome::default() };
        Self { load, gate, now: 0, next_job: 0, ends, promised, clear, fences, outcome }
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
            self.release(id, fence);
            self.end_job(ClaimId(id.0 - TASKS));
            return;
        }
        let Some((r, units, _)) = self.job(id).task else { return self.end_job(id) };
        let task = ClaimId(TASKS + id.0);
        let needs = [(NAMES[r], units)];
        let claim = Submission { id: task, kind: "task", needs: &needs, priority: 0, parent: Some(id), place: None };
        self.gate.submit(Time(self.now), claim).expect("known names");
    }

    fn end_job(&mut self, id: ClaimId) {
        let (fence, _) = self.fences[&id];
        self.release(id, fence);
    }

    fn release(&mut self, id: ClaimId, fence: Fence) {
        let (_, since) = self.fences.remove(&id).expect("it runs");
        for r in self.resources_of(id) {
            let longest = &mut self.outcome.longest_holds[r];
            *longest = (*longest).max(self.now - since);
        }
        self.gate.release(Time(self.now), id, fence, Ended::ByItself);
    }

    /// The job of this id, or that whose task has it.
    fn job(&self, id: ClaimId) -> &'a Job {
        &self.load.jobs[usize::try_from(id.0 % TASKS - 1).expect("a job's number")]
    }

    /// What a job, or a task, claims.
    fn resources_of(&self, id: ClaimId) -> Vec<usize> {
        let job = self.job(id);
        match job.task {
            Some((r, ..)) if id.0 >= TASKS => vec![r],
            _ => self.load.kinds[job.kind].needs.iter().map(|(r, _)| *r).collect(),
        }
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
        (-self.load.kinds[self.job(id).kind].priority, id.0 % TASKS)
    }

    /// One that ranks above and starts at once has not waited, but it was in front all the same.
    fn was_in_front(&mut self, id: ClaimId, needs: &[usize]) {
        let rank = self.rank(id);
        let passed =
            |other: &ClaimId| rank < self.rank(*other) && self.resources_of(*other).iter().any(|r| needs.contains(r));
        let passed: Vec<ClaimId> = self.clear.keys().copied().filter(passed).collect();
        self.clear.extend(passed.into_iter().map(|other| (other, self.now)));
    }

    fn started(&mut self, id: ClaimId, fence: Fence) {
        let (job, needs) = (self.job(id), self.resources_of(id));
        self.was_in_front(id, &needs);
        let hold = match job.task {
            Some((.., hold)) if id.0 >= TASKS => hold,
            _ => job.hold,
        };
        self.ends.insert((self.now + hold, id, fence));
        if id.0 >= TASKS {
            return;
        }
        self.outcome.started += 1;
        if let Some(promised) = self.promised.remove(&id) {
            self.outcome.promise_errors.push(self.now.abs_diff(promised));
        }
        if let Some(since) = self.clear.remove(&id) {
            self.outcome.waits.push((self.now - since, needs));
        }
    }

    /// Who is promised an instant, and who has nobody above any more.
    fn look_at_the_line(&mut self) {
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for id in self.gate.line(usize::MAX) {
            let needs = self.resources_of(id);
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
