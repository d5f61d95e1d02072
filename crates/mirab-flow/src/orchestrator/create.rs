//! A new run, and a scheduled one whose time has come.
use super::settle::{GATE, borrowed};
use super::{DEFAULT_POOL, Orchestrator};
use crate::error::Error;
use crate::flow_spec::{FlowSpec, cap_name};
use crate::names::plain_needs;
use crate::overlap::{Overlap, STILL_ACTIVE};
use crate::records::{Needs, RunRecord};
use crate::run::Run;
use crate::state::State;
use crate::step::Wake;
use crate::task_run::failure_of;
use mirab_core::{ClaimId, Refusal, Time, tag_limit};
use serde_json::{Map, Value};

/// What a caller asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRun {
    /// `project/flow`, or the short name while it is unique.
    pub flow: String,
    /// Parameters by name, already checked against the flow's.
    pub params: Map<String, Value>,
    /// Instead of the flow's own.
    pub priority: Option<i32>,
    /// Added to the flow's own.
    pub tags: Vec<String>,
    /// Units besides the flow's own; a name given here replaces the flow's units of that name.
    pub needs: Vec<(String, u64)>,
    /// When to join the line; at once when `None`.
    pub due_at: Option<Time>,
    /// The same key is the same run.
    pub idempotency_key: Option<String>,
}

/// Answer to [`Orchestrator::create_run`].
#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    /// As it stands now: in line, Pending, Scheduled, or ended at once by its flow's overlap policy.
    New(Box<RunRecord>),
    /// There is a run with this idempotency key, live or ended. Whether it is of the same request is for the host to compare.
    Existing(ClaimId),
}

const API: &str = "api";
pub(super) const SERVER: &str = "server";

impl Orchestrator {
    /// Creates a run.
    ///
    /// # Errors
    /// `UnknownFlow`, or what the gate refuses. Nothing is stored then.
    pub fn create_run(&mut self, now: Time, new: NewRun) -> Result<Created, Error> {
        let now = self.advance(now);
        if let Some(id) = new.idempotency_key.as_ref().and_then(|key| self.keys.get(key)) {
            return Ok(Created::Existing(*id));
        }
        let flow = self.find_flow(&new.flow)?.clone();
        let needs = self.needs_of_run(&flow, &new)?;
        // Also for a run due later, which would else fail only then, with nobody to tell.
        self.refuse_undeclared(&needs, None)?;
        self.gate.check_needs(&borrowed(&needs), None)?;
        let due_at = new.due_at.unwrap_or(now);
        let record = run_record(self.new_id(), &flow, new, needs, now, due_at);
        let created = record.clone();
        let (id, key) = (record.id, record.idempotency_key.clone());
        self.remember_run(Run::new(record, now));
        let mut ended = None;
        if due_at > now {
            self.timers.set(due_at, Wake::Due(id));
            self.tell_run(now, id, "its time has not come".into(), API);
        } else {
            match self.join(now, id, API) {
                Ok(turned_away) => ended = turned_away,
                Err(refusal) => {
                    self.drop_unstored(id);
                    return Err(refusal.into());
                }
            }
        }
        if let Some(key) = key {
            self.keys.insert(key, id);
        }
        self.settle(now);
        Ok(Created::New(Box::new(ended.or_else(|| self.run(id).cloned()).unwrap_or(created))))
    }

    /// Takes a run out of memory that was refused before any fact of it was made.
    fn drop_unstored(&mut self, id: ClaimId) {
        if let Some(run) = self.runs.remove(&id) {
            let flow = (run.record.project, run.record.flow);
            if let Some(live) = self.by_flow.get_mut(&flow) {
                live.remove(&id);
            }
        }
    }

    /// A scheduled run's time has come. Its flow's overlap policy must be known to decide; until then it stays as it is.
    pub(super) fn fall_due(&mut self, now: Time, id: ClaimId) {
        let Some(run) = self.runs.get(&id) else { return };
        if !self.declared.discovered.contains(&run.record.project) {
            self.due_unknown.insert(id);
        } else if let Err(refusal) = self.join(now, id, SERVER) {
            // Nobody is there to be told, so the run keeps the reason.
            self.change_run(now, id, GATE, |run| run.refuse(now, failure_of(&refusal.into())));
        }
    }

    /// A run that is Scheduled joins the line, or ends by its flow's overlap policy and is returned.
    fn join(&mut self, now: Time, id: ClaimId, cause: &str) -> Result<Option<RunRecord>, Refusal> {
        let Some(run) = self.runs.get(&id) else { return Ok(None) };
        let flow = (run.record.project.clone(), run.record.flow.clone());
        if let Some(policy) = self.overlap_against(&flow) {
            return Ok(self.turn_away(now, id, policy, cause));
        }
        self.refuse_undeclared(&run.record.needs, None)?;
        self.submit_run(now, id)?;
        self.change_run(now, id, cause, |run| {
            let reason = "joined the line";
            run.enter(now, State::Waiting, reason).map(|()| reason.into())
        });
        Ok(None)
    }

    /// The policy that keeps a new run of this flow out, if its flow is busy up to its cap.
    fn overlap_against(&self, key: &(String, String)) -> Option<Overlap> {
        let flow = self.declared.flows.get(key)?;
        if flow.overlap == Overlap::Enqueue {
            return None;
        }
        let live = self.by_flow.get(key).into_iter().flatten();
        let due = live.filter(|id| self.runs.get(id).is_some_and(|run| run.state() != State::Scheduled));
        let is_admitted = flow.overlap.admits(due.count() as u64, flow.max_concurrent);
        (!is_admitted).then_some(flow.overlap)
    }

    fn turn_away(&mut self, now: Time, id: ClaimId, policy: Overlap, cause: &str) -> Option<RunRecord> {
        let to = if policy == Overlap::Skip { State::Skipped } else { State::Cancelled };
        let ended =
            self.change_run(now, id, cause, |run| run.enter(now, to, STILL_ACTIVE).map(|()| STILL_ACTIVE.into()));
        if to == State::Skipped {
            self.event(now, id, None, "run.skipped", None, STILL_ACTIVE.into(), cause);
        }
        ended
    }

    /// All that a run of the flow must have to start.
    fn needs_of_run(&self, flow: &FlowSpec, new: &NewRun) -> Result<Needs, Refusal> {
        let mut needs = plain_needs(&flow.needs, &new.params, &flow.defaults)?;
        needs.extend(plain_needs(&new.needs, &new.params, &flow.defaults)?);
        needs.extend(self.needs_of_tags(flow.tags.iter().chain(&new.tags))?);
        needs.insert(DEFAULT_POOL.into(), 1);
        if flow.max_concurrent.is_some() {
            needs.insert(cap_name(&flow.project, &flow.name), 1);
        }
        Ok(needs.into_iter().collect())
    }

    /// One unit of each total that is declared for one of the tags.
    pub(super) fn needs_of_tags<'a>(
        &self,
        tags: impl Iterator<Item = &'a String>,
    ) -> Result<Vec<(String, u64)>, Refusal> {
        let names = tags.map(|tag| tag_limit(tag)).collect::<Result<Vec<_>, _>>()?;
        Ok(names.into_iter().filter(|name| self.gate.is_declared(name)).map(|name| (name, 1)).collect())
    }
}

fn run_record(id: ClaimId, flow: &FlowSpec, new: NewRun, needs: Needs, now: Time, due_at: Time) -> RunRecord {
    let mut tags = flow.tags.clone();
    tags.extend(new.tags);
    tags.sort();
    tags.dedup();
    RunRecord {
        id,
        project: flow.project.clone(),
        flow: flow.name.clone(),
        file: flow.file.clone(),
        function: flow.function.clone(),
        params: new.params,
        priority: new.priority.unwrap_or(flow.priority),
        tags,
        needs,
        // Every run begins as Scheduled; one that is due leaves that state before anyone sees it.
        state: State::Scheduled,
        message: None,
        attempt: 0,
        failures: 0,
        crashes: 0,
        retries: flow.retries,
        retry_delay: flow.retry_delay,
        crash_retries: flow.crash_retries,
        place: None,
        created_at: now,
        due_at: due_at.max(now),
        started_at: None,
        ended_at: None,
        result: None,
        error: None,
        idempotency_key: new.idempotency_key,
        delayed: vec![],
    }
}
