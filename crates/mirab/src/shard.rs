//! One shard: a machine, the tasks that it knows by number only, and where their bodies execute.
//!
//! Whoever has an input (a submitter, a body that ends, the timer) takes the lock, puts it to the machine, collects what it allows, and carries
//! that out after the lock is released.
use crate::attempt::Attempt;
use crate::cell::{TaskCell, lock};
use crate::clock::Clock;
use crate::error::Error;
use crate::events::Sender;
use crate::foreign::let_go;
use crate::random::Random;
use crate::timer::Timer;
use crate::value::Payload;
use mirab_core::{Fence, Time};
use mirab_flow::scheduler::{TaskEffect, TaskEnd, TaskId, TaskMachine, TaskOutcome, TaskStart};
use std::any::Any;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex};
use tokio::runtime;
use tokio::sync::Notify;

/// A machine and its surroundings.
pub(crate) struct Shard {
    pub name: String,
    pub clock: Clock,
    /// Where bodies execute.
    pub runtime: runtime::Handle,
    pub timer: Timer,
    /// Told when the last task has ended, while somebody waits for that.
    pub idle: Notify,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub machine: TaskMachine,
    /// Live tasks.
    pub tasks: HashMap<TaskId, Arc<TaskCell>, ById>,
    /// Ended tasks with keys, oldest first, as long as the machine knows them: who submits one again gets its result.
    kept: HashMap<TaskId, Arc<TaskCell>, ById>,
    kept_order: VecDeque<TaskId>,
    pub is_closed: bool,
    /// Values of the program that are to go once the lock is released: what they do in going is not known.
    leaving: Vec<Box<dyn Any + Send>>,
    is_watched: bool,
    /// Until it is closed and its last task has ended: then who reads events is told that there are no more.
    events: Option<Sender>,
    random: Random,
    /// Of a scheduler with a store, until it closes.
    #[cfg(feature = "sqlite")]
    pub journal: Option<crate::store::Journal>,
    #[cfg(feature = "sqlite")]
    pub failed: Option<Arc<mirab_store::TaskStoreError>>,
    /// Tasks to be told that they are stored.
    #[cfg(feature = "sqlite")]
    pub accepted: Vec<Arc<TaskCell>>,
}

/// What is carried out once the lock is released.
pub(crate) enum Action {
    Launch(Arc<TaskCell>, TaskStart),
    Stop(Arc<TaskCell>, Fence),
    Resolve(Arc<TaskCell>, TaskEnd),
    LetGo(Box<dyn Any + Send>),
    /// The task is stored.
    #[cfg(feature = "sqlite")]
    Accept(Arc<TaskCell>),
}

impl Shard {
    pub fn new(
        name: &str,
        machine: TaskMachine,
        clock: Clock,
        runtime: runtime::Handle,
        events: Sender,
        random: Random,
    ) -> Self {
        let state = State {
            machine,
            tasks: HashMap::default(),
            kept: HashMap::default(),
            kept_order: VecDeque::new(),
            is_closed: false,
            leaving: Vec::new(),
            is_watched: false,
            events: Some(events),
            random,
            #[cfg(feature = "sqlite")]
            journal: None,
            #[cfg(feature = "sqlite")]
            failed: None,
            #[cfg(feature = "sqlite")]
            accepted: Vec::new(),
        };
        let (timer, idle, state) = (Timer::default(), Notify::new(), Mutex::new(state));
        Self { name: name.into(), clock, runtime, timer, idle, state }
    }

    /// Puts something to the machine and carries out what follows from it.
    pub fn step<R>(self: &Arc<Self>, act: impl FnOnce(&mut State, Time) -> R) -> R {
        let (result, actions, is_over) = self.apply(act);
        self.carry_out(actions, is_over);
        result
    }

    /// Under the lock: nothing foreign runs here.
    fn apply<R>(self: &Arc<Self>, act: impl FnOnce(&mut State, Time) -> R) -> (R, Vec<Action>, bool) {
        let mut state = lock(&self.state);
        let result = act(&mut state, self.clock.now());
        let mut actions = SPARE.take();
        state.collect(&mut actions);
        actions.extend(state.leaving.drain(..).map(Action::LetGo));
        #[cfg(feature = "sqlite")]
        state.store(self, &mut actions);
        let is_over = state.is_closed && state.machine.is_idle();
        state.tell(is_over);
        let wakes = self.timer.arm(state.machine.poll_timeout());
        drop(state);
        if wakes {
            self.timer.wake();
        }
        self.clock.touch();
        (result, actions, is_over)
    }

    pub fn carry_out(self: &Arc<Self>, mut actions: Vec<Action>, is_over: bool) {
        for action in actions.drain(..) {
            match action {
                Action::Launch(task, start) => Attempt::launch(Arc::clone(self), task, start),
                Action::Stop(task, fence) => task.stop(fence),
                Action::Resolve(task, end) => task.resolve(end),
                Action::LetGo(value) => let_go(value),
                #[cfg(feature = "sqlite")]
                Action::Accept(task) => task.accept(Ok(())),
            }
        }
        if actions.capacity() <= MOST_SPARE {
            SPARE.set(actions);
        }
        if is_over {
            self.idle.notify_waiters();
        }
    }

    /// Asks the machine something that does not depend on the time.
    pub fn look<R>(&self, ask: impl FnOnce(&State) -> R) -> R {
        ask(&lock(&self.state))
    }

    /// Asks the machine something that depends on the time: first it does what is due.
    pub fn ask<R>(self: &Arc<Self>, ask: impl FnOnce(&TaskMachine) -> R) -> R {
        self.step(|state, now| {
            state.machine.handle_timeout(now);
            ask(&state.machine)
        })
    }

    /// Like [`Shard::step`], of a scheduler that is not closed.
    pub fn command<R>(self: &Arc<Self>, act: impl FnOnce(&mut State, Time) -> Result<R, Error>) -> Result<R, Error> {
        self.step(|state, now| {
            state.check_open()?;
            act(state, now)
        })
    }

    /// A body has ended. Gives an attempt that starts for it, which whoever executed that body executes next: no need to spawn it.
    pub fn finish(
        self: &Arc<Self>,
        id: TaskId,
        fence: Fence,
        outcome: TaskOutcome,
    ) -> Option<(Arc<TaskCell>, TaskStart)> {
        let ((), mut actions, is_over) = self.apply(|state, now| {
            let random = state.random.draw();
            state.machine.finish(now, id, fence, outcome, random);
        });
        let is_next = |action: &Action| matches!(action, Action::Launch(task, _) if !task.pool.executor.is_blocking());
        let next = actions.iter().position(is_next).map(|at| actions.remove(at));
        self.carry_out(actions, is_over);
        if let Some(Action::Launch(task, start)) = next { Some((task, start)) } else { None }
    }

    /// No task is accepted any more; those that wait end cancelled, bodies are asked to stop.
    pub fn cancel_all(self: &Arc<Self>) {
        self.step(|state, now| {
            state.is_closed = true;
            // What is stored stays as it is: it goes on at the next start.
            #[cfg(feature = "sqlite")]
            drop(state.journal.take());
            let live: Vec<TaskId> = state.machine.live().collect();
            for id in live {
                state.machine.cancel(now, id);
            }
        });
    }

    /// Does what is due; gives the next instant to look again.
    pub fn on_time(self: &Arc<Self>) -> Option<Time> {
        self.step(|state, now| {
            if state.machine.poll_timeout().is_some_and(|at| at <= now) {
                state.machine.handle_timeout(now);
            }
            let next = state.machine.poll_timeout();
            self.timer.set(next);
            next
        })
    }

    /// No task is accepted any more.
    pub fn close(self: &Arc<Self>) {
        self.step(|state, _| state.is_closed = true);
    }

    /// Waits until the last task has ended, of a shard that is closed.
    pub async fn drained(&self) {
        loop {
            let idle = self.idle.notified();
            if self.look(|state| state.machine.is_idle()) {
                return;
            }
            idle.await;
        }
    }

    /// Events are told from now on.
    pub fn watch(&self) {
        let mut state = lock(&self.state);
        if !state.is_watched {
            state.is_watched = true;
            state.machine.watch(true);
        }
    }
}

thread_local! {
    /// Memory for the actions of this thread's next step.
    static SPARE: Cell<Vec<Action>> = const { Cell::new(Vec::new()) };
}

/// Actions whose memory is kept for the next step, at most.
const MOST_SPARE: usize = 64;

impl State {
    /// Tells who watches what has happened, and that it was all, if so.
    fn tell(&mut self, is_over: bool) {
        if let (true, Some(events)) = (self.is_watched, &self.events) {
            while let Some(event) = self.machine.poll_event() {
                events.send(event);
            }
            if !events.has_readers() {
                self.is_watched = false;
                self.machine.watch(false);
            }
        }
        if is_over {
            self.events = None;
        }
    }

    /// What the machine wants done.
    fn collect(&mut self, actions: &mut Vec<Action>) {
        while let Some(effect) = self.machine.poll_effect() {
            actions.extend(self.action(effect));
        }
    }

    fn action(&mut self, effect: TaskEffect) -> Option<Action> {
        Some(match effect {
            TaskEffect::Start(start) => Action::Launch(Arc::clone(self.tasks.get(&start.id)?), start),
            TaskEffect::Stop { id, fence, .. } => Action::Stop(Arc::clone(self.tasks.get(&id)?), fence),
            TaskEffect::Ended { id, end } => {
                let task = self.tasks.remove(&id)?;
                #[cfg(feature = "sqlite")]
                if let (Some(journal), Some(blob)) = (&mut self.journal, task.take_result()) {
                    journal.result(id, blob);
                }
                self.keep(&task);
                Action::Resolve(task, end)
            }
        })
    }

    /// A scheduler that is closed accepts nothing.
    pub fn check_open(&self) -> Result<(), Error> {
        #[cfg(feature = "sqlite")]
        if let Some(error) = &self.failed {
            return Err(Error::Store(Arc::clone(error)));
        }
        if self.is_closed { Err(Error::SchedulerClosed) } else { Ok(()) }
    }

    /// A new task is to be stored.
    #[cfg(feature = "sqlite")]
    pub fn accept(&mut self, task: &Arc<TaskCell>, payload: Option<mirab_store::Blob>) {
        if let (Some(journal), Some(payload)) = (&mut self.journal, payload) {
            journal.payload(task.id, payload);
            self.accepted.push(Arc::clone(task));
        }
    }

    /// With a store, what a step wants done waits for the commit of what it has changed.
    #[cfg(feature = "sqlite")]
    fn store(&mut self, shard: &Arc<Shard>, actions: &mut Vec<Action>) {
        // Ahead of what they start.
        actions.splice(..0, self.accepted.drain(..).map(Action::Accept));
        if let Some(journal) = &mut self.journal {
            journal.put(shard, self.machine.take_facts(), std::mem::take(actions));
        }
    }

    pub fn keep(&mut self, task: &Arc<TaskCell>) {
        if task.key.is_none() {
            return;
        }
        self.kept.insert(task.id, Arc::clone(task));
        self.kept_order.push_back(task.id);
        while let Some(oldest) = self.kept_order.front()
            && self.machine.status(*oldest).is_none()
        {
            let gone = self.kept.remove(oldest);
            self.kept_order.pop_front();
            self.leaving.extend(gone.map(|task| Box::new(task) as Box<dyn Any + Send>));
        }
    }

    /// A payload that was not accepted.
    pub fn refuse(&mut self, payload: Payload) {
        self.leaving.push(payload);
    }

    /// A task that is live, or has a key and is remembered.
    pub fn find(&self, id: TaskId) -> Option<&Arc<TaskCell>> {
        self.tasks.get(&id).or_else(|| self.kept.get(&id))
    }
}

/// Ids are given in order, and looked for in order: neighbours stay together. The high bits tell apart what is found in one place.
pub(crate) type ById = BuildHasherDefault<IdHasher>;

#[derive(Clone, Copy, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) & (0x7F << 57))
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(5) ^ number;
    }
}
