//! Tables of Markdown.

use std::fmt::Write as _;

/// Returns a table. Cells must be escaped: see [`text`] and [`code`].
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for row in rows {
        let row: Vec<String> =
            row.into_iter().map(|cell| if cell.is_empty() { "–".to_owned() } else { cell }).collect();
        let _ = writeln!(table, "| {} |", row.join(" | "));
    }
    table.push('\n');
    table
}

/// Returns prose for a cell: on one line, with a full stop, and without characters that Markdown reads as markup.
pub(crate) fn text(prose: &str) -> String {
    let line = prose.split_whitespace().collect::<Vec<_>>().join(" ");
    let escaped: Vec<String> = line.split('`').enumerate().map(|(index, part)| escape(part, index % 2 == 1)).collect();
    let line = escaped.join("`");
    if line.is_empty() || line.ends_with(['.', ':', '…']) { line } else { format!("{line}.") }
}

fn escape(part: &str, is_code: bool) -> String {
    let part = part.replace('|', "\\|");
    if is_code { part } else { part.replace('<', "\\<").replace('*', "\\*") }
}

/// Returns a name between backquotes. Returns an empty text for an empty name.
pub(crate) fn code(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("`{}`", name.replace('|', "\\|")) }
}

/// Returns names between backquotes, separated by commas.
pub(crate) fn codes<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    names.into_iter().map(|name| code(name.as_ref())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_markup_as_text_and_ends_with_a_full_stop() {
        assert_eq!(text(" Ids as <id>=<x>|*,\n in `a<b>|c`"), "Ids as \\<id>=\\<x>\\|\\*, in `a<b>\\|c`.");
        assert_eq!((text("Done."), text(""), code("")), ("Done.".to_owned(), String::new(), String::new()));
        assert_eq!(codes(["a", "b|c"]), "`a`, `b\\|c`");
        assert_eq!(table(&["a", "b"], [vec!["1".into(), String::new()]]), "| a | b |\n|---|---|\n| 1 | – |\n\n");
    }
}
