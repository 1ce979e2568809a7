//! Simulated API server for EndpointSlices ([`Server`]): versions, preconditions, merge patches, validation, finalizers
//! and a watch.

use crate::SliceWrite;
use endpointslice::model::EndpointSlice;
use fleetnet_runtime::Verb;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Namespace and name of a slice.
type Name = (String, String);

/// Simulated API server: stored slices, and watch events that were not delivered yet.
#[derive(Debug, Default)]
pub(crate) struct Server {
    slices: BTreeMap<Name, Value>,
    /// Decoded form of each slice in `slices`.
    decoded: BTreeMap<Name, EndpointSlice>,
    pub(crate) version: u64,
    made: u64,
    pub(crate) watch: VecDeque<Watched>,
    /// Webhook that changes each slice on every create or update.
    pub(crate) webhook: Option<fn(&mut Value)>,
}

/// Event of the simulated watch.
#[derive(Clone, Debug)]
pub(crate) enum Watched {
    Applied(Value),
    Deleted { namespace: String, name: String, uid: String, version: u64 },
}

/// Response of the simulated server to a write.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Success, with the object as stored.
    Object(Value),
    /// Success: the object is deleted.
    Gone,
    /// Failed precondition (409 or 404), with the current object if it exists.
    Conflict(Option<Value>),
    /// Rejection for the content of the request, with the message.
    Invalid(String),
}

impl Server {
    /// Returns all slices, by name.
    pub(crate) fn slices(&self) -> Vec<EndpointSlice> {
        self.decoded.values().cloned().collect()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Value> {
        self.slices.values()
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<EndpointSlice> {
        self.decoded.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    pub(crate) fn carry_out(&mut self, write: &SliceWrite) -> Answer {
        let name = (write.namespace.to_string(), write.name.to_string());
        let stored = self.slices.get(&name).cloned();
        match (&write.verb, stored) {
            (Verb::Create { .. }, Some(stored)) => Answer::Conflict(Some(stored)),
            (Verb::Create { body }, None) => {
                assert_eq!(body["metadata"]["name"], json!(name.1), "the body names another object");
                assert_eq!(body["metadata"]["namespace"], json!(name.0), "the body names another namespace");
                assert_eq!(
                    (&body["apiVersion"], &body["kind"]),
                    (&json!("discovery.k8s.io/v1"), &json!("EndpointSlice"))
                );
                if let Err(why) = validated(body) {
                    return Answer::Invalid(why);
                }
                Answer::Object(self.make((**body).clone()))
            }
            (Verb::Patch { .. }, _) => panic!("slices are replaced, not patched"),
            (Verb::Replace { .. } | Verb::Delete { .. }, None) => Answer::Gone,
            (Verb::Replace { resource_version, body }, Some(stored)) => {
                let metadata = &stored["metadata"];
                let is_meant = body["metadata"]["uid"] == metadata["uid"]
                    && metadata["resourceVersion"] == json!(resource_version.to_string());
                if !is_meant {
                    return Answer::Conflict(Some(stored));
                }
                match validated(body) {
                    Ok(()) => Answer::Object(self.store(replaced(&stored, body))),
                    Err(why) => Answer::Invalid(why),
                }
            }
            (Verb::Delete { uid }, Some(stored)) if stored["metadata"]["uid"] != **uid => {
                Answer::Conflict(Some(stored))
            }
            (Verb::Delete { .. }, Some(stored)) => self.end(stored),
        }
    }

    /// Creates a slice as another client does.
    pub(crate) fn make(&mut self, mut slice: Value) -> Value {
        self.made += 1;
        slice["metadata"]["uid"] = json!(format!("slice-{}", self.made));
        slice["metadata"]["generation"] = json!(0);
        slice["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        self.store(slice)
    }

    /// Changes a slice as another client does.
    pub(crate) fn edit(&mut self, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let mut slice = self.slices[&(namespace.to_owned(), name.to_owned())].clone();
        change(&mut slice);
        self.store(slice);
    }

    /// Deletes a slice as another client does.
    pub(crate) fn delete(&mut self, namespace: &str, name: &str) {
        if let Some(slice) = self.slices.get(&(namespace.to_owned(), name.to_owned())) {
            self.end(slice.clone());
        }
    }

    /// Stores a slice. As on a real server, a write without a change does not raise the resourceVersion. A change of
    /// metadata other than labels does not raise the generation.
    fn store(&mut self, mut slice: Value) -> Value {
        let name = name_of(&slice);
        let old = self.slices.get(&name).cloned().unwrap_or_default();
        if let Some(webhook) = self.webhook {
            webhook(&mut slice);
        }
        if old == slice {
            return slice;
        }
        let content = |slice: &Value| {
            let metadata = &slice["metadata"];
            let parts = ["addressType", "endpoints", "ports"].map(|key| slice[key].clone());
            (parts, metadata["labels"].clone(), metadata["deletionTimestamp"].clone())
        };
        if content(&old) != content(&slice) {
            let generation = slice["metadata"]["generation"].as_i64().unwrap_or_default();
            slice["metadata"]["generation"] = json!(generation + 1);
        }
        self.version += 1;
        slice["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.decoded.insert(name.clone(), decoded(&slice));
        self.slices.insert(name, slice.clone());
        self.watch.push_back(Watched::Applied(slice.clone()));
        slice
    }

    fn end(&mut self, mut slice: Value) -> Answer {
        let has_finalizers =
            slice["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if has_finalizers {
            slice["metadata"]["deletionTimestamp"] = json!("2026-02-01T00:00:00Z");
            return Answer::Object(self.store(slice));
        }
        let name = name_of(&slice);
        self.slices.remove(&name);
        self.decoded.remove(&name);
        self.version += 1;
        let uid = slice["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.watch.push_back(Watched::Deleted { namespace: name.0, name: name.1, uid, version: self.version });
        Answer::Gone
    }
}

fn name_of(slice: &Value) -> Name {
    let field = |key: &str| slice["metadata"][key].as_str().expect("objects have names").to_owned();
    (field("namespace"), field("name"))
}

pub(crate) fn decoded(slice: &Value) -> EndpointSlice {
    serde_json::from_value(slice.clone()).expect("slices can be read")
}

/// Returns the object that a PUT of `body` stores. Metadata that clients cannot change stays as in the existing object
/// `stored`.
fn replaced(stored: &Value, body: &Value) -> Value {
    let mut slice = body.clone();
    for field in ["resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"] {
        assert!(body["metadata"][field].is_null(), "{field} is the server's");
        if let Some(own) = stored["metadata"].get(field) {
            slice["metadata"][field] = own.clone();
        }
    }
    slice
}

/// Validates the endpoints of a slice as the API server does.
fn validated(slice: &Value) -> Result<(), String> {
    let slice = decoded(slice);
    if slice.endpoints.len() > 1_000 {
        return Err("too many endpoints".to_owned());
    }
    for address in slice.endpoints.iter().flat_map(|endpoint| endpoint.addresses.iter()) {
        let parsed: IpAddr = address.parse().map_err(|_| format!("{address}: no address"))?;
        let fits = match parsed {
            IpAddr::V4(v4) => slice.address_type.as_str() == "IPv4" && !v4.is_link_local(),
            IpAddr::V6(v6) => slice.address_type.as_str() == "IPv6" && !v6.is_unicast_link_local(),
        };
        if !fits || parsed.is_unspecified() || parsed.is_loopback() || parsed.is_multicast() {
            return Err(format!("{address}: not in {} slices", slice.address_type));
        }
    }
    if slice.endpoints.iter().any(|endpoint| endpoint.addresses.is_empty()) {
        return Err("an endpoint without addresses".to_owned());
    }
    Ok(())
}
