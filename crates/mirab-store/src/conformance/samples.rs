//! Records with awkward values, the same for the same seed.
use mirab_core::{BucketState, ClaimId, Fence, Place, Time};
use mirab_flow::{
    BucketRecord, Counters, DurationsRecord, EventRecord, Failure, LearnerKind, LeaseRecord, Needs, ProjectRecord,
    RunRecord, STATES, State, TaskRecord,
};
use serde_json::{Map, Value, json};

const TEXTS: [&str; 8] =
    ["", "plain", "it's; DROP TABLE runs --", "\"quoted\"", "a/b %20", "ağaç 🌳", "zero\0byte", "two\nlines"];
const NUMBERS: [u64; 6] = [0, 1, 1_234_567, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX];

/// Draws values from a seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed draws the same values.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A step of a linear congruential generator: any mixing will do.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn number(&mut self) -> u64 {
        NUMBERS[self.roll(NUMBERS.len())]
    }

    fn small(&mut self) -> u32 {
        [0, 1, 2, u32::MAX][self.roll(4)]
    }

    fn rank(&mut self) -> i32 {
        [i32::MIN, -1, 0, 7, i32::MAX][self.roll(5)]
    }

    fn text(&mut self) -> String {
        TEXTS[self.roll(TEXTS.len())].to_owned()
    }

    fn texts(&mut self) -> Vec<String> {
        (0..self.roll(3)).map(|_| self.text()).collect()
    }

    fn state(&mut self) -> State {
        STATES[self.roll(STATES.len())].0
    }

    fn time(&mut self) -> Time {
        Time(self.number())
    }

    fn place(&mut self) -> Place {
        Place { seq: self.number(), call: self.number(), joined_at: self.time() }
    }

    fn needs(&mut self) -> Needs {
        (0..self.roll(3)).map(|_| (self.text(), self.number())).collect()
    }

    fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.roll(2) == 0 { None } else { Some(draw(self)) }
    }

    fn failure(&mut self) -> Failure {
        Failure { kind: self.text(), message: self.text(), traceback: self.maybe(Self::text) }
    }

    fn value(&mut self) -> Value {
        let values = [
            Value::Null,
            json!(false),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(self.float()),
            json!(self.float()),
            json!({"a": [1, null, {"b": TEXTS}], "": ""}),
        ];
        values[self.roll(values.len())].clone()
    }

    /// Of any size, with all its digits.
    fn float(&mut self) -> f64 {
        self.roll(2);
        f64::from_bits(self.0)
    }

    fn params(&mut self) -> Map<String, Value> {
        (0..self.roll(3)).map(|_| (self.text(), self.value())).collect()
    }
}

/// A run; a few ids share an idempotency key, which only the first of them can have.
#[must_use]
pub fn run(id: u64, dice: &mut Dice) -> RunRecord {
    RunRecord {
        id: ClaimId(id),
        project: dice.text(),
        flow: dice.text(),
        file: dice.text(),
        function: dice.text(),
        params: dice.params(),
        priority: dice.rank(),
        tags: dice.texts(),
        needs: dice.needs(),
        state: dice.state(),
        message: dice.maybe(Dice::text),
        attempt: dice.small(),
        failures: dice.small(),
        crashes: dice.small(),
        retries: dice.small(),
        retry_delay: dice.number(),
        crash_retries: dice.small(),
        place: dice.maybe(Dice::place),
        created_at: dice.time(),
        due_at: dice.time(),
        started_at: dice.maybe(Dice::time),
        ended_at: dice.maybe(Dice::time),
        result: dice.maybe(Dice::value),
        error: dice.maybe(Dice::failure),
        idempotency_key: (id % 4 == 2).then(|| format!("key {}", id % 8)),
        delayed: dice.texts(),
    }
}

/// A run in this state, of flow `project/flow`, in its first attempt.
#[must_use]
pub fn run_in(id: u64, state: State) -> RunRecord {
    let (project, flow) = ("project".to_owned(), "flow".to_owned());
    RunRecord { project, flow, state, attempt: 1, idempotency_key: None, ..run(id, &mut Dice::new(id)) }
}

/// A task of this run.
#[must_use]
pub fn task(id: u64, run: u64, dice: &mut Dice) -> TaskRecord {
    TaskRecord {
        id: ClaimId(id),
        run: ClaimId(run),
        run_attempt: dice.small(),
        key: dice.text(),
        name: dice.text(),
        needs: dice.needs(),
        parent: ClaimId(dice.number()),
        state: dice.state(),
        attempt: dice.small(),
        retries: dice.small(),
        retry_delay: dice.number(),
        place: dice.maybe(Dice::place),
        created_at: dice.time(),
        due_at: dice.time(),
        started_at: dice.maybe(Dice::time),
        ended_at: dice.maybe(Dice::time),
        error: dice.maybe(Dice::failure),
        delayed: dice.texts(),
    }
}

/// A lease.
#[must_use]
pub fn lease(id: u64, dice: &mut Dice) -> LeaseRecord {
    LeaseRecord {
        id: ClaimId(id),
        fence: Fence(dice.number()),
        kind: dice.text(),
        takes: dice.needs(),
        covered: dice.needs().into_iter().map(|(name, units)| (name, units, ClaimId(units))).collect(),
        priority: dice.rank(),
        place: dice.place(),
        parent: dice.maybe(|dice| ClaimId(dice.number())),
        started_at: dice.time(),
        worker: dice.maybe(Dice::text),
        request_id: dice.maybe(Dice::text),
        tokens: dice.needs(),
        shortest: dice.number(),
        longest: dice.maybe(Dice::number),
        passed: dice.needs().into_iter().map(|(name, id)| (ClaimId(id), name)).collect(),
    }
}

/// An event of this run.
#[must_use]
pub fn event(seq: u64, run: u64, dice: &mut Dice) -> EventRecord {
    EventRecord {
        seq,
        at: dice.time(),
        run: ClaimId(run),
        task: dice.maybe(|dice| ClaimId(dice.number())),
        kind: dice.text(),
        state: dice.maybe(Dice::state),
        reason: dice.text(),
        cause: dice.text(),
    }
}

/// A bucket with a balance that needs all its bits.
#[must_use]
pub fn bucket(dice: &mut Dice) -> BucketRecord {
    let scaled = [i128::MIN, -1, 0, i128::from(u64::MAX) * 1_000, i128::MAX][dice.roll(5)];
    let scale = i128::from(dice.number()) * 1_000_000_000;
    BucketRecord {
        name: dice.text(),
        state: BucketState { scaled, scale, at: dice.time(), cooling_until: dice.time() },
    }
}

/// What something took of late.
#[must_use]
pub fn durations(dice: &mut Dice) -> DurationsRecord {
    let learner = [LearnerKind::Kind, LearnerKind::Resource][dice.roll(2)];
    DurationsRecord { learner, name: dice.text(), recent: (0..dice.roll(5)).map(|_| dice.number()).collect() }
}

/// A total: name and units.
#[must_use]
pub fn total(dice: &mut Dice) -> (String, u64) {
    (dice.text(), dice.number())
}

/// A project.
#[must_use]
pub fn project(dice: &mut Dice) -> ProjectRecord {
    ProjectRecord { name: dice.text(), path: dice.text() }
}

/// A setting: key and value.
#[must_use]
pub fn setting(dice: &mut Dice) -> (String, String) {
    (dice.text(), dice.text())
}

/// Counters.
#[must_use]
pub fn counters(dice: &mut Dice) -> Counters {
    Counters { next_id: dice.number(), next_seq: dice.number(), next_fence: dice.number(), next_event: dice.number() }
}
