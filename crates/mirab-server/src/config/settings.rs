//! Settings by precedence: flag, environment, file, default.
use super::ConfigError;
use super::ConfigFile;

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 4747;

/// What the command line gave; `None` where it said nothing.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `--host`.
    pub host: Option<String>,
    /// `--port`.
    pub port: Option<u16>,
    /// `--max-engines`.
    pub max_engines: Option<u64>,
}

/// Where to listen and how many engines to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Name or address.
    pub host: String,
    /// 0: any free port.
    pub port: u16,
    /// Engine processes that may be alive.
    pub max_engines: u64,
    /// The most that `max_engines` can be set to.
    pub max_engines_ceiling: u64,
    /// True when a flag or variable says how many engines: then a stored setting does not.
    pub is_fixed: bool,
}

impl ServerSettings {
    /// Settles each setting; `environment` reads a variable, `cpus` is how many this machine has.
    ///
    /// # Errors
    /// When a variable makes no sense or `max_engines` is beyond its ceiling.
    pub fn settle(
        given: &Given,
        environment: impl Fn(&str) -> Option<String>,
        file: &ConfigFile,
        cpus: u64,
    ) -> Result<Self, ConfigError> {
        let variable = |name: &str| environment(name).filter(|text| !text.is_empty());
        let host = given.host.clone().or_else(|| variable("MIRAB_HOST")).or_else(|| file.host.clone());
        let port = match given.port {
            Some(port) => Some(port),
            None => number(variable("MIRAB_PORT"), "MIRAB_PORT", "a port from 0 to 65535")?,
        };
        let settings = Self {
            host: host.unwrap_or_else(|| DEFAULT_HOST.into()),
            port: port.or(file.port).unwrap_or(DEFAULT_PORT),
            max_engines: 1,
            max_engines_ceiling: cpus.saturating_mul(file.engines_per_cpu.unwrap_or(1)),
            is_fixed: false,
        };
        settings.with_engines(given, variable("MIRAB_MAX_ENGINES"), file)
    }

    fn with_engines(mut self, given: &Given, variable: Option<String>, file: &ConfigFile) -> Result<Self, ConfigError> {
        let from_variable: Option<u64> = number(variable, "MIRAB_MAX_ENGINES", "a whole number, at least 1")?;
        let (count, said_by, place) = match (given.max_engines, from_variable, &file.max_engines) {
            (Some(count), _, _) => (count, "--max-engines", None),
            (None, Some(count), _) => (count, "MIRAB_MAX_ENGINES", None),
            (None, None, Some((count, place))) => (*count, "max_engines", Some(place.clone())),
            (None, None, None) => return Ok(self),
        };
        self.max_engines = count;
        self.is_fixed = place.is_none();
        match check_engines(count, self.max_engines_ceiling) {
            Ok(()) => Ok(self),
            Err(why) => Err(ConfigError { place, message: format!("{said_by} {why}") }),
        }
    }
}

/// The rule for `max_engines`, said the same way wherever it is set.
pub(crate) fn check_engines(count: u64, ceiling: u64) -> Result<(), String> {
    if (1..=ceiling).contains(&count) {
        return Ok(());
    }
    Err(format!(
        "is {count}, expected 1 to {ceiling} on this machine: for more, raise engines_per_cpu under [server] in mirab.toml"
    ))
}

fn number<T: std::str::FromStr>(text: Option<String>, name: &str, expected: &str) -> Result<Option<T>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(ConfigError::of(format!("{name} is {text:?}, expected {expected}: correct or unset it"))),
    }
}
