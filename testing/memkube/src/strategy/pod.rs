//! Rules of Pods. memkube stores Pods and deletes them gracefully, but nothing runs them.

use super::{Generation, Strategy, fields_at};
use crate::columns::{AGE, Column, NAME};
use crate::object::{Object, at, text_at};
use crate::store::Fields;
use serde_json::Value;

/// Default of `terminationGracePeriodSeconds`, in seconds.
const GRACE_SECONDS: i64 = 30;

const SELECTABLE: [&str; 3] = ["spec.nodeName", "status.phase", "status.podIP"];

#[derive(Clone, Copy, Debug)]
pub(super) struct Pod;

impl Strategy for Pod {
    fn generation(&self) -> Generation {
        Generation::Content
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        vec![Column::text(NAME.0, NAME.1), Column::text("Status", "status.phase"), Column::age(AGE.0, AGE.1)]
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        SELECTABLE.map(str::to_owned).to_vec()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        fields_at(object, &SELECTABLE)
    }

    fn grace_period_seconds(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        let own = at(object, "spec.terminationGracePeriodSeconds").and_then(Value::as_i64);
        let ended = matches!(text_at(object, "status.phase"), "Failed" | "Succeeded");
        // A Pod that was not scheduled, or has ended, needs no time to stop.
        if text_at(object, "spec.nodeName").is_empty() || ended {
            return Some(0);
        }
        Some(asked.or(own).unwrap_or(GRACE_SECONDS).max(0))
    }
}
