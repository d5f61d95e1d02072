//! `[resources]` in all its forms.
use crate::error::{ConfigError, Place};
use crate::section::{Section, kind_of};
use mirab_core::{ResourceConfig, check_declared};
use std::collections::BTreeMap;
use toml_edit::Item;

/// A declared resource and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredResource {
    /// Name, limit and shard.
    pub config: ResourceConfig,
    /// Where.
    pub place: Place,
}

/// All of a file's `[resources]`; doubled names are errors even where TOML would take them for different keys.
pub(crate) fn read(section: &Section<'_>) -> Result<Vec<DeclaredResource>, ConfigError> {
    let mut declared: Vec<DeclaredResource> = Vec::new();
    let mut first_of: BTreeMap<String, usize> = BTreeMap::new();
    for (key, item) in section.table.iter() {
        let name = check_declared(key).map_err(|refusal| section.error(key, refusal.to_string()))?;
        let place = section.place(key);
        if let Some(first) = first_of.get(&name) {
            let first = &declared[*first].place;
            let message = format!("resource {name:?} is declared twice, first at {first}: keep one of them");
            return Err(ConfigError::at(place, message));
        }
        declared.push(DeclaredResource { config: read_one(section, key, &name, item)?, place });
        first_of.insert(name, declared.len() - 1);
    }
    Ok(declared)
}

fn read_one(section: &Section<'_>, key: &str, name: &str, item: &Item) -> Result<ResourceConfig, ConfigError> {
    if item.is_table_like() {
        let label = format!("resource {name:?}");
        return Section::under(section, key, &label)?
            .map_or_else(|| unreachable!("the key is there"), |table| read_table(&table, name));
    }
    match item.as_integer().map(u64::try_from) {
        Some(Ok(permits)) => Ok(ResourceConfig::semaphore(name, permits)),
        Some(Err(_)) => {
            Err(section.error(key, format!("resource {name:?} has {}, expected permits of 0 or more", kind_of(item))))
        }
        None => Err(section.error(
            key,
            format!(
                "resource {name:?} is {}, expected a whole number of permits, or a table such as \
                 {{ kind = \"token_bucket\", rate = 50.0, burst = 100 }}",
                kind_of(item)
            ),
        )),
    }
}

fn read_table(table: &Section<'_>, name: &str) -> Result<ResourceConfig, ConfigError> {
    let kind = table.string("kind")?;
    let config = match kind.as_deref() {
        Some("semaphore") => read_semaphore(table, name),
        Some("token_bucket") => read_token_bucket(table, name),
        Some(other) => Err(table.error(
            "kind",
            format!("resource {name:?} has kind {other:?}, expected \"semaphore\" or \"token_bucket\""),
        )),
        None => Err(missing(table, name, "kind = \"semaphore\" or kind = \"token_bucket\"")),
    }?;
    match table.string("shard")? {
        Some(shard) if shard.trim().is_empty() => {
            Err(table
                .error("shard", format!("resource {name:?} has an empty shard, expected a name, or no shard at all")))
        }
        Some(shard) => Ok(config.in_shard(shard.trim())),
        None => Ok(config),
    }
}

fn read_semaphore(table: &Section<'_>, name: &str) -> Result<ResourceConfig, ConfigError> {
    table.check_keys(&["kind", "permits", "shard"])?;
    let permits = table.whole("permits", 0..=u64::MAX)?;
    let permits = permits.ok_or_else(|| missing(table, name, "permits, such as permits = 4"))?;
    Ok(ResourceConfig::semaphore(name, permits))
}

fn read_token_bucket(table: &Section<'_>, name: &str) -> Result<ResourceConfig, ConfigError> {
    table.check_keys(&["kind", "rate", "burst", "shard"])?;
    let rate = table.decimal("rate")?;
    let rate = rate.ok_or_else(|| missing(table, name, "rate, units per second, such as rate = 50.0"))?;
    let burst = table.whole("burst", 1..=u64::MAX)?;
    let burst = burst.ok_or_else(|| missing(table, name, "burst, the most units at once, such as burst = 100"))?;
    ResourceConfig::token_bucket(name, rate, burst).map_err(|refusal| table.error("rate", refusal.to_string()))
}

fn missing(table: &Section<'_>, name: &str, what: &str) -> ConfigError {
    let first_key = table.table.iter().next().map_or("", |(key, _)| key);
    table.error(first_key, format!("resource {name:?} lacks {what}"))
}
