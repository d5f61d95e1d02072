//! Who listens, apart from `wakers`, which the model checker compiles as it stands.
use crate::wakers::{Topic, Wakers};

#[test]
fn a_topic_is_forgotten_with_its_last_listener_whatever_futures_are_left() {
    let wakers = Wakers::default();
    let (first, second) = (wakers.listen(Topic::Task(1)), wakers.listen(Topic::Task(1)));
    let future = first.armed();
    drop(first);
    assert_eq!(wakers.topics(), 1);
    drop(second);
    assert_eq!(wakers.topics(), 0);
    drop(future);
}
