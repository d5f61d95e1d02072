//! What the machines must be told to go by other declarations.
use crate::config::Declarations;
use mirab_core::{Refusal, ResourceConfig, Time};
use mirab_flow::Orchestrator;

/// From what is in force to what the files say.
pub(super) struct Difference {
    gone: Vec<String>,
    set: Vec<ResourceConfig>,
}

impl Difference {
    pub fn between(known: &Declarations, declared: &Declarations) -> Self {
        // What moves to another shard goes and comes.
        let stays = |old: &ResourceConfig| declared.get(&old.name).is_some_and(|new| new.shard == old.shard);
        let gone = known.iter().map(|old| &old.config).filter(|old| !stays(old)).map(|old| old.name.clone());
        let is_new = |new: &&ResourceConfig| known.get(&new.name) != Some(*new);
        let set = declared.iter().map(|new| &new.config).filter(is_new).cloned();
        Self { gone: gone.collect(), set: set.collect() }
    }

    /// All of it, or nothing when something that is to go is still in use.
    pub fn make(self, orchestrator: &mut Orchestrator, now: Time) -> Result<(), Refusal> {
        self.gone.iter().try_for_each(|name| orchestrator.check_removal(name))?;
        self.gone.iter().try_for_each(|name| orchestrator.remove_resource(now, name))?;
        self.set.into_iter().try_for_each(|config| orchestrator.declare(now, config))
    }
}
