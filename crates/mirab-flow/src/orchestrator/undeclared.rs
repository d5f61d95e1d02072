//! Names that stored work holds or waits for, but that nothing declares since the restart: the work is kept, new work is refused, and the
//! name goes once nobody needs it any more.
use super::Orchestrator;
use mirab_core::{ClaimId, Refusal, Time, is_reserved, near_names};
use std::collections::BTreeSet;

/// Known to the gate as paused semaphores.
#[derive(Debug, Default)]
pub(super) struct Undeclared {
    names: BTreeSet<String>,
    /// Those whose work has changed in this step: it may have been the last.
    changed: BTreeSet<String>,
}

impl Undeclared {
    /// The product's own names come and go with their flows.
    pub fn are<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.names = names.filter(|name| !is_reserved(name)).map(str::to_owned).collect();
    }

    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub fn forget(&mut self, name: &str) {
        self.names.remove(name);
    }

    /// Work that needs this is not what it was.
    pub fn note(&mut self, needs: &[(String, u64)]) {
        if !self.names.is_empty() {
            self.changed.extend(needs.iter().map(|(name, _)| name).filter(|name| self.names.contains(*name)).cloned());
        }
    }
}

impl Orchestrator {
    /// New work may not ask for them, unless the body that calls it holds the name.
    pub(super) fn refuse_undeclared(&self, needs: &[(String, u64)], body: Option<ClaimId>) -> Result<(), Refusal> {
        let names = needs.iter().map(|(name, _)| name);
        names.filter(|name| !self.is_held_around(body, name)).try_for_each(|name| self.check_is_declared(name))
    }

    /// As if the gate did not know it.
    pub(super) fn check_is_declared(&self, name: &str) -> Result<(), Refusal> {
        if !self.undeclared.contains(name) {
            return Ok(());
        }
        let declared = self.declared.options.resources.keys().map(String::as_str);
        Err(Refusal::UnknownResource { name: name.into(), near: near_names(name, declared) })
    }

    fn is_held_around(&self, body: Option<ClaimId>, name: &str) -> bool {
        let mut at = body;
        while let Some(lease) = at.and_then(|id| self.leases.get(&id)) {
            let covered = lease.covered.iter().map(|(of, ..)| of);
            if lease.takes.iter().map(|(of, _)| of).chain(covered).any(|of| of == name) {
                return true;
            }
            at = lease.parent;
        }
        false
    }

    /// Takes those out of the gate that nobody holds or waits for any more, nor will: an attempt that is due later has its place.
    pub(super) fn drop_unused_undeclared(&mut self, now: Time) {
        for name in std::mem::take(&mut self.undeclared.changed) {
            if self.undeclared.contains(&name) && self.gate.check_removal(&name).is_ok() && !self.is_needed(&name) {
                // It is not in use: checked just now.
                let _ = self.gate.remove(now, &name);
                self.undeclared.forget(&name);
                self.forget_declared(name);
            }
        }
    }

    fn is_needed(&self, name: &str) -> bool {
        let by_run = self.runs.values().map(|run| &run.record).filter(|run| run.place.is_some()).map(|run| &run.needs);
        let live = self.tasks.values().filter(|task| !task.state().is_terminal());
        let needs = by_run.chain(live.map(|task| &task.record.needs));
        needs.flatten().any(|(of, _)| of == name)
    }
}
