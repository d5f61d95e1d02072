//! A server in small: commands are applied and committed, effects are kept to be looked at.
use crate::memory::Memory;
use mirab_core::{ClaimId, Fence, ResourceConfig, SECOND, Time};
use mirab_flow::*;

pub const PROJECT: &str = "shop";

pub struct World {
    pub driver: Driver<Memory>,
    pub now: Time,
    pub effects: Vec<Effect>,
    requests: u64,
}

/// What a test talks about: a run with the fence of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    pub id: ClaimId,
    pub fence: Fence,
}

pub fn seconds(count: u64) -> u64 {
    count * SECOND
}

pub fn flow(name: &str) -> FlowSpec {
    FlowSpec {
        project: PROJECT.into(),
        name: name.into(),
        file: format!("{name}.py"),
        function: name.into(),
        ..Default::default()
    }
}

pub fn semaphore(name: &str, permits: u64) -> ResourceConfig {
    ResourceConfig::semaphore(name, permits)
}

pub fn bucket(name: &str, rate: f64, burst: u64) -> ResourceConfig {
    ResourceConfig::token_bucket(name, rate, burst).unwrap()
}

pub fn options(slots: u64, resources: &[ResourceConfig]) -> Options {
    let resources = resources.iter().map(|config| (config.name.clone(), config.clone())).collect();
    Options { resources, slots, max_slots: 64, cancel_grace: seconds(10), ..Options::default() }
}

impl World {
    pub fn new(slots: u64, resources: &[ResourceConfig], flows: Vec<FlowSpec>) -> Self {
        let now = Time(seconds(1_000));
        let driver = Driver::open(Memory::default(), options(slots, resources), now).unwrap();
        let mut world = Self { driver, now, effects: Vec::new(), requests: 0 };
        world.run(|o, now| o.add_project(now, ProjectRecord { name: PROJECT.into(), path: "/srv/shop".into() }));
        world.set_flows(flows);
        world
    }

    pub fn set_flows(&mut self, flows: Vec<FlowSpec>) {
        assert_eq!(self.run(|o, now| o.set_flows(now, PROJECT, flows)), []);
    }

    /// Applies a command and commits it, which must succeed.
    pub fn run<R>(&mut self, command: impl FnOnce(&mut Orchestrator, Time) -> R) -> R {
        self.try_run(command).unwrap()
    }

    pub fn try_run<R>(&mut self, command: impl FnOnce(&mut Orchestrator, Time) -> R) -> Result<R, StoreUnavailable> {
        let now = self.now;
        let answer = self.driver.apply(now, |orchestrator| command(orchestrator, now));
        self.effects.extend(self.driver.commit(now)?);
        Ok(answer)
    }

    pub fn o(&self) -> &Orchestrator {
        self.driver.orchestrator()
    }

    pub fn create(&mut self, new: NewRun) -> Result<ClaimId, Error> {
        self.run(|o, now| o.create_run(now, new)).map(|created| match created {
            Created::New(run) => run.id,
            Created::Existing(id) => id,
        })
    }

    pub fn submit(&mut self, flow: &str) -> ClaimId {
        self.create(new_run(flow)).unwrap()
    }

    pub fn submit_needing(&mut self, flow: &str, needs: &[(&str, u64)]) -> Result<ClaimId, Error> {
        self.create(NewRun { needs: owned(needs), ..new_run(flow) })
    }

    /// Takes a lease and takes it up.
    pub fn start(&mut self, worker: &str) -> Body {
        let leased = self.take(worker).expect("a run on offer");
        let body = Body { id: leased.id, fence: leased.fence };
        assert_eq!(self.beat(body), Ok(false));
        body
    }

    pub fn take(&mut self, worker: &str) -> Option<Leased> {
        self.requests += 1;
        let request = format!("request-{}", self.requests);
        self.take_again(worker, &request)
    }

    pub fn take_again(&mut self, worker: &str, request: &str) -> Option<Leased> {
        let (pool, project) = (POOL.to_owned(), PROJECT.to_owned());
        let ask = TakeLease { pool, project, worker: worker.into(), request_id: request.into() };
        self.run(|o, now| o.take_lease(now, ask)).unwrap()
    }

    pub fn beat(&mut self, body: Body) -> Result<bool, Error> {
        self.run(|o, now| o.heartbeat(now, body.id, body.fence))
    }

    pub fn complete(&mut self, body: Body) -> Result<(), Error> {
        self.run(|o, now| o.complete(now, body.id, body.fence, Some(serde_json::json!(7))))
    }

    pub fn fail(&mut self, body: Body) -> Result<(), Error> {
        self.run(|o, now| o.fail(now, body.id, body.fence, failure(), false))
    }

    pub fn cancel(&mut self, id: ClaimId) -> Result<RunRecord, Error> {
        self.run(|o, now| o.cancel_run(now, id, "api"))
    }

    pub fn claim(&mut self, body: Body, key: &str, needs: &[(&str, u64)]) -> Result<TaskStatus, Error> {
        self.claim_task(body, new_task(key, needs))
    }

    pub fn claim_task(&mut self, body: Body, task: NewTask) -> Result<TaskStatus, Error> {
        self.run(|o, now| o.claim_task(now, body.id, body.fence, task))
    }

    pub fn end(&mut self, body: Body, task: ClaimId, outcome: Outcome) -> Result<Option<u64>, Error> {
        let error = (outcome == Outcome::Failed).then(failure);
        self.run(|o, now| o.end_task(now, body.id, body.fence, task, outcome, error))
    }

    /// Lets time pass, stopping wherever a timer is due.
    pub fn pass(&mut self, nanos: u64) {
        let end = self.now.plus(nanos);
        while let Some((at, _)) = self.driver.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            let _ = self.try_run(|o, now| o.handle_timeout(now));
        }
        self.now = end;
    }

    /// Dies without a word, and starts again from what is stored; the flows are discovered anew.
    pub fn restart(&mut self, slots: u64, resources: &[ResourceConfig], flows: Vec<FlowSpec>) {
        let journal = self.driver.journal().clone();
        self.driver = Driver::open(journal, options(slots, resources), self.now).unwrap();
        self.effects = self.driver.commit(self.now).unwrap();
        self.set_flows(flows);
    }

    /// As it is stored, ended or not.
    pub fn stored(&self, id: ClaimId) -> &RunRecord {
        &self.driver.journal().runs[&id]
    }

    pub fn stored_task(&self, id: ClaimId) -> &TaskRecord {
        &self.driver.journal().tasks[&id]
    }

    pub fn state(&self, id: ClaimId) -> State {
        self.stored(id).state
    }

    pub fn task_state(&self, id: ClaimId) -> State {
        self.stored_task(id).state
    }

    pub fn used(&self, resource: &str) -> u64 {
        self.o().gate().resource(resource).map_or(0, |resource| resource.used)
    }

    /// Reasons of the events of one kind about a run and its tasks.
    pub fn told(&self, run: ClaimId, kind: &str) -> Vec<String> {
        let events = self.driver.journal().events.iter();
        events.filter(|event| event.run == run && event.kind == kind).map(|event| event.reason.clone()).collect()
    }

    pub fn states_of(&self, run: ClaimId) -> Vec<State> {
        let events = self.driver.journal().events.iter();
        events.filter(|event| event.run == run && event.task.is_none()).filter_map(|event| event.state).collect()
    }

    /// Everything given back, nothing live.
    pub fn assert_idle(&self) {
        assert_eq!(self.o().runs().count(), 0);
        assert_eq!(self.o().gate().waiting(), 0);
        for resource in self.o().resources() {
            assert_eq!((resource.used, resource.waiters), (0, 0), "{}", resource.name);
        }
        assert!(self.driver.journal().leases.is_empty());
        assert!(self.o().leases_of_workers().is_empty() && self.o().demand().is_empty());
        assert_eq!(self.driver.poll_timeout(), None);
    }
}

pub fn new_run(flow: &str) -> NewRun {
    NewRun { flow: flow.into(), ..Default::default() }
}

pub fn new_task(key: &str, needs: &[(&str, u64)]) -> NewTask {
    NewTask { key: key.into(), name: "load".into(), needs: owned(needs), ..Default::default() }
}

pub fn owned(needs: &[(&str, u64)]) -> Vec<(String, u64)> {
    needs.iter().map(|(name, units)| ((*name).to_owned(), *units)).collect()
}

pub fn failure() -> Failure {
    Failure { kind: "ValueError".into(), message: "no rows".into(), traceback: None }
}
