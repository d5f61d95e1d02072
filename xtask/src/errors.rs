//! Every error code has its section in the reference, and the reference has no section without a code.

use crate::sources::Source;

/// The page of error codes.
pub const PAGE: &str = "docs/reference/errors.md";

/// The stable codes that a caller can meet, in the order of the page.
const CODES: &[&str] = &[
    "UnknownResource",
    "ResourceExceedsCapacity",
    "InvalidResource",
    "ResourceOnOtherShard",
    "ResourceInUse",
    "TemplateError",
    "ResourceDeadlock",
    "UnknownPool",
    "UnknownFlow",
    "UnknownRun",
    "UnknownTask",
    "StaleLease",
    "RunEnded",
    "QueueFull",
    "KeyConflict",
    "SchedulerClosed",
    "WrongType",
    "TaskFailed",
    "TaskTimedOut",
    "TaskCancelled",
    "TaskExpired",
    "TaskSkipped",
    "StoreUnavailable",
    "StoreLocked",
    "InvalidParams",
    "InvalidOption",
    "InvalidConfig",
    "ConfigConflict",
    "BadRequest",
    "NotFound",
    "Unauthorized",
    "Internal",
];

/// Codes without a section, sections without a code, and sections that lack what each must say.
pub fn check(page: &str) -> Vec<String> {
    let sections = sections(page);
    let mut problems = Vec::new();
    for code in CODES {
        match sections.iter().filter(|(name, _)| name == code).count() {
            1 => {}
            count => problems.push(format!("{PAGE}: {count} sections for the error code {code}, expected 1")),
        }
    }
    for (name, body) in &sections {
        if !CODES.contains(name) {
            problems.push(format!("{PAGE}: {name} is no error code: list it in xtask/src/errors.rs, or remove it"));
        }
        for part in ["**HTTP:**", "**Example:**", "**What to do:**"].iter().filter(|part| !body.contains(**part)) {
            problems.push(format!("{PAGE}: the section of {name} lacks {part}"));
        }
    }
    problems
}

/// Codes that the page tells of as if they were raised, though no source names them. A section that says "Not raised yet" may wait.
pub fn check_raised(page: &str, sources: &[Source]) -> Vec<String> {
    let told = sections(page).into_iter().filter(|(_, body)| !body.contains("Not raised yet"));
    let is_named = |code: &str| {
        let (in_rust, in_python) = (format!("\"{code}\""), format!("class {code}("));
        sources.iter().any(|source| source.text.contains(&in_rust) || source.text.contains(&in_python))
    };
    told.filter(|(code, _)| !is_named(code)).map(|(code, _)| format!("{PAGE}: nothing raises {code}")).collect()
}

/// Name and body of each section headed by a code: "## `Name`".
fn sections(page: &str) -> Vec<(&str, &str)> {
    let headed = page.split("\n## `").skip(1);
    headed.filter_map(|section| section.split_once("`\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::source;

    fn page(codes: &[&str]) -> String {
        let section = |code: &&str| format!("\n## `{code}`\n\n**HTTP:** 400\n**Example:** no\n**What to do:** yes\n");
        format!("# Errors\n{}", codes.iter().map(section).collect::<String>())
    }

    #[test]
    fn a_page_with_every_code_passes() {
        assert_eq!(check(&page(CODES)), [""; 0]);
    }

    #[test]
    fn each_code_that_is_left_out_or_told_twice_is_named() {
        for (at, code) in CODES.iter().enumerate() {
            let without = [&CODES[..at], &CODES[at + 1..]].concat();
            assert_eq!(check(&page(&without)), [format!("{PAGE}: 0 sections for the error code {code}, expected 1")]);
            assert_eq!(check(&page(&[CODES, &[*code]].concat())).len(), 1);
        }
    }

    #[test]
    fn a_code_that_is_only_mentioned_has_no_section() {
        let mentioned = page(&CODES[1..]) + "\nSee `UnknownResource`.\n";
        assert_eq!(check(&mentioned).len(), 1);
    }

    #[test]
    fn a_section_without_a_code_is_named() {
        assert!(check(&page(&[CODES, &["Gone"]].concat()))[0].contains("Gone is no error code"));
    }

    #[test]
    fn a_code_that_nothing_raises_is_named_unless_the_page_says_so() {
        let sources =
            [source("crates/a/src/lib.rs", "Self::A => \"UnknownRun\","), source("python/e.py", "class Gone(Error):")];
        let told = page(&["UnknownRun", "Gone", "StaleLease"]);
        assert_eq!(check_raised(&told, &sources), [format!("{PAGE}: nothing raises StaleLease")]);
        let later = told + "\n## `QueueFull`\n\n(Not raised yet.)\n";
        assert_eq!(check_raised(&later, &sources).len(), 1);
    }

    #[test]
    fn a_section_must_say_what_to_do() {
        let silent = page(CODES).replacen("**What to do:**", "", 1);
        assert_eq!(check(&silent), [format!("{PAGE}: the section of UnknownResource lacks **What to do:**")]);
    }
}
