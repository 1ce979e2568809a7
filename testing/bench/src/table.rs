//! Tables in Markdown of any figures: a line for each single figure, and a table for each list.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Single figures of a value, by their path in it, and its lists of objects.
#[derive(Default)]
struct Figures<'a> {
    cells: BTreeMap<String, String>,
    lists: Vec<(String, &'a [Value])>,
}

/// Adds the figures of `value` to a text.
pub fn add(text: &mut String, value: &Value) {
    let figures = Figures::of(value);
    for (name, cell) in &figures.cells {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}: {cell}");
    }
    figures.add_lists(text);
}

impl<'a> Figures<'a> {
    fn of(value: &'a Value) -> Self {
        let mut figures = Self::default();
        figures.collect("", value);
        figures
    }

    fn collect(&mut self, name: &str, value: &'a Value) {
        match value {
            Value::Object(fields) if fields.contains_key("p50_milliseconds") => {
                let quantiles = ["p50", "p90", "p99", "longest"].map(|it| cell(&fields[&format!("{it}_milliseconds")]));
                self.cells.insert(format!("{name}, ms: p50 / p90 / p99 / longest"), quantiles.join(" / "));
            }
            Value::Object(fields) => {
                for (field, value) in fields {
                    self.collect(&if name.is_empty() { field.clone() } else { format!("{name}.{field}") }, value);
                }
            }
            Value::Array(rows) if rows.iter().any(Value::is_object) => self.lists.push((name.to_owned(), rows)),
            Value::Null => {}
            single => drop(self.cells.insert(name.to_owned(), cell(single))),
        }
    }

    fn add_lists(&self, text: &mut String) {
        for (name, values) in &self.lists {
            let rows: Vec<Figures<'_>> = values.iter().map(Figures::of).collect();
            let columns: BTreeSet<&str> = rows.iter().flat_map(|row| row.cells.keys()).map(String::as_str).collect();
            let mut lines: Vec<Vec<&str>> = Vec::new();
            for title in columns {
                let cells = rows.iter().map(|row| row.cells.get(title).map_or("", String::as_str));
                lines.push(std::iter::once(title).chain(cells).collect());
            }
            // A list of few objects with many figures is easier to read with a line for each figure.
            if lines.len() <= rows.len() {
                lines = (0..=rows.len()).map(|row| lines.iter().map(|column| column[row]).collect()).collect();
            }
            let _ = writeln!(text, "\n{name}\n");
            for (number, line) in lines.iter().enumerate() {
                let _ = writeln!(text, "| {} |", line.join(" | "));
                if number == 0 {
                    let _ = writeln!(text, "|{}", "---|".repeat(line.len()));
                }
            }
            for (number, mut row) in (1..).zip(rows) {
                row.lists.iter_mut().for_each(|(list, _)| *list = format!("{name} {number}: {list}"));
                row.add_lists(text);
            }
        }
    }
}

/// Returns a single figure as text. Fractions have two decimals.
fn cell(value: &Value) -> String {
    match (value, value.as_f64()) {
        (Value::String(text), _) => text.clone(),
        (_, Some(number)) if value.is_f64() => format!("{number:.2}"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::add;
    use serde_json::json;

    #[test]
    fn figures_are_lines_and_lists_are_tables() {
        let time = json!({"count": 1, "p50_milliseconds": 1.0, "p90_milliseconds": 2.0, "p99_milliseconds": 3.0,
            "longest_milliseconds": 4.0});
        let figures = json!({
            "first": {"seconds": 1.234, "restart": null},
            "fleets": [{"members": 2, "api": "fleet", "changes": [{"rate": 20, "time": time}]}, {"members": 10}],
        });
        let mut text = String::new();
        add(&mut text, &figures);
        let expected = "first.seconds: 1.23\n\nfleets\n\n| api | members |\n|---|---|\n| fleet | 2 |\n|  | 10 |\n\n\
                        fleets 1: changes\n\n| rate | 20 |\n|---|---|\n\
                        | time, ms: p50 / p90 / p99 / longest | 1.00 / 2.00 / 3.00 / 4.00 |\n";
        assert_eq!(text, expected);
    }
}
