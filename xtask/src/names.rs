//! Words that do not come in: names that say nothing about what they hold, and macros that mark unfinished work.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::sources::Source;

const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "misc", "type", "types", "util", "utils"];
const UNFINISHED: &[&str] = &["dbg", "todo", "unimplemented"];

/// Crates with a name that says nothing; a prefix such as `mirab-` does not help.
pub fn check_crates<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let empty = names.filter(|name| name.split(['-', '_']).any(|word| EMPTY_NAMES.contains(&word)));
    empty.map(|name| format!("crate {name}: name it after what it holds")).collect()
}

/// Modules with a name that says nothing, and unfinished work in `src`.
pub fn check_sources(rust: &[Source], python: &[Source]) -> Vec<String> {
    let mut problems: Vec<String> = rust.iter().chain(python).filter_map(check_path).collect();
    for source in rust {
        match source.text.parse::<TokenStream>() {
            Ok(tokens) => check_tokens(source, tokens, &mut problems),
            Err(error) => problems.push(format!("{} is not Rust: {error}", source.path)),
        }
    }
    problems
}

fn check_path(source: &Source) -> Option<String> {
    let words = source.path.split('/').map(|part| part.split('.').next().unwrap_or(part).trim_start_matches('_'));
    let empty = words.into_iter().find(|word| EMPTY_NAMES.contains(word))?;
    Some(format!("{}: `{empty}` says nothing, name it after what it holds", source.path))
}

/// Goes over the tokens, where comments and texts are out of the way and macro calls are not.
fn check_tokens(source: &Source, tokens: TokenStream, problems: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let next = &tokens[at + 1..];
        match token {
            TokenTree::Group(group) => check_tokens(source, group.stream(), problems),
            TokenTree::Ident(word)
                if !source.is_test() && UNFINISHED.iter().any(|name| word == name) && is_call(next) =>
            {
                problems.push(format!("{}:{}: {word}! is for unfinished work", source.path, word.span().start().line));
            }
            TokenTree::Ident(word) if word == "mod" => {
                problems
                    .extend(empty_module(next).map(|name| format!("{}: module `{name}` says nothing", source.path)));
            }
            _ => {}
        }
    }
}

/// After a macro's name: `!` and its brackets.
fn is_call(next: &[TokenTree]) -> bool {
    matches!(next, [TokenTree::Punct(mark), TokenTree::Group(group), ..]
        if mark.as_char() == '!' && group.delimiter() != Delimiter::None)
}

/// After `mod`: a name that says nothing, of a module with its body here. Other modules are seen by their path.
fn empty_module(next: &[TokenTree]) -> Option<String> {
    match next {
        [TokenTree::Ident(name), TokenTree::Group(_), ..] => {
            Some(name.to_string()).filter(|name| EMPTY_NAMES.contains(&name.as_str()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::source;

    fn rust(path: &str, text: &str) -> Vec<String> {
        check_sources(&[source(path, text)], &[])
    }

    #[test]
    fn crates_that_hold_anything_are_refused() {
        let names = ["mirab-core", "mirab-common", "util", "mirab_types", "mirab-typesetting"];
        assert_eq!(check_crates(names.into_iter()).len(), 3);
    }

    #[test]
    fn modules_that_hold_anything_are_refused_wherever_they_stand() {
        for path in ["crates/a/src/utils.rs", "crates/a/src/util/a.rs", "crates/a/tests/common/mod.rs"] {
            assert_eq!(rust(path, "").len(), 1, "{path}");
        }
        assert_eq!(rust("crates/a/src/a.rs", "mod inner { mod helpers {} }").len(), 1);
        assert_eq!(check_sources(&[], &[source("python/src/mirab/_helpers.py", "")]).len(), 1);
        assert_eq!(rust("crates/a/src/typesetting.rs", "mod utility {}"), [""; 0]);
    }

    #[test]
    fn unfinished_work_is_refused_in_src() {
        for name in UNFINISHED {
            let text = format!("fn a() {{\n    assert!({name}!());\n}}\n");
            assert_eq!(
                rust("crates/a/src/a.rs", &text),
                [format!("crates/a/src/a.rs:2: {name}! is for unfinished work")]
            );
            assert_eq!(rust("crates/a/tests/a.rs", &text), [""; 0]);
        }
    }

    #[test]
    fn texts_comments_and_comparisons_are_not_unfinished_work() {
        let text = "// todo!()\n/// dbg!()\nfn a(todo: u8) -> bool {\n    b(\"dbg!()\");\n    todo != (1)\n}\n";
        assert_eq!(rust("crates/a/src/a.rs", text), [""; 0]);
    }
}
