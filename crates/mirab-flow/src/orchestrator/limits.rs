//! Totals that change while work runs.
use super::{DEFAULT_POOL, Orchestrator, SLOTS_SETTING};
use crate::records::Fact;
use mirab_core::{Limit, Refusal, ResourceConfig, Time, check_declared};

impl Orchestrator {
    /// Sets how many runs may execute at once; gives what was set, which is at most `max_slots`. Stored.
    pub fn set_slots(&mut self, now: Time, slots: u64) -> u64 {
        let now = self.advance(now);
        let slots = slots.min(self.declared.options.max_slots);
        if self.put_semaphore(now, DEFAULT_POOL, slots).is_ok() {
            self.fact(Fact::Setting(SLOTS_SETTING.into(), slots.to_string()));
            if self.declared.options.slots_are_fixed {
                // The setting counts again once no flag outranks it; until this host ends, what was set last does.
                self.declared.options.slots = slots;
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
        self.gate.declare(now, resource.clone())?;
        self.tell_limit(&resource.name);
        self.declared.options.resources.retain(|known| known.name != resource.name);
        self.declared.options.resources.push(resource);
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
        self.gate.set_limit(now, &name, limit)?;
        self.tell_limit(&name);
        if let Some(declared) = self.declared.options.resources.iter_mut().find(|declared| declared.name == name) {
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
        self.gate.remove(now, &name)?;
        self.forget_total(&name);
        self.declared.options.resources.retain(|known| known.name != name);
        self.settle(now);
        Ok(())
    }

    /// Would [`Orchestrator::remove_resource`] be refused as things are?
    ///
    /// # Errors
    /// The same.
    pub fn check_removal(&self, name: &str) -> Result<(), Refusal> {
        self.gate.check_removal(&check_declared(name)?)
    }
}
