//! Which pools and resources there are, and in which shard.
use crate::error::Error;
use crate::pool::{Executor, Pool};
use mirab_core::{Refusal, ResourceConfig, near_names};
use mirab_flow::scheduler::{PoolSpec, Retry, TaskError as Refused, TaskSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pool and where it is.
#[derive(Clone)]
pub(crate) struct Listed {
    pub name: Arc<str>,
    pub executor: Arc<dyn Executor>,
    pub spec: PoolSpec,
    resources: Vec<(String, u64)>,
    /// Of a task that says nothing but its pool.
    plain: TaskSpec,
    pub priority: i32,
    pub shard: usize,
    #[cfg(feature = "sqlite")]
    pub coder: Option<Arc<dyn crate::store::Coder>>,
}

impl Listed {
    pub fn new(pool: Pool, shard: usize) -> Self {
        let plain = TaskSpec { resources: pool.resources.clone(), ..TaskSpec::new(&pool.spec.name) };
        Self {
            name: pool.spec.name.as_str().into(),
            executor: pool.executor,
            spec: pool.spec,
            resources: pool.resources,
            plain,
            priority: pool.priority,
            shard,
            #[cfg(feature = "sqlite")]
            coder: pool.coder,
        }
    }

    /// What a scheduler with a store asks of a pool.
    #[cfg(feature = "sqlite")]
    pub fn check_stored(&self) -> Result<(), Error> {
        let Some(coder) = &self.coder else { return Err(self.without_codec()) };
        for (what, said, is) in
            [("payloads", coder.takes(), self.executor.takes()), ("results", coder.gives(), self.executor.gives())]
        {
            if said.id != is.id {
                let (name, said, is) = (&self.name, said.name, is.name);
                return Err(Error::InvalidOption(format!(
                    "pool {name:?} is to store {what} of type {said}, and its executor's are {is}: say .stored with those"
                )));
            }
        }
        Ok(())
    }

    /// The spec of a task that [`Listed::complete`] has seen.
    pub fn spec<'a>(&'a self, spec: &'a Option<TaskSpec>) -> &'a TaskSpec {
        spec.as_ref().unwrap_or(&self.plain)
    }

    /// A task's spec with what the pool says for its tasks; `None` for one that says nothing else.
    pub fn complete(&self, mut spec: TaskSpec) -> Option<TaskSpec> {
        let is_plain = spec.resources.is_empty() && spec.tags.is_empty() && spec.kind.is_empty();
        if is_plain && spec.timeout.is_none() && spec.retry == Retry::default() {
            return None;
        }
        if spec.pool.is_empty() {
            spec.pool.push_str(&self.name);
        }
        let own = spec.resources.len();
        for (name, units) in &self.resources {
            if !spec.resources[..own].iter().any(|(named, _)| named == name) {
                spec.resources.push((name.clone(), *units));
            }
        }
        Some(spec)
    }
}

#[derive(Default)]
pub(crate) struct Directory {
    pub pools: BTreeMap<Arc<str>, Arc<Listed>>,
    pub resources: BTreeMap<String, ResourceConfig>,
}

impl Directory {
    /// The pool of that name; of an empty one the only pool there is.
    pub fn pool(&self, name: &str) -> Result<&Arc<Listed>, Error> {
        if let Some(pool) = self.pools.get(name) {
            return Ok(pool);
        }
        let mut all = self.pools.values();
        match (name.is_empty(), all.next(), all.next()) {
            (true, Some(only), None) => Ok(only),
            _ => Err(self.unknown_pool(name)),
        }
    }

    fn unknown_pool(&self, name: &str) -> Error {
        let names = || self.pools.keys().map(|pool| &**pool);
        let near = near_names(name, names());
        let known = if near.is_empty() { names().take(10).map(str::to_owned).collect() } else { near };
        Refused::UnknownPool { name: name.into(), known }.into()
    }

    /// The declaration of exactly this name or pattern.
    pub fn resource(&self, name: &str) -> Result<&ResourceConfig, Error> {
        let near = || near_names(name, self.resources.keys().map(String::as_str));
        self.resources.get(name).ok_or_else(|| Refusal::UnknownResource { name: name.into(), near: near() }.into())
    }
}
