//! Standard output: lines for people, or the JSON of the wire.
use crate::failure::Failure;
use crate::table::Table;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};

/// Where results go. Every write can fail, since the reader may leave at any time.
pub(crate) struct Output {
    writer: Box<dyn Write>,
    /// `--json`.
    pub json: bool,
}

impl Output {
    pub fn stdout(json: bool) -> Self {
        Self { writer: Box::new(io::stdout()), json }
    }

    pub fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        Ok(writeln!(self.writer, "{text}")?)
    }

    pub fn table(&mut self, table: &Table) -> Result<(), Failure> {
        table.lines().into_iter().try_for_each(|line| self.line(line))
    }

    /// One document on one line, whatever its size: a reader takes line after line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).expect("wire values are JSON");
        self.line(text)
    }
}

/// Text of others on one line: a newline would break the table, an escape sequence the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        assert_eq!(clean("a\nb\u{1b}[31m çay 日本"), "a\\nb\\u{1b}[31m çay 日本");
    }
}
