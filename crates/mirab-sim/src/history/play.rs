//! Plays steps on the model, the subject and the host, and holds them against each other.
use super::compare::{compare, compare_rebuilt, same, sorted};
use super::host::Host;
use super::op::{History, Op};
use crate::amount::Amount;
use crate::invariants::{Step, View, check};
use crate::model::Model;
use crate::subject::Subject;
use crate::trace::Trace;
use mirab_core::{BucketState, ClaimId, Ended, Fence, Name, Place, Refusal, Release, Settled, Start, Submission, Time};

/// More than any history of a generator needs to drain.
const MOST_DRAINING_STEPS: usize = 2_000;

/// What a step was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Placed(Place),
    Refused(&'static str),
    Released(Release),
    Changed(bool),
    Bucket(BucketState),
    Settled(Settled),
    Restored(Vec<(ClaimId, &'static str)>),
    Nothing,
}

/// Starts and refusals of a step.
type Effects = (Vec<Start>, Vec<(ClaimId, &'static str)>, Vec<(ClaimId, Name)>);

/// A model, a subject, and a host between them.
pub struct Player<S> {
    /// The reference.
    pub model: Model,
    /// What a host would have stored.
    pub host: Host,
    subject: S,
    aging: Option<u64>,
    clock: Time,
    /// The latest instant that the gate was given.
    latest_call: Time,
    trace: Trace,
}

impl Player<Model> {
    /// A model alone.
    #[must_use]
    pub fn alone(history: &History) -> Self {
        Self::new(history)
    }

    /// Plays a step without comparing anything.
    pub fn apply_to_model(&mut self, op: &Op) {
        let Some(op) = self.possible(op) else { return };
        let (answer, effects) = self.on_model(&op);
        self.record(&op, &answer, &effects);
    }
}

impl<S: Subject> Player<S> {
    /// Before the first step.
    ///
    /// # Panics
    /// When a declaration is refused.
    #[must_use]
    pub fn new(history: &History) -> Self {
        let clock = Time(100_000_000_000);
        let (mut model, mut subject) = (Model::fresh(history.aging), S::fresh(history.aging));
        for (name, amount) in &history.declared {
            model.declare(clock, name, *amount).expect("names are declared once");
            subject.declare(clock, name, *amount).expect("names are declared once");
        }
        let host = Host::new(history);
        Self { model, host, subject, aging: history.aging, clock, latest_call: clock, trace: Trace::default() }
    }

    /// The hash of all that happened so far.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.trace.hash()
    }

    /// Plays a step on both sides, and compares.
    ///
    /// # Errors
    /// What differs, or which invariant is broken.
    pub fn step(&mut self, op: &Op) -> Result<(), String> {
        let Some(op) = self.possible(op) else { return Ok(()) };
        let before = View::of(&self.subject);
        let host_before = self.host.clone();
        let theirs = self.on_subject(&op);
        let ours = self.on_model(&op);
        same("answer", &ours.0, &theirs.0)?;
        same("starts, refusals and delays", &ours.1, &theirs.1)?;
        self.record(&op, &ours.0, &ours.1);
        if !matches!(op, Op::Sleep(_) | Op::StepBack(_)) {
            compare(&self.model, &self.subject)?;
        }
        let after = View::of(&self.subject);
        self.trace.add(&(&op, &ours, &after.line, self.subject.poll_timeout()));
        self.cut_here()?;
        let (model, host, starts) = (&self.model, &self.host, &ours.1.0);
        check(&Step { op: &op, before: &before, after: &after, host_before: &host_before, host, model, starts })
    }

    /// Were the host to die now, the gate that is built from what it has stored would show the same.
    fn cut_here(&self) -> Result<(), String> {
        // A bucket that was edited is stored with its next start only, and a clock that moved unseen moves the rebuilt gate.
        if self.host.tokens_differ || self.clock != self.latest_call {
            return Ok(());
        }
        let (mut rebuilt, _) = self.rebuilt::<S>();
        let (starts, refused, _) = effects(&mut rebuilt);
        if !starts.is_empty() || !refused.is_empty() {
            return Err(format!("invariant 10: a restart starts {starts:?} and refuses {refused:?}"));
        }
        compare_rebuilt(&self.subject, &rebuilt)
    }

    /// The step as it is played; `None` for what no host does.
    fn possible(&mut self, op: &Op) -> Option<Op> {
        match op {
            Op::Release(id) | Op::Stop(id) if self.model.has_leases_inside(*id) => return None,
            Op::Tick(nanos) | Op::Sleep(nanos) | Op::Restart(nanos, _) => self.clock = self.clock.plus(*nanos),
            Op::StepBack(nanos) => self.clock = Time(self.clock.0.saturating_sub(*nanos)),
            Op::Wake => self.clock = self.clock.max(self.model.poll_timeout()?.0),
            _ => {}
        }
        if let Op::Restart(_, edit) = op {
            self.host.tokens_differ |= self.clock != self.latest_call;
            edit.iter().for_each(|(name, amount)| self.host.set_limit(name, *amount));
        }
        Some(op.clone())
    }

    fn on_model(&mut self, op: &Op) -> (Answer, Effects) {
        if matches!(op, Op::Restart(..)) {
            let (model, answer) = self.rebuilt::<Model>();
            self.model = model;
            return (answer, effects(&mut self.model));
        }
        let answer = apply(&mut self.model, self.clock, op, &self.host);
        (answer, effects(&mut self.model))
    }

    fn on_subject(&mut self, op: &Op) -> (Answer, Effects) {
        if matches!(op, Op::Restart(..)) {
            let (subject, answer) = self.rebuilt::<S>();
            self.subject = subject;
            return (answer, effects(&mut self.subject));
        }
        let answer = apply(&mut self.subject, self.clock, op, &self.host);
        (answer, effects(&mut self.subject))
    }

    fn rebuilt<T: Subject>(&self) -> (T, Answer) {
        let numbers = self.model.next_numbers();
        let (gate, refused) = self.host.rebuild::<T>(self.aging, self.clock, numbers);
        (gate, Answer::Restored(refused.into_iter().map(|(id, refusal)| (id, refusal.code())).collect()))
    }

    fn record(&mut self, op: &Op, answer: &Answer, (starts, refused, delayed): &Effects) {
        let host = &mut self.host;
        match (op, answer) {
            (Op::Sleep(_) | Op::StepBack(_), _) | (_, Answer::Refused(_)) => {}
            (Op::Restart(..), _) => self.latest_call = self.clock,
            _ => self.latest_call = self.latest_call.max(self.clock),
        }
        match (op, answer) {
            (_, Answer::Placed(place)) => host.accept(op, *place),
            (Op::Release(id), Answer::Released(Release::Done)) => {
                let lease = host.lease(*id).cloned();
                lease.iter().for_each(|lease| host.learn(lease, &self.model));
                host.end(*id);
            }
            (Op::Stop(id), Answer::Released(Release::Done)) | (Op::Cancel(id), Answer::Changed(true)) => host.end(*id),
            (Op::Settle(id, name, _), Answer::Settled(settled)) => host.settle(*id, name, *settled),
            (Op::Cooldown(name, _), Answer::Bucket(state)) => host.put_bucket(name, *state),
            (Op::Reprioritise(id, priority), Answer::Changed(true)) => {
                host.waiting.iter_mut().filter(|c| c.id == *id).for_each(|c| c.priority = *priority);
            }
            (Op::SetLimit(name, amount), _) => host.set_limit(name, *amount),
            (_, Answer::Restored(refused)) => {
                (host.latest_start, host.tokens_differ) = (Time(0), false);
                host.buckets.iter_mut().for_each(|(_, state)| state.at = state.at.min(self.clock));
                refused.iter().for_each(|(id, _)| host.end(*id));
            }
            _ => {}
        }
        starts.iter().for_each(|start| host.start(start));
        delayed.iter().for_each(|(id, name)| host.delay(*id, name));
        refused.iter().for_each(|(id, _)| host.end(*id));
    }

    /// Raises every limit, ends every body and waits for every token: then nothing may be left.
    ///
    /// # Errors
    /// What differs, or who still waits or holds.
    pub fn drain(&mut self) -> Result<(), String> {
        for (name, amount) in self.host.declared.clone() {
            let plenty = match amount {
                Amount::Semaphore(_) => Amount::Semaphore(20),
                Amount::Bucket { .. } => Amount::bucket(3, 1, 20),
            };
            self.step(&Op::SetLimit(name, plenty))?;
        }
        for _ in 0..MOST_DRAINING_STEPS {
            let waits_in = |id| self.host.waiting.iter().any(|c| c.parent == Some(id));
            let mut ids = self.host.leases.iter().map(|l| l.id);
            let next = ids.find(|id| !waits_in(*id) && !self.model.has_leases_inside(*id));
            match next {
                Some(id) => self.step(&Op::Release(id))?,
                None if self.model.poll_timeout().is_some() => self.step(&Op::Wake)?,
                None => break,
            }
        }
        let left = (self.host.waiting.iter().map(|c| c.id).collect::<Vec<_>>(), self.host.leases.len());
        if left == (Vec::new(), 0) { Ok(()) } else { Err(format!("after all bodies ended, still there: {left:?}")) }
    }
}

fn effects<S: Subject>(gate: &mut S) -> Effects {
    let starts = std::iter::from_fn(|| gate.poll_start()).map(sorted).collect();
    let refused = std::iter::from_fn(|| gate.poll_refused()).map(|(id, refusal)| (id, refusal.code())).collect();
    let mut delayed: Vec<(ClaimId, Name)> = std::iter::from_fn(|| gate.poll_delayed()).collect();
    delayed.sort();
    (starts, refused, delayed)
}

fn apply<S: Subject>(gate: &mut S, now: Time, op: &Op, host: &Host) -> Answer {
    let told = |result: Result<(), Refusal>| result.map_or_else(|r| Answer::Refused(r.code()), |()| Answer::Nothing);
    match op {
        Op::Submit { id, needs, priority, parent, kind } => {
            let needs: Vec<(&str, u64)> = needs.iter().map(|(name, units)| (name.as_str(), *units)).collect();
            let claim = Submission { id: *id, kind, needs: &needs, priority: *priority, parent: *parent, place: None };
            gate.submit(now, claim).map_or_else(|refusal| Answer::Refused(refusal.code()), Answer::Placed)
        }
        Op::Release(id) => {
            Answer::Released(gate.release(now, *id, host.lease(*id).map_or(Fence(0), |l| l.fence), Ended::ByItself))
        }
        Op::Stop(id) => {
            Answer::Released(gate.release(now, *id, host.lease(*id).map_or(Fence(0), |l| l.fence), Ended::Stopped))
        }
        Op::Settle(id, name, actual) => {
            let fence = host.lease(*id).map_or(Fence(0), |l| l.fence);
            let settled = gate.settle(now, *id, fence, name, *actual);
            settled.map_or_else(|refusal| Answer::Refused(refusal.code()), Answer::Settled)
        }
        Op::Cooldown(name, duration) => {
            let state = gate.cooldown(now, name, *duration);
            state.map_or_else(|refusal| Answer::Refused(refusal.code()), Answer::Bucket)
        }
        Op::ReleaseStale(id) => Answer::Released(gate.release(
            now,
            *id,
            Fence(host.lease(*id).map_or(0, |l| l.fence.0 - 1)),
            Ended::ByItself,
        )),
        Op::Cancel(id) => Answer::Changed(gate.cancel(now, *id)),
        Op::Reprioritise(id, priority) => Answer::Changed(gate.reprioritise(now, *id, *priority)),
        Op::SetLimit(name, amount) => told(gate.set_limit(now, name, *amount)),
        Op::Tick(_) | Op::Wake => {
            gate.handle_timeout(now);
            Answer::Nothing
        }
        Op::Sleep(_) | Op::StepBack(_) | Op::Restart(..) => Answer::Nothing,
    }
}
