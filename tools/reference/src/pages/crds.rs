//! Page of the custom resources, from the CustomResourceDefinitions.

use super::markdown::{code, codes, table, text};
use fleetnet_api::crds::{Form, all};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::Value;
use std::collections::BTreeSet;

const INTRODUCTION: &str = "\
The definitions are in [deploy/crds](../../deploy/crds). Fields without a mark in the column \"Go agents\" are additions of \
fleetnet: the definitions of the Go agents do not have them. `required` means: required if the enclosing object exists.

";

/// Name of the fields with a list of conditions. The page leaves out the fields of a condition, which are the same in
/// all kinds.
const CONDITIONS: &str = "conditions";

pub(super) fn body() -> String {
    let go_form = all(Form::Go);
    let mut body = INTRODUCTION.to_owned();
    for definition in all(Form::Full) {
        let kind = &definition.spec.names.kind;
        let of_go = go_form.iter().find(|other| other.spec.names.kind == *kind);
        body.push_str(&format!("## {kind}\n\n{}\n\n", about(&definition, of_go.is_some())));
        let mut last: Option<Vec<Vec<String>>> = None;
        for version in &definition.spec.versions {
            let of_go = of_go.and_then(|other| other.spec.versions.iter().find(|it| it.name == version.name));
            let rows = fields(version, of_go);
            if last.as_ref() == Some(&rows) {
                continue;
            }
            if definition.spec.versions.len() > 1 {
                body.push_str(&format!("### {kind} {}\n\n", version.name));
            }
            body.push_str(&table(&["field", "type", "limits", "Go agents", "meaning"], rows.clone()));
            last = Some(rows);
        }
    }
    body
}

/// Returns a text about a kind: its description, group, versions, names and scope. `is_of_go` is true if the Go agents
/// have the kind.
fn about(definition: &CustomResourceDefinition, is_of_go: bool) -> String {
    let (spec, names) = (&definition.spec, &definition.spec.names);
    let description = spec.versions.iter().rev().find_map(|version| {
        let schema = schema(version)?;
        Some(text(schema.get("description")?.as_str()?))
    });
    let versions = spec.versions.iter().map(|version| {
        let state = if version.storage { " (stored)" } else { "" };
        format!("{}{state}", code(&version.name))
    });
    let mut parts = vec![
        format!("group {}", code(&spec.group)),
        format!("versions {}", versions.collect::<Vec<_>>().join(", ")),
        format!("plural {}", code(&names.plural)),
    ];
    if let Some(short) = names.short_names.as_ref().filter(|short| !short.is_empty()) {
        parts.push(format!("short names {}", codes(short)));
    }
    parts.push(spec.scope.to_lowercase());
    let of_go = if is_of_go { "" } else { " The Go agents do not have this kind." };
    format!("{}{of_go}\n\n{}.", description.unwrap_or_default(), capitalized(&parts.join("; ")))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn schema(version: &CustomResourceDefinitionVersion) -> Option<Value> {
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    Some(serde_json::to_value(schema).expect("a schema has string keys and so is JSON"))
}

/// Returns the rows of all fields of a version, each below its enclosing field.
fn fields(
    version: &CustomResourceDefinitionVersion,
    of_go: Option<&CustomResourceDefinitionVersion>,
) -> Vec<Vec<String>> {
    let mut in_go = Vec::new();
    if let Some(schema) = of_go.and_then(schema) {
        walk(&schema, "", &mut in_go);
    }
    let known: BTreeSet<String> = in_go.into_iter().map(|field| field.path).collect();
    let mut all = Vec::new();
    if let Some(schema) = schema(version) {
        walk(&schema, "", &mut all);
    }
    let row = |field: Field| {
        let mark = if known.contains(&field.path) { "yes" } else { "" };
        vec![code(&field.path), field.kind, field.limits, mark.to_owned(), field.meaning]
    };
    all.into_iter().map(row).collect()
}

/// Field of a schema.
struct Field {
    path: String,
    kind: String,
    limits: String,
    meaning: String,
}

fn walk(schema: &Value, path: &str, fields: &mut Vec<Field>) {
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let meaning = text(property["description"].as_str().unwrap_or_default());
        let limits = limits(property, required.contains(name.as_str()));
        fields.push(Field { path: path.clone(), kind: kind(property), limits, meaning });
        if name == CONDITIONS {
            continue;
        }
        walk(property, &path, fields);
        walk(&property["items"], &format!("{path}[]"), fields);
        walk(&property["additionalProperties"], &format!("{path}.*"), fields);
    }
}

fn kind(property: &Value) -> String {
    let kind = property["type"].as_str().unwrap_or("integer or string");
    match property["items"]["type"].as_str() {
        Some(items) => format!("list of {items}s"),
        None if property["additionalProperties"].is_object() => {
            format!("map of {}s", property["additionalProperties"]["type"].as_str().unwrap_or("value"))
        }
        None => property["format"].as_str().map_or(kind.to_owned(), |format| format!("{kind} ({format})")),
    }
}

fn limits(property: &Value, is_required: bool) -> String {
    let mut limits = Vec::new();
    if is_required {
        limits.push("required".to_owned());
    }
    if let Some(values) = property["enum"].as_array() {
        limits.push(codes(values.iter().filter_map(Value::as_str)));
    }
    for (keyword, what) in [
        ("minimum", "at least {}"),
        ("maximum", "at most {}"),
        ("minLength", "at least {} characters"),
        ("maxLength", "at most {} characters"),
        ("minItems", "at least {} elements"),
        ("maxItems", "at most {} elements"),
    ] {
        if let Some(number) = property[keyword].as_f64() {
            let what = if number == 1.0 { what.trim_end_matches('s') } else { what };
            limits.push(what.replace("{}", &number.to_string()));
        }
    }
    if !property["default"].is_null() {
        limits.push(format!("default {}", code(&property["default"].to_string().replace('"', ""))));
    }
    limits.join(", ")
}
