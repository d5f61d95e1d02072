//! Where in a file something stands, and what is wrong there.
use std::fmt;
use std::ops::Range;

/// A place in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file by its full path.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl Place {
    /// `FILE:LINE`, as resources show where they were declared.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A configuration that cannot be used; says where, what was wrong, what was expected, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// `None` for values that stand in no file.
    pub place: Option<Place>,
    /// What was wrong, what was expected, what to do.
    pub message: String,
}

impl ConfigError {
    /// Something is wrong at a place.
    #[must_use]
    pub fn at(place: Place, message: impl Into<String>) -> Self {
        Self { place: Some(place), message: message.into() }
    }

    /// Something is wrong that stands in no file.
    #[must_use]
    pub fn of(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The text of a file, to tell places in it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub label: &'a str,
    pub text: &'a str,
    /// Where its lines begin: counting them anew for each place would read a long file as often as it has names.
    pub lines: &'a [usize],
}

/// Where the lines of a text begin.
pub(crate) fn lines_of(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

impl Source<'_> {
    /// The place where `span` begins; the start of the file when the parser kept no span.
    pub fn place(&self, span: Option<Range<usize>>) -> Place {
        let offset = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self.lines.partition_point(|begin| *begin <= offset);
        let begin = self.lines[line - 1];
        let before = self.text.get(begin..offset).unwrap_or_default();
        Place { file: self.label.to_owned(), line, column: before.chars().count() + 1 }
    }
}
