//! Random histories of a durable machine, cut after every step: what is stored gives the same machine.
use mirab_core::{Fence, ResourceConfig, SECOND, Time};
use mirab_flow::scheduler::*;
use std::collections::BTreeMap;

const POOLS: [&str; 2] = ["p", "q"];
const KEYS: u64 = 6;

/// Numbers that look random (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct World {
    machine: TaskMachine,
    stored: StoredTasks,
    dice: Dice,
    now: Time,
    running: Vec<TaskStart>,
    ids: Vec<TaskId>,
    keys: BTreeMap<String, (TaskId, TaskSpec)>,
    last_fence: Fence,
}

fn options() -> MachineOptions {
    MachineOptions { retained: 12, durable: true, ..MachineOptions::default() }
}

/// What a program declares; with no slots, nothing starts.
fn limits(slots: u64) -> Limits {
    let bucket = |name, burst| ResourceConfig::token_bucket(name, 0.3, burst).unwrap();
    let resources = vec![
        ResourceConfig::semaphore("db", 3),
        ResourceConfig::semaphore("tag:big", 1),
        bucket("api", 5),
        bucket("key:*", 2),
    ];
    Limits { resources, pools: POOLS.map(|pool| PoolSpec::new(pool, slots)).into() }
}

impl World {
    fn new(seed: u64) -> Self {
        let machine = TaskMachine::restore(options(), &limits(3), StoredTasks::default(), Time(SECOND)).unwrap();
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (stored, running, ids, keys) = (StoredTasks::default(), Vec::new(), Vec::new(), BTreeMap::new());
        Self { machine, stored, dice, now: Time(SECOND), running, ids, keys, last_fence: Fence(0) }
    }

    fn step(&mut self) {
        match self.dice.below(13) {
            0..=4 => self.submit(),
            5..=7 => self.finish(),
            8 => self.cancel(),
            9 => {
                let (id, priority) = (self.any_task(), self.dice.below(4));
                self.machine.reprioritise(self.now, id, priority as i32);
            }
            10 => self.correct_buckets(),
            11 => self.change_limits(),
            _ => {
                self.now = self.now.plus(self.dice.below(4) * SECOND / 2);
                self.machine.handle_timeout(self.now);
            }
        }
        self.take_over();
    }

    /// Stores what has changed, then takes up what is to be carried out.
    fn take_over(&mut self) {
        for fact in self.machine.take_facts() {
            self.stored.apply(fact);
        }
        while let Some(effect) = self.machine.poll_effect() {
            match effect {
                TaskEffect::Start(start) => {
                    assert!(start.fence > self.last_fence, "a fence was given twice");
                    self.last_fence = start.fence;
                    self.running.push(start);
                }
                TaskEffect::Stop { .. } | TaskEffect::Ended { .. } => {}
            }
        }
    }

    fn any_task(&mut self) -> TaskId {
        let at = self.dice.below(self.ids.len().max(1) as u64) as usize;
        self.ids.get(at).copied().unwrap_or(TaskId(1))
    }

    fn spec(&mut self) -> TaskSpec {
        let resources = match self.dice.below(5) {
            0 => vec![("db".to_owned(), 1 + self.dice.below(3))],
            1 => vec![("api".to_owned(), 1 + self.dice.below(3))],
            2 => vec![(format!("key:{}", self.dice.below(3)), 1), ("db".to_owned(), 1)],
            _ => Vec::new(),
        };
        TaskSpec {
            resources,
            tags: if self.dice.one_in(6) { vec!["big".into()] } else { Vec::new() },
            timeout: self.dice.one_in(4).then_some(2 * SECOND),
            retry: Retry { retries: self.dice.below(3) as u32, ..Retry::default() },
            ..TaskSpec::new(POOLS[self.dice.below(2) as usize])
        }
    }

    fn submit(&mut self) {
        let spec = self.spec();
        let later = |dice: &mut Dice, now: Time| dice.one_in(5).then(|| now.plus(dice.below(6) * SECOND / 2));
        let ons = [On::Success, On::Failure, On::Completion];
        let edges = if self.dice.one_in(3) { 1 + self.dice.below(2) } else { 0 };
        let after = (0..edges).map(|_| (self.any_task(), ons[self.dice.below(3) as usize])).collect();
        let key = self.dice.one_in(4).then(|| format!("k{}", self.dice.below(KEYS)));
        let admission = Admission {
            priority: self.dice.below(4) as i32,
            key: key.clone(),
            digest: 7,
            not_before: later(&mut self.dice, self.now),
            start_by: later(&mut self.dice, self.now),
            after,
        };
        let Ok(Submitted { id, is_new }) = self.machine.submit(self.now, &spec, admission) else { return };
        if is_new {
            assert!(self.ids.last().is_none_or(|last| *last < id), "an id was given twice");
            self.ids.push(id);
            self.keys.extend(key.map(|key| (key, (id, spec))));
        }
    }

    fn finish(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let start = self.running.swap_remove(self.dice.below(self.running.len() as u64) as usize);
        let outcome = match self.dice.below(4) {
            0 => TaskOutcome::Failure { message: "no luck".into(), again: Again::ByPolicy },
            1 => TaskOutcome::Stopped,
            _ => TaskOutcome::Success,
        };
        let random = self.dice.below(u64::MAX);
        assert!(self.machine.finish(self.now, start.id, start.fence, outcome, random));
    }

    fn cancel(&mut self) {
        let id = self.any_task();
        self.machine.cancel(self.now, id);
    }

    fn correct_buckets(&mut self) {
        let actual = self.dice.below(9);
        if let Some(start) = self.running.first() {
            // Most have taken nothing of it: then this is refused.
            let _ = self.machine.settle(self.now, start.id, start.fence, "api", actual);
        }
        if self.dice.one_in(3) {
            self.machine.cooldown(self.now, "api", SECOND).unwrap();
        }
    }

    /// To a lower burst and back: it cuts the balance.
    fn change_limits(&mut self) {
        for burst in [3, 5] {
            let api = ResourceConfig::token_bucket("api", 0.3, burst).unwrap();
            self.machine.set_resource(self.now, api).unwrap();
        }
    }

    fn restored(&self, slots: u64) -> TaskMachine {
        TaskMachine::restore(options(), &limits(slots), self.stored.clone(), self.now).unwrap()
    }

    /// The process is killed: what executed is gone, the rest goes on.
    fn crash(&mut self) {
        self.now = self.now.plus(self.dice.below(3) * SECOND);
        self.machine = self.restored(3);
        self.running.clear();
        self.take_over();
    }

    fn check(&self, context: &str) {
        let restored = self.restored(0);
        let cancelling = self.stored.tasks.values().any(|task| task.progress.stage == StoredStage::Cancelling);
        for id in &self.ids {
            let (here, there) = (self.machine.status(*id), restored.status(*id));
            let (Some(here), Some(there)) = (here, there) else {
                let forgot_one_more = cancelling && restored.status(*id).is_none();
                assert!(
                    forgot_one_more || self.machine.status(*id) == restored.status(*id),
                    "{context}, task {}",
                    id.0
                );
                continue;
            };
            assert_eq!((here.attempts, here.priority), (there.attempts, there.priority), "{context}, task {}", id.0);
            let expected = match here.state {
                TaskState::Running => TaskState::Queued,
                // What waited for one that is cancelled by the restart may have gone on.
                TaskState::Blocked if cancelling => there.state,
                TaskState::Stopping => {
                    assert!(matches!(there.end, None | Some(TaskEnd::Cancelled)), "{context}, task {}", id.0);
                    continue;
                }
                state => {
                    assert_eq!((&here.end, here.due_at), (&there.end, there.due_at), "{context}, task {}", id.0);
                    state
                }
            };
            assert_eq!(there.state, expected, "{context}, task {}", id.0);
        }
        self.check_order(&restored, context);
        self.check_balances(&restored, context);
        if !cancelling {
            self.check_keys(restored, context);
        }
    }

    fn check_order(&self, restored: &TaskMachine, context: &str) {
        let waiting: Vec<TaskId> = self.ids.iter().copied().filter(|id| self.machine.position(*id).is_some()).collect();
        let order = |machine: &TaskMachine| {
            let mut line = waiting.clone();
            line.sort_by_key(|id| machine.position(*id));
            line
        };
        assert_eq!(order(&self.machine), order(restored), "{context}");
    }

    fn check_balances(&self, restored: &TaskMachine, context: &str) {
        let balances = |machine: &TaskMachine| {
            let views = machine.snapshot().resources.into_iter().map(|resource| resource.view);
            let buckets = views.filter(|view| view.name == "api" || view.name.starts_with("key:"));
            // One that is full may be gone: it is as good as new.
            let not_full = buckets.filter(|view| view.free < view.limit.capacity() as i64);
            not_full.map(|view| (view.name, view.free)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(balances(&self.machine), balances(restored), "{context}");
    }

    fn check_keys(&self, mut restored: TaskMachine, context: &str) {
        for (key, (id, spec)) in self.keys.iter().filter(|(_, (id, _))| self.machine.status(*id).is_some()) {
            let again = Admission { key: Some(key.clone()), digest: 7, ..Admission::default() };
            let submitted = restored.submit(self.now, spec, again);
            assert_eq!(submitted, Ok(Submitted { id: *id, is_new: false }), "{context}, key {key}");
        }
    }

    /// Lets all that was accepted run to its end.
    fn run_out(&mut self) {
        for _ in 0..10_000 {
            if self.machine.is_idle() {
                return;
            }
            match self.running.pop() {
                Some(start) => {
                    self.machine.finish(self.now, start.id, start.fence, TaskOutcome::Success, 0);
                }
                None => {
                    self.now = self.machine.poll_timeout().expect("what waits is waited for").max(self.now);
                    self.machine.handle_timeout(self.now);
                }
            }
            self.take_over();
        }
        panic!("tasks wait for ever");
    }
}

#[test]
fn what_is_stored_gives_the_same_machine_wherever_the_history_is_cut() {
    for seed in 1..=150 {
        let mut world = World::new(seed);
        for step in 0..80 {
            world.step();
            world.check(&format!("seed {seed}, step {step}"));
        }
    }
}

#[test]
fn a_machine_that_is_killed_again_and_again_loses_nothing_and_gives_no_number_twice() {
    for seed in 1..=150 {
        let mut world = World::new(seed);
        for step in 0..80 {
            world.step();
            if world.dice.one_in(8) {
                world.crash();
                world.check(&format!("seed {seed}, step {step}"));
            }
        }
        world.run_out();
        let counts = world.machine.snapshot().counts;
        assert_eq!((counts.submitted, counts.ended()), (world.ids.len() as u64, world.ids.len() as u64));
        assert_eq!(world.stored.tasks.len(), world.ids.len().min(12), "only those that are remembered are kept");
        assert!(world.stored.tasks.values().all(|task| task.end.is_some()));
    }
}

#[test]
fn an_attempt_that_executed_is_followed_by_another_ahead_of_what_joined_later_and_uses_up_no_retry() {
    let mut world = World::new(1);
    let one = Limits { resources: Vec::new(), pools: vec![PoolSpec::new("p", 1)] };
    let spec = TaskSpec { retry: Retry { retries: 1, ..Retry::default() }, ..TaskSpec::new("p") };
    world.machine = TaskMachine::restore(options(), &one, StoredTasks::default(), world.now).unwrap();
    let [first, second] = [(); 2].map(|()| world.machine.submit(world.now, &spec, Admission::default()).unwrap().id);
    for attempt in 1..=4 {
        world.take_over();
        let start = world.running.pop().unwrap();
        assert_eq!((start.id, start.attempt), (first, attempt));
        world.machine = TaskMachine::restore(options(), &one, world.stored.clone(), world.now).unwrap();
    }
    world.take_over();
    let start = world.running.pop().unwrap();
    let failure = || TaskOutcome::Failure { message: "no luck".into(), again: Again::ByPolicy };
    world.machine.finish(world.now, start.id, start.fence, failure(), 0);
    assert_eq!(world.machine.status(first).unwrap().state, TaskState::AwaitingRetry);
    assert_eq!(world.machine.status(second).unwrap().state, TaskState::Running);
}

#[test]
fn what_nothing_declares_any_more_is_paused_until_it_is_declared() {
    let mut world = World::new(1);
    let spec = TaskSpec { resources: vec![("db".into(), 2)], ..TaskSpec::new("p") };
    let id = world.machine.submit(world.now, &spec, Admission::default()).unwrap().id;
    world.take_over();
    let mut machine = TaskMachine::restore(options(), &Limits::default(), world.stored.clone(), world.now).unwrap();
    assert_eq!((machine.status(id).unwrap().state, machine.poll_effect()), (TaskState::Queued, None));
    machine.set_pool(world.now, PoolSpec::new("p", 1)).unwrap();
    machine.set_resource(world.now, ResourceConfig::semaphore("db", 2)).unwrap();
    assert!(matches!(machine.poll_effect(), Some(TaskEffect::Start(start)) if start.id == id && start.attempt == 2));
}

#[test]
fn a_machine_that_is_not_durable_keeps_no_facts() {
    let mut machine = TaskMachine::new(MachineOptions::default());
    machine.set_pool(Time(0), PoolSpec::new("p", 1)).unwrap();
    machine.submit(Time(0), &TaskSpec::new("p"), Admission::default()).unwrap();
    assert_eq!(machine.take_facts(), []);
}
