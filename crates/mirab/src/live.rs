//! Limits and pools, changed while work runs.
use crate::builder::{IntoResource, doubled, shard_index};
use crate::directory::{Directory, Listed};
use crate::error::Error;
use crate::pool::Pool;
use crate::scheduler::Scheduler;
use mirab_core::{Limit, Refusal, ResourceConfig};
use std::sync::Arc;

impl Scheduler {
    /// Declares a resource or pattern that is new.
    ///
    /// # Errors
    /// `InvalidResource`, `InvalidOption` when it is declared already or its shard is not listed, `SchedulerClosed`.
    pub fn add_resource(&self, resource: impl IntoResource) -> Result<(), Error> {
        let resource = resource.into_resource()?;
        self.inner.change(|directory| match directory.resources.contains_key(&resource.name) {
            true => Err(doubled("resource", &resource.name)),
            false => self.put(directory, resource),
        })
    }

    /// Declares a resource or pattern, or gives a declared one another limit. What that allows starts at once.
    ///
    /// # Errors
    /// `InvalidResource`, also to move it to another shard; `InvalidOption` when its shard is not listed, `SchedulerClosed`.
    pub fn set_resource(&self, resource: impl IntoResource) -> Result<(), Error> {
        let resource = resource.into_resource()?;
        self.inner.change(|directory| self.put(directory, resource))
    }

    /// Units of a semaphore in all; 0 pauses it. Lowered below what is in use, it takes nothing back.
    ///
    /// # Errors
    /// `UnknownResource`; `InvalidResource` for a token bucket; `SchedulerClosed`.
    pub fn set_permits(&self, name: &str, permits: u64) -> Result<(), Error> {
        self.inner.change(|directory| {
            let known = directory.resource(name)?;
            if let Limit::TokenBucket { .. } = known.limit {
                return Err(Refusal::invalid(name, "it is a token bucket, expected a semaphore: use set_rate").into());
            }
            let changed = ResourceConfig { limit: Limit::Semaphore { permits }, ..known.clone() };
            self.put(directory, changed)
        })
    }

    /// Rate and burst of a token bucket, which keeps its tokens as far as they fit.
    ///
    /// # Errors
    /// `UnknownResource`; `InvalidResource` for a semaphore and for what [`ResourceConfig::token_bucket`] refuses; `SchedulerClosed`.
    pub fn set_rate(&self, name: &str, rate: f64, burst: u64) -> Result<(), Error> {
        self.inner.change(|directory| {
            let known = directory.resource(name)?;
            if let Limit::Semaphore { .. } = known.limit {
                return Err(
                    Refusal::invalid(name, "it is a semaphore, expected a token bucket: use set_permits").into()
                );
            }
            let changed = ResourceConfig::token_bucket(name, rate, burst)?.in_shard(&known.shard);
            self.put(directory, changed)
        })
    }

    /// Takes a resource away.
    ///
    /// # Errors
    /// `UnknownResource`; `ResourceInUse` while it is held or waited for; `SchedulerClosed`.
    pub fn remove_resource(&self, name: &str) -> Result<(), Error> {
        self.inner.change(|directory| {
            let known = directory.resource(name)?;
            let mut shards: Vec<_> = self.inner.shards.iter().collect();
            // Its own decides.
            shards.sort_by_key(|shard| shard.name != known.shard);
            for shard in shards {
                shard.command(|state, now| Ok(state.machine.remove_resource(now, name)?))?;
            }
            directory.resources.remove(name);
            Ok(())
        })
    }

    /// Adds a pool.
    ///
    /// # Errors
    /// `InvalidResource` for a name that no pool can have, `InvalidOption` when there is one of that name or its shard is not listed,
    /// `SchedulerClosed`.
    pub fn add_pool(&self, pool: Pool) -> Result<(), Error> {
        self.inner.change(|directory| {
            let index = self.index(pool.shard_name(), "pool", &pool.spec.name)?;
            if directory.pools.contains_key(pool.spec.name.as_str()) {
                return Err(doubled("pool", &pool.spec.name));
            }
            let listed = Listed::new(pool, index);
            #[cfg(feature = "sqlite")]
            if self.inner.is_stored {
                listed.check_stored()?;
            }
            self.put_pool(directory, listed)
        })
    }

    /// So many attempts of the pool execute at once; 0 pauses it. What runs beyond that is left to end.
    ///
    /// # Errors
    /// `UnknownPool`, `SchedulerClosed`.
    pub fn set_slots(&self, pool: &str, slots: u64) -> Result<(), Error> {
        self.inner.change(|directory| {
            let mut listed = Listed::clone(directory.pool(pool)?);
            listed.spec.slots = slots;
            self.put_pool(directory, listed)
        })
    }

    /// Takes a pool away.
    ///
    /// # Errors
    /// `UnknownPool`; `ResourceInUse` while a task waits for it or runs in it; `SchedulerClosed`.
    pub fn remove_pool(&self, pool: &str) -> Result<(), Error> {
        self.inner.change(|directory| {
            let listed = directory.pool(pool)?;
            self.shard(listed.shard).command(|state, now| Ok(state.machine.remove_pool(now, &listed.name)?))?;
            let name = Arc::clone(&listed.name);
            directory.pools.remove(&name);
            Ok(())
        })
    }

    fn put(&self, directory: &mut Directory, mut resource: ResourceConfig) -> Result<(), Error> {
        resource.name = mirab_core::check_declared(&resource.name)?;
        let index = self.index(&resource.shard, "resource", &resource.name)?;
        if let Some(known) = directory.resources.get(&resource.name)
            && known.shard != resource.shard
        {
            let why = format!("it belongs to shard {:?}: remove it there first", known.shard);
            return Err(Refusal::invalid(&resource.name, why).into());
        }
        let declare = |index: usize| {
            self.shard(index).command(|state, now| Ok(state.machine.set_resource(now, resource.clone())?))
        };
        declare(index)?;
        (0..self.inner.shards.len()).filter(|other| *other != index).try_for_each(declare)?;
        directory.resources.insert(resource.name.clone(), resource);
        Ok(())
    }

    fn put_pool(&self, directory: &mut Directory, listed: Listed) -> Result<(), Error> {
        self.shard(listed.shard).command(|state, now| Ok(state.machine.set_pool(now, listed.spec.clone())?))?;
        directory.pools.insert(Arc::clone(&listed.name), Arc::new(listed));
        Ok(())
    }

    fn index(&self, shard: &str, what: &str, name: &str) -> Result<usize, Error> {
        let names: Vec<&str> = self.inner.shards.iter().map(|shard| shard.name.as_str()).collect();
        shard_index(&names, shard, what, name)
    }
}
