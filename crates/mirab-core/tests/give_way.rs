//! A task that only a promise holds back starts when the promised claim waits for that very run.
use mirab_core::{ClaimId, Ended, Gate, ResourceConfig, Submission, Time};

fn submit(gate: &mut Gate, id: u64, needs: &[(&str, u64)], priority: i32, parent: Option<u64>) {
    let parent = parent.map(ClaimId);
    let claim = Submission { id: ClaimId(id), kind: "work", needs, priority, parent, place: None };
    gate.submit(Time(0), claim).expect("known names within capacity");
}

#[test]
fn a_task_that_was_short_first_is_given_way_once_it_fits() {
    let mut gate = Gate::default();
    gate.declare(Time(0), ResourceConfig::semaphore("db", 1)).unwrap();
    gate.declare(Time(0), ResourceConfig::semaphore("x", 2)).unwrap();
    submit(&mut gate, 1, &[("db", 1)], 0, None);
    submit(&mut gate, 2, &[("x", 1)], 0, None);
    submit(&mut gate, 3, &[("x", 1)], 0, None);
    let starts: Vec<_> = std::iter::from_fn(|| gate.poll_start()).collect();
    submit(&mut gate, 4, &[("x", 1)], 0, Some(1));
    submit(&mut gate, 5, &[("db", 1), ("x", 2)], 10, None);
    gate.release(Time(1), ClaimId(2), starts[1].fence, Ended::ByItself);
    assert_eq!(gate.poll_start().map(|start| start.id), Some(ClaimId(4)));
}
