//! Totals that change while work runs.
use super::settle::GATE;
use super::{DEFAULT_POOL, Orchestrator, SLOTS_SETTING};
use crate::records::Fact;
use mirab_core::{ClaimId, Limit, Refusal, ResourceConfig, ResourceView, Time, check_declared};
use std::sync::Arc;

impl Orchestrator {
    /// Sets how many runs may execute at once; gives what was set, which is at most `max_slots`. Stored.
    pub fn set_slots(&mut self, now: Time, slots: u64) -> u64 {
        let now = self.advance(now);
        let slots = slots.min(self.declared.options.max_slots);
        if self.put_semaphore(now, DEFAULT_POOL, slots).is_ok() {
            self.fact(Fact::Setting(SLOTS_SETTING.into(), slots.to_string()));
            if self.declared.options.slots_are_fixed {
                // The setting counts again once no flag outranks it; until this host ends, what was set last does.
                Arc::make_mut(&mut self.declared).options.slots = slots;
            }
        }
        self.settle(now);
        slots
    }

    /// Slots of the pool now.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.gate.resource(DEFAULT_POOL).map_or(0, |pool| pool.limit.capacity())
    }

    /// Declares a resource or a pattern while work runs, in memory.
    ///
    /// # Errors
    /// `InvalidResource`.
    pub fn declare(&mut self, now: Time, resource: ResourceConfig) -> Result<(), Refusal> {
        let now = self.advance(now);
        check_declared(&resource.name)?;
        self.change_declared(now, &resource.name, |this| this.gate.declare(now, resource.clone()))?;
        self.undeclared.forget(&resource.name);
        self.tell_limit(&resource.name);
        self.tell_unsatisfiable(now, &resource.name, resource.limit);
        Arc::make_mut(&mut self.declared).options.resources.insert(resource.name.clone(), resource);
        self.settle(now);
        Ok(())
    }

    /// Changes the limit of a declared resource, in memory: where limits are kept is for the host to decide.
    ///
    /// # Errors
    /// `UnknownResource` or `InvalidResource`.
    pub fn set_limit(&mut self, now: Time, name: &str, limit: Limit) -> Result<(), Refusal> {
        let now = self.advance(now);
        let name = check_declared(name)?;
        self.check_is_declared(&name)?;
        self.change_declared(now, &name, |this| this.gate.set_limit(now, &name, limit))?;
        self.tell_limit(&name);
        self.tell_unsatisfiable(now, &name, limit);
        if let Some(declared) = Arc::make_mut(&mut self.declared).options.resources.get_mut(&name) {
            declared.limit = limit;
        }
        self.settle(now);
        Ok(())
    }

    /// Takes the declaration of a resource or a pattern away, in memory.
    ///
    /// # Errors
    /// `UnknownResource`, or `ResourceInUse` while it is held or waited for.
    pub fn remove_resource(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        let now = self.advance(now);
        let name = check_declared(name)?;
        self.check_is_declared(&name)?;
        self.change_declared(now, &name, |this| this.gate.remove(now, &name))?;
        self.forget_declared(name.clone());
        Arc::make_mut(&mut self.declared).options.resources.remove(&name);
        self.settle(now);
        Ok(())
    }

    /// A total was lowered, and claims that wait need more than that: they stay in line, which is an event of the first of them for
    /// each resource. Must be called while the limit of before is still the declared one.
    fn tell_unsatisfiable(&mut self, now: Time, declared: &str, limit: Limit) {
        let known = self.declared.options.resources.get(declared);
        let is_lowered =
            known.is_none_or(|known| known.limit.capacity() == 0 || limit.capacity() < known.limit.capacity());
        if !is_lowered || limit.capacity() == 0 {
            return; // Who waits for what is paused waits for its return.
        }
        let mut resources = self.gate.resources_of(declared);
        resources.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for resource in resources.iter().filter(|resource| resource.waiters > 0) {
            self.tell_too_much(now, resource);
        }
    }

    fn tell_too_much(&mut self, now: Time, resource: &ResourceView) {
        let capacity = resource.limit.capacity();
        let mut waiters = self.gate.first_waiters(&resource.name, usize::MAX);
        waiters.retain(|id| self.need_of(*id, &resource.name) > capacity);
        let Some(&first) = waiters.first() else { return };
        let (need, all) = (self.need_of(first, &resource.name), waiters.len());
        let mut reason = format!("needs {need} of `{}`, whose total was lowered to {capacity}", resource.name);
        if all > 1 {
            reason += &format!(": too little for {all} that wait");
        }
        let (run, task) = self.tasks.get(&first).map_or((first, None), |task| (task.record.run, Some(first)));
        self.event(now, run, task, "resource.unsatisfiable", None, reason, GATE);
    }

    /// Units that a claim asked for.
    fn need_of(&self, id: ClaimId, resource: &str) -> u64 {
        let needs = self.run(id).map(|run| &run.needs).or_else(|| Some(&self.task(id)?.needs));
        needs.into_iter().flatten().find(|(name, _)| name == resource).map_or(0, |(_, units)| *units)
    }

    /// Would [`Orchestrator::remove_resource`] be refused as things are?
    ///
    /// # Errors
    /// The same.
    pub fn check_removal(&self, name: &str) -> Result<(), Refusal> {
        let name = check_declared(name)?;
        self.check_is_declared(&name)?;
        self.gate.check_removal(&name)
    }
}
