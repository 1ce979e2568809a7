//! Observed Deployments, ReplicaSets and Pods of a member. Does no I/O.

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Deployment,
    ReplicaSet,
    Pod,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Deployment, Self::ReplicaSet, Self::Pod];

    pub(super) fn resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::Deployment => ("apps", "Deployment", "deployments"),
            Self::ReplicaSet => ("apps", "ReplicaSet", "replicasets"),
            Self::Pod => ("", "Pod", "pods"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
    }
}

/// Namespace and name of an object.
pub(super) type Key = (String, String);

/// Observed objects.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) deployments: BTreeMap<Key, Value>,
    pub(super) replica_sets: BTreeMap<Key, Value>,
    pub(super) pods: BTreeMap<Key, Value>,
    /// Last part of the address that a pod got last.
    pub(super) last_address: u8,
}

impl Cluster {
    pub(super) fn of(&mut self, kind: Kind) -> &mut BTreeMap<Key, Value> {
        match kind {
            Kind::Deployment => &mut self.deployments,
            Kind::ReplicaSet => &mut self.replica_sets,
            Kind::Pod => &mut self.pods,
        }
    }

    /// Records what a watch reports.
    pub(super) fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Present(kind, object) => self.learn(kind, object),
            Seen::Gone(kind, object) => self.forget(kind, &object),
            Seen::Listed(kind, keys) => self.of(kind).retain(|key, _| keys.contains(key)),
        }
    }

    /// Records the content of an object, unless a newer content is known.
    pub(super) fn learn(&mut self, kind: Kind, object: Value) {
        let (known, key) = (self.of(kind), key(&object));
        let is_older = known.get(&key).is_some_and(|known| version(known) > version(&object));
        if !is_older {
            known.insert(key, object);
        }
    }

    /// Removes an object, unless another object with its name is known.
    pub(super) fn forget(&mut self, kind: Kind, object: &Value) {
        let (known, key) = (self.of(kind), key(object));
        if known.get(&key).is_some_and(|known| text(known, "/metadata/uid") == text(object, "/metadata/uid")) {
            known.remove(&key);
        }
    }
}

pub(super) fn key(object: &Value) -> Key {
    (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
}

/// Returns the text at a JSON pointer; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number at a JSON pointer.
pub(super) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// Returns the items of the list at a JSON pointer.
pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Returns the UID of the controller of an object, if it is of this kind.
pub(super) fn owner<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let mut owners = items(object, "/metadata/ownerReferences");
    owners.find(|owner| owner["controller"] == true && owner["kind"] == kind)?["uid"].as_str()
}

fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or_default()
}

/// Change that a watch reports.
pub(super) enum Seen {
    Present(Kind, Value),
    Gone(Kind, Value),
    /// All objects of the kind that exist. Others are gone.
    Listed(Kind, BTreeSet<(String, String)>),
}
