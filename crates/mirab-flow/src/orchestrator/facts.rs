//! Each change of state becomes facts, in one place.
use super::Orchestrator;
use crate::error::IllegalChange;
use crate::records::{EventRecord, Fact, RunRecord};
use crate::run::Run;
use crate::state::State;
use crate::step::{Effect, Wake};
use crate::task_run::TaskRun;
use mirab_core::{ClaimId, Time};

impl Orchestrator {
    pub(super) fn fact(&mut self, fact: Fact) {
        self.step.facts.push(fact);
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.step.effects.push(effect);
    }

    /// Makes a change of a run, with its facts. A run that ended leaves memory and is returned.
    pub(super) fn change_run(
        &mut self,
        now: Time,
        id: ClaimId,
        cause: &str,
        change: impl FnOnce(&mut Run) -> Result<String, IllegalChange>,
    ) -> Option<RunRecord> {
        let run = self.runs.get_mut(&id)?;
        match change(run) {
            Ok(reason) => {
                self.tell_run(now, id, reason, cause);
                self.forget_ended(id)
            }
            Err(illegal) => {
                debug_assert!(false, "{illegal}");
                None
            }
        }
    }

    /// Facts of a run that is new or has changed.
    pub(super) fn tell_run(&mut self, now: Time, id: ClaimId, reason: String, cause: &str) {
        let Some(run) = self.runs.get(&id) else { return };
        let (record, state) = (Box::new(run.record.clone()), run.state());
        self.undeclared.note(&record.needs);
        self.fact(Fact::Run(record));
        self.event(now, id, None, "run.state", Some(state), reason, cause);
    }

    /// Makes a change of a task run, with its facts, and wakes who waits for it.
    pub(super) fn change_task(
        &mut self,
        now: Time,
        id: ClaimId,
        cause: &str,
        change: impl FnOnce(&mut TaskRun) -> Result<String, IllegalChange>,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        match change(task) {
            Ok(reason) => {
                self.tell_task(now, id, reason, cause);
                self.effect(Effect::TaskChanged { task: id });
            }
            Err(illegal) => debug_assert!(false, "{illegal}"),
        }
    }

    /// Facts of a task run that is new or has changed.
    pub(super) fn tell_task(&mut self, now: Time, id: ClaimId, reason: String, cause: &str) {
        let Some(task) = self.tasks.get(&id) else { return };
        let (record, state) = (Box::new(task.record.clone()), task.state());
        let run = record.run;
        self.undeclared.note(&record.needs);
        self.fact(Fact::Task(record));
        self.event(now, run, Some(id), "task.state", Some(state), reason, cause);
    }

    #[allow(clippy::too_many_arguments, reason = "one for each column of the event")]
    pub(super) fn event(
        &mut self,
        at: Time,
        run: ClaimId,
        task: Option<ClaimId>,
        kind: &str,
        state: Option<State>,
        reason: String,
        cause: &str,
    ) {
        let (kind, cause, seq) = (kind.to_owned(), cause.to_owned(), self.next_event);
        self.next_event += 1;
        self.fact(Fact::Event(EventRecord { seq, at, run, task, kind, state, reason, cause }));
    }

    /// Takes a run that has ended out of memory, with its tasks and timers. All it held was given back before.
    fn forget_ended(&mut self, id: ClaimId) -> Option<RunRecord> {
        if !self.runs.get(&id)?.state().is_terminal() {
            return None;
        }
        let run = self.runs.remove(&id)?;
        for task in run.tasks.values() {
            self.tasks.remove(task);
        }
        let flow = (run.record.project.clone(), run.record.flow.clone());
        if let Some(live) = self.by_flow.get_mut(&flow) {
            live.remove(&id);
            if live.is_empty() {
                self.by_flow.remove(&flow);
            }
        }
        for wake in [Wake::Due(id), Wake::Retry(id), Wake::HandOff(id), Wake::Lapse(id), Wake::CancelGrace(id)] {
            self.timers.clear(&wake);
        }
        self.due_unknown.remove(&id);
        Some(run.record)
    }

    /// Takes a run or a new one into memory.
    pub(super) fn remember_run(&mut self, run: Run) {
        let flow = (run.record.project.clone(), run.record.flow.clone());
        self.by_flow.entry(flow).or_default().insert(run.record.id);
        self.runs.insert(run.record.id, run);
    }
}
