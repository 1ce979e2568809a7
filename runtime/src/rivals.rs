//! Other writers of an object, as far as its `metadata.managedFields` names them: who undoes what this agent writes.

use std::panic::resume_unwind;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinError;

use crate::engine::Engine;
use crate::events::Occasion;
use crate::fights::Turn;
use crate::limits::{RIVAL_FIELDS_NAMED, RIVALS_NAMED};
use crate::logic::{Fight, Logic, SourceSpec};
use crate::slots::Target;
use crate::writer;

/// A fight that has begun, and the other side.
pub(crate) type Inquired<L> = (Turn<<L as Logic>::Key, <L as Logic>::Source>, String);

/// Finds out who is on the other side of a fight.
pub(crate) async fn inquire<L: Logic>(spec: Arc<SourceSpec<L>>, turn: Turn<L::Key, L::Source>) -> Inquired<L> {
    let rivals = writer::rivals(spec, &turn.target).await;
    (turn, rivals)
}

impl<L: Logic> Engine<L> {
    pub(crate) fn on_inquired(&mut self, joined: Result<Inquired<L>, JoinError>) {
        match joined {
            Ok((turn, by)) => self.tell_of_fight(turn, Some(by)),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(error) => tracing::error!(%error, "a look at an object was cancelled"),
            },
        }
    }

    /// Tells of a fight that has begun, with whom, or that is over.
    pub(crate) fn tell_of_fight(&mut self, Turn { key, target }: Turn<L::Key, L::Source>, by: Option<String>) {
        let Some(source) = self.sources.get(&target.source) else { return };
        let Target { source: id, namespace, name } = target;
        let (cluster, kind) = (source.spec.cluster.name.clone(), source.spec.resource.kind);
        let (namespace_said, name_said) = (&*namespace, &*name);
        match &by {
            None => tracing::info!(
                cluster,
                kind,
                namespace = namespace_said,
                name = name_said,
                "nobody undoes any more what this agent writes to this object"
            ),
            Some(by) => tracing::warn!(
                cluster,
                kind,
                namespace = namespace_said,
                name = name_said,
                by,
                "another writer undoes what this agent writes to this object, so it is repaired once a minute from now on; \
                 stop that writer (the audit log has its requests)"
            ),
        }
        let fight = Fight { source: id, cluster, kind, namespace, name, by };
        let mut keys = Vec::new();
        for record in self.logic.fight(&key, &fight, &mut keys) {
            self.record(&record, Occasion::NotDone);
        }
        self.mark_dirty(keys);
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Managed {
    manager: String,
    time: String,
    #[serde(rename = "fieldsV1")]
    fields: Value,
}

/// Names the field managers other than `own` and what they set, the latest first.
pub(crate) fn of(object: &Value, own: &str) -> String {
    let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let read = entries.iter().filter_map(|entry| serde_json::from_value::<Managed>(entry.clone()).ok());
    let mut others: Vec<Managed> = read.filter(|entry| !entry.manager.is_empty() && entry.manager != own).collect();
    others.sort_by(|one, other| other.time.cmp(&one.time));
    if others.is_empty() {
        return "a writer that metadata.managedFields does not name".to_owned();
    }
    let named: Vec<String> = others.iter().take(RIVALS_NAMED).map(said).collect();
    format!("field manager {}", named.join(", before it "))
}

fn said(other: &Managed) -> String {
    let mut fields = Vec::new();
    for (field, below) in entries(&other.fields) {
        let within: Vec<&str> = if matches!(field, "metadata" | "spec" | "status") {
            entries(below).map(|(name, _)| name).collect()
        } else {
            Vec::new()
        };
        if within.is_empty() {
            fields.push(field.to_owned());
        }
        fields.extend(within.into_iter().map(|name| format!("{field}.{name}")));
    }
    let more = if fields.len() > RIVAL_FIELDS_NAMED { " and more" } else { "" };
    fields.truncate(RIVAL_FIELDS_NAMED);
    match &fields[..] {
        [] => format!("{:?}", other.manager),
        fields => format!("{:?} ({}{more})", other.manager, fields.join(", ")),
    }
}

/// Fields of a set in the form FieldsV1: `f:endpoints` is the field `endpoints`.
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
    fn where_nobody_else_is_named_that_is_said() {
        let unknown = "a writer that metadata.managedFields does not name";
        let own = json!({"metadata": {"managedFields": [entry("member-agent", "", json!({}))]}});
        for object in [own, json!({}), json!({"metadata": {"managedFields": [7, {"manager": ""}]}})] {
            assert_eq!(of(&object, "member-agent"), unknown, "{object}");
        }
    }
}
