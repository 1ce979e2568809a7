//! One random change of an object of a user, of the agents or of the server.

use super::installation;
use super::rights::Denial;
use crate::world::World;
use anyhow::Context as _;
use diagnosis::report::{Api, Finding};
use fastrand::Rng;
use fleetnet_api::crd::{
    EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport, MemberAgent,
    MergedServiceImport, MultiClusterService, ServiceExport, ServiceImport, mcs,
};
use fleetnet_api::names::FLEET_SYSTEM_NAMESPACE;
use fleetnet_runtime::clock::to_jiff;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api as KubeApi, ResourceExt as _};
use serde_json::{Value, json};
use sim::fleet::Place;
use std::fmt;
use std::time::Duration;
use tokio::time::sleep;

/// Change of one object.
#[derive(Debug)]
pub(super) struct Change {
    place: Place,
    resource: ApiResource,
    object: DynamicObject,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Delete,
    /// Deletes the object, on which a finalizer of somebody else stays.
    Hang,
    /// Replaces the value at a JSON pointer; removes it if the value is null.
    Edit(String, Value),
    DropLabel(String),
    Own,
    /// Denies verbs on the object's resource to the agents.
    Deny(Denial),
    /// Scales a Deployment to no replica.
    Scale,
    /// Lets another process hold a Lease.
    Hold,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, name) = (self.object.namespace().unwrap_or_default(), self.object.name_any());
        write!(f, "{:?} of {} {namespace}/{name} in {:?}", self.action, self.resource.kind, self.place)
    }
}

fn in_hub(api: Api) -> Vec<ApiResource> {
    let mut kinds = vec![
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<Lease>(&()),
        ApiResource::erase::<Namespace>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<MemberAgent>(&()),
        ApiResource::erase::<InternalServiceExport>(&()),
        ApiResource::erase::<EndpointSliceExport>(&()),
        ApiResource::erase::<EndpointSliceImport>(&()),
    ];
    kinds.extend(match api {
        Api::Fleet => {
            vec![ApiResource::erase::<ServiceImport>(&()), ApiResource::erase::<InternalServiceImport>(&())]
        }
        Api::Mcs => vec![ApiResource::erase::<MergedServiceImport>(&())],
    });
    kinds
}

fn in_member(api: Api) -> Vec<ApiResource> {
    let mut kinds = vec![
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<Lease>(&()),
        ApiResource::erase::<Namespace>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<EndpointSlice>(&()),
    ];
    kinds.extend(match api {
        Api::Fleet => vec![
            ApiResource::erase::<ServiceExport>(&()),
            ApiResource::erase::<MultiClusterService>(&()),
            ApiResource::erase::<ServiceImport>(&()),
        ],
        Api::Mcs => vec![ApiResource::erase::<mcs::ServiceExport>(&()), ApiResource::erase::<mcs::ServiceImport>(&())],
    });
    kinds
}

/// Time between two renewals of a Lease.
const HELD: Duration = Duration::from_secs(2);

/// Namespaces whose objects concern no Service of users.
const OTHER_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Change {
    /// Draws a change of an object that exists.
    pub(super) async fn random(rng: &mut Rng, world: &World) -> anyhow::Result<Self> {
        loop {
            let place = if rng.bool() { Place::Hub } else { Place::Member(rng.usize(..world.fleet.members.len())) };
            let kinds = if place == Place::Hub { in_hub(world.api) } else { in_member(world.api) };
            let resource = kinds[rng.usize(..kinds.len())].clone();
            let all = KubeApi::<DynamicObject>::all_with(world.server(place).admin(), &resource);
            let mut objects = all.list(&ListParams::default()).await?.items;
            objects.retain(|object| {
                let namespace = object.namespace().unwrap_or_else(|| object.name_any());
                // With its namespace, a real cluster deletes the agent too. Here, agents run outside of the clusters.
                let is_of_agents = object.namespace().is_none() && namespace == FLEET_SYSTEM_NAMESPACE;
                !OTHER_NAMESPACES.contains(&namespace.as_str()) && !is_of_agents
            });
            let Some(object) = rng.choice(objects) else { continue };
            let action = action(rng, &resource, &object)?;
            return Ok(Self { place, resource, object, action });
        }
    }

    /// Makes the change. Returns false if the server does not accept it, or if it changes nothing.
    pub(super) async fn apply(&self, world: &mut World) -> anyhow::Result<bool> {
        match &self.action {
            Action::Deny(denial) => denial.apply(world, self.place)?,
            Action::Hold => self.hold(world),
            _ if !self.edit(world).await? => return Ok(false),
            _ => installation::follow(world, self.place).await?,
        }
        Ok(true)
    }

    async fn edit(&self, world: &World) -> anyhow::Result<bool> {
        let api = self.objects(world);
        let name = self.object.name_any();
        let mut changed = serde_json::to_value(&self.object)?;
        match &self.action {
            Action::Delete => return Ok(api.delete(&name, &DeleteParams::default()).await.is_ok()),
            Action::Hang => {
                let finalizers = changed["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
                changed["metadata"]["finalizers"] = json!([finalizers, vec![json!("example.com/never")]].concat());
            }
            Action::Edit(pointer, value) => set(&mut changed, pointer, value.clone()),
            Action::DropLabel(label) => {
                changed["metadata"]["labels"].as_object_mut().context("labels")?.remove(label);
            }
            Action::Own => {
                changed["metadata"]["ownerReferences"] = json!([
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "11111111-2222-3333-4444-555555555555"}
                ]);
            }
            Action::Scale => changed["spec"]["replicas"] = json!(0),
            Action::Deny(_) | Action::Hold => {}
        }
        let object: DynamicObject = serde_json::from_value(changed)?;
        let is_status = matches!(&self.action, Action::Edit(pointer, _) if pointer.starts_with("/status"));
        let parameters = PostParams::default();
        let answer = match is_status {
            true => api.replace_status(&name, &parameters, &object).await,
            false => api.replace(&name, &parameters, &object).await,
        };
        let Ok(answer) = answer else { return Ok(false) };
        if matches!(self.action, Action::Hang) {
            return Ok(api.delete(&name, &DeleteParams::default()).await.is_ok());
        }
        Ok(answer.metadata.resource_version != self.object.metadata.resource_version)
    }

    /// Lets another process hold the Lease from now on, as a Go agent that somebody starts again.
    fn hold(&self, world: &World) {
        let (api, name, clock) = (self.objects(world), self.object.name_any(), world.fleet.clock().clone());
        tokio::spawn(async move {
            loop {
                let now = to_jiff(clock.now());
                let spec = json!({"holderIdentity": "host_0f1e2d3c", "renewTime": format!("{now:.6}")});
                // Somebody who deletes the Lease ends this.
                if api.patch(&name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.is_err() {
                    return;
                }
                sleep(HELD).await;
            }
        });
    }

    fn objects(&self, world: &World) -> KubeApi<DynamicObject> {
        let admin = world.server(self.place).admin();
        match self.object.namespace() {
            Some(namespace) => KubeApi::namespaced_with(admin, &namespace, &self.resource),
            None => KubeApi::all_with(admin, &self.resource),
        }
    }

    /// True if the object is being deleted and stays.
    pub(super) fn hangs(&self) -> bool {
        matches!(self.action, Action::Hang)
    }

    /// True if a cause names the changed object or its kind: in its evidence, or in its title.
    pub(super) fn is_named_by(&self, cause: &Finding) -> bool {
        let (kind, name, evidence) = (self.resource.kind.as_str(), self.object.name_any(), &cause.evidence);
        let is_kind = |text: &str| {
            text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word.eq_ignore_ascii_case(kind))
        };
        // An agent ends with its Deployment, and has its name.
        let is_agent = kind == "Deployment" && cause.title.to_lowercase().contains(&name.replace('-', " "));
        let is_right = matches!(&self.action, Action::Deny(denial) if evidence.value.contains(&denial.resource));
        evidence.kind == kind
            || is_agent
            || is_right
            || is_kind(cause.title)
            || is_kind(&evidence.value)
            || (name != "app" && [&evidence.name, &evidence.value].iter().any(|text| text.contains(&name)))
    }
}

fn action(rng: &mut Rng, resource: &ApiResource, object: &DynamicObject) -> anyhow::Result<Action> {
    let labels: Vec<&String> = object.labels().keys().collect();
    Ok(match (rng.usize(..10), resource.kind.as_str()) {
        (0, _) => Action::Delete,
        (1, _) => Action::Hang,
        (2, _) => Action::Own,
        (3 | 4, _) => Action::Deny(Denial::random(rng, resource, object.data.get("status").is_some())),
        (5 | 6, "Deployment") => Action::Scale,
        (5 | 6, "Lease") => Action::Hold,
        (5 | 6, _) if !labels.is_empty() => Action::DropLabel(labels[rng.usize(..labels.len())].clone()),
        (7, "Deployment") => Action::DropLabel(labels[rng.usize(..labels.len())].clone()),
        _ => {
            let json = serde_json::to_value(object)?;
            let mut leaves = Vec::new();
            collect(&json, String::new(), &mut leaves);
            if resource.kind == "Deployment" {
                leaves.retain(|(pointer, _)| !OF_CONTROLLER.iter().any(|field| pointer.starts_with(field)));
            }
            match leaves.is_empty() {
                true => Action::Delete,
                false => {
                    let (pointer, value) = leaves.swap_remove(rng.usize(..leaves.len()));
                    Action::Edit(pointer, other(rng, &value))
                }
            }
        }
    })
}

/// Fields of a Deployment that have a meaning only with a controller.
const OF_CONTROLLER: [&str; 2] = ["/spec/template", "/status"];

/// Fields that only a server writes.
const OF_SERVER: [&str; 9] = [
    "/apiVersion",
    "/kind",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/metadata/creationTimestamp",
    "/metadata/generation",
    "/metadata/managedFields",
];

/// Collects the values of an object with their JSON pointers.
fn collect(value: &Value, pointer: String, found: &mut Vec<(String, Value)>) {
    if OF_SERVER.iter().any(|field| pointer.starts_with(field)) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(value, format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            found.push((pointer.clone(), value.clone()));
            for (index, value) in items.iter().enumerate() {
                collect(value, format!("{pointer}/{index}"), found);
            }
        }
        _ => found.push((pointer, value.clone())),
    }
}

/// Returns another value of the same type, or null to remove the field.
fn other(rng: &mut Rng, value: &Value) -> Value {
    match value {
        _ if rng.usize(..4) == 0 => Value::Null,
        Value::Bool(value) => json!(!value),
        Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
        Value::String(text) if text.parse::<std::net::Ipv4Addr>().is_ok() => json!("10.77.7.7"),
        Value::String(text) => json!(format!("{text}x")),
        Value::Array(items) => json!(items[..items.len().saturating_sub(1)]),
        Value::Null | Value::Object(_) => Value::Null,
    }
}

fn set(json: &mut Value, pointer: &str, value: Value) {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let field = field.replace("~1", "/").replace("~0", "~");
    match json.pointer_mut(parent) {
        Some(Value::Object(fields)) if value.is_null() => drop(fields.remove(&field)),
        Some(Value::Object(fields)) => drop(fields.insert(field, value)),
        Some(Value::Array(items)) => {
            let index = field.parse::<usize>().unwrap_or_default();
            if value.is_null() { drop(items.remove(index)) } else { items[index] = value }
        }
        _ => {}
    }
}
