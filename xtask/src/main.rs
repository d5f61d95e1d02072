//! `cargo run -p xtask -- tidy`: the rules of this repository as a check. Each module holds one rule, as a function
//! from plain input to a list of problems, so that every rule is tested with input that must fail.

mod arrows;
mod errors;
mod names;
mod reach;
mod sizes;
mod sources;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    match std::env::args().skip(1).collect::<Vec<_>>().join(" ").as_str() {
        "tidy" => report(root().and_then(|root| tidy(&root))),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy");
            ExitCode::from(2)
        }
    }
}

/// Prints what was found; success is no problem at all.
fn report(outcome: Result<Vec<String>>) -> ExitCode {
    match outcome {
        Ok(problems) if problems.is_empty() => {
            println!("tidy: all rules hold");
            ExitCode::SUCCESS
        }
        Ok(problems) => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            eprintln!("tidy: {} problem(s)", problems.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy could not run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn tidy(root: &Path) -> Result<Vec<String>> {
    let metadata = cargo(root, &["metadata", "--format-version", "1", "--no-deps"])?;
    let packages = arrows::packages(&metadata)?;
    let rust = sources::under(root, &["crates", "xtask"], "rs")?;
    let python = sources::under(root, &["python/src"], "py")?;

    let mut problems = arrows::check(&packages);
    for krate in reach::PURE_CRATES {
        let tree = cargo(root, &["tree", "-p", krate, "-e", "normal", "--target", "all", "--prefix", "depth"])?;
        problems.extend(reach::check(&tree));
    }
    problems.extend(sizes::check(&rust, &python, &sources::read(root, sizes::ALLOW_LIST)?));
    problems.extend(names::check_crates(packages.iter().map(|package| package.name.as_str())));
    problems.extend(names::check_sources(&rust, &python));
    let page = sources::read(root, errors::PAGE)?;
    problems.extend(errors::check(&page));
    // The list of codes here does not count as raising them.
    let raising: Vec<_> = rust.into_iter().filter(|source| source.path.starts_with("crates/")).chain(python).collect();
    problems.extend(errors::check_raised(&page, &raising));
    Ok(problems)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program).args(arguments).current_dir(root).output().context("cargo does not start")?;
    if !output.status.success() {
        bail!("cargo {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cargo did not print UTF-8")
}

/// The root of the repository. `cargo run` says where xtask lies; asked at run time, so that a moved clone needs no rebuild.
fn root() -> Result<PathBuf> {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").context("start it with cargo run -p xtask")?;
    Ok(Path::new(&xtask).join(".."))
}
