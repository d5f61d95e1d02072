//! Which crate may depend on which. Normal and build dependencies count; tests may use what they need.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

/// The allowed arrows, as ARCHITECTURE.md draws them. A crate that is not listed here is a problem: whoever adds a
/// crate decides what it stands on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("mirab", &["mirab-config", "mirab-core", "mirab-flow", "mirab-store"]),
    ("mirab-config", &["mirab-core"]),
    ("mirab-core", &[]),
    ("mirab-flow", &["mirab-core"]),
    ("mirab-wire", &[]),
    ("mirab-store", &["mirab-core", "mirab-flow"]),
    ("mirab-server", &["mirab-config", "mirab-core", "mirab-flow", "mirab-store", "mirab-wire"]),
    ("mirab-client", &["mirab-wire"]),
    ("mirab-cli", &["mirab-client", "mirab-server", "mirab-wire"]),
    (
        "mirab-python",
        &["mirab-cli", "mirab-client", "mirab-config", "mirab-core", "mirab-flow", "mirab-store", "mirab-wire"],
    ),
    ("mirab-sim", &["mirab-core"]),
    ("xtask", &[]),
];

const LONGEST_CHAIN: usize = 6;

/// A crate of this workspace and the workspace crates that it depends on.
pub struct Package {
    pub name: String,
    pub needs: Vec<String>,
}

/// Reads the output of `cargo metadata --no-deps`.
pub fn packages(metadata: &str) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    packages.iter().map(package).collect()
}

fn package(package: &Value) -> Result<Package> {
    let name = package["name"].as_str().context("a package without a name")?;
    let dependencies = package["dependencies"].as_array().context("a package without dependencies")?;
    // A crate of this workspace is named by a path; one of a registry has none.
    let needs = dependencies.iter().filter(|dependency| dependency["kind"] != "dev" && dependency["path"].is_string());
    let needs = needs.filter_map(|dependency| dependency["name"].as_str().map(String::from));
    Ok(Package { name: name.into(), needs: needs.collect() })
}

/// The arrows that are not allowed, the crates that are not listed, and a chain that is too long.
pub fn check(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
            problems.push(format!("crate {} has no allowed arrows: list it in xtask/src/arrows.rs", package.name));
            continue;
        };
        for need in package.needs.iter().filter(|need| !allowed.contains(&need.as_str())) {
            let allowed = if allowed.is_empty() { "none".into() } else { allowed.join(", ") };
            problems.push(format!("crate {} must not depend on {need}, its arrows: {allowed}", package.name));
        }
    }
    problems.extend(long_chain(packages));
    problems
}

fn long_chain(packages: &[Package]) -> Option<String> {
    let needs = packages.iter().map(|package| (package.name.as_str(), package.needs.as_slice())).collect();
    let chain = packages.iter().map(|package| chain_from(&package.name, &needs)).max_by_key(Vec::len)?;
    (chain.len() > LONGEST_CHAIN)
        .then(|| format!("a chain of {} crates, at most {LONGEST_CHAIN}: {}", chain.len(), chain.join(" -> ")))
}

/// The longest chain that starts at a crate. It ends, because cargo refuses circles.
fn chain_from<'a>(name: &'a str, needs: &BTreeMap<&'a str, &'a [String]>) -> Vec<&'a str> {
    let below = needs.get(name).into_iter().flat_map(|needs| needs.iter());
    let longest = below.map(|need| chain_from(need, needs)).max_by_key(Vec::len).unwrap_or_default();
    [vec![name], longest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needing(name: &str, needs: &[&str]) -> Package {
        Package { name: name.into(), needs: needs.iter().map(|need| need.to_string()).collect() }
    }

    #[test]
    fn allowed_arrows_pass() {
        assert_eq!(check(&[needing("mirab-core", &[]), needing("mirab-flow", &["mirab-core"])]), [""; 0]);
    }

    #[test]
    fn an_arrow_out_of_the_core_is_named() {
        let problems = check(&[needing("mirab-core", &["mirab-store"])]);
        assert_eq!(problems, ["crate mirab-core must not depend on mirab-store, its arrows: none"]);
    }

    #[test]
    fn a_crate_that_nobody_decided_on_is_a_problem() {
        assert!(check(&[needing("mirab-extra", &[])])[0].contains("mirab-extra has no allowed arrows"));
    }

    #[test]
    fn a_chain_of_seven_is_too_long() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let chain: Vec<_> = names.windows(2).map(|pair| needing(pair[0], &[pair[1]])).collect();
        assert_eq!(long_chain(&chain[1..]), None);
        assert_eq!(long_chain(&chain).unwrap(), "a chain of 7 crates, at most 6: a -> b -> c -> d -> e -> f -> g");
    }

    #[test]
    fn metadata_gives_workspace_crates_without_test_dependencies() {
        let metadata = r#"{"packages": [{"name": "mirab-flow", "dependencies": [
            {"name": "mirab-core", "kind": null, "path": "crates/mirab-core"},
            {"name": "mirab-wire", "kind": "build", "path": "crates/mirab-wire"},
            {"name": "mirab-sim", "kind": "dev", "path": "crates/mirab-sim"},
            {"name": "thiserror", "kind": null}
        ]}]}"#;
        let packages = packages(metadata).unwrap();
        assert_eq!(packages[0].needs, ["mirab-core", "mirab-wire"]);
        assert_eq!(check(&packages).len(), 1);
    }
}
