//! Reads values of a table by kind, with errors that name the place.
use crate::error::{ConfigError, Place, Source};
use std::ops::RangeInclusive;
use toml_edit::{Item, TableLike};

/// A table of a file.
pub(crate) struct Section<'a> {
    pub source: Source<'a>,
    pub table: &'a dyn TableLike,
    /// As a person would name it, such as `[server]`.
    pub name: String,
}

impl<'a> Section<'a> {
    /// The table under `key` of `parent`, when it is there.
    pub fn under(parent: &Section<'a>, key: &str, name: &str) -> Result<Option<Self>, ConfigError> {
        let Some(item) = parent.table.get(key) else { return Ok(None) };
        let section = |table| Self { source: parent.source, table, name: name.to_owned() };
        match item.as_table_like() {
            Some(table) => Ok(Some(section(table))),
            None => Err(parent.error(key, format!("{key} is {}, expected a table: write {name}", kind_of(item)))),
        }
    }

    /// Where the key stands.
    pub fn place(&self, key: &str) -> Place {
        self.source.place(self.table.get_key_value(key).and_then(|(key, _)| key.span()))
    }

    pub fn error(&self, key: &str, message: String) -> ConfigError {
        ConfigError::at(self.place(key), message)
    }

    /// Refuses keys that mean nothing here: a setting that is silently ignored is worse than none.
    pub fn check_keys(&self, known: &[&str]) -> Result<(), ConfigError> {
        let unknown = self.table.iter().find(|(key, _)| !known.contains(key));
        let Some((key, _)) = unknown else { return Ok(()) };
        let expected = known.join(", ");
        let near = crate::near::nearest(key, known.iter().copied(), 1);
        let hint = near.first().map_or(String::new(), |near| format!("; did you mean {near}?"));
        Err(self.error(key, format!("unknown key {key:?} in {}, expected one of {expected}{hint}", self.name)))
    }

    pub fn string(&self, key: &str) -> Result<Option<String>, ConfigError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        match item.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(self.wrong_kind(key, item, "a text in quotes")),
        }
    }

    pub fn whole(&self, key: &str, allowed: RangeInclusive<u64>) -> Result<Option<u64>, ConfigError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let (least, most) = (*allowed.start(), *allowed.end());
        let expected = if most >= i64::MAX as u64 {
            format!("a whole number, at least {least}")
        } else {
            format!("a whole number from {least} to {most}")
        };
        let Some(number) = item.as_integer() else { return Err(self.wrong_kind(key, item, &expected)) };
        match u64::try_from(number) {
            Ok(number) if allowed.contains(&number) => Ok(Some(number)),
            _ => Err(self.error(key, format!("{key} is {number}, expected {expected}"))),
        }
    }

    /// A priority: a whole number, below zero too.
    pub fn priority(&self, key: &str) -> Result<Option<i32>, ConfigError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let expected = "a whole number of 32 bits, such as 5 or -1";
        let Some(number) = item.as_integer() else { return Err(self.wrong_kind(key, item, expected)) };
        let wrong = |_| self.error(key, format!("{key} is {number}, expected {expected}"));
        i32::try_from(number).map(Some).map_err(wrong)
    }

    /// A number with or without decimals.
    pub fn decimal(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        #[expect(clippy::cast_precision_loss, reason = "rates beyond 2^53 per second are refused later all the same")]
        let number = item.as_float().or_else(|| item.as_integer().map(|whole| whole as f64));
        number.map_or_else(|| Err(self.wrong_kind(key, item, "a number")), |number| Ok(Some(number)))
    }

    /// A duration such as `"10m"`, in nanoseconds.
    pub fn duration(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        match parse_duration(&text) {
            Some(nanos) => Ok(Some(nanos)),
            None => Err(self.error(
                key,
                format!(
                    "{key} is {text:?}, expected a duration above zero such as \"10s\", \"500ms\", \"10m\" or \"2h\""
                ),
            )),
        }
    }

    pub fn wrong_kind(&self, key: &str, item: &Item, expected: &str) -> ConfigError {
        self.error(key, format!("{key} is {}, expected {expected}", kind_of(item)))
    }
}

/// What a value is, in words for an error.
pub(crate) fn kind_of(item: &Item) -> String {
    match item.type_name() {
        "string" => format!("the text {:?}", item.as_str().unwrap_or_default()),
        "integer" => item.as_integer().map_or_else(|| "a whole number".into(), |number| format!("the number {number}")),
        "float" => item.as_float().map_or_else(|| "a number".into(), |number| format!("the number {number}")),
        "boolean" => "true or false".into(),
        "datetime" => "a date".into(),
        "array" | "array of tables" => "a list".into(),
        _ => "a table".into(),
    }
}

/// Nanoseconds of a whole number with a unit.
fn parse_duration(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        "d" => 86_400 * 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit).filter(|nanos| *nanos > 0)
}
