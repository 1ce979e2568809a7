//! Tables (`meta.k8s.io/v1`), the form in which `kubectl get` requests objects: columns and cells.

use crate::object::{Object, meta_text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// First column of every table.
pub(crate) const NAME: (&str, &str) = ("Name", "metadata.name");
/// Last column of most tables.
pub(crate) const AGE: (&str, &str) = ("Age", "metadata.creationTimestamp");

/// Column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    name: String,
    /// Type of the values: `string`, `integer`, `number`, `boolean` or `date`.
    kind: String,
    /// True if the values are times, which are shown as ages.
    age: bool,
    format: String,
    /// Columns with a priority above 0 are shown only with `-o wide`.
    priority: i64,
    /// Path of the value in the object, for example `spec.type` or `status.conditions[?(@.type=="Valid")].status`.
    path: String,
}

impl Column {
    /// Returns a column of texts.
    #[must_use]
    pub fn text(name: &str, path: &str) -> Self {
        let format = if name == NAME.0 { "name" } else { "" };
        Self {
            name: name.to_owned(),
            kind: "string".to_owned(),
            age: false,
            format: format.to_owned(),
            priority: 0,
            path: path.to_owned(),
        }
    }

    /// Returns a column of times, which are shown as ages.
    #[must_use]
    pub fn age(name: &str, path: &str) -> Self {
        Self { age: true, ..Self::text(name, path) }
    }

    /// Returns the column of an item in `additionalPrinterColumns`.
    pub(crate) fn printer(given: &Value) -> Self {
        let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            kind: text("type"),
            age: given["type"] == "date",
            format: text("format"),
            priority: given["priority"].as_i64().unwrap_or(0),
            path: text("jsonPath").trim_start_matches('.').to_owned(),
        }
    }

    fn definition(&self) -> Value {
        json!({"name": self.name, "type": self.kind, "format": self.format, "description": "", "priority": self.priority})
    }

    fn cell(&self, object: &Object, now: Timestamp) -> Value {
        let found = found(&Value::Object(object.clone()), &self.path);
        match (self.kind.as_str(), found.as_slice()) {
            (_, []) => Value::Null,
            (_, [time, ..]) if self.age => json!(time.as_str().and_then(|time| age(time, now)).unwrap_or_default()),
            ("integer" | "number" | "boolean", [value, ..]) => value.clone(),
            (_, values) => json!(values.iter().map(shown).collect::<Vec<_>>().join(",")),
        }
    }
}

/// Definitions of the columns in a table.
pub(crate) fn definitions(columns: &[Column]) -> Value {
    columns.iter().map(Column::definition).collect()
}

/// Row of an object in a table. `shown` is the object, or its metadata.
pub(crate) fn row(columns: &[Column], object: &Object, shown: Value, now: Timestamp) -> Value {
    let cells: Vec<Value> = columns.iter().map(|column| column.cell(object, now)).collect();
    json!({"cells": cells, "object": shown})
}

/// An object's metadata, as a table shows it by default.
pub(crate) fn metadata_of(object: &Object) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.get("metadata")})
}

/// A table without rows.
pub(crate) fn empty(columns: &Value, metadata: &Map<String, Value>) -> Value {
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns, "rows": [],
    })
}

/// Metadata of a table with the row of one object: only its resourceVersion.
pub(crate) fn version_of(object: &Object) -> Map<String, Value> {
    Map::from_iter([("resourceVersion".to_owned(), json!(meta_text(object, "resourceVersion")))])
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Values at a path. A dot in a name is written `\.`. A part of the path may have the suffix `[*]` for all items of a
/// list, `[0]` for one item, or `[?(@.type=="Valid")]` for the items whose field has this value.
fn found(value: &Value, path: &str) -> Vec<Value> {
    let mut values = vec![value.clone()];
    let mut rest = path;
    while !rest.is_empty() {
        let is_end = |(at, _): &(usize, &str)| !rest[..*at].ends_with('\\');
        let end = rest.match_indices(['.', '[']).find(is_end).map_or(rest.len(), |(at, _)| at);
        let (name, behind) = rest.split_at(end);
        if !name.is_empty() {
            let name = name.replace("\\.", ".");
            values = values.iter().filter_map(|value| value.get(&name).cloned()).collect();
        }
        rest = behind.strip_prefix('.').unwrap_or(behind);
        if let Some((inside, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            values = values.iter().flat_map(|value| items(value, inside)).collect();
            rest = behind.strip_prefix('.').unwrap_or(behind);
        }
    }
    values.retain(|value| !value.is_null());
    values
}

/// Items of a list that an expression in brackets selects.
fn items(list: &Value, inside: &str) -> Vec<Value> {
    let all = list.as_array().map_or(&[][..], Vec::as_slice);
    if let Ok(index) = inside.parse::<usize>() {
        return all.get(index).cloned().into_iter().collect();
    }
    let filter = inside.strip_prefix("?(@.").and_then(|filter| filter.strip_suffix(')')?.split_once("=="));
    match filter {
        Some((field, wanted)) => {
            let wanted = wanted.trim().trim_matches(['"', '\'']);
            all.iter().filter(|item| item[field.trim()] == wanted).cloned().collect()
        }
        None => all.to_vec(),
    }
}

/// Age in the form of kubectl, for example `45s`, `3m20s`, `5h` or `12d`.
fn age(time: &str, now: Timestamp) -> Option<String> {
    let seconds = now.as_second().saturating_sub(time.parse::<Timestamp>().ok()?.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |whole: i64, unit: &str, part: i64, small: &str| match part {
        0 => format!("{whole}{unit}"),
        part => format!("{whole}{unit}{part}{small}"),
    };
    Some(match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => two(days / 365, "y", days % 365, "d"),
    })
}

#[cfg(test)]
mod tests {
    use super::{age, found};
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn ages_have_the_form_of_kubectl() {
        let begin = Timestamp::UNIX_EPOCH;
        let ages = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (10_800, "3h"),
            (11_400, "3h10m"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (700_000, "8d"),
            (63_072_000, "2y"),
        ];
        for (seconds, shown) in ages {
            let now = Timestamp::from_second(seconds).unwrap();
            assert_eq!(age(&begin.to_string(), now).as_deref(), Some(shown), "{seconds}");
        }
        assert_eq!(age("yesterday", begin), None);
    }

    #[test]
    fn paths_select_members_and_items() {
        let object =
            json!({"a": {"b": 1}, "list": [{"type": "x", "status": "True"}, {"type": "y", "status": "False"}]});
        assert_eq!(found(&object, "a.b"), [json!(1)]);
        assert_eq!(found(&object, r#"list[?(@.type=="y")].status"#), [json!("False")]);
        assert_eq!(found(&object, "list[*].type"), [json!("x"), json!("y")]);
        assert_eq!(found(&object, "list[0].type"), [json!("x")]);
        assert!(found(&object, "a.c.d").is_empty());
        let labels = json!({"labels": {"a.b/c": "d"}, "a": [{"b.c": 1}]});
        assert_eq!(found(&labels, r"labels.a\.b/c"), [json!("d")]);
        assert_eq!(found(&labels, r"a[0].b\.c"), [json!(1)]);
    }
}
