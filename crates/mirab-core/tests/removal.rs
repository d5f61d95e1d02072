//! Declarations that are taken away while other work goes on.
use mirab_core::{ClaimId, Ended, Gate, ResourceConfig, Submission, Time};

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

/// Names and patterns come, change and go at random while work does: nothing refers to what is gone, and all drains at the end.
#[test]
fn declarations_come_and_go_at_random() {
    const NAMES: [&str; 7] = ["db", "gpu", "pool:p", "api:*", "api:a*", "*:z", "api:abz"];
    const ASKED: [&str; 7] = ["db", "gpu", "pool:p", "api:x", "api:abz", "q:z", "api:ab:z"];
    let mut state = 7u64;
    let mut roll = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..400 {
        let (mut gate, mut running, mut now) = (Gate::default(), Vec::new(), 0);
        for id in 1..150 {
            now += roll(2_000_000_000);
            let name = NAMES[usize::try_from(roll(7)).unwrap()];
            let config = match roll(2) {
                0 => ResourceConfig::semaphore(name, roll(4)),
                _ => ResourceConfig::token_bucket(name, 1.5, 1 + roll(4)).unwrap(),
            };
            match roll(10) {
                0 | 1 => gate.declare(Time(now), config).unwrap(),
                2 => _ = gate.remove(Time(now), name),
                3 => _ = gate.cancel(Time(now), ClaimId(1 + roll(id))),
                4 => gate.handle_timeout(Time(now)),
                5 => _ = gate.reprioritise(Time(now), ClaimId(1 + roll(id)), i32::try_from(roll(5)).unwrap()),
                6 if !running.is_empty() => {
                    let (id, fence) = running.swap_remove(usize::try_from(roll(running.len() as u64)).unwrap());
                    gate.release(Time(now), id, fence, Ended::ByItself);
                }
                _ => {
                    let needs: Vec<(&str, u64)> =
                        (0..1 + roll(2)).map(|_| (ASKED[usize::try_from(roll(7)).unwrap()], 1 + roll(2))).collect();
                    let parent = running.first().filter(|_| id % 5 == 0).map(|(id, _)| *id);
                    let claim =
                        Submission { id: ClaimId(id), kind: "k", needs: &needs, priority: 0, parent, place: None };
                    let _ = gate.submit(Time(now), claim);
                }
            }
            running.extend(std::iter::from_fn(|| gate.poll_start()).map(|start| (start.id, start.fence)));
            for view in gate.resources() {
                let held: u64 = gate.holders(&view.name).iter().map(|(_, units, _)| units).sum();
                assert_eq!(view.used, held, "{}", view.name);
            }
            gate.line(usize::MAX).into_iter().for_each(|id| assert!(gate.explain(id).is_some()));
        }
        // What one lets go may start another.
        while gate.waiting() > 0 || !running.is_empty() {
            for id in gate.line(usize::MAX) {
                gate.cancel(Time(now), id);
            }
            for (id, fence) in std::mem::take(&mut running).into_iter().rev() {
                gate.release(Time(now), id, fence, Ended::Stopped);
            }
            running.extend(std::iter::from_fn(|| gate.poll_start()).map(|start| (start.id, start.fence)));
        }
        let names: Vec<String> = gate.resources().into_iter().map(|view| view.declared_as).collect();
        for name in NAMES.iter().map(|name| (*name).to_owned()).chain(names) {
            let _ = gate.remove(Time(now), &name);
        }
        assert!(gate.resources().is_empty() && gate.poll_timeout().is_none() && gate.waiting() == 0);
    }
}
