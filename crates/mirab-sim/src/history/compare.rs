//! Are model and subject the same in all that can be asked of them?
use crate::model::Model;
use crate::subject::Subject;
use mirab_core::{Blocked, Start};
use std::fmt::Debug;

/// Order of names within a start is nobody's concern.
pub(super) fn sorted(mut start: Start) -> Start {
    let mut takes = start.takes.to_vec();
    takes.sort();
    start.takes = takes.into();
    start.tokens.sort();
    start.covered.sort();
    start.passed.sort();
    start.buckets.sort_by(|a, b| a.0.cmp(&b.0));
    start
}

pub(super) fn same<T: PartialEq + Debug>(what: &str, model: &T, subject: &T) -> Result<(), String> {
    if model == subject { Ok(()) } else { Err(format!("{what}: the model says {model:?}, the subject {subject:?}")) }
}

/// What both must tell alike of one reason to wait, also after a restart.
fn essence(blocked: &Blocked) -> (String, u64, i64, u64, u64) {
    (blocked.resource.clone(), blocked.need, blocked.free, blocked.capacity, blocked.holders_total)
}

fn essences(blocked: &[Blocked]) -> Vec<(String, u64, i64, u64, u64)> {
    let mut all: Vec<_> = blocked.iter().map(essence).collect();
    all.sort();
    all
}

/// Does a gate that was built again from stored facts show what the one shows that lived on? What the last starts were is not stored.
pub(super) fn compare_rebuilt<S: Subject>(lived: &S, rebuilt: &S) -> Result<(), String> {
    let what = |gate: &S| {
        let in_use = gate.resources().into_iter().filter(|view| view.used > 0 || view.waiters > 0);
        let resources: Vec<_> = in_use.map(|view| (gate.holders(&view.name), view)).collect();
        let line = gate.line(usize::MAX);
        let reasons: Vec<_> =
            line.iter().filter_map(|id| gate.explain(*id)).map(|e| (essences(&e.blocked_on), e.promise)).collect();
        (line, resources, reasons, gate.poll_timeout().map(|(at, _)| at))
    };
    let (lived, rebuilt) = (what(lived), what(rebuilt));
    if lived == rebuilt { Ok(()) } else { Err(format!("invariant 10: {lived:?} became {rebuilt:?}")) }
}

pub(super) fn compare<S: Subject>(model: &Model, subject: &S) -> Result<(), String> {
    same("line", &model.line(usize::MAX), &subject.line(usize::MAX))?;
    same("waiting", &model.waiting(), &subject.waiting())?;
    // The first fence is 1, whether or not that is written down yet.
    let numbers = |(seq, fence): (u64, u64)| (seq, fence.max(1));
    same("next numbers", &numbers(model.next_numbers()), &numbers(subject.next_numbers()))?;
    same("timeout", &model.poll_timeout().map(|(at, _)| at), &subject.poll_timeout().map(|(at, _)| at))?;
    let (ours, theirs) = (model.counters(), subject.counters());
    same("starts", &ours.starts, &theirs.starts)?;
    same("double releases", &ours.double_releases, &theirs.double_releases)?;
    same("priority inversions", &ours.priority_inversions, &theirs.priority_inversions)?;
    compare_resources(model, subject)?;
    compare_explanations(model, subject)
}

fn compare_resources<S: Subject>(model: &Model, subject: &S) -> Result<(), String> {
    for view in model.resources() {
        let name = view.name.clone();
        same(&format!("resource {name}"), &Some(view), &subject.resource(&name))?;
        let (mut ours, mut theirs) = (model.holders(&name), subject.holders(&name));
        ours.sort();
        theirs.sort();
        same(&format!("holders of {name}"), &ours, &theirs)?;
        let waiters = (model.first_waiters(&name, 3), subject.first_waiters(&name, 3));
        same(&format!("first waiters of {name}"), &waiters.0, &waiters.1)?;
    }
    Ok(())
}

fn compare_explanations<S: Subject>(model: &Model, subject: &S) -> Result<(), String> {
    for id in model.line(usize::MAX) {
        let (Some(ours), Some(theirs)) = (model.explain(id), subject.explain(id)) else {
            return Err(format!("{id:?} waits, and is not explained"));
        };
        same(&format!("why {id:?} waits"), &essences(&ours.blocked_on), &essences(&theirs.blocked_on))?;
        same(&format!("{id:?} is unsatisfiable"), &ours.unsatisfiable, &theirs.unsatisfiable)?;
        same(&format!("the promise of {id:?}"), &ours.promise, &theirs.promise)?;
        let instants = |blocked: &[Blocked]| {
            let all = blocked
                .iter()
                .map(|b| (b.resource.clone(), b.tokens_at, b.ahead, b.behind.clone(), b.passed_by.clone()));
            let mut all: Vec<_> = all.collect();
            all.sort();
            all
        };
        same(
            &format!("tokens for {id:?}, who is ahead, whom it must not pass, and who passed it"),
            &instants(&ours.blocked_on),
            &instants(&theirs.blocked_on),
        )?;
    }
    Ok(())
}
