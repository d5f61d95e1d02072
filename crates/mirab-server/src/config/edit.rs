//! Changes one entry of `[resources]` in the text of a `mirab.toml`: everything else stays as its author wrote it.
use super::ConfigError;
use mirab_core::{DEFAULT_SHARD, Limit, ResourceConfig, check_declared};
use std::io::Write;
use std::path::Path;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// The text with the resource declared as `config`. A short form stays short while it can, a whole rate stays whole.
///
/// # Errors
/// When the text is no TOML, or `resources` is no table.
pub fn set_resource(text: &str, config: &ResourceConfig) -> Result<String, ConfigError> {
    let (mut document, style) = parse(text)?;
    let resources = document.entry("resources").or_insert_with(|| Item::Table(Table::new()));
    let resources = resources.as_table_like_mut().ok_or_else(|| ConfigError::of("resources is no table"))?;
    let key = key_of(resources, &config.name).unwrap_or_else(|| config.name.clone());
    match resources.get_mut(&key) {
        Some(item) => change(item, config),
        None => _ = resources.insert(&key, Item::Value(fresh(config))),
    }
    Ok(style.of(&document))
}

/// The text without the resource; unchanged when it is not declared there.
///
/// # Errors
/// When the text is no TOML.
pub fn remove_resource(text: &str, name: &str) -> Result<String, ConfigError> {
    let (mut document, style) = parse(text)?;
    if let Some(resources) = document.get_mut("resources").and_then(Item::as_table_like_mut)
        && let Some(key) = key_of(resources, name)
    {
        resources.remove(&key);
    }
    Ok(style.of(&document))
}

/// What the text of a file is, should it still be what it was: `None` for a file that is not there.
pub type Text<'a> = Option<&'a str>;

/// Writes a file so that a crash leaves the old text or the new one: a new file beside it takes its place. Its permissions are kept.
/// False, and nothing is changed, when its text is not `old` any more right before.
///
/// # Errors
/// What the system says.
pub fn write_file(path: &Path, old: Text<'_>, new: &str) -> std::io::Result<bool> {
    // A link stays a link: what it points to is what is written.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = (|| {
        let mut file = std::fs::File::create(&beside)?;
        if let Ok(old) = std::fs::metadata(&path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(new.as_bytes())?;
        file.sync_all()?;
        if !is_still(&path, old)? {
            return Ok(false);
        }
        std::fs::rename(&beside, &path)?;
        path.parent().map_or(Ok(()), |dir| std::fs::File::open(dir)?.sync_all())?;
        Ok(true)
    })();
    if !matches!(written, Ok(true)) {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Removes a file whose text is `old` still.
///
/// # Errors
/// What the system says.
pub fn remove_file(path: &Path, old: &str) -> std::io::Result<bool> {
    if !is_still(path, Some(old))? {
        return Ok(false);
    }
    std::fs::remove_file(path).map(|()| true)
}

fn is_still(path: &Path, text: Text<'_>) -> std::io::Result<bool> {
    match std::fs::read(path) {
        Ok(there) => Ok(text.is_some_and(|text| text.as_bytes() == there)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(text.is_none()),
        Err(error) => Err(error),
    }
}

/// How the lines of a file end and how it begins, which a parsed document does not tell.
struct Style {
    has_mark: bool,
    has_returns: bool,
}

/// The mark by which some editors begin a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

impl Style {
    fn of(&self, document: &DocumentMut) -> String {
        let mut text = document.to_string().replace("\r\n", "\n");
        if self.has_returns {
            text = text.replace('\n', "\r\n");
        }
        if self.has_mark { format!("{BYTE_ORDER_MARK}{}", text.trim_start_matches(BYTE_ORDER_MARK)) } else { text }
    }
}

fn parse(text: &str) -> Result<(DocumentMut, Style), ConfigError> {
    let has_returns = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let style = Style { has_mark: text.starts_with(BYTE_ORDER_MARK), has_returns };
    let wrong = |error: toml_edit::TomlError| ConfigError::of(error.message().trim().replace('\n', ", "));
    Ok((text.parse().map_err(wrong)?, style))
}

/// The key as it is written; names are compared trimmed and in NFC.
fn key_of(resources: &dyn TableLike, name: &str) -> Option<String> {
    let same = |key: &str| check_declared(key).is_ok_and(|known| known == name);
    resources.iter().map(|(key, _)| key.to_owned()).find(|key| same(key))
}

fn change(item: &mut Item, config: &ResourceConfig) {
    match item.as_table_like_mut() {
        Some(table) => fill(table, config),
        None => {
            let decor = item.as_value().map(|value| value.decor().clone());
            let mut value = fresh(config);
            if let Some(decor) = decor {
                *value.decor_mut() = decor;
            }
            *item = Item::Value(value);
        }
    }
}

fn fresh(config: &ResourceConfig) -> Value {
    match config.limit {
        Limit::Semaphore { permits } if config.shard == DEFAULT_SHARD => Value::from(whole(permits)),
        _ => {
            let mut table = InlineTable::new();
            fill(&mut table, config);
            Value::InlineTable(table)
        }
    }
}

fn fill(table: &mut dyn TableLike, config: &ResourceConfig) {
    // The space before the closing brace belongs to whichever value is the last.
    let space = last_value(table).and_then(|last| {
        let space = last.decor().suffix()?.as_str().filter(|space| space.chars().all(|c| c == ' '))?.to_owned();
        last.decor_mut().set_suffix("");
        Some(space)
    });
    fill_in(table, config);
    if let (Some(space), Some(last)) = (space, last_value(table)) {
        last.decor_mut().set_suffix(space);
    }
}

fn last_value(table: &mut dyn TableLike) -> Option<&mut Value> {
    table.iter_mut().last().and_then(|(_, item)| item.as_value_mut())
}

fn fill_in(table: &mut dyn TableLike, config: &ResourceConfig) {
    match config.limit {
        Limit::Semaphore { permits } => {
            put(table, "kind", Value::from("semaphore"));
            put(table, "permits", Value::from(whole(permits)));
            table.remove("rate");
            table.remove("burst");
        }
        Limit::TokenBucket { rate, burst } => {
            put(table, "kind", Value::from("token_bucket"));
            let was_whole = table.get("rate").is_some_and(Item::is_integer);
            let rate = rate.as_f64();
            #[expect(clippy::cast_possible_truncation, reason = "a whole rate that is written as one")]
            let rate = if was_whole && rate.fract() == 0.0 { Value::from(rate as i64) } else { Value::from(rate) };
            put(table, "rate", rate);
            put(table, "burst", Value::from(whole(burst)));
            table.remove("permits");
        }
    }
    let shard = table.get("shard").and_then(Item::as_str).map_or(DEFAULT_SHARD, str::trim);
    if shard != config.shard {
        match config.shard == DEFAULT_SHARD {
            true => _ = table.remove("shard"),
            false => put(table, "shard", Value::from(config.shard.as_str())),
        }
    }
}

/// Puts a value in the place of another with the spaces and comments around it; one that is the same stays as it is written.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let same = match (&*old, &value) {
                (Value::String(a), Value::String(b)) => a.value() == b.value(),
                (Value::Integer(a), Value::Integer(b)) => a.value() == b.value(),
                (Value::Float(a), Value::Float(b)) => a.value() == b.value(),
                _ => false,
            };
            if !same {
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
        }
        None => _ = table.insert(key, Item::Value(value)),
    }
}

/// TOML counts up to 2^63 - 1; more than that is refused before.
fn whole(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mirab_core::Rate;

    const FILE: &str = "\
# the water master's limits
[server]
port = 4747            # fixed

[resources]
db  = 4                # the shared database
gpu = { kind = \"semaphore\", permits = 4 }   # two cards
api = { kind = \"token_bucket\", rate = 50.0, burst = 1_00 }
slow = { kind = \"token_bucket\", rate = 5, burst = 10 }

[resources.\"eu/api\"]
kind = \"token_bucket\"  # of the contract
rate = 25.0
burst = 50
";

    fn bucket(name: &str, units: u64, seconds: u64, burst: u64) -> ResourceConfig {
        let limit = Limit::TokenBucket { rate: Rate::per(units, seconds).unwrap(), burst };
        ResourceConfig { limit, ..ResourceConfig::semaphore(name, 1) }
    }

    fn changed(config: &ResourceConfig, old: &str, new: &str) {
        assert_eq!(set_resource(FILE, config).unwrap(), FILE.replace(old, new));
    }

    #[test]
    fn case_r16_comments_and_style_stay() {
        changed(&ResourceConfig::semaphore("db", 7), "db  = 4  ", "db  = 7  ");
        changed(&ResourceConfig::semaphore("gpu", 2), "permits = 4", "permits = 2");
        changed(&bucket("api", 125, 2, 100), "rate = 50.0", "rate = 62.5");
        changed(&bucket("slow", 7, 1, 10), "rate = 5,", "rate = 7,");
        changed(&bucket("eu/api", 25, 1, 60), "burst = 50", "burst = 60");
        changed(&ResourceConfig::semaphore("gpu", 4), "", "");
    }

    #[test]
    fn a_kind_can_be_another() {
        changed(
            &bucket("db", 1, 2, 3),
            "= 4                #",
            "= { kind = \"token_bucket\", rate = 0.5, burst = 3 }                #",
        );
        changed(&bucket("gpu", 1, 2, 3), "\"semaphore\", permits = 4 }", "\"token_bucket\", rate = 0.5, burst = 3 }");
        changed(
            &ResourceConfig::semaphore("api", 3),
            "\"token_bucket\", rate = 50.0, burst = 1_00 }",
            "\"semaphore\", permits = 3 }",
        );
    }

    #[test]
    fn a_shard_comes_and_goes() {
        let eu = |permits| ResourceConfig::semaphore("gpu", permits).in_shard("eu");
        changed(&eu(4), "permits = 4 }", "permits = 4, shard = \"eu\" }");
        let text = set_resource(FILE, &eu(4)).unwrap();
        assert_eq!(set_resource(&text, &ResourceConfig::semaphore("gpu", 4)).unwrap(), FILE);
        let explicit = "[resources]\na = { kind = \"semaphore\", permits = 1, shard = \"default\" }\n";
        let changed = set_resource(explicit, &ResourceConfig::semaphore("a", 2)).unwrap();
        assert_eq!(changed, explicit.replace('1', "2"));
    }

    #[test]
    fn new_names_and_files() {
        let text = set_resource("", &ResourceConfig::semaphore("a b", 3)).unwrap();
        assert_eq!(text, "[resources]\n\"a b\" = 3\n");
        let text = set_resource(&text, &bucket("api:*", 1, 2, 5)).unwrap();
        assert_eq!(text, "[resources]\n\"a b\" = 3\n\"api:*\" = { kind = \"token_bucket\", rate = 0.5, burst = 5 }\n");
        assert_eq!(remove_resource(&text, "api:*").unwrap(), "[resources]\n\"a b\" = 3\n");
        assert_eq!(remove_resource(&text, "other").unwrap(), text);
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mirab.toml");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(write_file(&path, Some("old"), "new").unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write_file(&dir.path().join("missing/mirab.toml"), None, "x").is_err());
        // What somebody else wrote or removed meanwhile is left alone, and nothing lies about.
        std::fs::write(&path, "theirs").unwrap();
        assert!(!write_file(&path, Some("new"), "mine").unwrap() && !write_file(&path, None, "mine").unwrap());
        assert!(!remove_file(&path, "new").unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
        assert!(remove_file(&path, "theirs").unwrap() && !write_file(&path, Some("theirs"), "mine").unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn lines_end_and_a_file_begins_as_they_did() {
        let returns = FILE.replace('\n', "\r\n");
        for begin in ["", "\u{feff}"] {
            let (text, new) = (format!("{begin}{returns}"), ResourceConfig::semaphore("new", 1));
            let longer = set_resource(&text, &new).unwrap();
            assert!(longer.starts_with(&text[..40]) && longer.contains("new = 1\r\n"), "{longer:?}");
            assert!(!longer.replace("\r\n", "").contains('\n'));
            assert_eq!(remove_resource(&longer, "new").unwrap(), text);
        }
    }
}
