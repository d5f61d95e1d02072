//! Declaring resources and changing limits.
use super::resource::{Resource, ResourceIx, Store};
use super::{ClassIx, Gate};
use crate::api::{Match, Resolution};
use crate::bucket::BucketState;
use crate::config::{Limit, ResourceConfig};
use crate::ids::{ClaimId, Fence};
use crate::name::{Pattern, near_names};
use crate::refusal::Refusal;
use crate::time::Time;

/// What a requested name stands for.
pub(super) enum Found<'a> {
    Resource(ResourceIx),
    /// An instance of this pattern, which does not exist yet.
    Instance(&'a str),
}

/// A declared pattern.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pattern: Pattern,
    pub limit: Limit,
    /// The last capacity above 0, against which submissions are checked while it is paused.
    pub most: u64,
}

impl Gate {
    /// Declares a resource or a pattern; one that is declared already gets the new limit.
    ///
    /// # Errors
    /// `InvalidResource` when the name is empty or a pattern has more than one `*`.
    pub fn declare(&mut self, now: Time, config: ResourceConfig) -> Result<(), Refusal> {
        let ResourceConfig { name, limit, shard } = config;
        if name.is_empty() || name.matches('*').count() > 1 {
            return Err(Refusal::invalid(name, "expected a name, with at most one `*`"));
        }
        if shard != self.options.shard {
            self.elsewhere.insert(name, shard);
            return Ok(());
        }
        if let Some(pattern) = Pattern::parse(&name) {
            self.patterns.entry(name.clone()).or_insert(Declared { pattern, limit, most: u64::MAX });
            return self.set_limit(now, &name, limit);
        }
        if let Some(&resource) = self.by_name.get(&name) {
            // A name of its own wins over the pattern it was an instance of.
            self.resources[resource].pattern = None;
            return self.set_limit(now, &name, limit);
        }
        self.advance(now);
        self.add_resource(name, None, limit);
        Ok(())
    }

    /// Changes the limit of a declared resource, or of a pattern and its instances. Raising wakes what may start now, in this step;
    /// lowering below what is in use takes nothing back.
    ///
    /// # Errors
    /// `UnknownResource` when nothing is declared under exactly this name.
    pub fn set_limit(&mut self, now: Time, name: &str, limit: Limit) -> Result<(), Refusal> {
        if !self.patterns.contains_key(name) && !self.by_name.contains(name) {
            return Err(self.unknown(name));
        }
        self.advance(now);
        // What is full and idle by now is as good as gone: it takes no balance over to the new limit.
        self.reap_idle();
        let changed: Vec<ResourceIx> = if let Some(declared) = self.patterns.get_mut(name) {
            declared.limit = limit;
            declared.most = if limit.capacity() == 0 { declared.most } else { limit.capacity() };
            let instances = self.resources.iter().filter(|(_, resource)| resource.pattern.as_deref() == Some(name));
            instances.map(|(at, _)| at).collect()
        } else {
            self.by_name.get(name).copied().into_iter().collect()
        };
        for resource in changed {
            self.resources[resource].set_limit(limit, self.now);
            self.touch(resource);
            for class in self.classes_on(resource) {
                self.refresh(class);
            }
        }
        self.pump();
        self.refuse_circles();
        Ok(())
    }

    /// Takes a declaration away; a pattern takes its idle instances with it.
    ///
    /// # Errors
    /// `UnknownResource` when nothing is declared under exactly this name, `ResourceInUse` while it is held or waited for.
    pub fn remove(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        if self.elsewhere.remove(name).is_some() {
            return Ok(());
        }
        if !self.patterns.contains_key(name) && self.resource(name).is_none_or(|view| view.declared_as != name) {
            return Err(self.unknown(name));
        }
        self.advance(now);
        let views =
            self.resources.iter().filter(|(_, resource)| resource.pattern.as_deref().unwrap_or(&resource.name) == name);
        let gone: Vec<ResourceIx> = views.map(|(at, _)| at).collect();
        let holders: usize = gone.iter().map(|at| self.resources[*at].holders.len()).sum();
        let waiters: u64 = gone.iter().map(|at| self.view(&self.resources[*at]).waiters).sum();
        if holders as u64 + waiters > 0 {
            return Err(Refusal::ResourceInUse { name: name.into(), holders: holders as u64, waiters });
        }
        for at in gone {
            if let Some(timer) = self.resources[at].timer.take() {
                self.timers.remove(&(timer, at));
            }
            if let Some(resource) = self.resources.remove(at) {
                self.by_name.remove(&*resource.name);
            }
        }
        self.idle.retain(|(_, at)| self.resources.contains(*at));
        self.patterns.remove(name);
        Ok(())
    }

    /// Which declaration a name goes by, and why.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceOnOtherShard`.
    pub fn resolve(&self, name: &str) -> Result<Resolution, Refusal> {
        let declared_as = match self.find(name)? {
            Found::Resource(at) => self.resources[at].pattern.clone().unwrap_or_else(|| name.to_owned()),
            Found::Instance(pattern) => pattern.to_owned(),
        };
        let matching = self.patterns.iter().filter(|(_, declared)| declared.pattern.matches(name));
        let mut all: Vec<(String, Match)> = matching
            .map(|(pattern, declared)| {
                let (prefix, suffix) = declared.pattern.weight();
                (pattern.clone(), Match::Pattern { prefix, suffix })
            })
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
        let why = if declared_as == name {
            Match::Exact
        } else {
            all.iter().find(|(at, _)| *at == declared_as).map_or(Match::Exact, |(_, why)| *why)
        };
        all.retain(|(pattern, _)| *pattern != declared_as);
        let limit = self.limit_of(&declared_as, name);
        Ok(Resolution { name: name.into(), declared_as, limit, why, losers: all })
    }

    fn limit_of(&self, declared_as: &str, name: &str) -> Limit {
        match self.patterns.get(declared_as) {
            Some(declared) => declared.limit,
            None => self.by_name.get(name).map_or(Limit::Semaphore { permits: 0 }, |at| self.resources[*at].limit()),
        }
    }

    /// Corrects what a lease was charged for tokens of a bucket, once the true cost is known: the difference is given back, up to the
    /// burst, or owed, down to minus one burst. Gives the bucket's state, to be stored with the lease's tokens.
    ///
    /// # Errors
    /// `InvalidClaim` when there is no such lease, `InvalidResource` when it took no tokens of that name.
    pub fn settle(
        &mut self,
        now: Time,
        id: ClaimId,
        fence: Fence,
        name: &str,
        actual: u64,
    ) -> Result<BucketState, Refusal> {
        if self.lease(id) != Some(fence) {
            return Err(Refusal::InvalidClaim { why: format!("claim {} holds no lease with fence {}", id.0, fence.0) });
        }
        let none =
            || Refusal::invalid(name, "this work took no tokens of it, expected a token bucket that it asked for");
        let at = *self.by_name.get(name).ok_or_else(none)?;
        let lease = self.leases.get_mut(&id).and_then(|lease| lease.tokens.iter_mut().find(|(of, _)| &**of == name));
        let (_, charged) = lease.ok_or_else(none)?;
        let Store::Bucket(bucket) = &mut self.resources[at].store else { return Err(none()) };
        let now = self.now.max(now);
        bucket.settle(*charged, actual, now);
        *charged = actual;
        let state = bucket.state(now);
        self.advance(now);
        self.touch(at);
        self.pump();
        Ok(state)
    }

    /// The far side asked for a pause: nothing that needs this bucket starts before `duration` nanoseconds have passed. Its capacity
    /// is unchanged, and a longer pause that was asked for before stays. Gives the state, to be stored.
    ///
    /// # Errors
    /// `UnknownResource`, `ResourceOnOtherShard`, or `InvalidResource` when it is no token bucket.
    pub fn cooldown(&mut self, now: Time, name: &str, duration: u64) -> Result<BucketState, Refusal> {
        let limit = self.resolve(name)?.limit;
        if !matches!(limit, Limit::TokenBucket { .. }) {
            return Err(Refusal::invalid(name, "only a token bucket can cool down, this is a semaphore"));
        }
        self.advance(now);
        let at = self.number(name);
        let (now, mut state) = (self.now, None);
        if let Store::Bucket(bucket) = &mut self.resources[at].store {
            bucket.cool(now.plus(duration));
            state = Some(bucket.state(now));
        }
        self.touch(at);
        self.pump();
        state.ok_or_else(|| self.unknown(name))
    }

    /// True when the name is declared, or matches a pattern.
    #[must_use]
    pub fn is_declared(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Exact name first, then the longest prefix, then the longest suffix.
    pub(super) fn find(&self, name: &str) -> Result<Found<'_>, Refusal> {
        if let Some(&resource) = self.by_name.get(name) {
            return Ok(Found::Resource(resource));
        }
        if let Some(shard) = self.elsewhere.get(name) {
            return Err(Refusal::ResourceOnOtherShard { name: name.into(), shard: shard.clone() });
        }
        self.patterns
            .iter()
            .filter(|(_, declared)| declared.pattern.matches(name))
            .max_by_key(|(_, declared)| declared.pattern.weight())
            .map(|(name, _)| Found::Instance(name))
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Refusal {
        let names = self.resources.iter().filter(|(_, r)| r.pattern.is_none()).map(|(_, r)| &*r.name);
        Refusal::UnknownResource {
            name: name.into(),
            near: near_names(name, names.chain(self.patterns.keys().map(String::as_str))),
        }
    }

    pub(super) fn add_resource(&mut self, name: String, pattern: Option<String>, limit: Limit) -> ResourceIx {
        let resource = self.resources.insert(Resource::new(name.as_str().into(), pattern, limit, self.now));
        self.by_name.insert(name, resource);
        resource
    }

    pub(super) fn classes_on(&self, resource: ResourceIx) -> Vec<ClassIx> {
        self.resources[resource].shelves.iter().flat_map(|shelf| shelf.members.iter().copied()).collect()
    }

    /// Sets the timer of a bucket to when its tokens next reach what somebody waits for.
    pub(super) fn rearm(&mut self, resource: ResourceIx) {
        let next = self.resources[resource].next_tokens(self.now);
        let timer = &mut self.resources[resource].timer;
        if *timer != next {
            if let Some(old) = timer.take() {
                self.timers.remove(&(old, resource));
            }
            *timer = next;
            self.timers.extend(next.map(|at| (at, resource)));
        }
    }

    /// Removes the instances whose instant has come.
    pub(super) fn reap_idle(&mut self) {
        while let Some(&(at, resource)) = self.idle.first()
            && at <= self.now
        {
            self.idle.pop_first();
            self.reap(resource);
        }
    }

    /// Removes an instance of a pattern that nobody uses: a bucket once it is full again, for then it is as good as a new one.
    pub(super) fn reap(&mut self, resource: ResourceIx) {
        if !self.resources.contains(resource) || !self.resources[resource].is_idle() {
            return;
        }
        if let Store::Bucket(bucket) = &self.resources[resource].store
            && !bucket.is_full(self.now)
        {
            let full_at = bucket.time_of(bucket.burst(), self.now).unwrap_or(self.now);
            self.idle.insert((full_at, resource));
            return;
        }
        if let Some(gone) = self.resources.remove(resource) {
            self.by_name.remove(&*gone.name);
        }
    }
}
