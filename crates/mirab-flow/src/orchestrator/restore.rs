//! An orchestrator from what is stored: after a restart, and after a commit that failed.
use super::create::SERVER;
use super::settle::GATE;
use super::{DEFAULT_POOL, Declarations, HAND_OFF, LEASE_LIFE, Options, Orchestrator, SLOTS_SETTING};
use crate::flow_spec::{FlowSpec, cap_name};
use crate::records::{BucketRecord, Fact, LeaseRecord, RunRecord, Stored, TaskRecord};
use crate::run::Run;
use crate::state::State;
use crate::step::Wake;
use crate::task_run::TaskRun;
use mirab_core::{ClaimId, Ended, Gate, GateOptions, Limit, ResourceConfig, StoredLease, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Orchestrator {
    /// Takes up what is stored: leases hold their units for one more life, waiting work is in line at its old places.
    #[must_use]
    pub fn restore(options: Options, stored: Stored, now: Time) -> Self {
        Self::restore_declared(Arc::new(Declarations { options, ..Declarations::default() }), stored, now)
    }

    /// The same with the flows that are known already.
    #[must_use]
    pub fn restore_declared(declared: Arc<Declarations>, mut stored: Stored, now: Time) -> Self {
        let mut this = Self::empty(declared, &stored, now);
        let resources = this.resources_for(&stored);
        this.gate.withhold_starts();
        this.declare_paused(&resources);
        this.remember_work(std::mem::take(&mut stored.runs), std::mem::take(&mut stored.tasks));
        this.restore_leases(std::mem::take(&mut stored.leases));
        this.end_bodies_without_lease();
        this.line_up_all();
        this.restore_delays();
        this.declare_all(resources);
        this.restore_buckets(&stored.buckets);
        this.restore_learned(&stored);
        this.gate.resume_starts(now);
        this.set_timers();
        // What waits on was told of its first shortage when that wait began.
        this.joined.clear();
        this.settle(now);
        this
    }

    fn empty(declared: Arc<Declarations>, stored: &Stored, now: Time) -> Self {
        let gate = Gate::new(gate_options(&declared.options));
        let mut this = Self {
            declared,
            gate,
            now,
            // 0 stands for nothing, so every number begins at 1.
            next_id: stored.counters.next_id.max(1),
            next_event: stored.counters.next_event.max(1),
            stored_counters: stored.counters,
            projects: stored.projects.iter().map(|project| (project.name.clone(), project.clone())).collect(),
            runs: Default::default(),
            tasks: Default::default(),
            leases: Default::default(),
            workers: Default::default(),
            silent: Default::default(),
            offers: Default::default(),
            by_flow: Default::default(),
            keys: stored.keys.iter().cloned().collect(),
            due_unknown: Default::default(),
            parked: Default::default(),
            joined: Vec::new(),
            learned: Default::default(),
            totals: Default::default(),
            departed: Default::default(),
            undeclared: Default::default(),
            timers: Default::default(),
            step: Default::default(),
        };
        this.gate.restore_counters(stored.counters.next_seq.max(1), stored.counters.next_fence.max(1));
        this.stored_counters = this.counters();
        this
    }

    /// All that the gate must know: the pool, what is declared, the flows' caps, and names that only stored work knows.
    fn resources_for(&mut self, stored: &Stored) -> Vec<ResourceConfig> {
        let is_open = !self.declared.options.slots_are_fixed;
        let setting = stored.settings.iter().find(|(key, _)| is_open && key == SLOTS_SETTING);
        let slots = setting.and_then(|(_, value)| value.parse().ok()).unwrap_or(self.declared.options.slots);
        let mut all = vec![ResourceConfig::semaphore(DEFAULT_POOL, slots.min(self.declared.options.max_slots))];
        all.extend(self.declared.options.resources.values().cloned());
        all.extend(self.flows().filter_map(cap_of));
        let mut known = Gate::default();
        for resource in &all {
            declare(&mut known, self.now, resource.clone());
        }
        let missing = missing(&known, stored);
        self.undeclared.are(missing.iter().map(|resource| resource.name.as_str()));
        all.extend(missing);
        all
    }

    /// A paused resource takes waiters of any amount, also those for which its total was lowered since.
    fn declare_paused(&mut self, resources: &[ResourceConfig]) {
        for resource in resources {
            let paused = ResourceConfig { limit: Limit::Semaphore { permits: 0 }, ..resource.clone() };
            declare(&mut self.gate, self.now, paused);
        }
    }

    fn declare_all(&mut self, resources: Vec<ResourceConfig>) {
        for resource in resources {
            declare(&mut self.gate, self.now, resource);
        }
    }

    fn restore_buckets(&mut self, buckets: &[BucketRecord]) {
        for bucket in buckets {
            let is_declared = self.gate.restore_bucket(self.now, &bucket.name, bucket.state).is_ok();
            if !is_declared || self.gate.bucket_state(&bucket.name).is_none() {
                self.departed.keep(bucket.name.clone(), (bucket.state, None));
            }
        }
    }

    fn remember_work(&mut self, runs: Vec<RunRecord>, tasks: Vec<TaskRecord>) {
        for run in runs {
            let joined_at = run.place.map(|place| place.joined_at);
            let since = run.started_at.filter(|_| run.state == State::Running).or(joined_at).unwrap_or(run.created_at);
            self.remember_run(Run::new(run, since));
        }
        for task in tasks {
            if let Some(run) = self.runs.get_mut(&task.run) {
                run.tasks.insert(task.key.clone(), task.id);
                run.has_nested_tasks |= task.parent != task.run;
                let since = task.created_at;
                self.tasks.insert(task.id, TaskRun::new(task, since));
            }
        }
    }

    /// Enclosing bodies come first: runs, then tasks by id, which is greater than that of the body that called them.
    fn restore_leases(&mut self, mut leases: Vec<LeaseRecord>) {
        leases.sort_by_key(|lease| (lease.parent.is_some(), lease.id));
        for lease in leases {
            let id = lease.id;
            if self.has_body(id) && self.restore_lease(&lease) {
                self.take_lease_over(lease);
            } else {
                self.fact(Fact::LeaseEnded(id));
            }
        }
    }

    fn has_body(&self, id: ClaimId) -> bool {
        let of_run = self.runs.get(&id).map(Run::state);
        let of_task = self.tasks.get(&id).map(TaskRun::state);
        matches!(of_run, Some(State::Pending | State::Running | State::Cancelling)) || of_task == Some(State::Running)
    }

    fn restore_lease(&mut self, lease: &LeaseRecord) -> bool {
        let stored = StoredLease {
            id: lease.id,
            fence: lease.fence,
            kind: &lease.kind,
            takes: &lease.takes,
            covered: &lease.covered,
            tokens: &lease.tokens,
            shortest: lease.shortest,
            longest: lease.longest,
            passed: &lease.passed,
            priority: lease.priority,
            parent: lease.parent,
            place: lease.place,
            started_at: lease.started_at,
        };
        self.gate.restore_lease(self.now, stored).is_ok()
    }

    fn take_lease_over(&mut self, lease: LeaseRecord) {
        let (id, fence, worker) = (lease.id, lease.fence, lease.worker.clone());
        self.leases.insert(id, lease);
        let Some(run) = self.runs.get(&id) else { return };
        let (state, project) = (run.state(), run.record.project.clone());
        match worker {
            Some(worker) => drop(self.workers.insert(worker, id)),
            None => self.offer(project, (fence, id)),
        }
        if state == State::Pending {
            self.timers.set(self.now.plus(HAND_OFF), Wake::HandOff(id));
        } else {
            self.timers.set(self.now.plus(LEASE_LIFE), Wake::Lapse(id));
        }
    }

    /// Nothing vouches for these bodies: they hold nothing, so they count as crashed.
    fn end_bodies_without_lease(&mut self) {
        let (now, reason) = (self.now, "its lease was not stored");
        let lost = |id: &ClaimId, leased: &Self| leased.has_body(*id) && !leased.leases.contains_key(id);
        let tasks: Vec<ClaimId> = self.tasks.keys().filter(|id| lost(id, self)).copied().collect();
        for id in tasks {
            self.change_task(now, id, SERVER, |task| task.enter(now, State::Crashed).map(|()| reason.into()));
        }
        let runs: Vec<ClaimId> = self.runs.keys().filter(|id| lost(id, self)).copied().collect();
        for id in runs {
            self.end_body(now, id, State::Crashed, Ended::Stopped);
            self.change_run(now, id, SERVER, |run| run.crash(now, reason));
        }
    }

    /// The order does not matter here: all have their places, and nothing starts before all are in line.
    fn line_up_all(&mut self) {
        let now = self.now;
        let runs = self.runs.values().filter(|run| run.state() == State::Waiting).map(|run| run.record.id);
        for id in runs.collect::<Vec<_>>() {
            self.line_up_again(now, id);
        }
        let tasks = self.tasks.values().filter(|task| task.state() == State::Waiting).map(|task| task.record.id);
        for id in tasks.collect::<Vec<_>>() {
            if let Err(refusal) = self.submit_task(now, id) {
                self.change_task(now, id, GATE, |task| task.refuse(now, refusal.into()));
            }
        }
    }

    fn set_timers(&mut self) {
        let states: Vec<(ClaimId, State, Time)> =
            self.runs.values().map(|run| (run.record.id, run.state(), run.record.due_at)).collect();
        for (id, state, due_at) in states {
            match state {
                State::Scheduled => self.timers.set(due_at, Wake::Due(id)),
                State::AwaitingRetry => self.timers.set(due_at, Wake::Retry(id)),
                State::Cancelling => {
                    self.timers.set(self.now.plus(self.declared.options.cancel_grace), Wake::CancelGrace(id));
                    self.tell_body_to_stop(id);
                }
                _ => {}
            }
        }
    }
}

fn gate_options(options: &Options) -> GateOptions {
    let default = GateOptions::default();
    let assumed_duration = options.assumed_duration.unwrap_or(default.assumed_duration);
    GateOptions { aging: options.aging, assumed_duration, ..default }
}

/// The cap of a flow that has one.
fn cap_of(flow: &FlowSpec) -> Option<ResourceConfig> {
    flow.max_concurrent.map(|permits| ResourceConfig::semaphore(&cap_name(&flow.project, &flow.name), permits))
}

/// Names that stored work has or wants, but nothing declares any more. A flow's cap is 1 until the flow is found; anything else is
/// paused: what holds or waits for it is kept and can be seen (see [`super::undeclared`]).
fn missing(known: &Gate, stored: &Stored) -> Vec<ResourceConfig> {
    let held = stored.leases.iter().flat_map(|lease| lease.takes.iter().chain(&lease.tokens));
    // What has not joined the line yet is new work to the gate.
    let wanted_by_runs = stored.runs.iter().filter(|run| run.place.is_some()).flat_map(|run| &run.needs);
    let live_tasks = stored.tasks.iter().filter(|task| !task.state.is_terminal());
    let wanted = live_tasks.flat_map(|task| &task.needs);
    let names: BTreeSet<&String> = held.chain(wanted_by_runs).chain(wanted).map(|(name, _)| name).collect();
    let missing = names.into_iter().filter(|name| !known.is_declared(name));
    missing.map(|name| ResourceConfig::semaphore(name, u64::from(name.starts_with("flow:")))).collect()
}

/// What comes here was checked before; a refusal would be an error of the host, and work that asks for the name is then refused.
fn declare(gate: &mut Gate, now: Time, resource: ResourceConfig) {
    let refused = gate.declare(now, resource);
    debug_assert!(refused.is_ok(), "{refused:?}");
}
