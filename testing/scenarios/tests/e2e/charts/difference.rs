//! Differences of two sets of objects, for people: one line for each, with the field and both values.

use super::objects::Objects;
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the differences of what charts render and of plain manifests.
pub(super) fn of(charts: &Objects, plain: &Objects) -> Vec<String> {
    let mut lines = Vec::new();
    for name in charts.keys().chain(plain.keys()).collect::<BTreeSet<_>>() {
        match (charts.get(name), plain.get(name)) {
            (Some(chart), Some(plain)) => compare(&format!("{name}: "), chart, plain, &mut lines),
            (Some(_), None) => lines.push(format!("{name}: only the chart has it")),
            (None, _) => lines.push(format!("{name}: only the plain manifest has it")),
        }
    }
    lines
}

/// Adds a line for each field in which two values differ.
fn compare(path: &str, chart: &Value, plain: &Value, lines: &mut Vec<String>) {
    match (chart, plain) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
                compare(&format!("{path}/{key}"), &chart[key], &plain[key], lines);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            for index in 0..ours.len().max(theirs.len()) {
                compare(&format!("{path}/{index}"), &chart[index], &plain[index], lines);
            }
        }
        _ if chart == plain => {}
        _ => lines.push(format!("{path}: the chart has {}, the plain manifest has {}", shown(chart), shown(plain))),
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() { "nothing".to_owned() } else { value.to_string() }
}

#[test]
fn each_field_that_differs_is_named_with_both_values() {
    let objects = |value: Value| -> Objects { [("Pod a/b".to_owned(), value)].into() };
    let chart = serde_json::json!({"args": ["--v=1", "--x"], "name": "b", "labels": {"a": "b"}});
    let plain = serde_json::json!({"args": ["--v=1"], "name": "c", "labels": {"a": "b"}});
    let expected = [
        r#"Pod a/b: /args/1: the chart has "--x", the plain manifest has nothing"#,
        r#"Pod a/b: /name: the chart has "b", the plain manifest has "c""#,
    ];
    assert_eq!(of(&objects(chart.clone()), &objects(plain)), expected);
    assert_eq!(of(&objects(chart.clone()), &objects(chart.clone())), Vec::<String>::new());
    assert_eq!(of(&objects(chart.clone()), &Objects::new()), ["Pod a/b: only the chart has it"]);
    assert_eq!(of(&Objects::new(), &objects(chart)), ["Pod a/b: only the plain manifest has it"]);
}
