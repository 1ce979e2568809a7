//! What a fleet holds, without what two fleets that did the same cannot share: versions, times and addresses that servers
//! give. A reference to an object by its UID is shown as that object, so that one to an object that is gone is seen.

use crate::stage::{Ground, Stage};
use kube::Client;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What is looked at: the kinds that agents write, by their paths.
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
/// Fields and annotations whose values servers, clocks and counters give.
const GIVEN: [&str; 13] = [
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
/// An annotation of a time and, after a space, what it speaks of.
const TIMED: &str = "networking.fleet.azure.com/ports-offered-since";

/// All objects of a fleet by cluster, kind, namespace and name.
pub type Picture = BTreeMap<String, Value>;

/// Draws what has to do with the users' namespace of a stage, whose own name does not show.
///
/// # Errors
/// Where a server does not answer.
pub async fn draw<G: Ground>(stage: &Stage<G>) -> anyhow::Result<Picture> {
    let mut objects = Vec::new();
    let members = stage.members.iter().map(|member| (member.cluster_id.as_str(), member.client.clone()));
    for (cluster, client) in std::iter::once(("hub", stage.ground.hub())).chain(members) {
        for path in KINDS {
            let (_, plural) = path.rsplit_once('/').unwrap_or_default();
            for object in list(&client, path).await? {
                let name = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                objects.push((format!("{cluster}/{plural}/{}/{}", name("namespace"), name("name")), object));
            }
        }
    }
    let strokes = Strokes::of(&stage.namespace, &objects);
    let concerned = objects
        .iter()
        .filter(|(name, object)| name.contains(&stage.namespace) || object.to_string().contains(&stage.namespace));
    Ok(concerned.map(|(name, object)| (strokes.text(name), strokes.draw("", object))).collect())
}

/// What is otherwise in two pictures, a line for each object.
#[must_use]
pub fn differences(expected: &Picture, found: &Picture) -> Vec<String> {
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

/// How values are drawn.
struct Strokes {
    /// Objects by their UIDs.
    objects: BTreeMap<String, String>,
    /// Names that agents made from UIDs, and others that differ, with what stands for them. The first goes last: it may
    /// be a part of the others.
    names: Vec<(String, String)>,
}

impl Strokes {
    fn of(namespace: &str, objects: &[(String, Value)]) -> Self {
        let names = vec![(namespace.to_owned(), "<users>".to_owned())];
        let mut strokes = Self { objects: BTreeMap::new(), names };
        for (name, object) in objects {
            if let Some(uid) = object["metadata"]["uid"].as_str() {
                strokes.objects.insert(uid.to_owned(), name.clone());
            }
            let source = &object["spec"]["endpointSliceReference"];
            if let (Some(cluster), Some(slice)) = (source["clusterId"].as_str(), source["namespacedName"].as_str()) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                strokes.names.push((name.to_owned(), format!("<{slice} of {cluster}>")));
            }
        }
        strokes
    }

    fn draw(&self, key: &str, value: &Value) -> Value {
        match value {
            _ if GIVEN.contains(&key) => json!("<given>"),
            Value::String(uid) if key == "uid" => {
                json!(
                    self.objects.get(uid).map_or_else(|| "<nothing that is there>".to_owned(), |name| self.text(name))
                )
            }
            Value::String(text) if key == TIMED => json!(text.split_once(' ').map(|(_, rest)| rest)),
            Value::String(text) => json!(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.draw(key, item)).collect(),
            Value::Object(fields) => {
                let drawn = fields.iter().map(|(key, value)| (key.clone(), self.draw(key, value)));
                Value::Object(drawn.collect::<Map<String, Value>>())
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        self.names.iter().rev().fold(text.to_owned(), |text, (name, drawn)| text.replace(name, drawn))
    }
}
