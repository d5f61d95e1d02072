//! Tasks inside a run: claimed, granted, ended.
use super::Orchestrator;
use crate::error::Error;
use crate::flow_spec::cap_name;
use crate::names::requested;
use crate::records::{Failure, Needs, TaskRecord};
use crate::state::State;
use crate::task_run::TaskRun;
use mirab_core::{ClaimId, Ended, Fence, Refusal, Time, check_requested};
use std::collections::BTreeSet;

/// A task that a body calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTask {
    /// Names the call within this attempt of the run.
    pub key: String,
    /// Name of the task.
    pub name: String,
    /// Units it wants.
    pub needs: Vec<(String, u64)>,
    /// Its tags.
    pub tags: Vec<String>,
    /// How often it is tried again after a failure.
    pub retries: u32,
    /// Nanoseconds between a failure and the next attempt.
    pub retry_delay: u64,
    /// Of a flow that is called inside the run: its cap, which is claimed too.
    pub max_concurrent: Option<u64>,
    /// The enclosing task body, when it is called in one.
    pub parent: Option<ClaimId>,
}

/// Where a task run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// The task run.
    pub id: ClaimId,
    /// Fence of the attempt that executes; 0 while none does.
    pub fence: Fence,
    /// Its state.
    pub state: State,
    /// Attempts started.
    pub attempt: u32,
}

/// How a task's body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Completed,
    /// It raised.
    Failed,
    /// It was stopped, or gave up waiting.
    Cancelled,
}

impl Orchestrator {
    /// A task asks to start; asking again with the same key asks about the same task. One that waits for its next attempt is put in
    /// line again once its delay is over.
    ///
    /// # Errors
    /// `StaleLease`; `UnknownTask` for a parent whose body does not execute; what the gate refuses: then the task run is stored as
    /// Failed, and asking again is answered the same.
    pub fn claim_task(&mut self, now: Time, lease: ClaimId, fence: Fence, new: NewTask) -> Result<TaskStatus, Error> {
        let now = self.advance(now);
        let worker = self.check_lease(lease, fence)?;
        self.take_up(now, lease);
        let known = self.runs.get(&lease).and_then(|run| run.tasks.get(&new.key)).copied();
        let id = match known {
            Some(id) => self.try_task_again(now, id, &worker),
            None => self.new_task(now, lease, new, &worker)?,
        };
        self.settle(now);
        self.task_status(id)
    }

    fn task_status(&self, id: ClaimId) -> Result<TaskStatus, Error> {
        let task = self.tasks.get(&id).ok_or(Error::UnknownTask(id))?;
        match &task.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => {
                let fence = self.leases.get(&id).map(|lease| lease.fence).unwrap_or_default();
                Ok(TaskStatus { id, fence, state: task.state(), attempt: task.record.attempt })
            }
        }
    }

    fn new_task(&mut self, now: Time, run: ClaimId, new: NewTask, cause: &str) -> Result<ClaimId, Error> {
        let parent = new.parent.unwrap_or(run);
        let is_body = |task: &TaskRun| task.record.run == run && task.state() == State::Running;
        if parent != run && !self.tasks.get(&parent).is_some_and(is_body) {
            return Err(Error::UnknownTask(parent));
        }
        let needs = self.needs_of_task(now, run, &new);
        let needs = needs.and_then(|needs| self.refuse_undeclared(&needs, Some(parent)).map(|()| needs));
        let id = self.new_id();
        let Some(body) = self.runs.get_mut(&run) else { return Err(Error::UnknownRun(run)) };
        body.tasks.insert(new.key.clone(), id);
        body.has_nested_tasks |= parent != run;
        let asked = needs.as_ref().unwrap_or(&new.needs).clone();
        let record = task_record(id, run, body.record.attempt, parent, new, asked, now);
        self.tasks.insert(id, TaskRun::new(record, now));
        let submitted = needs.and_then(|_| self.submit_task(now, id));
        match submitted {
            Ok(()) => self.tell_task(now, id, "called".into(), cause),
            Err(refusal) => self.change_task(now, id, super::settle::GATE, |task| task.refuse(now, refusal.into())),
        }
        Ok(id)
    }

    fn needs_of_task(&mut self, now: Time, run: ClaimId, new: &NewTask) -> Result<Needs, Refusal> {
        let mut needs = requested(&new.needs)?;
        needs.extend(self.needs_of_tags(new.tags.iter())?);
        if let Some(cap) = new.max_concurrent {
            needs.insert(self.cap_of_called(now, run, &new.name, cap)?, 1);
        }
        Ok(needs.into_iter().collect())
    }

    /// The cap of a flow that is called inside a run. One that is not served has no declaration but its call.
    fn cap_of_called(&mut self, now: Time, run: ClaimId, flow: &str, cap: u64) -> Result<String, Refusal> {
        let project = self.run(run).map(|run| run.project.clone()).unwrap_or_default();
        let key = (project, check_requested(flow)?);
        let name = cap_name(&key.0, &key.1);
        let is_served = self.declared.flows.get(&key).is_some_and(|flow| flow.max_concurrent.is_some());
        if !is_served {
            self.put_semaphore(now, &name, cap)?;
        }
        Ok(name)
    }

    fn try_task_again(&mut self, now: Time, id: ClaimId, cause: &str) -> ClaimId {
        let is_due = |task: &&TaskRun| task.state() == State::AwaitingRetry && task.record.due_at <= now;
        if self.tasks.get(&id).filter(is_due).is_some() {
            self.change_task(now, id, cause, |task| {
                task.enter(now, State::Waiting).map(|()| "claimed for its next attempt".into())
            });
            if let Err(refusal) = self.submit_task(now, id) {
                self.change_task(now, id, super::settle::GATE, |task| task.refuse(now, refusal.into()));
            }
        }
        id
    }

    /// The body of a task ended, or gave up waiting. `Some`: it may be claimed again after so many nanoseconds. Saying it again
    /// changes nothing.
    ///
    /// # Errors
    /// `StaleLease`, `UnknownTask`.
    pub fn end_task(
        &mut self,
        now: Time,
        lease: ClaimId,
        fence: Fence,
        id: ClaimId,
        outcome: Outcome,
        failure: Option<Failure>,
    ) -> Result<Option<u64>, Error> {
        let now = self.advance(now);
        let worker = self.check_lease(lease, fence)?;
        let task = self.tasks.get(&id).filter(|task| task.record.run == lease).ok_or(Error::UnknownTask(id))?;
        match (task.state(), outcome) {
            (State::Running, _) => self.task_body_ended(now, lease, id, outcome, failure.unwrap_or_default(), &worker),
            (State::Waiting | State::AwaitingRetry, Outcome::Cancelled) => {
                self.end_tasks(now, vec![id], State::Cancelled, "given up")
            }
            _ => {}
        }
        self.settle(now);
        let task = self.tasks.get(&id).filter(|task| task.state() == State::AwaitingRetry);
        Ok(task.map(|task| task.record.due_at.since(now)))
    }

    fn task_body_ended(
        &mut self,
        now: Time,
        run: ClaimId,
        id: ClaimId,
        outcome: Outcome,
        failure: Failure,
        cause: &str,
    ) {
        self.end_tasks(now, self.tasks_inside(id), State::Cancelled, "the enclosing task's body has ended");
        let stopped = outcome == Outcome::Cancelled || self.is_cancelling(run);
        self.release_task(now, id, if stopped { Ended::Stopped } else { Ended::ByItself });
        self.change_task(now, id, cause, |task| match outcome {
            Outcome::Completed => task.enter(now, State::Completed).map(|()| "its body returned".into()),
            Outcome::Failed => task.fail(now, failure),
            Outcome::Cancelled => task.enter(now, State::Cancelled).map(|()| "its body was stopped".into()),
        });
    }

    /// Tasks that were called inside this one, at any depth. A task's id is greater than that of the body that called it.
    fn tasks_inside(&self, id: ClaimId) -> Vec<ClaimId> {
        let Some(run) = self.tasks.get(&id).and_then(|task| self.runs.get(&task.record.run)) else { return vec![] };
        if !run.has_nested_tasks {
            return vec![]; // Most runs call no task in a task, and may have very many tasks.
        }
        let mut all: Vec<ClaimId> = run.tasks.values().copied().filter(|task| *task > id).collect();
        all.sort_unstable();
        let mut inside = BTreeSet::from([id]);
        for task in all {
            if self.tasks.get(&task).is_some_and(|task| inside.contains(&task.record.parent)) {
                inside.insert(task);
            }
        }
        inside.remove(&id);
        inside.into_iter().collect()
    }

    /// Ends tasks: those whose body executes in the state given, those that wait as Cancelled. Waiting ones leave the line first, so that
    /// none starts by what the others give back; then bodies end from the inside out.
    pub(super) fn end_tasks(&mut self, now: Time, mut ids: Vec<ClaimId>, executing: State, reason: &str) {
        ids.retain(|id| self.tasks.get(id).is_some_and(|task| !task.state().is_terminal()));
        ids.sort_unstable_by(|a, b| b.cmp(a));
        for &id in &ids {
            let is_waiting = self.tasks.get(&id).is_some_and(|task| task.state() == State::Waiting);
            // Another's leaving may have let it in, in this very step.
            if is_waiting
                && !self.gate.cancel(now, id)
                && let Some(fence) = self.gate.lease(id)
            {
                self.gate.release(now, id, fence, Ended::Stopped);
            }
        }
        for &id in &ids {
            self.release_task(now, id, Ended::Stopped);
            self.change_task(now, id, super::create::SERVER, |task| {
                let to = if task.state() == State::Running { executing } else { State::Cancelled };
                task.enter(now, to).map(|()| reason.into())
            });
        }
    }

    fn release_task(&mut self, now: Time, id: ClaimId, ended: Ended) {
        if let Some(lease) = self.leases.remove(&id) {
            self.release(now, &lease, ended);
        }
    }
}

fn task_record(
    id: ClaimId,
    run: ClaimId,
    run_attempt: u32,
    parent: ClaimId,
    new: NewTask,
    needs: Needs,
    now: Time,
) -> TaskRecord {
    TaskRecord {
        id,
        run,
        run_attempt,
        key: new.key,
        name: new.name,
        needs,
        parent,
        state: State::Waiting,
        attempt: 0,
        retries: new.retries,
        retry_delay: new.retry_delay,
        place: None,
        created_at: now,
        due_at: now,
        started_at: None,
        ended_at: None,
        error: None,
        delayed: vec![],
    }
}
