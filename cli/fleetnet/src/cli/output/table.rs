//! Tables for people, and the other formats of the same data.

use super::safe::Safe;
use super::{Format, Paint};

/// Colour of a cell on a terminal, and of a line on the page of `fleetnet ui`. The text says the same without the
/// colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
}

impl Tone {
    /// Control sequence that begins the colour.
    fn begin(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// Cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: Safe,
    tone: Tone,
}

impl Cell {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: Safe::line(text), tone: Tone::Plain }
    }

    pub(crate) fn toned(text: &str, tone: Tone) -> Self {
        Self { text: Safe::line(text), tone }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

/// Column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    header: &'static str,
    is_wide: bool,
}

/// Returns a column that every table shows.
pub(crate) const fn column(header: &'static str) -> Column {
    Column { header, is_wide: false }
}

/// Returns a column that only `-o wide` shows.
pub(crate) const fn wide(header: &'static str) -> Column {
    Column { header, is_wide: true }
}

/// Table with one line for each row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    headers: Vec<(Cell, bool)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let headers = columns.iter().map(|column| (Cell::new(column.header), column.is_wide)).collect();
        Self { headers, rows: Vec::new() }
    }

    /// Returns a table whose headers are data, such as the names of clusters.
    pub(crate) fn with_headers(headers: impl IntoIterator<Item = String>) -> Self {
        Self { headers: headers.into_iter().map(|header| (Cell::from(header), false)).collect(), rows: Vec::new() }
    }

    /// Adds a row. A row with fewer cells than columns is filled with empty cells.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the table as text, with at least two blanks between columns.
    pub(crate) fn render(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let shown: Vec<usize> =
            (0..self.headers.len()).filter(|&index| format == Format::Wide || !self.headers[index].1).collect();
        let headers = [self.headers.iter().map(|(header, _)| header.clone()).collect()];
        let lines: Vec<&Vec<Cell>> = headers.iter().filter(|_| has_headers).chain(&self.rows).collect();
        let empty = Cell::default();
        let width = |&index: &usize| {
            lines.iter().map(|line| line.get(index).map_or(0, |cell| cell.text.width())).max().unwrap_or_default()
        };
        let widths: Vec<usize> = shown.iter().map(width).collect();
        let mut text = Safe::default();
        for line in &lines {
            let mut written = Safe::default();
            for (&index, width) in shown.iter().zip(&widths) {
                let cell = line.get(index).unwrap_or(&empty);
                let is_painted = paint == Paint::Colours && cell.tone != Tone::Plain;
                written.push_own(if is_painted { cell.tone.begin() } else { "" });
                written.push(&cell.text);
                written.push_own(if is_painted { "\x1b[0m" } else { "" });
                written.pad(width + 2 - cell.text.width());
            }
            written.trim_end();
            written.push_own("\n");
            text.push(&written);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[column("NAME"), column("STATE"), wide("URL"), column("PLACE")]);
        table.row(["west".into(), Cell::toned("Ready", Tone::Good), "https://west".into(), "東京".into()]);
        table.row(["a\x1bb".into(), Cell::toned("Silent", Tone::Bad), "".into(), "here".into()]);
        table.row(["short".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_harmful_text_is_escaped() {
        assert_eq!(
            table().render(Format::Table, true, Paint::Plain).as_str(),
            "NAME      STATE   PLACE\nwest      Ready   東京\na\\u{1b}b  Silent  here\nshort\n"
        );
    }

    #[test]
    fn wide_shows_more_columns_and_headers_can_be_left_out() {
        assert_eq!(
            table().render(Format::Wide, false, Paint::Plain).as_str(),
            "west      Ready   https://west  東京\na\\u{1b}b  Silent                here\nshort\n"
        );
    }

    #[test]
    fn colours_change_no_widths() {
        let shown = table().render(Format::Table, false, Paint::Colours);
        assert!(shown.as_str().starts_with("west      \x1b[32mReady\x1b[0m   東京\n"), "{shown:?}");
    }
}
