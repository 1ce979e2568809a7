//! Templates for the objects that the baseline writes: copies of the agents' objects, in the API group of the baseline.

use crate::users::Users;
use crate::world::{BASELINE_GROUP, Kind};
use anyhow::Context as _;
use fleetnet_api::names::GROUP;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Template for the objects of each kind.
pub struct Templates(BTreeMap<Kind, Value>);

impl Templates {
    /// Reads the objects that the agents created, as templates. Fails if there is no object of a kind.
    pub async fn read(users: &Users) -> anyhow::Result<Self> {
        let mut templates = BTreeMap::new();
        for kind in Kind::ALL {
            let path = users.world.collection(kind);
            let list = users.client(kind).get(&format!("{path}?limit=1")).await?;
            let mut object = list["items"][0].clone();
            anyhow::ensure!(object.is_object(), "there is nothing at {path}");
            let kind_of_list = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
            object["kind"] = json!(kind_of_list.with_context(|| format!("{path} is no list"))?);
            object["apiVersion"] =
                json!(list["apiVersion"].as_str().unwrap_or_default().replace(GROUP, BASELINE_GROUP));
            templates.insert(kind, object);
        }
        Ok(Self(templates))
    }

    /// Returns a new object of a kind, without status and without fields that only later writes add.
    #[must_use]
    pub fn create(&self, kind: Kind, name: &str) -> Value {
        let object = &self.0[&kind];
        let mut body = Map::new();
        for field in ["apiVersion", "kind", "spec", "addressType", "endpoints", "ports"] {
            if let Some(value) = object.get(field) {
                body.insert(field.to_owned(), value.clone());
            }
        }
        body.insert("metadata".to_owned(), json!({"name": name, "labels": object["metadata"]["labels"]}));
        let mut body = Value::Object(body);
        if let Some(spec) = body.pointer_mut("/spec").and_then(Value::as_object_mut) {
            // Remove the fields that the API server assigns. Their values in the template belong to another object.
            for assigned in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
                spec.remove(assigned);
            }
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                port.as_object_mut().map(|port| port.remove("nodePort"));
            }
        }
        body
    }

    /// Returns a patch of an object's finalizers and annotations. Each call for the same object needs another `count`:
    /// the server stores no new resourceVersion for a patch that changes nothing.
    #[must_use]
    pub fn mark(&self, kind: Kind, count: u32) -> Value {
        let metadata = &self.0[&kind]["metadata"];
        let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
        annotations.insert(format!("{BASELINE_GROUP}/count"), json!(count.to_string()));
        json!({"metadata": {"finalizers": metadata["finalizers"], "annotations": annotations}})
    }

    /// Returns a patch of an object's status. An agent's first status write sets at most one condition, and so does
    /// this patch if `first` is true.
    #[must_use]
    pub fn status(&self, kind: Kind, first: bool) -> Value {
        let mut status = self.0[&kind]["status"].clone();
        if let Some(conditions) = status["conditions"].as_array_mut().filter(|_| first) {
            match conditions.len() {
                0 | 1 => conditions.iter_mut().for_each(|condition| condition["reason"] = json!("Pending")),
                _ => conditions.truncate(1),
            }
        }
        json!({"status": status})
    }
}
