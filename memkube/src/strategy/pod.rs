//! Rules of Pods. memkube stores Pods and deletes them gracefully, but nothing runs them.

use super::{Generation, Strategy};
use crate::object::{Object, at, text_at};
use crate::store::Fields;
use serde_json::Value;

/// Default of `terminationGracePeriodSeconds`, in seconds.
const GRACE_SECONDS: i64 = 30;

/// Selectable fields of Pods.
const SELECTABLE: [&str; 8] = [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Pod;

impl Strategy for Pod {
    fn generation(&self) -> Generation {
        Generation::Content
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        SELECTABLE.map(str::to_owned).to_vec()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        let texts = SELECTABLE.map(|name| (name.to_owned(), text_at(object, name).to_owned()));
        Fields::from(texts)
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
