//! For machines: one JSON object on each line.

use super::Told;
use crate::sandbox::event::Event;
use chrono::SecondsFormat;
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
}

/// The event with its time, without a line end.
pub(super) fn line(told: &Told) -> String {
    let at = told.at.to_rfc3339_opts(SecondsFormat::Millis, false);
    serde_json::to_string(&Line { at, event: &told.event }).expect("events have string keys and so are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::event::{Import, Writes};
    use chrono::{DateTime, Local};
    use serde_json::{Value, json};
    use std::collections::{BTreeMap, BTreeSet};

    fn shown(event: Event) -> Value {
        let at: DateTime<Local> = DateTime::parse_from_rfc3339("2026-03-01T10:00:00.25Z").unwrap().into();
        let line = line(&Told { at, event });
        assert!(!line.contains('\n'));
        let mut value: Value = serde_json::from_str(&line).unwrap();
        let told = value.as_object_mut().unwrap().remove("at").unwrap();
        assert_eq!(DateTime::parse_from_rfc3339(told.as_str().unwrap()).unwrap(), at);
        value
    }

    #[test]
    fn events_are_flat_objects() {
        let import = Import { valid: true, from: BTreeSet::from(["member-1".to_owned()]), slices: 2, endpoints: 6 };
        let event = Event::Import { cluster: "member-2".to_owned(), service: "work/app".to_owned(), import };
        assert_eq!(
            shown(event),
            json!({
                "event": "import", "cluster": "member-2", "service": "work/app",
                "valid": true, "from": ["member-1"], "slices": 2, "endpoints": 6,
            })
        );
        let writes = Writes { total: 3, by_cluster: BTreeMap::from([("hub".to_owned(), 3)]) };
        assert_eq!(
            shown(Event::Cost { changes: 1, writes, details: Vec::new() }),
            json!({"event": "cost", "changes": 1, "writes": {"total": 3, "by_cluster": {"hub": 3}}, "details": []})
        );
        assert_eq!(
            shown(Event::Verdict { passed: true, imported: true, wrong: Vec::new() }),
            json!({"event": "verdict", "passed": true, "imported": true, "wrong": []})
        );
    }
}
