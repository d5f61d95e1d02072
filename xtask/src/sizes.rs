//! How long a function and a file may grow.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::sources::Source;

/// Where the exceptions stand.
pub const ALLOW_LIST: &str = "xtask/tidy-allow.txt";

const LONGEST_FUNCTION: usize = 70;
const LONGEST_FILE: usize = 500;
/// No exception goes beyond this one.
const FILE_LIMIT: usize = 800;

/// Everything that is too long and not excepted, and exceptions that are malformed or no longer needed.
pub fn check(rust: &[Source], python: &[Source], allow_list: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut allowed = Allowed::parse(allow_list, &mut problems);
    for source in rust.iter().chain(python) {
        check_file(source, &mut allowed, &mut problems);
    }
    for source in rust.iter().filter(|source| !source.is_test()) {
        check_functions(source, &mut allowed, &mut problems);
    }
    problems.extend(allowed.unused());
    problems
}

fn check_file(source: &Source, allowed: &mut Allowed, problems: &mut Vec<String>) {
    let (path, lines) = (&source.path, source.text.lines().count());
    if lines > FILE_LIMIT {
        problems.push(format!("{path} has {lines} lines, no file may have more than {FILE_LIMIT}: split it"));
    } else if lines > LONGEST_FILE && !source.is_test() && !allowed.takes(path) {
        problems
            .push(format!("{path} has {lines} lines, at most {LONGEST_FILE}: split it, or say why in {ALLOW_LIST}"));
    }
}

fn check_functions(source: &Source, allowed: &mut Allowed, problems: &mut Vec<String>) {
    let path = &source.path;
    let file = match syn::parse_file(&source.text) {
        Ok(file) => file,
        Err(error) => return problems.push(format!("{path} is not Rust: {error}")),
    };
    let mut functions = Functions::default();
    functions.visit_file(&file);
    for (name, line, lines) in functions.found.iter().filter(|(_, _, lines)| *lines > LONGEST_FUNCTION) {
        if !allowed.takes(&format!("{path}:{name}")) {
            problems.push(format!(
                "{path}:{line}: function {name} has {lines} lines, at most {LONGEST_FUNCTION}: \
                 split it, or say why in {ALLOW_LIST}"
            ));
        }
    }
}

/// Collects name, first line and length of each function with a body. Test modules are left out, and so are functions
/// inside macro calls, which are only tokens here.
#[derive(Default)]
struct Functions {
    found: Vec<(String, usize, usize)>,
}

impl Functions {
    fn push(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let last = body.brace_token.span.close().end().line;
        self.found.push((signature.ident.to_string(), first, last - first + 1));
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.push(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.push(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.push(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !item.attrs.iter().any(is_cfg_test) {
            visit::visit_item_mod(self, item);
        }
    }
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "test")
}

/// The allow-list: which exceptions there are, and which of them were used.
struct Allowed<'a> {
    lines: BTreeMap<&'a str, usize>,
    used: BTreeSet<&'a str>,
}

impl<'a> Allowed<'a> {
    fn parse(text: &'a str, problems: &mut Vec<String>) -> Self {
        let mut lines = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(' ') {
                Some((key, _reason)) => drop(lines.insert(key, number)),
                None => problems.push(format!("{ALLOW_LIST}:{number}: {line} has no reason: write it after a space")),
            }
        }
        Self { lines, used: BTreeSet::new() }
    }

    fn takes(&mut self, key: &str) -> bool {
        match self.lines.get_key_value(key) {
            Some((key, _)) => {
                self.used.insert(*key);
                true
            }
            None => false,
        }
    }

    fn unused(&self) -> Vec<String> {
        let unused = self.lines.iter().filter(|(key, _)| !self.used.contains(*key));
        unused.map(|(key, number)| format!("{ALLOW_LIST}:{number}: {key} needs no exception: remove it")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::source;

    fn function(lines: usize) -> String {
        format!("/// Doc lines do not count.\nfn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    fn rust(path: &str, text: &str, allow_list: &str) -> Vec<String> {
        check(&[source(path, text)], &[], allow_list)
    }

    #[test]
    fn a_function_of_seventy_lines_passes_and_one_more_fails() {
        assert_eq!(rust("crates/a/src/a.rs", &function(70), ""), [""; 0]);
        let problems = rust("crates/a/src/a.rs", &function(71), "");
        assert!(problems[0].starts_with("crates/a/src/a.rs:2: function long has 71 lines, at most 70"), "{problems:?}");
    }

    #[test]
    fn methods_and_functions_within_functions_are_measured() {
        for (head, foot) in [("impl A {\n", "}\n"), ("trait A {\n", "}\n"), ("mod a {\n", "}\n")] {
            assert_eq!(rust("a.rs", &format!("{head}{}{foot}", function(71)), "").len(), 1, "{head}");
        }
        assert_eq!(rust("a.rs", &format!("fn outer() {{\n{}}}\n", function(71)), "").len(), 2);
    }

    #[test]
    fn braces_in_texts_and_comments_do_not_end_a_function() {
        let text = format!("fn long() {{\n    a(\"}}\"); // }}\n{}}}\n", "    work();\n".repeat(70));
        assert_eq!(rust("a.rs", &text, "").len(), 1);
    }

    #[test]
    fn tests_may_have_long_functions() {
        assert_eq!(rust("crates/a/tests/a.rs", &function(300), ""), [""; 0]);
        assert_eq!(rust("a.rs", &format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(300)), ""), [""; 0]);
        assert_eq!(rust("a.rs", &format!("#[cfg(unix)]\nmod tests {{\n{}}}\n", function(300)), "").len(), 1);
    }

    #[test]
    fn a_file_of_501_lines_needs_a_reason_and_one_of_801_has_none() {
        let lines = |count: usize| "// line\n".repeat(count);
        assert_eq!(rust("a.rs", &lines(500), ""), [""; 0]);
        assert_eq!(rust("a.rs", &lines(501), "").len(), 1);
        assert_eq!(rust("a.rs", &lines(501), "a.rs one table"), [""; 0]);
        assert_eq!(rust("a.rs", &lines(801), "").len(), 1);
        assert!(rust("a.rs", &lines(801), "a.rs one table")[0].contains("no file may have more than 800"));
        assert_eq!(rust("crates/a/tests/a.rs", &lines(800), ""), [""; 0]);
        assert_eq!(rust("crates/a/tests/a.rs", &lines(801), "").len(), 1);
    }

    #[test]
    fn python_files_are_measured_too() {
        assert_eq!(check(&[], &[source("python/src/mirab/a.py", &"a = 1\n".repeat(501))], "").len(), 1);
    }

    #[test]
    fn an_exception_counts_for_its_own_function_only() {
        assert_eq!(rust("a.rs", &function(71), "# why\n\na.rs:long one table"), [""; 0]);
        assert_eq!(rust("a.rs", &function(71), "a.rs:other one table").len(), 2);
    }

    #[test]
    fn an_exception_without_reason_or_without_need_is_a_problem() {
        assert!(rust("a.rs", "", "a.rs:long")[0].contains("has no reason"));
        assert!(rust("a.rs", "", "a.rs:long one table")[0].contains("needs no exception"));
    }

    #[test]
    fn what_does_not_parse_is_a_problem() {
        assert!(rust("a.rs", "fn (", "")[0].starts_with("a.rs is not Rust"));
    }
}
