//! Aligned columns.
use crate::output::clean;

const GAP: &str = "  ";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// Rows under headings; a column is as wide as its widest cell, and the last one is never padded.
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A heading with `>` before it has numbers under it, which stand on the right.
    pub fn new(headings: &[&'static str]) -> Self {
        let column = |heading: &&'static str| match heading.strip_prefix('>') {
            Some(heading) => (heading, Align::Right),
            None => (*heading, Align::Left),
        };
        Self { columns: headings.iter().map(column).collect(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.columns.len(), "a row has a cell for each heading");
        self.rows.push(cells.iter().map(|cell| clean(cell)).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn lines(&self) -> Vec<String> {
        let headings: Vec<String> = self.columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let rows = || std::iter::once(&headings).chain(&self.rows);
        let width_of = |column: usize| rows().map(|row| width(&row[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width_of).collect();
        rows().map(|row| self.join(row, &widths)).collect()
    }

    fn join(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.columns).map(|((cell, &wide), (_, align))| {
            let padding = " ".repeat(wide - width(cell));
            if *align == Align::Left { format!("{cell}{padding}") } else { format!("{padding}{cell}") }
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

/// How many places a text takes on a terminal.
fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The ranges that matter, not all of Unicode: where it is wrong, a column is off by a place.
fn char_width(c: char) -> usize {
    match u32::from(c) {
        // Marks that sit on the character before, joiners, variation selectors.
        0x0300..=0x036F | 0x1AB0..=0x1AFF | 0x200B..=0x200F | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => 0,
        // Scripts of East Asia, full-width forms, pictures.
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F => 2,
        0xFF01..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1F64F | 0x1F680..=0x1F9FF | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells<const N: usize>(cells: [&str; N]) -> [String; N] {
        cells.map(str::to_owned)
    }

    #[test]
    fn columns_are_aligned_and_lines_end_clean() {
        let mut table = Table::new(&[">ID", "FLOW", ">PRIO", "REASON"]);
        table.row(cells(["7", "nightly", "-5", "waits for `db`"]));
        table.row(cells(["1234", "x", "10", ""]));
        assert_eq!(
            table.lines(),
            ["  ID  FLOW     PRIO  REASON", "   7  nightly    -5  waits for `db`", "1234  x          10"]
        );
    }

    #[test]
    fn wide_and_combining_characters_keep_the_columns() {
        let mut table = Table::new(&["NAME", "N"]);
        table.row(cells(["日本", "1"]));
        table.row(cells(["e\u{301}te\u{301}", "2"]));
        table.row(cells(["🚰", "3"]));
        assert_eq!(table.lines(), ["NAME  N", "日本  1", "e\u{301}te\u{301}   2", "🚰    3"]);
    }

    #[test]
    fn a_newline_in_a_cell_stays_in_its_row() {
        let mut table = Table::new(&["A", "B"]);
        table.row(cells(["x\ny", "z"]));
        assert_eq!(table.lines(), ["A     B", "x\\ny  z"]);
    }

    #[test]
    fn without_rows_there_are_the_headings() {
        let table = Table::new(&["A", ">B"]);
        assert!(table.is_empty());
        assert_eq!(table.lines(), ["A  B"]);
    }
}
