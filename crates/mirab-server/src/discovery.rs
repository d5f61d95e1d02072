//! Finds the flows of a directory in a child process: the server itself never imports user code.
use crate::process::{open_pidfd, signal_group, wait_for_exit};
use mirab_flow::FlowSpec;
use mirab_wire::{BrokenFile, Discovery, Failure, FoundFlow};
use rustix::process::Signal;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// How much of what the interpreter said goes into an error.
const SHOWN_LINES: usize = 8;

/// Why the flows of a directory could not be found.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The interpreter could not be started.
    #[error("the Python interpreter {} cannot be started: {error}; name another with --python", python.display())]
    NoPython {
        /// What was tried.
        python: PathBuf,
        /// What failed.
        error: io::Error,
    },
    /// The interpreter lacks the package.
    #[error(
        "the Python interpreter {} has no package \"mirab\": install it there (pip install mirab), or name another with --python; \
         it said: {said}",
        python.display()
    )]
    NoPackage {
        /// The interpreter.
        python: PathBuf,
        /// Its error.
        said: String,
    },
    /// The process ended with an error, or said nothing that can be read.
    #[error("finding the flows of {} with {} failed: {why}", dir.display(), python.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
        /// The interpreter.
        python: PathBuf,
        /// What went wrong, with the first lines of its output.
        why: String,
    },
}

/// Runs the discovery process of an interpreter; its output goes to `log`, its finding comes through `answer`.
pub(crate) fn discover(python: &Path, dir: &Path, log: &Path, answer: &Path) -> Result<Discovery, DiscoveryError> {
    let failed = |why: String| DiscoveryError::Failed { dir: dir.to_owned(), python: python.to_owned(), why };
    let output = owner_only(log).and_then(|file| Ok((file.try_clone()?, file)));
    let (out, err) = output.map_err(|error| failed(format!("{} cannot be written: {error}", log.display())))?;
    // -P: files of the directory must not stand in for modules that the discovery itself needs.
    let mut command = Command::new(python);
    command.args(["-P", "-m", "mirab._discover"]).arg(dir).arg(answer);
    command.current_dir(dir).stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    let ended = run(command).map_err(|error| DiscoveryError::NoPython { python: python.to_owned(), error })?;
    let said = crate::log_file::ends(log);
    let text = std::fs::read(answer);
    let _ = std::fs::remove_file(answer);
    // The import that did not end, or ended it.
    let at = beside(answer, ".at");
    let file = std::fs::read_to_string(&at).map(|file| format!("while it imported {file:?} ")).unwrap_or_default();
    let _ = std::fs::remove_file(&at);
    let _ = std::fs::remove_file(beside(answer, ".part"));
    match ended {
        None => Err(failed(format!("{file}it did not end within {} seconds; {}", LIMIT.as_secs(), first_lines(&said)))),
        Some(status) if !status.success() && lacks_package(&said) => {
            Err(DiscoveryError::NoPackage { python: python.to_owned(), said: first_lines(&said) })
        }
        Some(status) if !status.success() => {
            Err(failed(format!("{file}it ended with {status}; {}", first_lines(&said))))
        }
        Some(_) => text
            .map_err(|error| format!("{file}it wrote no answer: {error}; {}", first_lines(&said)))
            .and_then(|text| {
                serde_json::from_slice(&text).map_err(|error| format!("its answer cannot be read: {error}"))
            })
            .map_err(failed),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An empty file that only its owner can read, also where there is one from a time when others could.
fn owner_only(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// `None` when it took too long and was killed.
fn run(mut command: Command) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let in_time = open_pidfd(child.id()).and_then(|pidfd| wait_for_exit(pidfd, LIMIT));
    if !matches!(in_time, Ok(true)) {
        signal_group(child.id(), Signal::KILL);
    }
    let status = child.wait()?;
    Ok(in_time?.then_some(status))
}

fn lacks_package(said: &str) -> bool {
    said.contains("No module named mirab") || said.contains("No module named 'mirab'")
}

fn first_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.as_slice() {
        [] => "it said nothing".into(),
        few if few.len() <= SHOWN_LINES => few.join("\n"),
        many => {
            // The last line of a traceback says what it is about.
            let first = many[..SHOWN_LINES - 1].join("\n");
            format!("{first}\n...\n{}", many[many.len() - 1])
        }
    }
}

/// What the orchestrator is told about the flows found; options that make no sense turn their file into a broken one.
pub(crate) fn specs(project: &str, found: &mut Discovery) -> Vec<FlowSpec> {
    let (mut specs, mut good) = (Vec::new(), Vec::new());
    for flow in std::mem::take(&mut found.flows) {
        match spec(project, &flow) {
            Ok(spec) => {
                specs.push(spec);
                good.push(flow);
            }
            Err(message) => {
                let error = Failure { kind: "ValueError".into(), message, traceback: None };
                found.broken.push(BrokenFile { file: flow.file, error });
            }
        }
    }
    found.flows = good;
    specs
}

fn spec(project: &str, flow: &FoundFlow) -> Result<FlowSpec, String> {
    let options = &flow.options;
    let in_flow = |why: String| format!("flow {:?}: {why}", flow.name);
    Ok(FlowSpec {
        project: project.to_owned(),
        name: flow.name.clone(),
        file: flow.file.clone(),
        function: flow.function.clone(),
        max_concurrent: options.max_concurrent,
        overlap: options.on_overlap.parse().map_err(in_flow)?,
        priority: options.priority,
        needs: options.resources.clone().into_iter().collect(),
        defaults: defaults(flow),
        tags: options.tags.clone(),
        retries: options.retries,
        retry_delay: nanos(options.retry_delay_s).ok_or_else(|| {
            in_flow(format!("retry_delay is {}, expected a number of seconds of 0 or more", options.retry_delay_s))
        })?,
        crash_retries: options.crash_retries,
    })
}

fn defaults(flow: &FoundFlow) -> serde_json::Map<String, serde_json::Value> {
    let known = flow.params.iter().filter_map(|param| Some((param.name.clone(), param.default.clone()?)));
    known.collect()
}

/// Seconds as nanoseconds; `None` when they are negative or no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
pub(crate) fn nanos(seconds: f64) -> Option<u64> {
    let nanos = seconds * 1e9;
    (nanos >= 0.0 && nanos < u64::MAX as f64).then_some(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_user_code_prints_is_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("discovery.log");
        std::fs::write(&path, "earlier").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        for _ in 0..2 {
            owner_only(&path).unwrap();
            let found = std::fs::metadata(&path).unwrap();
            assert_eq!((found.permissions().mode() & 0o777, found.len()), (0o600, 0));
            std::fs::remove_file(&path).unwrap();
        }
    }
}
