//! Names and patterns of resources.
mod near;

use crate::refusal::Refusal;
use unicode_normalization::UnicodeNormalization;

pub use near::near_names;

/// Longest name, in characters.
const MOST_CHARACTERS: usize = 200;

/// Prefixes of the product's own names: a user can neither declare nor request them.
const RESERVED: [&str; 3] = ["pool:", "flow:", "backfill:"];

/// Names that a user declares, and that the product requests for work that carries the tag.
const TAG: &str = "tag:";

/// True for the product's own names: `pool:`, `flow:`, `backfill:`.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|prefix| name.starts_with(prefix))
}

/// Checks a name or pattern as a user declares it; gives it trimmed and in NFC.
///
/// # Errors
/// `InvalidResource` with what is wrong.
///
/// ```
/// use mirab_core::check_declared;
/// assert_eq!(check_declared("  api:* ").unwrap(), "api:*");
/// assert!(check_declared("flow:shop/nightly").is_err());
/// ```
pub fn check_declared(name: &str) -> Result<String, Refusal> {
    let name = check_plain(name)?;
    if name.matches('*').count() > 1 {
        return Err(Refusal::invalid(name, "a pattern has one `*`, this one has more"));
    }
    Ok(name)
}

/// Checks a name as a user requests it; gives it trimmed and in NFC.
///
/// # Errors
/// `InvalidResource` with what is wrong.
pub fn check_requested(name: &str) -> Result<String, Refusal> {
    let name = check_plain(name)?;
    if name.contains('*') {
        return Err(Refusal::invalid(name, "`*` is for declared patterns, ask for a name without it"));
    }
    if name.starts_with(TAG) {
        return Err(Refusal::invalid(name, "`tag:` limits apply to work by its tags, give the work the tag instead"));
    }
    Ok(name)
}

/// The name of the limit that work with this tag takes a unit of, where one is declared.
///
/// # Errors
/// `InvalidResource` for a tag that no such name can be made of: it would escape its limit.
///
/// ```
/// assert_eq!(mirab_core::tag_limit("gpu").unwrap(), "tag:gpu");
/// assert!(mirab_core::tag_limit("gpu*").is_err());
/// ```
pub fn tag_limit(tag: &str) -> Result<String, Refusal> {
    let name = check_plain(&format!("{TAG}{}", tag.trim()))?;
    if name == TAG || name.contains('*') {
        return Err(Refusal::invalid(name, "a tag is a text that is not empty and has no `*`, as in \"gpu\""));
    }
    Ok(name)
}

fn check_plain(name: &str) -> Result<String, Refusal> {
    let clean: String = name.trim().nfc().collect();
    let wrong = |why: &str| Err(Refusal::invalid(clean.clone(), why));
    if clean.is_empty() {
        return wrong("the name is empty, expected 1 to 200 characters");
    }
    if clean.chars().count() > MOST_CHARACTERS {
        return wrong("the name is too long, expected 1 to 200 characters");
    }
    if clean.chars().any(char::is_control) {
        return wrong("the name has a control character, expected printable text");
    }
    if let Some(unseen) = clean.chars().find(|c| is_unseen(*c)) {
        return wrong(&format!(
            "the name has the character U+{:04X}, which nobody sees and which makes two names look like one: leave it out",
            u32::from(unseen)
        ));
    }
    if clean.contains(['{', '}']) {
        return wrong(
            "`{` and `}` are for names that hold parameters, which only flows and tasks ask for: use a plain name",
        );
    }
    if is_reserved(&clean) {
        return wrong("names that begin with `pool:`, `flow:` or `backfill:` are the product's own, choose another");
    }
    Ok(clean)
}

/// Characters without a shape of their own, or that turn the text around them: by the "Default_Ignorable_Code_Point" and "Bidi_Control"
/// properties of Unicode. Joiners, variation selectors and tags stay: letters of some scripts and emoji are made with them.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
    ) || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
}

/// A declared name with one `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    prefix: String,
    suffix: String,
}

impl Pattern {
    /// `None` for a name without `*`.
    pub fn parse(name: &str) -> Option<Self> {
        let (prefix, suffix) = name.split_once('*')?;
        Some(Self { prefix: prefix.into(), suffix: suffix.into() })
    }

    /// The product's own names match no pattern, and tags only a pattern of tags.
    pub fn matches(&self, name: &str) -> bool {
        !is_reserved(name)
            && name.starts_with(TAG) == self.prefix.starts_with(TAG)
            && name.len() > self.prefix.len() + self.suffix.len()
            && name.starts_with(&self.prefix)
            && name.ends_with(&self.suffix)
    }

    /// Among matching patterns the longest prefix wins, then the longest suffix.
    pub fn weight(&self) -> (usize, usize) {
        (self.prefix.chars().count(), self.suffix.chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_e7_odd_names_are_fine_and_bad_ones_are_told() {
        for name in [
            "a/b",
            "a b",
            "%2F",
            "ünïcode",
            "日本",
            "🙂",
            "👩\u{200d}💻",
            "❤\u{fe0f}",
            "می\u{200c}خواهم",
            "..",
            "my/private/repo-master",
        ] {
            assert_eq!(check_declared(name).unwrap(), name);
            assert_eq!(check_requested(name).unwrap(), name);
        }
        let long = "x".repeat(300);
        for name in [
            "",
            "  ",
            long.as_str(),
            "a\nb",
            "a\u{0}b",
            "a\u{200b}",
            "a\u{202e}b",
            "\u{feff}a",
            "a\u{ad}b",
            "a\u{2028}b",
            "{x}",
            "pool:a",
            "flow:a",
            "backfill:1",
        ] {
            assert_eq!(check_declared(name).unwrap_err().code(), "InvalidResource", "{name:?}");
            assert_eq!(check_requested(name).unwrap_err().code(), "InvalidResource", "{name:?}");
        }
        assert_eq!(check_declared("e\u{301}").unwrap(), "é");
        assert!(check_declared("a*b*").is_err() && check_requested("a*").is_err() && check_requested("tag:x").is_err());
    }

    #[test]
    fn patterns_match_what_they_say() {
        let matches = |pattern: &str, name: &str| Pattern::parse(pattern).unwrap().matches(name);
        assert!(
            matches("api:*", "api:acme")
                && matches("*", "anything")
                && matches("*-db", "eu-db")
                && matches("a*z", "abz")
        );
        assert!(!matches("api:*", "api:") && !matches("ab*bc", "abc"));
        assert!(!matches("*", "pool:x") && !matches("*", "tag:x") && matches("tag:*", "tag:x"));
    }
}
