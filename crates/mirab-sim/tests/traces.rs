//! What the executable reading of the contract does, call by call (see `traces/generate.py`): gate and model must do the same, at the
//! same instants.
use mirab_core::{ClaimId, Ended, Fence, Gate, Learner, Submission, Time};
use mirab_sim::{Amount, Model, Subject};
use std::fmt::Write;

/// Plays lines on a subject.
struct Replay<S> {
    gate: S,
    now: Time,
    fences: Vec<(ClaimId, Fence)>,
    told: String,
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))
}

impl<S: Subject> Replay<S> {
    fn of(aging: &str) -> Self {
        let aging = (aging != "-").then(|| number(aging));
        Self { gate: S::fresh(aging), now: Time(0), fences: Vec::new(), told: String::new() }
    }

    fn fence(&self, id: ClaimId) -> Fence {
        self.fences.iter().rev().find(|(known, _)| *known == id).map_or(Fence(0), |(_, fence)| *fence)
    }

    fn collect(&mut self) {
        while let Some(start) = self.gate.poll_start() {
            self.fences.push((start.id, start.fence));
            write!(self.told, " +{}:{}", start.at.0, start.id.0).expect("a string");
        }
        while let Some((id, refusal)) = self.gate.poll_refused() {
            write!(self.told, " !{}:{}", id.0, refusal.code()).expect("a string");
        }
    }

    fn submit(&mut self, id: &str, kind: &str, priority: &str, run: &str, needs: &str) {
        let needs: Vec<(&str, u64)> = needs
            .split(',')
            .filter_map(|need| need.split_once('='))
            .map(|(name, units)| (name, number(units)))
            .collect();
        let parent = (run != "-").then(|| ClaimId(number(run)));
        let claim = Submission {
            id: ClaimId(number(id)),
            kind,
            needs: &needs,
            priority: number(priority),
            parent,
            place: None,
        };
        if let Err(refusal) = self.gate.submit(self.now, claim) {
            write!(self.told, " ?{}", refusal.code()).expect("a string");
        }
    }

    fn advance(&mut self, to: Time) {
        while let Some((at, _)) = self.gate.poll_timeout().filter(|(at, _)| *at <= to) {
            self.now = at;
            self.gate.handle_timeout(at);
            self.collect();
        }
        self.now = self.now.max(to);
        self.gate.handle_timeout(self.now);
    }

    /// Plays a call, and tells what it did in the words of the trace.
    fn play(&mut self, call: &str) -> String {
        let now = self.now;
        match call.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["semaphore", name, permits] => {
                self.gate.declare(now, name, Amount::Semaphore(number(permits))).expect(name)
            }
            ["bucket", name, units, seconds, burst] => {
                let amount = Amount::bucket(number(units), number(seconds), number(burst));
                self.gate.declare(now, name, amount).expect(name);
            }
            ["permits", name, permits] => {
                self.gate.set_limit(now, name, Amount::Semaphore(number(permits))).expect(name);
            }
            ["rate", name, units, seconds, burst] => {
                let amount = Amount::bucket(number(units), number(seconds), number(burst));
                self.gate.set_limit(now, name, amount).expect(name);
            }
            ["learned", what, name, durations] => {
                let durations: Vec<u64> = durations.split(',').map(number).collect();
                let learner = if *what == "kind" { Learner::Kind(name) } else { Learner::Resource(name) };
                self.gate.restore_durations(learner, &durations);
            }
            ["submit", id, kind, priority, run, needs @ ..] => {
                self.submit(id, kind, priority, run, needs.first().copied().unwrap_or_default());
            }
            ["end", id] => {
                let id = ClaimId(number(id));
                self.gate.release(now, id, self.fence(id), Ended::ByItself);
            }
            ["cancel", id] => _ = self.gate.cancel(now, ClaimId(number(id))),
            ["priority", id, priority] => _ = self.gate.reprioritise(now, ClaimId(number(id)), number(priority)),
            ["settle", id, name, actual] => {
                let id = ClaimId(number(id));
                self.gate.settle(now, id, self.fence(id), name, number(actual)).expect("it took tokens");
            }
            ["cooldown", name, duration] => _ = self.gate.cooldown(now, name, number(duration)).expect(name),
            ["advance", to] => self.advance(Time(number(to))),
            _ => panic!("an unknown call: {call}"),
        }
        self.collect();
        let mut told = std::mem::take(&mut self.told);
        if let Some((at, _)) = self.gate.poll_timeout() {
            write!(told, " ={}", at.0).expect("a string");
        }
        told
    }
}

fn replay<S: Subject>(traces: &str) {
    let mut title = "";
    let mut replay: Option<Replay<S>> = None;
    for (index, line) in traces.lines().enumerate() {
        if let Some(of) = line.strip_prefix("# ") {
            title = of;
            continue;
        }
        let (call, expected) = line.split_once('|').expect("a call and what it did");
        if let Some(aging) = call.strip_prefix("gate ") {
            replay = Some(Replay::of(aging.trim()));
            continue;
        }
        let did = replay.as_mut().expect("a gate comes first").play(call);
        if !call.starts_with("learned") {
            assert_eq!(did, expected, "{title}, line {}: {call}", index + 1);
        }
    }
}

#[test]
fn the_gate_does_what_the_contract_does_in_named_cases() {
    replay::<Gate>(include_str!("traces/cases.txt"));
}

#[test]
fn the_gate_does_what_the_contract_does_in_random_histories() {
    replay::<Gate>(include_str!("traces/random.txt"));
}

#[test]
fn the_model_does_what_the_contract_does() {
    replay::<Model>(include_str!("traces/random.txt"));
}
