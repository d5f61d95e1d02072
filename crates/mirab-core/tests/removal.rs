//! Declarations that are taken away while other work goes on.
use mirab_core::{ClaimId, Ended, Fence, Gate, ResourceConfig, Submission, Time};

fn submit(gate: &mut Gate, id: u64, name: &str) -> Result<(), &'static str> {
    let needs = [(name, 1), ("other", 1)];
    let claim = Submission { id: ClaimId(id), kind: "k", needs: &needs, priority: 0, parent: None, place: None };
    gate.submit(Time(id), claim).map(drop).map_err(|refusal| refusal.code())
}

fn finish(gate: &mut Gate, now: u64) -> usize {
    let starts: Vec<_> = std::iter::from_fn(|| gate.poll_start()).collect();
    for start in &starts {
        gate.release(Time(now), start.id, start.fence, Ended::ByItself);
    }
    starts.len()
}

#[test]
fn a_name_goes_after_its_work_and_comes_back_new() {
    for config in [ResourceConfig::semaphore("db", 1), ResourceConfig::token_bucket("db", 1.0, 5).unwrap()] {
        let mut gate = Gate::default();
        gate.declare(Time(0), ResourceConfig::semaphore("other", 1)).unwrap();
        gate.declare(Time(0), config.clone()).unwrap();
        for id in 1..4 {
            submit(&mut gate, id, "db").unwrap();
        }
        assert_eq!(gate.remove(Time(4), "db").unwrap_err().code(), "ResourceInUse");
        while finish(&mut gate, 5) > 0 {}
        gate.remove(Time(6), "db").unwrap();
        gate.handle_timeout(Time(7));
        assert_eq!(submit(&mut gate, 8, "db"), Err("UnknownResource"));
        assert!(gate.resource("db").is_none() && gate.resource("other").is_some());
        gate.declare(Time(9), config).unwrap();
        submit(&mut gate, 10, "db").unwrap();
        assert_eq!(finish(&mut gate, 11), 1);
    }
}

#[test]
fn a_pattern_goes_with_its_idle_instances_and_a_better_one_takes_over() {
    let mut gate = Gate::default();
    gate.declare(Time(0), ResourceConfig::semaphore("other", 9)).unwrap();
    gate.declare(Time(0), ResourceConfig::token_bucket("api:*", 0.001, 2).unwrap()).unwrap();
    for id in 1..4 {
        submit(&mut gate, id, &format!("api:eu:{id}")).unwrap();
    }
    gate.declare(Time(4), ResourceConfig::semaphore("api:eu:*", 1)).unwrap();
    assert_eq!(gate.resolve("api:eu:1").unwrap().declared_as, "api:eu:*");
    assert_eq!(gate.remove(Time(5), "api:eu:*").unwrap_err().code(), "ResourceInUse");
    assert_eq!(finish(&mut gate, 6), 3);
    gate.remove(Time(7), "api:*").unwrap();
    gate.remove(Time(8), "api:eu:*").unwrap();
    gate.handle_timeout(Time(u64::MAX));
    assert_eq!(submit(&mut gate, 9, "api:eu:1"), Err("UnknownResource"));
    assert_eq!(gate.resources().len(), 1);
}

const NAMES: [&str; 7] = ["db", "gpu", "pool:p", "api:*", "api:a*", "*:z", "api:abz"];
const ASKED: [&str; 7] = ["db", "gpu", "pool:p", "api:x", "api:abz", "q:z", "api:ab:z"];

/// A gate of which names are declared, changed and removed at random.
struct Changing<'a> {
    gate: Gate,
    running: Vec<(ClaimId, Fence)>,
    now: u64,
    roll: &'a mut dyn FnMut(u64) -> u64,
}

impl Changing<'_> {
    fn pick(&mut self, names: [&'static str; 7]) -> &'static str {
        names[usize::try_from((self.roll)(7)).unwrap()]
    }

    fn any_config(&mut self) -> ResourceConfig {
        let name = self.pick(NAMES);
        match (self.roll)(2) {
            0 => ResourceConfig::semaphore(name, (self.roll)(4)),
            _ => ResourceConfig::token_bucket(name, 1.5, 1 + (self.roll)(4)).unwrap(),
        }
    }

    /// Does one thing of many; `id` is new.
    fn step(&mut self, id: u64) {
        self.now += (self.roll)(2_000_000_000);
        let (now, other) = (Time(self.now), ClaimId(1 + (self.roll)(id)));
        match (self.roll)(10) {
            0 | 1 => {
                let config = self.any_config();
                self.gate.declare(now, config).unwrap();
            }
            2 => {
                let name = self.pick(NAMES);
                let _ = self.gate.remove(now, name);
            }
            3 => _ = self.gate.cancel(now, other),
            4 => self.gate.handle_timeout(now),
            5 => _ = self.gate.reprioritise(now, other, i32::try_from((self.roll)(5)).unwrap()),
            6 if !self.running.is_empty() => {
                let at = usize::try_from((self.roll)(self.running.len() as u64)).unwrap();
                let (id, fence) = self.running.swap_remove(at);
                self.gate.release(now, id, fence, Ended::ByItself);
            }
            _ => self.submit(id),
        }
        self.collect();
    }

    /// A claim for one or two of the names; every fifth is inside the body that has run longest.
    fn submit(&mut self, id: u64) {
        let needs: Vec<(&str, u64)> = (0..1 + (self.roll)(2)).map(|_| (self.pick(ASKED), 1 + (self.roll)(2))).collect();
        let parent = self.running.first().filter(|_| id.is_multiple_of(5)).map(|(id, _)| *id);
        let claim = Submission { id: ClaimId(id), kind: "k", needs: &needs, priority: 0, parent, place: None };
        let _ = self.gate.submit(Time(self.now), claim);
    }

    fn collect(&mut self) {
        let starts = std::iter::from_fn(|| self.gate.poll_start());
        self.running.extend(starts.map(|start| (start.id, start.fence)));
    }

    fn check(&self) {
        for view in self.gate.resources() {
            let held: u64 = self.gate.holders(&view.name).iter().map(|(_, units, _)| units).sum();
            assert_eq!(view.used, held, "{}", view.name);
        }
        self.gate.line(usize::MAX).into_iter().for_each(|id| assert!(self.gate.explain(id).is_some()));
    }

    /// Ends all work; what one lets go may start another.
    fn drain(&mut self) {
        while self.gate.waiting() > 0 || !self.running.is_empty() {
            for id in self.gate.line(usize::MAX) {
                self.gate.cancel(Time(self.now), id);
            }
            for (id, fence) in std::mem::take(&mut self.running).into_iter().rev() {
                self.gate.release(Time(self.now), id, fence, Ended::Stopped);
            }
            self.collect();
        }
    }

    fn remove_all(&mut self) {
        let names: Vec<String> = self.gate.resources().into_iter().map(|view| view.declared_as).collect();
        for name in NAMES.iter().map(|name| (*name).to_owned()).chain(names) {
            let _ = self.gate.remove(Time(self.now), &name);
        }
    }
}

/// Names and patterns come, change and go at random while work does: nothing refers to what is gone, and all drains at the end.
#[test]
fn declarations_come_and_go_at_random() {
    let mut state = 7u64;
    let mut roll = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..400 {
        let mut world = Changing { gate: Gate::default(), running: Vec::new(), now: 0, roll: &mut roll };
        for id in 1..150 {
            world.step(id);
            world.check();
        }
        world.drain();
        world.remove_all();
        let gate = &world.gate;
        assert!(gate.resources().is_empty() && gate.poll_timeout().is_none() && gate.waiting() == 0);
    }
}
