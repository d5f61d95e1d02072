//! Shards added up.
use mirab_flow::scheduler::{MachineSnapshot, TaskCounts};

/// Names are unique across shards, so pools and resources stand side by side.
pub(crate) fn add(mut all: MachineSnapshot, one: MachineSnapshot) -> MachineSnapshot {
    all.pools.extend(one.pools);
    all.pools.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    all.resources.extend(one.resources);
    all.resources.sort_by(|a, b| a.view.name.cmp(&b.view.name));
    all.counts = add_counts(all.counts, one.counts);
    all.priority_inversions += one.priority_inversions;
    all
}

fn add_counts(a: TaskCounts, b: TaskCounts) -> TaskCounts {
    TaskCounts {
        submitted: a.submitted + b.submitted,
        started: a.started + b.started,
        retried: a.retried + b.retried,
        completed: a.completed + b.completed,
        failed: a.failed + b.failed,
        cancelled: a.cancelled + b.cancelled,
        expired: a.expired + b.expired,
        skipped: a.skipped + b.skipped,
    }
}
