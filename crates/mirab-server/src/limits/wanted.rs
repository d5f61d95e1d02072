//! What is asked for, what that makes of a declaration, and why it is not done.
use crate::config::{self, ConfigError};
use mirab_core::{DEFAULT_SHARD, Limit, Refusal, ResourceConfig, check_declared};
use mirab_flow::StoreUnavailable;
use mirab_wire::ResourceChange;

/// The most that a file can say: TOML counts up to 2^63 - 1.
const MOST: u64 = i64::MAX as u64;

/// Why a limit was not changed.
#[derive(Debug)]
pub(crate) enum EditError {
    Store(StoreUnavailable),
    Refused(Refusal),
    /// A file cannot be used, or says something else than what is in force.
    Config(String),
    /// Names are missing in the files, which may be in the middle of being written.
    Unsettled(String),
    /// A file was edited by hand meanwhile, and says something else about this name.
    Conflict(String),
    /// A file was edited by hand in the moment of writing: worth another try.
    Meanwhile(String),
}

impl EditError {
    /// In words.
    pub fn told(&self) -> String {
        match self {
            EditError::Store(_) => "the store cannot be written".into(),
            EditError::Refused(refusal) => refusal.to_string(),
            EditError::Config(why)
            | EditError::Conflict(why)
            | EditError::Meanwhile(why)
            | EditError::Unsettled(why) => why.clone(),
        }
    }
}

impl From<ConfigError> for EditError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}

impl From<Refusal> for EditError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A change as it was asked for; names are checked.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// To be so, whatever it was.
    Whole(ResourceConfig),
    /// What is left out stays.
    Fields(String, ResourceChange),
    /// To be gone.
    Gone(String),
}

impl Wanted {
    pub fn whole(name: &str, change: &ResourceChange) -> Result<Self, Refusal> {
        Ok(Self::Whole(config_of(&check_declared(name)?, change)?))
    }

    pub fn fields(name: &str, change: ResourceChange) -> Result<Self, Refusal> {
        Ok(Self::Fields(check_declared(name)?, change))
    }

    pub fn gone(name: &str) -> Result<Self, Refusal> {
        Ok(Self::Gone(check_declared(name)?))
    }

    pub fn name(&self) -> &str {
        match self {
            Wanted::Whole(config) => &config.name,
            Wanted::Fields(name, _) | Wanted::Gone(name) => name,
        }
    }

    /// What is to be done to the files. `known` is the declaration of now, `removal` whether that could be taken away.
    pub fn edit(self, known: Option<&ResourceConfig>, removal: Result<(), Refusal>) -> Result<Edit, EditError> {
        match (self, known) {
            (Wanted::Whole(config), _) => Ok(Edit::Set(config)),
            (Wanted::Fields(name, change), Some(known)) => Ok(Edit::Set(config_of(&name, &completed(change, known))?)),
            (Wanted::Fields(name, _), None) => {
                // The gate's own words, with the nearest names.
                removal?;
                Err(EditError::Config(format!("no file declares {name:?}: declare it with all that its kind needs")))
            }
            (Wanted::Gone(name), _) => removal.map(|()| Edit::Remove(name)).map_err(EditError::Refused),
        }
    }
}

/// A change of one declaration in the files.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Set(ResourceConfig),
    Remove(String),
}

impl Edit {
    pub fn name(&self) -> &str {
        match self {
            Edit::Set(config) => &config.name,
            Edit::Remove(name) => name,
        }
    }

    pub fn apply_to(&self, text: &str) -> Result<String, ConfigError> {
        match self {
            Edit::Set(config) => config::set_resource(text, config),
            Edit::Remove(name) => config::remove_resource(text, name),
        }
    }
}

/// What is left out is taken from what is declared.
fn completed(change: ResourceChange, known: &ResourceConfig) -> ResourceChange {
    let shard = Some(change.shard.unwrap_or_else(|| known.shard.clone()));
    let to_bucket = change.kind.as_deref() == Some("token_bucket") || change.rate.is_some() || change.burst.is_some();
    let to_semaphore = change.kind.as_deref() == Some("semaphore") || change.permits.is_some();
    match known.limit {
        Limit::TokenBucket { rate, burst } if !to_semaphore => ResourceChange {
            rate: Some(change.rate.unwrap_or_else(|| rate.as_f64())),
            burst: Some(change.burst.unwrap_or(burst)),
            shard,
            ..change
        },
        Limit::Semaphore { permits } if !to_bucket => {
            ResourceChange { permits: Some(change.permits.unwrap_or(permits)), shard, ..change }
        }
        _ => ResourceChange { shard, ..change },
    }
}

fn config_of(name: &str, change: &ResourceChange) -> Result<ResourceConfig, Refusal> {
    let wrong = |why: String| Err(Refusal::invalid(name, why));
    if let Some(most) = change.permits.max(change.burst).filter(|most| *most > MOST) {
        return wrong(format!("{most} is more than a file can say, expected at most {MOST}"));
    }
    let config = match (change.kind.as_deref(), change.permits, change.rate, change.burst) {
        (Some("semaphore") | None, Some(permits), None, None) => ResourceConfig::semaphore(name, permits),
        (Some("token_bucket") | None, None, Some(rate), Some(burst)) => {
            ResourceConfig::token_bucket(name, rate, burst)?
        }
        (Some(kind), ..) if kind != "semaphore" && kind != "token_bucket" => {
            return wrong(format!("kind is {kind:?}, expected \"semaphore\" or \"token_bucket\""));
        }
        _ => {
            return wrong(
                "expected permits for a semaphore, or rate and burst for a token bucket, and not of both".into(),
            );
        }
    };
    match change.shard.as_deref().map(str::trim) {
        Some("") => wrong("the shard is empty, expected a name, or no shard at all".into()),
        Some(shard) => Ok(config.in_shard(shard)),
        None => Ok(config.in_shard(DEFAULT_SHARD)),
    }
}
