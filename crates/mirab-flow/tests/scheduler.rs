//! The life of tasks in pools, on times that the tests make up.
use mirab_core::{Fence, ResourceConfig, SECOND, Time};
use mirab_flow::scheduler::*;

struct World {
    machine: TaskMachine,
    now: Time,
}

impl World {
    fn new(slots: u64) -> Self {
        let mut machine = TaskMachine::new(MachineOptions::default());
        machine.set_pool(Time(0), PoolSpec::new("p", slots)).unwrap();
        Self { machine, now: Time(0) }
    }

    fn at(&mut self, seconds: u64) {
        self.now = Time(seconds * SECOND);
        self.machine.handle_timeout(self.now);
    }

    fn submit(&mut self, spec: &TaskSpec, admission: Admission) -> TaskId {
        self.machine.submit(self.now, spec, admission).unwrap().id
    }

    fn effects(&mut self) -> Vec<TaskEffect> {
        std::iter::from_fn(|| self.machine.poll_effect()).collect()
    }

    fn started(&mut self) -> Vec<TaskStart> {
        let start = |effect| if let TaskEffect::Start(start) = effect { Some(start) } else { None };
        self.effects().into_iter().filter_map(start).collect()
    }

    fn ended(&mut self) -> Vec<(TaskId, TaskEnd)> {
        let end = |effect| if let TaskEffect::Ended { id, end } = effect { Some((id, end)) } else { None };
        self.effects().into_iter().filter_map(end).collect()
    }

    fn finish(&mut self, start: TaskStart, outcome: TaskOutcome) {
        assert!(self.machine.finish(self.now, start.id, start.fence, outcome, u64::MAX));
    }

    fn state(&self, id: TaskId) -> TaskState {
        self.machine.status(id).unwrap().state
    }
}

fn fails(again: Again) -> TaskOutcome {
    TaskOutcome::Failure { message: "no luck".into(), again }
}

fn plain() -> Admission {
    Admission::default()
}

#[test]
fn the_higher_priority_starts_first_and_a_slot_is_given_on() {
    let mut world = World::new(1);
    let spec = TaskSpec::new("p");
    let ids = [0, 5, 9, 5].map(|priority| world.submit(&spec, Admission { priority, ..plain() }));
    let mut order = Vec::new();
    while let [start] = world.started()[..] {
        order.push(start.id);
        world.finish(start, TaskOutcome::Success);
    }
    assert_eq!(order, [0, 2, 1, 3].map(|at| ids[at]));
    assert!(world.machine.is_idle());
    assert_eq!(world.machine.snapshot().counts.completed, 4);
}

#[test]
fn a_failed_attempt_holds_nothing_while_it_waits_for_the_next_and_keeps_its_place() {
    let mut world = World::new(1);
    let spec = TaskSpec { retry: Retry { retries: 1, base: 10 * SECOND, cap: 60 * SECOND }, ..TaskSpec::new("p") };
    let [first, second, third] = [(); 3].map(|()| world.submit(&spec, plain()));
    let start = world.started()[0];
    world.finish(start, fails(Again::ByPolicy));
    assert_eq!((world.state(first), world.state(second)), (TaskState::AwaitingRetry, TaskState::Running));
    let start = world.started()[0];
    world.at(10);
    assert_eq!((world.state(first), start.id), (TaskState::Queued, second));
    world.finish(start, TaskOutcome::Success);
    // It joined before the third, and stays before it.
    let start = world.started()[0];
    assert_eq!((start.id, start.attempt), (first, 2));
    world.finish(start, fails(Again::ByPolicy));
    let failed = TaskEnd::Failed { message: "no luck".into(), timed_out: false };
    assert_eq!(world.machine.status(first).unwrap().end, Some(failed));
    assert_eq!(world.started()[0].id, third);
}

#[test]
fn a_timeout_stops_the_body_and_its_slot_is_held_until_it_has_ended() {
    let mut world = World::new(1);
    let spec = TaskSpec { timeout: Some(5 * SECOND), ..TaskSpec::new("p") };
    let (first, second) = (world.submit(&spec, plain()), world.submit(&spec, plain()));
    let start = world.started()[0];
    assert_eq!((start.deadline, world.machine.poll_timeout()), (Some(Time(5 * SECOND)), Some(Time(5 * SECOND))));
    world.at(5);
    let stop = TaskEffect::Stop { id: first, fence: start.fence, why: StopReason::TimedOut };
    assert_eq!((world.effects(), world.state(second)), (vec![stop], TaskState::Queued));
    world.at(9);
    world.finish(start, TaskOutcome::Stopped);
    assert!(matches!(&world.ended()[..], [(id, TaskEnd::Failed { timed_out: true, .. })] if *id == first));
    assert_eq!(world.state(second), TaskState::Running);
}

#[test]
fn a_cancel_ends_what_waits_and_asks_what_runs() {
    let mut world = World::new(1);
    let spec = TaskSpec::new("p");
    let (first, second) = (world.submit(&spec, plain()), world.submit(&spec, plain()));
    let start = world.started()[0];
    assert!(world.machine.cancel(world.now, second) && !world.machine.cancel(world.now, second));
    assert_eq!(world.ended(), [(second, TaskEnd::Cancelled)]);
    assert!(world.machine.cancel(world.now, first) && !world.machine.cancel(world.now, first));
    assert_eq!(world.state(first), TaskState::Stopping);
    world.finish(start, TaskOutcome::Stopped);
    assert_eq!(world.ended().pop(), Some((first, TaskEnd::Cancelled)));
    // A second report of the same attempt changes nothing.
    assert!(!world.machine.finish(world.now, first, start.fence, TaskOutcome::Success, 0));
    assert!(!world.machine.finish(world.now, first, Fence(99), TaskOutcome::Success, 0));
}

#[test]
fn a_task_that_does_not_start_in_time_expires_and_has_consumed_nothing() {
    let mut world = World::new(1);
    world.machine.set_resource(Time(0), ResourceConfig::token_bucket("api", 1.0, 3).unwrap()).unwrap();
    let spec = TaskSpec { resources: vec![("api".into(), 1)], ..TaskSpec::new("p") };
    world.submit(&spec, plain());
    let late = world.submit(&spec, Admission { start_by: Some(Time(2 * SECOND)), ..plain() });
    let gone = world.submit(&spec, Admission { start_by: Some(Time(0)), ..plain() });
    assert_eq!(world.state(gone), TaskState::Ended);
    let start = world.started()[0];
    world.at(2);
    assert_eq!(world.ended(), [(late, TaskEnd::Expired)]);
    world.finish(start, TaskOutcome::Success);
    let view = &world.machine.snapshot().resources[0].view;
    assert_eq!((view.name.as_str(), view.free, world.machine.poll_timeout()), ("api", 3, None));
}

#[test]
fn tasks_that_expire_at_the_same_time_make_no_room_for_each_other() {
    let mut world = World::new(1);
    world.machine.set_resource(Time(0), ResourceConfig::semaphore("db", 2)).unwrap();
    let takes = |units| TaskSpec { resources: vec![("db".into(), units)], ..TaskSpec::new("p") };
    let soon = Admission { start_by: Some(Time(2 * SECOND)), ..plain() };
    world.submit(&takes(1), plain());
    let first = world.submit(&takes(2), Admission { priority: 9, ..soon.clone() });
    let second = world.submit(&takes(1), soon);
    let start = world.started()[0];
    world.at(1);
    world.machine.set_pool(world.now, PoolSpec::new("p", 2)).unwrap();
    assert_eq!((world.state(first), world.state(second)), (TaskState::Queued, TaskState::Queued));
    world.at(2);
    assert_eq!(world.ended(), [(first, TaskEnd::Expired), (second, TaskEnd::Expired)]);
    world.finish(start, TaskOutcome::Success);
    assert_eq!((world.machine.snapshot().resources[0].view.free, world.machine.is_idle()), (2, true));
}

#[test]
fn a_task_comes_after_others_and_is_skipped_with_the_reason_where_they_end_otherwise() {
    let mut world = World::new(4);
    let spec = TaskSpec::new("p");
    let (good, bad) = (world.submit(&spec, plain()), world.submit(&spec, plain()));
    let after = |world: &mut World, after| world.submit(&spec, Admission { after, ..plain() });
    let both = after(&mut world, vec![(good, On::Success), (bad, On::Completion)]);
    let unlucky = after(&mut world, vec![(bad, On::Success)]);
    let chained = after(&mut world, vec![(unlucky, On::Success)]);
    let cleanup = after(&mut world, vec![(bad, On::Failure)]);
    let starts = world.started();
    assert_eq!((starts.len(), world.state(both)), (2, TaskState::Blocked));
    world.finish(starts[0], TaskOutcome::Success);
    world.finish(starts[1], fails(Again::ByPolicy));
    let effects = world.effects();
    let skipped: Vec<TaskId> = effects
        .iter()
        .filter_map(|effect| match effect {
            TaskEffect::Ended { id, end: TaskEnd::Skipped { reason } } => {
                assert!(reason.contains("which was to complete before, ended"), "{reason}");
                Some(*id)
            }
            _ => None,
        })
        .collect();
    assert_eq!(skipped, [unlucky, chained]);
    assert_eq!((world.state(both), world.state(cleanup)), (TaskState::Running, TaskState::Running));
    // One that comes after an ended task knows how that ended.
    let later = after(&mut world, vec![(bad, On::Success)]);
    assert!(matches!(world.machine.status(later).unwrap().end, Some(TaskEnd::Skipped { .. })));
    let nobody =
        world.machine.submit(world.now, &spec, Admission { after: vec![(TaskId(77), On::Success)], ..plain() });
    assert_eq!(nobody.unwrap_err().code(), "UnknownTask");
}

#[test]
fn a_key_gives_the_same_task_and_another_task_under_it_is_told_as_such() {
    let mut world = World::new(1);
    let spec = TaskSpec::new("p");
    let keyed = |digest| Admission { key: Some("k".into()), digest, ..plain() };
    let id = world.submit(&spec, keyed(1));
    assert_eq!(world.machine.submit(world.now, &spec, keyed(1)), Ok(Submitted { id, is_new: false }));
    let start = world.started()[0];
    world.finish(start, TaskOutcome::Success);
    assert_eq!(world.machine.submit(world.now, &spec, keyed(1)), Ok(Submitted { id, is_new: false }));
    let error = world.machine.submit(world.now, &spec, keyed(2)).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("differs in payload")), ("KeyConflict", true));
    let other = TaskSpec { timeout: Some(1), ..spec };
    assert!(world.machine.submit(world.now, &other, keyed(1)).unwrap_err().to_string().contains("timeout"));
}

#[test]
fn a_time_that_has_not_come_holds_a_task_back_and_its_sequence_is_that_of_its_due_time() {
    let mut world = World::new(1);
    let spec = TaskSpec::new("p");
    let first = world.submit(&spec, plain());
    let early = world.submit(&spec, Admission { not_before: Some(Time(3 * SECOND)), ..plain() });
    let second = world.submit(&spec, plain());
    assert_eq!((world.state(early), world.machine.poll_timeout()), (TaskState::Scheduled, Some(Time(3 * SECOND))));
    world.at(3);
    let mut order = Vec::new();
    while let [start] = world.started()[..] {
        order.push(start.id);
        world.finish(start, TaskOutcome::Success);
    }
    assert_eq!(order, [first, second, early]);
}

#[test]
fn pools_have_room_change_and_go() {
    let mut world = World::new(1);
    world.machine.set_pool(world.now, PoolSpec { max_queued: Some(2), ..PoolSpec::new("p", 1) }).unwrap();
    let spec = TaskSpec::new("p");
    (0..3).for_each(|_| _ = world.submit(&spec, plain()));
    let full = world.machine.submit(world.now, &spec, plain()).unwrap_err();
    assert_eq!((full.code(), full.to_string().contains("at most 2 may")), ("QueueFull", true));
    assert_eq!(world.started().len(), 1);
    world.machine.set_pool(world.now, PoolSpec::new("p", 3)).unwrap();
    assert_eq!(world.started().len(), 2);
    assert_eq!(world.machine.remove_pool(world.now, "p").unwrap_err().code(), "ResourceInUse");
    let error = world.machine.submit(world.now, &TaskSpec::new("q"), plain()).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains('p')), ("UnknownPool", true));
    assert_eq!(world.machine.remove_pool(world.now, "q").unwrap_err().code(), "UnknownPool");
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut world = World::new(1);
    world.machine.set_resource(Time(0), ResourceConfig::semaphore("gpu", 4)).unwrap();
    let needs = |name: &str, units| TaskSpec { resources: vec![(name.into(), units)], ..TaskSpec::new("p") };
    let early = Admission { not_before: Some(Time(SECOND)), ..plain() };
    for (spec, code) in [
        (needs("gpv", 1), "UnknownResource"),
        (needs("gpu", 5), "ResourceExceedsCapacity"),
        (needs("gpu", 0), "InvalidResource"),
        (needs("pool:p", 1), "InvalidResource"),
    ] {
        for admission in [plain(), early.clone()] {
            assert_eq!(world.machine.submit(world.now, &spec, admission).unwrap_err().code(), code);
        }
    }
    assert!(world.machine.is_idle() && world.effects().is_empty() && world.machine.poll_timeout().is_none());
    assert_eq!(world.machine.snapshot().pools[0].waiting, 0);
}

#[test]
fn a_pattern_of_tags_gives_each_tag_its_total_and_no_tag_escapes_it() {
    let mut world = World::new(9);
    world.machine.set_resource(Time(0), ResourceConfig::semaphore("tag:*", 1)).unwrap();
    let tagged = |tag: &str| TaskSpec { tags: vec![tag.into()], ..TaskSpec::new("p") };
    let ids = ["a", " a ", "b"].map(|tag| world.submit(&tagged(tag), plain()));
    assert_eq!(ids.map(|id| world.state(id)), [TaskState::Running, TaskState::Queued, TaskState::Running]);
    for tag in ["", " ", "a*", "a\u{200b}", "{a}", "x".repeat(197).as_str()] {
        let refused = world.machine.submit(world.now, &tagged(tag), Admission::default()).unwrap_err();
        assert_eq!(refused.code(), "InvalidResource", "{tag:?}");
    }
}

#[test]
fn tags_count_where_they_are_declared() {
    let mut world = World::new(9);
    world.machine.set_resource(Time(0), ResourceConfig::semaphore("tag:heavy", 1)).unwrap();
    let spec = TaskSpec { tags: vec!["heavy".into(), "free".into()], ..TaskSpec::new("p") };
    let (first, second) = (world.submit(&spec, plain()), world.submit(&spec, plain()));
    assert_eq!((world.state(first), world.state(second)), (TaskState::Running, TaskState::Queued));
    let why = world.machine.explain(second).unwrap();
    assert_eq!((why.blocked_on[0].resource.as_str(), world.machine.position(second)), ("tag:heavy", Some(1)));
}

#[test]
fn case_s17_timeouts_of_an_hour_leave_nothing_behind() {
    let mut world = World::new(1);
    let spec = TaskSpec { timeout: Some(3_600 * SECOND), ..TaskSpec::new("p") };
    let mut machine = TaskMachine::new(MachineOptions { retained: 10, ..MachineOptions::default() });
    machine.set_pool(Time(0), PoolSpec::new("p", 1)).unwrap();
    world.machine = machine;
    let mut first = None;
    for _ in 0..100_000 {
        let id = world.submit(&spec, plain());
        let start = world.started()[0];
        first.get_or_insert(id);
        world.finish(start, TaskOutcome::Success);
    }
    assert_eq!((world.machine.poll_timeout(), world.machine.is_idle()), (None, true));
    assert_eq!(world.machine.status(first.unwrap()), None);
}

#[test]
fn events_tell_the_whole_life_with_the_pause_that_was_drawn() {
    let mut world = World::new(1);
    world.machine.watch(true);
    let spec = TaskSpec { retry: Retry { retries: 2, base: 4 * SECOND, cap: 60 * SECOND }, ..TaskSpec::new("p") };
    let id = world.submit(&spec, plain());
    let start = world.started()[0];
    assert!(world.machine.finish(world.now, start.id, start.fence, fails(Again::ByPolicy), 1 << 63));
    world.at(2);
    let start = world.started()[0];
    world.finish(start, TaskOutcome::Success);
    let events: Vec<What> = std::iter::from_fn(|| world.machine.poll_event())
        .inspect(|event| assert_eq!(event.id, id))
        .map(|event| event.what)
        .collect();
    let retrying = What::Retrying { attempt: 1, pause: 2 * SECOND, at_most: 4 * SECOND, message: "no luck".into() };
    let life = [What::Submitted, What::Queued, What::Started { attempt: 1, waited: 0 }, retrying, What::Queued];
    assert_eq!(events[..5], life);
    assert_eq!(events[5..], [What::Started { attempt: 2, waited: 0 }, What::Ended(TaskEnd::Completed)]);
}
