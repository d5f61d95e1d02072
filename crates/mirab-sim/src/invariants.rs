//! What must hold after every step (`docs/internals/gate.md` §12), each as a pure function with its number.
//!
//! They look at what the gate shows ([`View`]) and at what its host has stored ([`Host`]); where a rule needs to know who could start,
//! at the model. Number 5 is a matter of the host, 11 one of the benchmark; 13 is shown by playing a seed twice.
use crate::history::{Host, HostClaim, Op};
use crate::model::Model;
use crate::subject::Subject;
use mirab_core::{ClaimId, Explanation, Limit, ResourceView, Start, Time};

/// A resource with the leases that hold units of it.
type Held = (ResourceView, Vec<(ClaimId, u64, Time)>);

/// All that a gate shows at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Each resource with who holds it.
    pub resources: Vec<Held>,
    /// The line, best rank first.
    pub line: Vec<ClaimId>,
    /// Why each of them waits.
    pub explanations: Vec<Option<Explanation>>,
}

impl View {
    /// Reads it.
    pub fn of<S: Subject>(gate: &S) -> Self {
        let line = gate.line(usize::MAX);
        let with_holders = |view: ResourceView| {
            let holders = gate.holders(&view.name);
            (view, holders)
        };
        Self {
            resources: gate.resources().into_iter().map(with_holders).collect(),
            explanations: line.iter().map(|id| gate.explain(*id)).collect(),
            line,
        }
    }

    fn held(&self) -> Vec<(&str, u64)> {
        let held = self.resources.iter().filter(|(view, _)| view.used > 0);
        held.map(|(view, _)| (view.name.as_str(), view.used)).collect()
    }

    fn used(&self, name: &str) -> u64 {
        self.resources.iter().find(|(view, _)| view.name == name).map_or(0, |(view, _)| view.used)
    }
}

/// A step with what was before and after it.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// What was done.
    pub op: &'a Op,
    /// What the gate showed before.
    pub before: &'a View,
    /// What it shows now.
    pub after: &'a View,
    /// What the host had stored before.
    pub host_before: &'a Host,
    /// What it has stored now.
    pub host: &'a Host,
    /// The model, in step with the gate.
    pub model: &'a Model,
    /// What was started, in order.
    pub starts: &'a [Start],
}

impl Step<'_> {
    /// The gate has not been called: the host's clock moved, no more.
    fn is_silent(&self) -> bool {
        matches!(self.op, Op::Sleep(_) | Op::StepBack(_))
    }

    fn edits_limits(&self) -> bool {
        matches!(self.op, Op::SetLimit(..) | Op::Restart(_, Some(_)))
    }
}

type Invariant = fn(&Step<'_>) -> Result<(), String>;

/// Every invariant with its number.
pub const INVARIANTS: [(u8, Invariant); 12] = [
    (1, used_is_the_sum_of_leases),
    (2, no_lost_wake_up),
    (3, release_is_idempotent),
    (4, what_is_over_holds_nothing),
    (6, nobody_loses_a_place),
    (7, nothing_passes_what_is_short),
    (8, tokens_stay_within_bounds),
    (8, settling_moves_tokens_and_makes_none),
    (8, starts_never_run_backwards),
    (9, what_is_shown_is_enforced),
    (10, a_restart_changes_nothing),
    (12, no_circle_survives),
];

/// Checks all.
///
/// # Errors
/// The number and the words of the first that is broken.
pub fn check(step: &Step<'_>) -> Result<(), String> {
    INVARIANTS.iter().try_for_each(|(number, holds)| holds(step).map_err(|why| format!("invariant {number}: {why}")))
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn used_is_the_sum_of_leases(step: &Step<'_>) -> Result<(), String> {
    for (view, holders) in &step.after.resources {
        let sum: u64 = holders.iter().map(|(_, units, _)| units).sum();
        let stored = step.host.used(&view.name);
        require(view.used == sum && sum == stored, || {
            format!("{}: {} in use, {sum} held, {stored} stored", view.name, view.used)
        })?;
        let Limit::Semaphore { permits } = view.limit else { continue };
        let over = view.used > permits && view.used > step.before.used(&view.name);
        require(!over, || format!("{}: {} in use of {permits}", view.name, view.used))?;
    }
    Ok(())
}

fn no_lost_wake_up(step: &Step<'_>) -> Result<(), String> {
    if step.is_silent() {
        return Ok(());
    }
    let lost = step.model.lost_wakes();
    require(lost.is_empty(), || format!("{lost:?} could start"))?;
    for (id, explanation) in step.after.line.iter().zip(&step.after.explanations) {
        let blocked = explanation.as_ref().map(|e| e.blocked_on.as_slice()).unwrap_or_default();
        require(!blocked.is_empty(), || format!("{id:?} waits for no reason"))?;
        let short = |b: &mirab_core::Blocked| b.free < i64::try_from(b.need).unwrap_or(i64::MAX);
        // Of units that an enclosing body holds, an earlier call may be the reason.
        let real = |b: &mirab_core::Blocked| short(b) || !b.behind.is_empty() || b.ahead > 0;
        require(blocked.iter().all(real), || format!("{id:?} is told a reason that is none: {blocked:?}"))?;
    }
    Ok(())
}

fn release_is_idempotent(step: &Step<'_>) -> Result<(), String> {
    let Op::Release(id) = step.op else { return Ok(()) };
    let held = step.host_before.lease(*id).is_some();
    let same = step.before.held() == step.after.held();
    require(held || same || !step.starts.is_empty(), || {
        format!("{id:?} held nothing, and its release changed something")
    })
}

fn what_is_over_holds_nothing(step: &Step<'_>) -> Result<(), String> {
    let over = |id: &ClaimId| step.host.ended.contains(id) && step.host.lease(*id).is_none();
    let holders = step.after.resources.iter().flat_map(|(_, holders)| holders.iter().map(|(id, ..)| id));
    let found = holders.chain(&step.after.line).find(|id| over(id));
    require(found.is_none(), || format!("{found:?} is over and still there"))
}

fn nobody_loses_a_place(step: &Step<'_>) -> Result<(), String> {
    let edited = |id: &ClaimId| matches!(step.op, Op::Reprioritise(moved, _) if moved == id);
    let stays = |other: &'_ View| -> Vec<ClaimId> { other.line.iter().copied().filter(|id| !edited(id)).collect() };
    let (before, after) = (stays(step.before), stays(step.after));
    let still = before.iter().filter(|id| after.contains(id));
    let known = after.iter().filter(|id| before.contains(id));
    require(still.eq(known), || format!("the line was {before:?} and is {after:?}"))
}

/// Counted again from stored facts: when something started, was a claim of higher priority short of nothing but what it took? And was one
/// passed again where it was delayed before, though nothing else kept it waiting?
fn nothing_passes_what_is_short(step: &Step<'_>) -> Result<(), String> {
    if matches!(step.op, Op::Restart(..)) {
        return Ok(());
    }
    for (index, start) in step.starts.iter().enumerate() {
        let Some(lease) = step.host.lease(start.id).filter(|l| l.claim.parent.is_none()) else { continue };
        let waits = |c: &&HostClaim| !step.starts[..index].iter().any(|s| s.id == c.id);
        let above =
            |c: &&HostClaim| step.model.ranks_above(c.priority, c.place, lease.claim.priority, lease.claim.place);
        for claim in step.host.waiting.iter().filter(above).filter(waits) {
            let Some(name) = only_short_of(step, claim, &step.starts[index..]) else { continue };
            // Of those that need it the first is protected for certain.
            let before_it = |c: &&HostClaim| step.model.ranks_above(c.priority, c.place, claim.priority, claim.place);
            let needs = |c: &HostClaim| c.needs.iter().any(|(needed, _)| *needed == name);
            if step.host_before.waiting.iter().chain(&step.host.waiting).filter(before_it).any(needs) {
                continue;
            }
            let takes = start.takes.iter().any(|(taken, _)| **taken == *name);
            if takes && lease.claim.priority < claim.priority {
                return Err(format!("{:?} passed {:?}, which waits for {name} only", start.id, claim.id));
            }
            let before = step.host_before.waiting.iter().find(|c| c.id == claim.id);
            if takes && before.is_some_and(|c| c.delayed_on.contains(&name)) {
                return Err(format!("{:?} delayed {:?} on {name} a second time", start.id, claim.id));
            }
        }
    }
    Ok(())
}

/// The only name that a claim was short of before and after something started, where that can be told from what is shown after `later`
/// starts: for one that asks for semaphores only, none of them held by a body around it.
fn only_short_of(step: &Step<'_>, claim: &HostClaim, later: &[Start]) -> Option<String> {
    let view = |name: &str| step.after.resources.iter().find(|(view, _)| view.name == name).map(|(view, _)| view);
    let plain = |name: &str, units: u64| {
        let semaphore = |v: &ResourceView| matches!(v.limit, Limit::Semaphore { permits } if permits >= units);
        !step.host.is_covered(claim.parent, name) && view(name).is_some_and(semaphore)
    };
    if !claim.needs.iter().all(|(name, units)| plain(name, *units)) {
        return None;
    }
    let taken = |name: &str| {
        later.iter().flat_map(|s| s.takes.iter()).filter(|(taken, _)| **taken == *name).map(|(_, u)| *u).sum::<u64>()
    };
    let free_then = |name: &str| view(name).map_or(0, |view| i128::from(view.free) + i128::from(taken(name)));
    let free_now = |name: &str| view(name).map_or(0, |view| i128::from(view.free));
    let (short_now, short_then): (Vec<_>, Vec<_>) = (
        claim.needs.iter().filter(|(name, units)| free_now(name) < i128::from(*units)).collect(),
        claim.needs.iter().filter(|(name, units)| free_then(name) < i128::from(*units)).collect(),
    );
    match (short_now.as_slice(), short_then.as_slice()) {
        ([now], [then]) if now.0 == then.0 => Some(now.0.clone()),
        _ => None,
    }
}

fn tokens_stay_within_bounds(step: &Step<'_>) -> Result<(), String> {
    for (name, state) in step.starts.iter().flat_map(|s| &s.buckets) {
        let Some((view, _)) = step.after.resources.iter().find(|(view, _)| view.name == **name) else { continue };
        let most = i128::from(view.limit.capacity()) * state.scale;
        require((0..=most).contains(&state.scaled), || format!("{name} has {state:?} after a start"))?;
    }
    for (view, _) in &step.after.resources {
        let Limit::TokenBucket { burst, .. } = view.limit else { continue };
        let (free, most) = (i128::from(view.free), i128::from(burst));
        require((-most..=most).contains(&free), || format!("{} has {free} tokens", view.name))?;
    }
    Ok(())
}

/// What a lease is charged changes by what left the bucket, less a part of a token. Left out once a bucket was edited, as in
/// [`a_restart_changes_nothing`], and where a start took tokens in the same step.
fn settling_moves_tokens_and_makes_none(step: &Step<'_>) -> Result<(), String> {
    let Op::Settle(id, name, _) = step.op else { return Ok(()) };
    let (Some(before), Some(after)) = (step.host_before.charged(*id, name), step.host.charged(*id, name)) else {
        return Ok(());
    };
    let (Some(was), Some(is)) = (step.host_before.bucket(name), step.host.bucket(name)) else { return Ok(()) };
    if step.host_before.tokens_differ || !step.starts.is_empty() || was.scale != is.scale {
        return Ok(());
    }
    let refilled = step.host.balance(name, was, is.at);
    let lost = refilled + i128::from(before) * is.scale - is.scaled - i128::from(after) * is.scale;
    require((0..is.scale).contains(&lost), || format!("{was:?} of {name} became {is:?}, and {before} {after} charged"))
}

fn starts_never_run_backwards(step: &Step<'_>) -> Result<(), String> {
    let latest = if matches!(step.op, Op::Restart(..)) { Time(0) } else { step.host_before.latest_start };
    let late = step.starts.iter().all(|s| s.at >= latest) && step.starts.windows(2).all(|two| two[0].at <= two[1].at);
    require(late, || format!("something started before {latest:?}"))?;
    let fences = step.host_before.leases.iter().map(|l| l.fence).chain(step.starts.iter().map(|s| s.fence));
    require(fences.is_sorted_by(|a, b| a < b), || "a fence number did not grow".into())
}

fn what_is_shown_is_enforced(step: &Step<'_>) -> Result<(), String> {
    for (view, _) in &step.after.resources {
        if let Limit::Semaphore { permits } = view.limit {
            let free = i128::from(permits) - i128::from(view.used);
            require(i128::from(view.free) == free, || {
                format!("{}: {} are free, {free} could be taken", view.name, view.free)
            })?;
        }
        let wants = |c: &&HostClaim| {
            c.needs.iter().any(|(name, _)| *name == view.name) && !step.host.is_covered(c.parent, &view.name)
        };
        let waiters = step.host.waiting.iter().filter(wants).count() as u64;
        require(view.waiters == waiters, || format!("{}: {} waiters shown, {waiters} wait", view.name, view.waiters))?;
    }
    Ok(())
}

/// Left out once a bucket was edited, for the host stores tokens with starts only, and where the host's clock had moved unseen.
fn a_restart_changes_nothing(step: &Step<'_>) -> Result<(), String> {
    let Op::Restart(0, None) = step.op else { return Ok(()) };
    if step.host_before.tokens_differ || !step.starts.is_empty() {
        return Ok(());
    }
    let line = (&step.before.line, &step.after.line);
    require(line.0 == line.1, || format!("the line was {:?} and is {:?}", line.0, line.1))?;
    let in_use = |view: &View| -> Vec<_> {
        view.resources.iter().filter(|(v, _)| v.used > 0 || v.waiters > 0).cloned().collect()
    };
    let resources = (in_use(step.before), in_use(step.after));
    require(resources.0 == resources.1, || format!("{:?} became {:?}", resources.0, resources.1))
}

fn no_circle_survives(step: &Step<'_>) -> Result<(), String> {
    let circle = step.model.circles();
    require(circle.is_empty() || !step.edits_limits() && step.is_silent(), || format!("{circle:?} wait for each other"))
}
