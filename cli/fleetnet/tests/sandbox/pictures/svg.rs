//! SVG of a terminal, with the colours of its text.

use std::fmt::Write as _;

/// Width and height of a character in pixels.
const CELL: [f64; 2] = [8.43, 20.0];
const MARGIN: f64 = 16.0;
const STYLE: &str = "<style>text { font: 14px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; \
                     fill: #d0d7de; white-space: pre } .bold { font-weight: bold; fill: #fff } .faint { fill: #8b949e } \
                     .red { fill: #ff7b72 } .green { fill: #7ee787 } .yellow { fill: #e3b341 }</style>";

/// Returns the picture of a terminal with these lines, in which escape sequences set the colours. A long line continues
/// in the next row. Each line is one line of the file, so that a difference is easy to read.
pub(super) fn terminal(lines: &[String], columns: usize, title: &str) -> String {
    let (mut body, mut row) = (String::new(), 0);
    for line in lines {
        let (mut column, mut class) = (0, "");
        for (code, text) in pieces(line) {
            class = code.map_or(class, class_of);
            let mut rest: Vec<char> = text.chars().collect();
            while !rest.is_empty() {
                if column == columns {
                    (row, column) = (row + 1, 0);
                }
                let later = rest.split_off(rest.len().min(columns - column));
                body.push_str(&element(&rest, class, [column, row]));
                column += rest.len();
                rest = later;
            }
        }
        row += 1;
        body.push('\n');
    }
    let [width, height] = [pixel(columns, CELL[0]) + MARGIN, pixel(row, CELL[1]) + MARGIN];
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>{title}</title>\n{STYLE}\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n{body}</svg>\n"
    )
}

/// Returns the parts of a line, each with the code of the escape sequence before it.
fn pieces(line: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    line.split("\u{1b}[").enumerate().map(|(index, part)| match part.split_once('m') {
        Some((code, text)) if index > 0 => (Some(code), text),
        _ => (None, part),
    })
}

/// Returns a text at a place. It gets a fixed length, because the widths of characters differ between fonts.
fn element(text: &[char], class: &str, [column, row]: [usize; 2]) -> String {
    let shown: String = text.iter().collect();
    let mut element = String::from("<text");
    if !class.is_empty() {
        write!(element, " class=\"{class}\"").unwrap();
    }
    let length = pixel(text.len(), CELL[0]) - MARGIN;
    let [x, y] = [pixel(column, CELL[0]), pixel(row, CELL[1]) + 14.0];
    let shown = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    write!(element, " x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{length:.1}\">{shown}</text>").unwrap();
    element
}

/// Returns the place of a column or row.
fn pixel(index: usize, size: f64) -> f64 {
    MARGIN + f64::from(u32::try_from(index).unwrap()) * size
}

fn class_of(code: &str) -> &'static str {
    match code {
        "0" => "",
        "1" => "bold",
        "2" => "faint",
        "31" => "red",
        "32" => "green",
        "33" => "yellow",
        _ => panic!("the picture has no colour for the code {code:?}"),
    }
}
