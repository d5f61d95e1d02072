//! What a process printed, as far as a person is shown of it. A log can be larger than memory.
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// So much is read at an end of a log.
const PART: u64 = 4096;

/// The last line that is not blank.
pub(crate) fn last_line(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let text = tail(&mut file, 0).ok()?;
    text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

/// The beginning and the end; empty when there is no such file.
pub(crate) fn ends(path: &Path) -> String {
    let read = File::open(path).and_then(|mut file| {
        let mut head = Vec::new();
        file.by_ref().take(PART).read_to_end(&mut head)?;
        let rest = tail(&mut file, head.len() as u64)?;
        Ok(format!("{}{rest}", String::from_utf8_lossy(&head)))
    });
    read.unwrap_or_default()
}

/// The last part of a file, from `least` on.
fn tail(file: &mut File, least: u64) -> io::Result<String> {
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(end.saturating_sub(PART).max(least.min(end))))?;
    let mut bytes = Vec::new();
    file.take(PART).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ends_of_a_log_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!((last_line(&path), ends(&path)), (None, String::new()));
        std::fs::write(&path, "first\nlast \n\n").unwrap();
        assert_eq!((last_line(&path).as_deref(), ends(&path).as_str()), (Some("last"), "first\nlast \n\n"));
        // A sparse file that no memory could hold.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"\nend\n", 1 << 40).unwrap();
        assert_eq!(last_line(&path).as_deref(), Some("end"));
        let said = ends(&path);
        assert!(said.starts_with("first\n") && said.ends_with("\nend\n") && said.len() == 2 * 4096, "{}", said.len());
    }
}
