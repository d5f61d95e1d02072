//! What the gate decided becomes changes of state.
use super::{DEFAULT_POOL, HAND_OFF, Orchestrator, POOL};
use crate::records::{Fact, LeaseRecord, Needs};
use crate::state::State;
use crate::step::{Effect, Wake};
use crate::task_run::failure_of;
use mirab_core::{Blocked, ClaimId, Name, Place, Refusal, Start, Submission, Time};

pub(super) const GATE: &str = "gate";

impl Orchestrator {
    /// Carries out all that the gate has decided. Every command ends with it.
    pub(super) fn settle(&mut self, now: Time) {
        self.drop_unused_undeclared(now);
        loop {
            if let Some(start) = self.gate.poll_start() {
                self.admitted(now, start);
            } else if let Some((id, refusal)) = self.gate.poll_refused() {
                self.refused(now, id, refusal);
            } else if let Some((id, on)) = self.gate.poll_delayed() {
                self.delayed(id, &on);
            } else {
                break;
            }
        }
        for id in std::mem::take(&mut self.joined) {
            self.tell_shortage(now, id);
        }
    }

    /// Puts a run to the gate; it keeps its place if it has one.
    pub(super) fn submit_run(&mut self, now: Time, id: ClaimId) -> Result<(), Refusal> {
        let Some(run) = self.runs.get_mut(&id) else { return Ok(()) };
        let record = &mut run.record;
        let kind = format!("{}/{}", record.project, record.flow);
        let needs = borrowed(&record.needs);
        let (priority, place) = (record.priority, record.place);
        let claim = Submission { id, kind: &kind, needs: &needs, priority, parent: None, place };
        record.place = Some(self.gate.submit(now, claim)?);
        self.joined.push(id);
        Ok(())
    }

    /// Puts a run that is Waiting again back in line. If it can never start any more, it fails.
    pub(super) fn line_up_again(&mut self, now: Time, id: ClaimId) {
        if self.is_waiting(id)
            && let Err(refusal) = self.submit_run(now, id)
        {
            self.change_run(now, id, GATE, |run| run.refuse(now, failure_of(&refusal.into())));
        }
    }

    /// Puts a task run to the gate.
    pub(super) fn submit_task(&mut self, now: Time, id: ClaimId) -> Result<(), Refusal> {
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(()) };
        let record = &mut task.record;
        let Some(run) = self.runs.get(&record.run) else { return Ok(()) };
        let kind = format!("{}/{}/{}", run.record.project, run.record.flow, record.name);
        let needs = borrowed(&record.needs);
        let (priority, parent, place) = (run.record.priority, Some(record.parent), record.place);
        record.place =
            Some(self.gate.submit(now, Submission { id, kind: &kind, needs: &needs, priority, parent, place })?);
        self.joined.push(id);
        Ok(())
    }

    fn admitted(&mut self, now: Time, start: Start) {
        for (name, state) in &start.buckets {
            self.tell_bucket(name, *state);
        }
        if self.gate.lease(start.id) != Some(start.fence) {
            return; // It was withdrawn in the very step that admitted it.
        }
        if self.runs.contains_key(&start.id) {
            self.admitted_run(now, start);
        } else if self.tasks.contains_key(&start.id) {
            self.admitted_task(now, start);
        }
    }

    fn admitted_run(&mut self, now: Time, start: Start) {
        let (id, fence) = (start.id, start.fence);
        self.change_run(now, id, GATE, |run| {
            let reason = "all it needs is held, offered to an engine";
            run.enter(now, State::Pending, reason).map(|()| reason.into())
        });
        let Some(run) = self.runs.get(&id) else { return };
        let record = &run.record;
        let project = record.project.clone();
        let kind = format!("{project}/{}", record.flow);
        let lease = lease_of(now, start, kind, record.priority, record.place, None);
        self.keep_lease(lease);
        self.offer(project, (fence, id));
        self.timers.set(now.plus(HAND_OFF), Wake::HandOff(id));
    }

    /// An admitted run that no worker has is on offer.
    pub(super) fn offer(&mut self, project: String, offer: (mirab_core::Fence, ClaimId)) {
        self.offers.entry(project.clone()).or_default().insert(offer);
        self.effect(Effect::Offer { pool: POOL.into(), project });
    }

    fn admitted_task(&mut self, now: Time, start: Start) {
        let id = start.id;
        self.change_task(now, id, GATE, |task| task.begin(now));
        let Some(task) = self.tasks.get(&id) else { return };
        let Some(run) = self.runs.get(&task.record.run) else { return };
        let kind = format!("{}/{}/{}", run.record.project, run.record.flow, task.record.name);
        let (place, parent) = (task.record.place, task.record.parent);
        // The gate gives a task the rank that the body around it started with.
        let priority = self.leases.get(&parent).map_or(run.record.priority, |lease| lease.priority);
        self.keep_lease(lease_of(now, start, kind, priority, place, Some(parent)));
    }

    pub(super) fn keep_lease(&mut self, lease: LeaseRecord) {
        self.fact(Fact::Lease(lease.clone()));
        self.leases.insert(lease.id, lease);
    }

    /// The gate gave up a claim that waited: waiting would have closed a circle.
    fn refused(&mut self, now: Time, id: ClaimId, refusal: Refusal) {
        let refusal = self.in_words(refusal);
        if self.runs.contains_key(&id) {
            self.change_run(now, id, GATE, |run| run.refuse(now, failure_of(&refusal)));
        } else if self.is_waiting(id) {
            self.change_task(now, id, GATE, |task| task.refuse(now, refusal));
        }
    }

    fn is_waiting(&self, id: ClaimId) -> bool {
        let state = self.run(id).map(|run| run.state).or_else(|| self.task(id).map(|task| task.state));
        state == Some(State::Waiting)
    }

    /// The first shortage of a wait is an event. An engine is no resource: that all are busy is no shortage.
    fn tell_shortage(&mut self, now: Time, id: ClaimId) {
        if !self.is_waiting(id) {
            return;
        }
        let explanation = self.gate.explain(id);
        let short = |blocked: &&Blocked| blocked.resource != DEFAULT_POOL && blocked.free < signed(blocked.need);
        let Some(blocked) = explanation.as_ref().and_then(|all| all.blocked_on.iter().find(short)) else { return };
        let reason = format!("needs {} of `{}`, {} free", blocked.need, blocked.resource, blocked.free);
        let (run, task) = self.tasks.get(&id).map_or((id, None), |task| (task.record.run, Some(id)));
        self.event(now, run, task, "resource.exhausted", None, reason, GATE);
    }
}

fn lease_of(
    now: Time,
    start: Start,
    kind: String,
    priority: i32,
    place: Option<Place>,
    parent: Option<ClaimId>,
) -> LeaseRecord {
    let place = place.unwrap_or_default();
    let Start { id, fence, takes, covered, tokens, shortest, longest, passed, .. } = start;
    let covered = covered.iter().map(|(name, units, holder)| (name.to_string(), *units, *holder)).collect();
    LeaseRecord {
        id,
        fence,
        kind,
        takes: owned(&takes),
        covered,
        priority,
        place,
        parent,
        started_at: now,
        worker: None,
        request_id: None,
        tokens: owned(&tokens),
        shortest,
        longest,
        passed: passed.into_iter().map(|(id, name)| (id, name.to_string())).collect(),
    }
}

fn owned(units: &[(Name, u64)]) -> Needs {
    let mut owned: Needs = units.iter().map(|(name, units)| (name.to_string(), *units)).collect();
    owned.sort();
    owned
}

pub(super) fn borrowed(needs: &[(String, u64)]) -> Vec<(&str, u64)> {
    needs.iter().map(|(name, units)| (name.as_str(), *units)).collect()
}

pub(super) fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}
