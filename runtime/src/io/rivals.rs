//! Names of the other writers in a fight, read from `metadata.managedFields` of the object. In a fight, another writer
//! undoes what this agent writes.

use serde::Deserialize;
use serde_json::Value;

use crate::limits::{RIVAL_FIELD_BYTES, RIVAL_FIELDS_NAMED, RIVAL_NAME_BYTES, RIVALS_NAMED};

/// Entry of `metadata.managedFields`: a field manager and the fields that it set.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Managed {
    manager: String,
    time: String,
    #[serde(rename = "fieldsV1")]
    fields: Value,
}

/// Field managers of fleetnet's hub agent and member agent. Both agents set finalizers on the same objects, but seldom
/// undo each other's writes. So a message about a fight names these agents only if there is no other manager.
const AGENTS: [&str; 2] = ["fleetnet-hub-agent", "fleetnet-member-agent"];

/// Returns the names of the field managers except `own`, with the fields that they set, the latest first. Agents of
/// fleetnet are named only if there is no other manager.
pub(crate) fn of(object: &Value, own: &str) -> String {
    let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let read = entries.iter().filter_map(|entry| serde_json::from_value::<Managed>(entry.clone()).ok());
    let mut others: Vec<Managed> = read.filter(|entry| !entry.manager.is_empty() && entry.manager != own).collect();
    if others.iter().any(|entry| !entry.is_of_agent()) {
        others.retain(|entry| !entry.is_of_agent());
    }
    others.sort_by(|one, other| other.time.cmp(&one.time));
    if others.is_empty() {
        return "a writer that metadata.managedFields does not name".to_owned();
    }
    let named: Vec<String> = others.iter().take(RIVALS_NAMED).map(description).collect();
    format!("field manager {}", named.join(", before it "))
}

impl Managed {
    fn is_of_agent(&self) -> bool {
        AGENTS.contains(&&*self.manager)
    }
}

fn description(other: &Managed) -> String {
    let mut fields = Vec::new();
    for (field, below) in entries(&other.fields) {
        let within: Vec<&str> = if matches!(field, "metadata" | "spec" | "status") {
            entries(below).map(|(name, _)| name).collect()
        } else {
            Vec::new()
        };
        if within.is_empty() {
            fields.push((field, None));
        }
        fields.extend(within.into_iter().map(|name| (field, Some(name))));
    }
    let set = fields.len();
    fields.retain(|(field, within)| is_field(field) && within.is_none_or(is_field));
    fields.truncate(RIVAL_FIELDS_NAMED);
    let more = if fields.len() < set { " and more" } else { "" };
    let path = |(field, within): &(&str, Option<&str>)| {
        within.map_or_else(|| (*field).to_owned(), |name| format!("{field}.{name}"))
    };
    let paths: Vec<String> = fields.iter().map(path).collect();
    match &paths[..] {
        [] => quoted(&other.manager),
        paths => format!("{} ({}{more})", quoted(&other.manager), paths.join(", ")),
    }
}

/// Quotes the name of a field manager, cut to a limit, because any writer can choose a long name.
fn quoted(manager: &str) -> String {
    let mut quoted = format!("{manager:?}");
    if quoted.len() > RIVAL_NAME_BYTES + 2 {
        quoted.truncate(quoted.floor_char_boundary(RIVAL_NAME_BYTES - 2));
        quoted.push_str("…\"");
    }
    quoted
}

/// True if this text can be the name of a field of a Kubernetes object. A writer can put any text into `managedFields`.
fn is_field(name: &str) -> bool {
    name.len() <= RIVAL_FIELD_BYTES && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the entries of a field set in the form FieldsV1, where `f:endpoints` means the field `endpoints`.
fn entries(fields: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let fields = fields.as_object().into_iter().flatten();
    fields.filter_map(|(name, below)| Some((name.strip_prefix("f:")?, below)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    /// Also rule R15.
    #[test]
    fn other_field_managers_are_named_with_what_they_set_the_latest_first() {
        let labels = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:endpoints": {}});
        let object = json!({"metadata": {"managedFields": [
            entry("member-agent", "2026-01-01T00:00:09Z", json!({"f:ports": {}})),
            entry("early", "2026-01-01T00:00:01Z", json!({"f:spec": {}})),
            entry("kubectl-edit", "2026-01-01T00:00:05Z", labels),
            entry("first", "2026-01-01T00:00:00Z", Value::Null),
        ]}});
        let expected = "field manager \"kubectl-edit\" (endpoints, metadata.labels), before it \"early\" (spec), before it \"first\"";
        assert_eq!(of(&object, "member-agent"), expected);
    }

    #[test]
    fn only_so_many_fields_are_named() {
        let fields: serde_json::Map<String, Value> = (0..9).map(|number| (format!("f:f{number}"), json!({}))).collect();
        let object = json!({"metadata": {"managedFields": [entry("x", "", Value::Object(fields))]}});
        assert_eq!(of(&object, ""), "field manager \"x\" (f0, f1, f2, f3, f4 and more)");
    }

    #[test]
    fn the_other_agent_is_named_only_where_nobody_else_is() {
        let hub_agent =
            || entry("fleetnet-hub-agent", "2026-01-01T00:00:09Z", json!({"f:metadata": {"f:finalizers": {}}}));
        let beside =
            json!({"metadata": {"managedFields": [hub_agent(), entry("kubectl", "2026-01-01T00:00:01Z", json!({}))]}});
        assert_eq!(of(&beside, "fleetnet-member-agent"), "field manager \"kubectl\"");
        let alone = json!({"metadata": {"managedFields": [hub_agent()]}});
        let expected = "field manager \"fleetnet-hub-agent\" (metadata.finalizers)";
        assert_eq!(of(&alone, "fleetnet-member-agent"), expected);
    }

    #[test]
    fn what_other_writers_choose_is_cut_and_only_names_of_fields_are_named() {
        let fields: serde_json::Map<String, Value> =
            (0..9).map(|number| (format!("f:{}{number}", "f".repeat(62)), json!({}))).collect();
        let entries: Vec<Value> = ["\u{7f}", "é", "\u{10ffff}"]
            .map(|name| entry(&name.repeat(100_000), "", Value::Object(fields.clone())))
            .into();
        let description = of(&json!({"metadata": {"managedFields": entries}}), "");
        assert!(description.len() <= 1_500, "{} bytes: {description}", description.len());
        assert_eq!(description.matches("…\" (").count(), 3, "{description}");

        let long = "f:".to_owned() + &"f".repeat(64);
        let fields = json!({"f:ports": {}, "f:a b": {}, "f:spec": {"f:\n": {}}, long: {}});
        let object = json!({"metadata": {"managedFields": [entry("x", "", fields)]}});
        assert_eq!(of(&object, ""), "field manager \"x\" (ports and more)");
        let name = "x".repeat(128);
        let object = json!({"metadata": {"managedFields": [entry(&name, "", json!({}))]}});
        assert_eq!(of(&object, ""), format!("field manager \"{name}\""), "as long as the API server allows");
    }

    #[test]
    fn a_report_states_that_nobody_else_is_named() {
        let unknown = "a writer that metadata.managedFields does not name";
        let own = json!({"metadata": {"managedFields": [entry("member-agent", "", json!({}))]}});
        for object in [own, json!({}), json!({"metadata": {"managedFields": [7, {"manager": ""}]}})] {
            assert_eq!(of(&object, "member-agent"), unknown, "{object}");
        }
    }
}
