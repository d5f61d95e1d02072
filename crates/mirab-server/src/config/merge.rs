//! Declarations of several files brought together.
use super::ConfigError;
use super::ConfigFile;
use super::DeclaredResource;
use mirab_core::{Limit, ResourceConfig};
use std::collections::BTreeMap;

/// All declared resources by name, each with the place that declared it first.
#[derive(Clone, Debug, Default)]
pub struct Declarations {
    by_name: BTreeMap<String, DeclaredResource>,
}

impl Declarations {
    /// Takes a file's resources in; gives those that are new.
    ///
    /// # Errors
    /// When two files give one name different values; then nothing was taken in.
    pub fn add(&mut self, file: &ConfigFile) -> Result<Vec<ResourceConfig>, ConfigError> {
        for resource in &file.resources {
            self.check(resource)?;
        }
        let mut new = Vec::new();
        for resource in &file.resources {
            if !self.by_name.contains_key(&resource.config.name) {
                new.push(resource.config.clone());
                self.by_name.insert(resource.config.name.clone(), resource.clone());
            }
        }
        Ok(new)
    }

    fn check(&self, resource: &DeclaredResource) -> Result<(), ConfigError> {
        match self.by_name.get(&resource.config.name) {
            Some(first) if first.config != resource.config => {
                let message = format!(
                    "resource {:?} is {} here, but {} at {}: give both the same value, or keep one of them",
                    resource.config.name,
                    describe(&resource.config),
                    describe(&first.config),
                    first.place
                );
                Err(ConfigError::at(resource.place.clone(), message))
            }
            _ => Ok(()),
        }
    }

    /// All of them in name order.
    #[must_use]
    pub fn configs(&self) -> Vec<ResourceConfig> {
        self.by_name.values().map(|resource| resource.config.clone()).collect()
    }

    /// The same by name, as the machines take them.
    #[must_use]
    pub fn by_name(&self) -> BTreeMap<String, ResourceConfig> {
        self.by_name.iter().map(|(name, resource)| (name.clone(), resource.config.clone())).collect()
    }

    /// With what `known` declares besides, but for one name.
    #[must_use]
    pub fn with_missing_of(mut self, known: &Self, but: &str) -> Self {
        for (name, resource) in known.by_name.iter().filter(|(name, _)| *name != but) {
            self.by_name.entry(name.clone()).or_insert_with(|| resource.clone());
        }
        self
    }

    /// The declaration of exactly this name or pattern.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ResourceConfig> {
        self.by_name.get(name).map(|resource| &resource.config)
    }

    /// Where the name or pattern was declared, as `/srv/shop/mirab.toml:3`.
    #[must_use]
    pub fn origin(&self, declared_as: &str) -> Option<String> {
        self.by_name.get(declared_as).map(|resource| resource.place.origin())
    }

    /// The declarations themselves, in name order.
    pub fn iter(&self) -> impl Iterator<Item = &DeclaredResource> {
        self.by_name.values()
    }
}

/// A limit in words.
pub(crate) fn describe(config: &ResourceConfig) -> String {
    let limit = match config.limit {
        Limit::Semaphore { permits } => format!("a semaphore of {permits}"),
        Limit::TokenBucket { rate, burst } => {
            format!("a token bucket of {} per second with burst {burst}", rate.as_f64())
        }
    };
    if config.shard == mirab_core::DEFAULT_SHARD { limit } else { format!("{limit} in shard {:?}", config.shard) }
}
