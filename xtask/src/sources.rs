//! The source files that the rules look at.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A source file: its path from the root of the repository, with `/`, and its text.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    /// Tests and benchmarks may be long-winded: they are read one case at a time.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "benches")
    }
}

/// All files with the extension under the folders, in order of path. A folder that does not exist holds none.
pub fn under(root: &Path, folders: &[&str], extension: &str) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for folder in folders {
        if root.join(folder).is_dir() {
            walk(root, folder, extension, &mut found)?;
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The text of one file.
pub fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("{path} cannot be read"))
}

fn walk(root: &Path, folder: &str, extension: &str, found: &mut Vec<Source>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("{folder} cannot be listed"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.file_type()?.is_dir() {
            if !is_generated(&name) {
                walk(root, &path, extension, found)?;
            }
        } else if Path::new(&name).extension().is_some_and(|found| found == extension) {
            found.push(Source { text: read(root, &path)?, path });
        }
    }
    Ok(())
}

fn is_generated(folder: &str) -> bool {
    folder.starts_with('.') || folder.starts_with("target") || folder == "__pycache__"
}

#[cfg(test)]
pub fn source(path: &str, text: &str) -> Source {
    Source { path: path.into(), text: text.into() }
}
