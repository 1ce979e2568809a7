//! Snapshot of a fleet's objects. A snapshot omits values that differ between two equal fleets: versions, times, and
//! addresses from servers. A reference contains the object's name instead of its UID, so a reference to a deleted
//! object is visible.

use crate::environment::{Backend, Environment};
use kube::Client;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// URL paths of the kinds that agents write.
const KINDS: [&str; 9] = [
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/networking.fleet.azure.com/v1beta1/serviceexports",
    "/apis/networking.fleet.azure.com/v1alpha1/multiclusterservices",
    "/apis/networking.fleet.azure.com/v1alpha1/serviceimports",
    "/apis/networking.fleet.azure.com/v1alpha1/internalserviceexports",
    "/apis/networking.fleet.azure.com/v1alpha1/internalserviceimports",
    "/apis/networking.fleet.azure.com/v1alpha1/endpointsliceexports",
    "/apis/networking.fleet.azure.com/v1alpha1/endpointsliceimports",
];
/// Fields and annotations that a snapshot omits, because servers, clocks or counters set their values.
const VARIABLE: [&str; 13] = [
    "clusterIP",
    "clusterIPs",
    "creationTimestamp",
    "exportedSince",
    "generation",
    "healthCheckNodePort",
    "lastTransitionTime",
    "networking.fleet.azure.com/last-observed-generation",
    "networking.fleet.azure.com/last-observed-resource-version",
    "nodePort",
    "observedGeneration",
    "resourceVersion",
    "managedFields",
];
/// Annotation whose value is a time, a space, and a hash of the exported ports. A snapshot omits the time.
const TIMED: &str = "networking.fleet.azure.com/ports-offered-since";

/// Objects of a fleet, by cluster, kind, namespace and name.
pub type Snapshot = BTreeMap<String, Value>;

/// Takes a snapshot of all objects of the users' namespace in every cluster. A placeholder replaces the namespace's
/// name.
pub async fn take_snapshot<B: Backend>(env: &Environment<B>) -> anyhow::Result<Snapshot> {
    let mut objects = Vec::new();
    let members = env.members.iter().map(|member| (member.cluster_id.as_str(), member.client.clone()));
    for (cluster, client) in std::iter::once(("hub", env.backend.hub())).chain(members) {
        for path in KINDS {
            let (_, plural) = path.rsplit_once('/').unwrap_or_default();
            for object in list(&client, path).await? {
                let name = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                objects.push((format!("{cluster}/{plural}/{}/{}", name("namespace"), name("name")), object));
            }
        }
    }
    let replacements = Replacements::of(&env.namespace, &objects);
    let concerned = objects
        .iter()
        .filter(|(name, object)| name.contains(&env.namespace) || object.to_string().contains(&env.namespace));
    Ok(concerned.map(|(name, object)| (replacements.text(name), replacements.replace("", object))).collect())
}

/// Returns the differences of two snapshots, a line for each object.
#[must_use]
pub fn differences(expected: &Snapshot, found: &Snapshot) -> Vec<String> {
    let mut differences = Vec::new();
    for name in expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name))) {
        match (expected.get(name), found.get(name)) {
            (Some(expected), Some(found)) if expected == found => {}
            (Some(expected), Some(found)) => differences.push(format!("{name} is {found}\n    not {expected}")),
            (Some(_), None) => differences.push(format!("{name} is missing")),
            (None, Some(found)) => differences.push(format!("{name} is left over: {found}")),
            (None, None) => {}
        }
    }
    differences
}

async fn list(client: &Client, path: &str) -> anyhow::Result<Vec<Value>> {
    let mut list: Value = client.request(http::Request::get(path).body(Vec::new())?).await?;
    Ok(serde_json::from_value(list["items"].take())?)
}

/// Replacements of values that differ between two equal fleets.
struct Replacements {
    /// Map from each UID to the object with that UID.
    objects: BTreeMap<String, String>,
    /// Names that differ between two equal fleets, with their replacements. The first is the users' namespace. This
    /// name is replaced last, because other names may contain it.
    names: Vec<(String, String)>,
}

impl Replacements {
    fn of(namespace: &str, objects: &[(String, Value)]) -> Self {
        let names = vec![(namespace.to_owned(), "<users>".to_owned())];
        let mut replacements = Self { objects: BTreeMap::new(), names };
        for (name, object) in objects {
            if let Some(uid) = object["metadata"]["uid"].as_str() {
                replacements.objects.insert(uid.to_owned(), name.clone());
            }
            let source = &object["spec"]["endpointSliceReference"];
            if let (Some(cluster), Some(slice)) = (source["clusterId"].as_str(), source["namespacedName"].as_str()) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                replacements.names.push((name.to_owned(), format!("<{slice} of {cluster}>")));
            }
        }
        replacements
    }

    fn replace(&self, key: &str, value: &Value) -> Value {
        match value {
            _ if VARIABLE.contains(&key) => json!("<varies>"),
            Value::String(uid) if key == "uid" => {
                json!(
                    self.objects.get(uid).map_or_else(|| "<nothing that is there>".to_owned(), |name| self.text(name))
                )
            }
            Value::String(text) if key == TIMED => json!(text.split_once(' ').map(|(_, rest)| rest)),
            Value::String(text) => json!(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.replace(key, item)).collect(),
            Value::Object(fields) => {
                let replaced = fields.iter().map(|(key, value)| (key.clone(), self.replace(key, value)));
                Value::Object(replaced.collect::<Map<String, Value>>())
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        self.names.iter().rev().fold(text.to_owned(), |text, (name, replaced)| text.replace(name, replaced))
    }
}
