//! Declaring resources and changing limits.
use super::Gate;
use super::class::ClassIx;
use super::learn::Recent;
use super::resource::{Resource, ResourceIx};
use crate::api::{Match, Name, Resolution};
use crate::config::{Limit, ResourceConfig};
use crate::name::{Pattern, near_names};
use crate::refusal::Refusal;
use crate::time::Time;
use std::collections::BTreeSet;

/// Number of a declaration within its gate.
pub(crate) type DeclaredIx = u32;

/// What a requested name stands for.
pub(super) enum Found {
    Resource(ResourceIx),
    /// An instance of this pattern, which does not exist yet.
    Instance(DeclaredIx),
}

/// A declared name or pattern.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub name: Name,
    pattern: Option<Pattern>,
    pub limit: Limit,
    /// The last capacity above 0, against which submissions are checked while it is paused; declared at 0, any amount may wait.
    pub most: u64,
    /// Durations of what needed it.
    pub recent: Recent,
}

impl Declared {
    /// True for a name, false for a pattern.
    pub fn is_name(&self) -> bool {
        self.pattern.is_none()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
        self.most = if limit.capacity() == 0 { self.most } else { limit.capacity() };
    }
}

impl Gate {
    /// Declares a resource or a pattern; one that is declared already gets the new limit, or goes to its new shard.
    ///
    /// # Errors
    /// `InvalidResource` when the name is empty, a pattern has more than one `*`, or a burst cannot be counted exactly; `ResourceInUse` when
    /// it is to go to another shard while it is held or waited for here. Then nothing has changed.
    pub fn declare(&mut self, now: Time, config: ResourceConfig) -> Result<(), Refusal> {
        let ResourceConfig { name, limit, shard } = config;
        if name.is_empty() || name.matches('*').count() > 1 {
            return Err(Refusal::invalid(name, "expected a name, with at most one `*`"));
        }
        limit.check().map_err(|why| Refusal::invalid(name.clone(), why))?;
        if shard != self.options.shard {
            if self.declared_by_name.contains(name.as_str()) {
                self.remove(now, &name)?;
            }
            self.elsewhere.insert(name, shard);
            return Ok(());
        }
        self.elsewhere.remove(&name);
        if self.declared_by_name.contains(name.as_str()) {
            return self.set_limit(now, &name, limit);
        }
        self.advance(now);
        let (pattern, name) = (Pattern::parse(&name), Name::from(name));
        let is_pattern = pattern.is_some();
        let declared = Declared { name: name.clone(), pattern, limit, most: u64::MAX, recent: Recent::default() };
        let declared = self.declared.insert(declared);
        self.declared[declared].set_limit(limit);
        self.declared_by_name.insert(name.clone(), declared);
        if is_pattern {
            self.patterns.insert(name.clone(), declared);
            self.take_instances_over(declared);
            return self.set_limit(now, &name, limit);
        }
        match self.by_name.get(&*name) {
            // A name of its own wins over the pattern it was an instance of.
            Some(&resource) => {
                self.resources[resource].declared = declared;
                return self.set_limit(now, &name, limit);
            }
            None => _ = self.add_resource(name, declared, limit),
        }
        self.pump();
        Ok(())
    }

    /// Changes the limit of a declared resource, or of a pattern and its instances. Raising wakes what may start now, in this step;
    /// lowering below what is in use takes nothing back.
    ///
    /// # Errors
    /// `UnknownResource` when nothing is declared under exactly this name, `InvalidResource` for a burst that cannot be counted exactly.
    pub fn set_limit(&mut self, now: Time, name: &str, limit: Limit) -> Result<(), Refusal> {
        limit.check().map_err(|why| Refusal::invalid(name, why))?;
        let declared = *self.declared_by_name.get(name).ok_or_else(|| self.unknown(name))?;
        self.advance(now);
        // What is full and idle by now is as good as gone: it takes no balance over to the new limit.
        self.reap_idle();
        self.declared[declared].set_limit(limit);
        for resource in self.instances(declared) {
            let is_other_kind = self.resources[resource].set_limit(limit, self.now);
            self.touch(resource);
            for class in self.classes_on(resource) {
                if is_other_kind {
                    let key = std::sync::Arc::clone(&self.classes[class].key);
                    let (held, takes) = self.held_by(&key);
                    (self.classes[class].held, self.classes[class].takes) = (held, takes);
                }
                self.refresh(class);
            }
        }
        self.pump();
        self.refuse_circles();
        Ok(())
    }

    /// The resources that go by a declaration.
    pub(super) fn instances(&self, declared: DeclaredIx) -> Vec<ResourceIx> {
        let Declared { name, pattern, .. } = &self.declared[declared];
        if pattern.is_none() {
            return self.by_name.get(name).copied().into_iter().collect();
        }
        let mine = self.resources.iter().filter(|(_, resource)| resource.declared == declared);
        mine.map(|(at, _)| at).collect()
    }

    /// Instances of other patterns that a new one suits better go by it from now on.
    fn take_instances_over(&mut self, pattern: DeclaredIx) {
        let better = |(at, resource): (ResourceIx, &Resource)| {
            let (now, new) =
                (self.match_of(resource.declared, &resource.name)?, self.match_of(pattern, &resource.name)?);
            (new > now).then_some(at)
        };
        let mine: Vec<ResourceIx> = self.resources.iter().filter_map(better).collect();
        for at in mine {
            self.resources[at].declared = pattern;
        }
    }

    /// Takes a declaration away; a pattern takes its idle instances with it.
    ///
    /// # Errors
    /// `UnknownResource` when nothing is declared under exactly this name, `ResourceInUse` while it is held or waited for.
    pub fn remove(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        if self.elsewhere.remove(name).is_some() {
            return Ok(());
        }
        self.advance(now);
        self.pump();
        self.check_removal(name)?;
        let declared = *self.declared_by_name.get(name).ok_or_else(|| self.unknown(name))?;
        let instances = self.instances(declared);
        for at in &instances {
            self.remove_kept(*at);
        }
        // Nothing of this step refers to them any more before they go.
        self.settle_touched();
        if !self.declared[declared].is_name() {
            let gone: BTreeSet<ResourceIx> = instances.iter().copied().collect();
            self.idle.retain(|(_, idle)| !gone.contains(idle));
        }
        for at in instances {
            self.remove_resource(at);
        }
        self.declared.remove(declared);
        self.declared_by_name.remove(name);
        self.patterns.remove(name);
        Ok(())
    }

    /// Would [`Gate::remove`] be refused as things are?
    ///
    /// # Errors
    /// The same.
    pub fn check_removal(&self, name: &str) -> Result<(), Refusal> {
        if self.elsewhere.contains_key(name) {
            return Ok(());
        }
        let declared = *self.declared_by_name.get(name).ok_or_else(|| self.unknown(name))?;
        let instances = self.instances(declared);
        let using = |at: &ResourceIx| self.resources[*at].holders.len() as u64 + u64::from(self.resources[*at].users);
        let holders: u64 = instances.iter().map(using).sum();
        let waiters: u64 = instances.iter().map(|at| self.waiters(*at)).sum();
        match holders + waiters {
            0 => Ok(()),
            _ => Err(Refusal::ResourceInUse { name: name.into(), holders, waiters }),
        }
    }

    fn remove_resource(&mut self, at: ResourceIx) {
        if let Some(gone) = self.resources.remove(at) {
            self.by_name.remove(&*gone.name);
        }
    }

    /// Which declaration a name goes by, and why.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceOnOtherShard`.
    pub fn resolve(&self, name: &str) -> Result<Resolution, Refusal> {
        let winner = match self.find(name)? {
            Found::Resource(at) => self.resources[at].declared,
            Found::Instance(pattern) => pattern,
        };
        let mut losers: Vec<(String, Match)> = self
            .patterns
            .values()
            .filter(|declared| **declared != winner)
            .filter_map(|declared| Some((self.declared[*declared].name.to_string(), self.match_of(*declared, name)?)))
            .collect();
        losers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
        let Declared { name: declared_as, limit, .. } = &self.declared[winner];
        let why = self.match_of(winner, name).unwrap_or(Match::Exact);
        Ok(Resolution { name: name.into(), declared_as: declared_as.to_string(), limit: *limit, why, losers })
    }

    fn match_of(&self, pattern: DeclaredIx, name: &str) -> Option<Match> {
        let pattern = self.declared[pattern].pattern.as_ref().filter(|pattern| pattern.matches(name))?;
        let (prefix, suffix) = pattern.weight();
        Some(Match::Pattern { prefix, suffix })
    }

    /// True when the name is declared, or matches a pattern.
    #[must_use]
    pub fn is_declared(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// The most that a new claim may ask for of a declared name or pattern: its last capacity above 0; `u64::MAX` if it never had one.
    #[must_use]
    pub fn most(&self, name: &str) -> Option<u64> {
        self.declared_by_name.get(name).map(|at| self.declared[*at].most)
    }

    /// A name that is paused had this capacity before the restart.
    pub fn restore_most(&mut self, name: &str, most: u64) {
        if let Some(at) = self.declared_by_name.get(name)
            && self.declared[*at].limit.capacity() == 0
        {
            self.declared[*at].most = most;
        }
    }

    /// Exact name first, then the longest prefix, then the longest suffix.
    pub(super) fn find(&self, name: &str) -> Result<Found, Refusal> {
        if let Some(&resource) = self.by_name.get(name) {
            return Ok(Found::Resource(resource));
        }
        if let Some(shard) = self.elsewhere.get(name) {
            return Err(Refusal::ResourceOnOtherShard { name: name.into(), shard: shard.clone() });
        }
        let matching = self.patterns.values().filter_map(|at| Some((self.match_of(*at, name)?, *at)));
        let best = matching.max_by_key(|(how, _)| *how);
        best.map(|(_, at)| Found::Instance(at)).ok_or_else(|| self.unknown(name))
    }

    pub(super) fn unknown(&self, name: &str) -> Refusal {
        let names = self.declared.iter().map(|(_, declared)| &*declared.name);
        Refusal::UnknownResource { name: name.into(), near: near_names(name, names) }
    }

    pub(super) fn add_resource(&mut self, name: Name, declared: DeclaredIx, limit: Limit) -> ResourceIx {
        let resource = self.resources.insert(Resource::new(name.clone(), declared, limit, self.now));
        self.by_name.insert(name, resource);
        resource
    }

    pub(super) fn classes_on(&self, resource: ResourceIx) -> Vec<ClassIx> {
        self.resources[resource].line.iter().flat_map(|line| line.members()).collect()
    }
}
