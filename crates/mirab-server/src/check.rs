//! Looks at a directory before it is served: names, amounts, templates and limits that cannot work as they are written.
use crate::config::{ConfigFile, Declarations, Role};
use crate::discovery::discover;
use crate::loaded::absolute;
use crate::serve_error::ServeError;
use mirab_config::did_you_mean;
use mirab_core::{Gate, Limit, ResourceConfig, Template, Time, check_requested, is_template, tag_limit};
use mirab_wire::{Discovery, Needs};
use std::path::{Path, PathBuf};

/// Something that is wrong, or that can hardly be meant.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// A stable code: that of the error it would become, or one of its own.
    pub code: &'static str,
    /// True for what is likely no mistake that stops anything.
    pub warning: bool,
    /// File, with the line where that is known.
    pub place: String,
    /// What was found, what was expected, what to do.
    pub message: String,
}

/// What asks for resources: a flow or a task.
struct Asker<'a> {
    what: String,
    file: &'a str,
    resources: &'a Needs,
    params: Vec<&'a str>,
    any_params: bool,
}

/// All that can be told of a directory: its `mirab.toml` and that of the home, and its files, which `python` imports.
///
/// # Errors
/// When the directory is none, or the interpreter cannot look at its files.
pub fn check(dir: &Path, home: &Path, python: &Path) -> Result<Vec<Finding>, ServeError> {
    let dir = absolute(dir)?;
    let mut findings = Vec::new();
    let (declarations, max_engines) = declared(&dir, home, &mut findings);
    let scratch = tempfile_dir()?;
    let found = discover(python, &dir, &scratch.join("log"), &scratch.join("found.json"));
    let _ = std::fs::remove_dir_all(&scratch);
    let found = found?;
    for broken in &found.broken {
        let message = format!("it did not import: {}: {}", broken.error.kind, broken.error.message);
        findings.push(finding("ImportError", false, &broken.file, message));
    }
    let gate = gate_of(&declarations);
    for asker in askers(&found) {
        check_asker(&declarations, &gate, &asker, &mut findings);
    }
    check_caps(&found, max_engines, &mut findings);
    check_patterns(&declarations, &gate, &mut findings);
    check_pairs(&declarations, &found, &mut findings);
    check_unused(&declarations, &gate, &found, &mut findings);
    findings.sort_by(|a, b| (a.warning, &a.place).cmp(&(b.warning, &b.place)));
    Ok(findings)
}

fn finding(code: &'static str, warning: bool, place: &str, message: String) -> Finding {
    Finding { code, warning, place: place.into(), message }
}

/// A new folder of this process, only its owner's.
fn tempfile_dir() -> Result<PathBuf, ServeError> {
    use std::os::unix::fs::DirBuilderExt;
    let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let dir = std::env::temp_dir().join(format!("mirab-check-{}-{stamp}", std::process::id()));
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    Ok(dir)
}

/// What the files declare; a file that cannot be used is a finding.
fn declared(dir: &Path, home: &Path, findings: &mut Vec<Finding>) -> (Declarations, Option<u64>) {
    let (mut declarations, mut max_engines) = (Declarations::default(), None);
    for (dir, role) in [(dir, Role::First), (home, Role::Home)] {
        let read = ConfigFile::read(dir, role).and_then(|file| declarations.add(&file).map(|_| file));
        match read {
            Ok(file) => max_engines = file.max_engines.map(|(count, _)| count).or(max_engines),
            Err(error) => {
                let place = error.place.as_ref().map_or_else(|| dir.display().to_string(), |place| place.origin());
                findings.push(finding("InvalidConfig", false, &place, error.message));
            }
        }
    }
    (declarations, max_engines)
}

fn gate_of(declarations: &Declarations) -> Gate {
    let mut gate = Gate::default();
    for config in declarations.configs() {
        let declared = gate.declare(Time(0), config);
        debug_assert!(declared.is_ok(), "names are checked when they are read: {declared:?}");
    }
    gate
}

fn askers(found: &Discovery) -> Vec<Asker<'_>> {
    let flows = found.flows.iter().map(|flow| Asker {
        what: format!("flow {:?}", flow.name),
        file: &flow.file,
        resources: &flow.options.resources,
        params: flow.params.iter().map(|param| param.name.as_str()).collect(),
        any_params: flow.any_params,
    });
    let tasks = found.tasks.iter().map(|task| Asker {
        what: format!("task {:?}", task.name),
        file: &task.file,
        resources: &task.resources,
        params: task.params.iter().map(String::as_str).collect(),
        any_params: task.any_params,
    });
    flows.chain(tasks).collect()
}

/// Declared names that a template may come out as.
fn exact_names<'a>(declarations: &'a Declarations, template: &'a str) -> impl Iterator<Item = &'a str> {
    let before = template.split('{').next().unwrap_or_default();
    let after = template.rsplit('}').next().unwrap_or_default();
    let names = declarations.iter().map(|declared| declared.config.name.as_str());
    names.filter(move |name| !name.contains('*') && name.starts_with(before) && name.ends_with(after))
}

fn check_asker(declarations: &Declarations, gate: &Gate, asker: &Asker<'_>, findings: &mut Vec<Finding>) {
    for (name, units) in asker.resources {
        let (plain, told) = if is_template(name) { sample(asker, name) } else { (check_requested(name).ok(), None) };
        if let Some((code, message)) = told {
            findings.push(finding(code, false, asker.file, format!("{}: {message}", asker.what)));
            continue;
        }
        let Some(plain) = plain else { continue };
        if is_template(name) && !gate.is_declared(&plain) && exact_names(declarations, name).next().is_some() {
            // Only some names are declared that it may come out as: whether it does depends on the parameter.
            continue;
        }
        if let Err(refusal) = gate.check_needs(&[(&plain, *units)], None) {
            let written = if is_template(name) { format!(" (asked for as {name:?})") } else { String::new() };
            findings.push(finding(refusal.code(), false, asker.file, format!("{}: {refusal}{written}", asker.what)));
        }
    }
}

/// What a template may come out as; or what is wrong with it.
fn sample(asker: &Asker<'_>, name: &str) -> (Option<String>, Option<(&'static str, String)>) {
    let template = match Template::parse(name) {
        Ok(template) => template,
        Err(refusal) => return (None, Some((refusal.code(), refusal.to_string()))),
    };
    let unknown = template.fields().filter_map(|field| field.split('.').next());
    let unknown = unknown.into_iter().find(|field| !asker.any_params && !asker.params.contains(field));
    if let Some(field) = unknown {
        let near = did_you_mean(field, asker.params.iter().copied());
        return (
            None,
            Some(("TemplateError", format!("{name:?} needs the parameter {field:?}, which it has not{near}"))),
        );
    }
    match template.render(|_| Ok("x".into())) {
        Ok(plain) => (Some(plain), None),
        Err(refusal) => (None, Some((refusal.code(), refusal.to_string()))),
    }
}

/// A cap above the number of engines never binds, unless the flow is called inside other runs: that takes no engine.
fn check_caps(found: &Discovery, max_engines: Option<u64>, findings: &mut Vec<Finding>) {
    let engines = max_engines.unwrap_or(1);
    for flow in &found.flows {
        if let Some(cap) = flow.options.max_concurrent.filter(|cap| *cap > engines) {
            let message = format!(
                "flow {:?} has max_concurrent = {cap}, and max_engines is {engines}: more than {engines} never run at once, unless \
                 other flows call it; raise max_engines, or leave the cap out",
                flow.name
            );
            findings.push(finding("NeverBinds", true, &flow.file, message));
        }
    }
}

/// Patterns that match the same names, and which of them wins.
fn check_patterns(declarations: &Declarations, gate: &Gate, findings: &mut Vec<Finding>) {
    let patterns: Vec<_> = declarations.iter().filter(|declared| declared.config.name.contains('*')).collect();
    for (index, one) in patterns.iter().enumerate() {
        for other in &patterns[index + 1..] {
            let Some(both) = name_of_both(&one.config.name, &other.config.name) else { continue };
            let Ok(resolution) = gate.resolve(&both) else { continue };
            let message = format!(
                "patterns {:?} and {:?} overlap: {both:?}, for one, goes by {:?} (the longest prefix wins, then the longest suffix)",
                one.config.name, other.config.name, resolution.declared_as
            );
            findings.push(finding("OverlappingPatterns", true, &other.place.origin(), message));
        }
    }
}

/// A name that two patterns match; `None` where there is none.
fn name_of_both(one: &str, other: &str) -> Option<String> {
    let ((prefix_a, suffix_a), (prefix_b, suffix_b)) = (one.split_once('*')?, other.split_once('*')?);
    let longer = |a: &str, b: &str, fits: fn(&str, &str) -> bool| {
        if fits(a, b) {
            Some(a.to_owned())
        } else if fits(b, a) {
            Some(b.to_owned())
        } else {
            None
        }
    };
    let prefix = longer(prefix_a, prefix_b, |a, b| a.starts_with(b))?;
    let suffix = longer(suffix_a, suffix_b, |a, b| a.ends_with(b))?;
    Some(format!("{prefix}x{suffix}"))
}

/// Of two buckets that are always asked for together, one may be so wide that the other never lets it bind.
fn check_pairs(declarations: &Declarations, found: &Discovery, findings: &mut Vec<Finding>) {
    let (askers, named) = (askers(found), |config: &&ResourceConfig| !config.name.contains('*'));
    let buckets: Vec<&ResourceConfig> = declarations.iter().map(|declared| &declared.config).filter(named).collect();
    let pairs = buckets.iter().flat_map(|wide| buckets.iter().map(move |narrow| (*wide, *narrow)));
    for (wide, narrow) in pairs.filter(|(wide, narrow)| never_binds(wide, narrow, &askers)) {
        let place = declarations.origin(&wide.name).unwrap_or_default();
        let message = format!(
            "token bucket {:?} can never bind: all that ask for it ask for {:?} too, which is used up before; \
             lower its rate or burst, or leave it out",
            wide.name, narrow.name
        );
        findings.push(finding("NeverBinds", true, &place, message));
    }
}

/// True when all that ask for `wide` ask for `narrow` too, and what that lets through can always be had of `wide`: at once by its burst,
/// and over any time by its rate.
fn never_binds(wide: &ResourceConfig, narrow: &ResourceConfig, askers: &[Asker<'_>]) -> bool {
    let (Limit::TokenBucket { rate: most, burst: large }, Limit::TokenBucket { rate, burst }) =
        (wide.limit, narrow.limit)
    else {
        return false;
    };
    let users = || askers.iter().filter_map(|asker| Some((asker, *asker.resources.get(&wide.name)?)));
    let fits = |(asker, units): (&Asker<'_>, u64)| {
        asker.resources.get(&narrow.name).is_some_and(|narrow_units| {
            let each = units as f64 / *narrow_units as f64;
            each * rate.as_f64() <= most.as_f64() && each * burst as f64 <= large as f64
        })
    };
    wide.name != narrow.name && (rate, burst) != (most, large) && users().next().is_some() && users().all(fits)
}

/// Declared, and asked for by nothing that was found: a misspelt name on one side, or something of another program.
fn check_unused(declarations: &Declarations, gate: &Gate, found: &Discovery, findings: &mut Vec<Finding>) {
    let mut used = std::collections::BTreeSet::new();
    for asker in askers(found) {
        for name in asker.resources.keys() {
            if is_template(name) {
                used.extend(exact_names(declarations, name).map(str::to_owned));
            }
            let plain = if is_template(name) { sample(&asker, name).0 } else { check_requested(name).ok() };
            used.extend(plain.and_then(|plain| gate.resolve(&plain).ok()).map(|resolution| resolution.declared_as));
        }
    }
    let of_flows = found.flows.iter().flat_map(|flow| &flow.options.tags);
    let tags = of_flows.chain(found.tasks.iter().flat_map(|task| &task.tags));
    let limits = tags.filter_map(|tag| tag_limit(tag).ok());
    used.extend(limits.filter_map(|name| gate.resolve(&name).ok()).map(|resolution| resolution.declared_as));
    for declared in declarations.iter().filter(|declared| !used.contains(&declared.config.name)) {
        let message = format!("nothing here asks for {:?}: remove it, or check the spelling", declared.config.name);
        findings.push(finding("UnusedResource", true, &declared.place.origin(), message));
    }
}
