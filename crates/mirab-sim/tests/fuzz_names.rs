//! Arbitrary text as names, patterns and templates: nothing panics, and what is accepted is what it says.
//!
//! A few ten thousand inputs in every build; `MIRAB_SOAK=1` makes it millions.
use mirab_core::{
    DEFAULT_SHARD, Gate, Limit, Match, Refusal, ResourceConfig, Template, Time, check_declared, check_requested,
    is_reserved, is_template, near_names,
};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }

    /// Text that is often nearly right: pieces of names, braces, stars, odd letters.
    fn text(&mut self) -> String {
        const PIECES: [&str; 28] = [
            "api:",
            "db",
            "a",
            "*",
            "{",
            "}",
            "{{",
            "}}",
            "{{ tenant }}",
            "{a.b}",
            ".",
            " ",
            "\t",
            "\n",
            "\u{0}",
            "tag:",
            "pool:",
            "flow:",
            "backfill:",
            "é",
            "e\u{301}",
            "日本",
            "🙂",
            "\u{feff}",
            "%2F",
            "/",
            "..",
            "{ }",
        ];
        let mut text = String::new();
        for _ in 0..self.roll(9) {
            match self.roll(12) {
                0 => text.extend(char::from_u32(u32::try_from(self.roll(0x11_0000)).unwrap_or(0))),
                1 => text.push_str(&"x".repeat(usize::try_from(self.roll(230)).unwrap_or(0))),
                _ => text.push_str(PIECES[usize::try_from(self.roll(28)).unwrap_or(0)]),
            }
        }
        text
    }
}

fn inputs() -> u64 {
    if std::env::var_os("MIRAB_SOAK").is_some() { 5_000_000 } else { 40_000 }
}

#[test]
fn names_and_templates_keep_their_word() {
    let mut dice = Dice(1);
    for _ in 0..inputs() {
        let text = dice.text();
        if let Ok(name) = check_declared(&text) {
            assert_eq!(check_declared(&name).as_ref(), Ok(&name), "checked twice: {text:?}");
            assert!(!is_reserved(&name) && !is_template(&name) && name.trim() == name);
            assert!((1..=200).contains(&name.chars().count()));
        }
        if let Ok(name) = check_requested(&text) {
            assert_eq!(check_requested(&name).as_ref(), Ok(&name), "asked for twice: {text:?}");
            assert_eq!(check_declared(&name).as_ref(), Ok(&name), "what can be asked for can be declared: {text:?}");
            assert!(!name.contains('*'));
        }
        match Template::parse(&text) {
            Ok(template) => {
                let value = dice.text();
                match template.render(|_| Ok(value.clone())) {
                    Ok(name) => assert_eq!(check_requested(&name), Ok(name), "{text:?} with {value:?}"),
                    Err(refusal) => assert!(matches!(refusal.code(), "TemplateError" | "InvalidResource")),
                }
                assert!(template.fields().next().is_none() || template.render(|_| Err("missing")).is_err());
            }
            Err(refusal) => assert!(is_template(&text) && refusal.code() == "TemplateError", "{text:?}"),
        }
    }
}

/// A pattern as one would write it down.
fn matches(pattern: &str, name: &str) -> Option<(usize, usize)> {
    let (prefix, suffix) = pattern.split_once('*')?;
    let inner = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let kin = name.starts_with("tag:") == prefix.starts_with("tag:");
    (kin && !inner.is_empty()).then(|| (prefix.chars().count(), suffix.chars().count()))
}

#[test]
fn resolve_agrees_with_a_plain_matcher() {
    let mut dice = Dice(7);
    for _ in 0..inputs() / 40 {
        let (mut gate, mut declared) = (Gate::default(), Vec::new());
        for _ in 0..dice.roll(6) {
            let Ok(name) = check_declared(&dice.text()) else { continue };
            let limit = Limit::Semaphore { permits: 1 };
            let config = ResourceConfig { name: name.clone(), limit, shard: DEFAULT_SHARD.into() };
            gate.declare(Time(0), config).unwrap();
            declared.push(name);
        }
        for _ in 0..10 {
            let Ok(name) = check_requested(&dice.text()) else { continue };
            let best = declared.iter().filter_map(|pattern| matches(pattern, &name)).max();
            match gate.resolve(&name) {
                Ok(found) if found.why == Match::Exact => assert!(declared.contains(&name)),
                Ok(found) => {
                    assert!(!declared.contains(&name));
                    assert_eq!(matches(&found.declared_as, &name), best, "{name:?} among {declared:?}");
                }
                Err(Refusal::UnknownResource { .. }) => {
                    assert!(best.is_none() && !declared.contains(&name), "{name:?} among {declared:?}");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

/// However long a text is, each of its characters is looked at a bounded number of times: a text of a million characters is answered.
#[test]
fn long_texts_are_answered() {
    for piece in ["{", "}", "{{ a }}", "*", "x", "{a.", "e\u{301}", "{{"] {
        let text = piece.repeat(1_000_000 / piece.len());
        assert!(check_declared(&text).is_err() && check_requested(&text).is_err());
        let rendered = Template::parse(&text).map(|template| template.render(|_| Ok("v".into())));
        assert!(!matches!(rendered, Ok(Ok(_))));
    }
    let declared: Vec<String> = (0..10_000).map(|number| format!("resource-{number}")).collect();
    assert_eq!(near_names("resource-99999", declared.iter().map(String::as_str)).len(), 3);
    assert!(near_names(&"y".repeat(1_000_000), declared.iter().map(String::as_str)).is_empty());
}
