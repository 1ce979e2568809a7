//! Reads objects, Events, logs and metrics of one cluster. Secrets and ConfigMaps are never requested.

use super::archive::{Files, part};
use super::redact;
use crate::cli::contexts::connect::Cluster;
use crate::cli::contexts::failure::Failure;
use crate::limits::LOG_LINES;
use fleetnet_api::names::{FLEET_SYSTEM_NAMESPACE, GROUP, SERVICE_EXPORT_VERSION, VERSION};
use fleetnet_core::names::cluster_of;
use futures::StreamExt as _;
use futures::stream;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest page of a list.
const PAGE: u32 = 500;
/// Number of kinds that are listed at the same time.
// no limit: API servers queue requests beyond their own limits
const AT_ONCE: usize = 6;
/// Selector of the agents' pods.
const AGENTS: &str = "app.kubernetes.io/part-of=fleetnet";
/// Name of the port with metrics.
const METRICS_PORT: &str = "metrics";

/// Kinds of our group.
const FLEET_KINDS: [(&str, &str); 8] = [
    (SERVICE_EXPORT_VERSION, "ServiceExport"),
    (VERSION, "EndpointSliceExport"),
    (VERSION, "EndpointSliceImport"),
    (VERSION, "InternalServiceExport"),
    (VERSION, "InternalServiceImport"),
    (VERSION, "MemberAgent"),
    (VERSION, "MultiClusterService"),
    (VERSION, "ServiceImport"),
];
/// Kinds of Kubernetes in the namespaces of fleetnet: group, version, kind.
const AGENT_KINDS: [(&str, &str, &str); 9] = [
    ("", "v1", "Pod"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "ResourceQuota"),
    ("apps", "v1", "Deployment"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
];

/// What was read of a cluster, and what could not be read.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) files: Files,
    pub(super) failures: Vec<String>,
}

impl Collected {
    fn keep(&mut self, path: &str, objects: Vec<Value>) {
        let mut objects = objects;
        objects.iter_mut().for_each(redact::object);
        if !objects.is_empty() {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            let text = serde_json::to_string_pretty(&list).unwrap_or_default();
            self.files.insert(path.to_owned(), format!("{text}\n"));
        }
    }

    fn fail(&mut self, what: &str, failure: &Failure) {
        self.failures.push(format!("{what}: {failure}"));
    }
}

/// Reads a cluster. `since` limits Events and logs.
pub(super) async fn read(cluster: &Cluster, since: Option<Duration>, now: Timestamp) -> Collected {
    let mut collected = Collected::default();
    let namespaces = namespaces(cluster, &mut collected).await;
    let mut kinds: Vec<(ApiResource, Option<String>)> = Vec::new();
    for (version, kind) in FLEET_KINDS {
        kinds.push((resource(GROUP, version, kind), None));
    }
    for namespace in &namespaces {
        let of_agents =
            AGENT_KINDS.map(|(group, version, kind)| (resource(group, version, kind), Some(namespace.clone())));
        kinds.extend(of_agents);
    }
    let lists = kinds.into_iter().map(|(resource, namespace)| async move {
        let listed = list(cluster, &resource, namespace.as_deref()).await;
        (resource, namespace, listed)
    });
    let lists: Vec<_> = stream::iter(lists).buffered(AT_ONCE).collect().await;
    let mut exported = BTreeSet::new();
    for (resource, namespace, listed) in lists {
        let place = namespace.map_or_else(|| "all".to_owned(), |namespace| part(&namespace));
        match listed {
            Ok(objects) => {
                if ["ServiceExport", "MultiClusterService"].contains(&resource.kind.as_str()) {
                    exported.extend(objects.iter().map(name_of));
                }
                collected.keep(&format!("objects/{place}/{}.json", resource.plural), objects);
            }
            Err(failure) => collected.fail(&format!("{} in {place}", resource.plural), &failure),
        }
    }
    services(cluster, &exported, &mut collected).await;
    definitions(cluster, &mut collected).await;
    events(cluster, &namespaces, since, now, &mut collected).await;
    agents(cluster, since, &mut collected).await;
    collected
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Returns namespace and name of an object.
fn name_of(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

/// Returns all objects of a kind. A kind that the server does not have has none.
async fn list(cluster: &Cluster, resource: &ApiResource, namespace: Option<&str>) -> Result<Vec<Value>, Failure> {
    let client = cluster.client.clone();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    let (mut found, mut parameters) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = cluster.find(api.list(&parameters)).await?;
        let (items, next) = page.map(|page| (page.items, page.metadata.continue_)).unwrap_or_default();
        found.extend(items.iter().filter_map(|item| serde_json::to_value(item).ok()));
        match next.filter(|next| !next.is_empty()) {
            Some(next) => parameters.continue_token = Some(next),
            None => return Ok(found),
        }
    }
}

/// Keeps the namespaces of fleetnet, and those with an annotation of fleetnet. Returns the namespaces of fleetnet.
async fn namespaces(cluster: &Cluster, collected: &mut Collected) -> Vec<String> {
    let listed = list(cluster, &resource("", "v1", "Namespace"), None).await;
    let objects = listed.unwrap_or_else(|failure| {
        collected.fail("namespaces", &failure);
        Vec::new()
    });
    let is_ours = |name: &str| name == FLEET_SYSTEM_NAMESPACE || cluster_of(name).is_some();
    let is_marked = |object: &Value| {
        let keys = object["metadata"]["annotations"].as_object();
        keys.is_some_and(|keys| keys.keys().any(|key| key.starts_with(GROUP)))
    };
    let ours: Vec<String> = objects.iter().map(|object| name_of(object).1).filter(|name| is_ours(name)).collect();
    let kept = objects.into_iter().filter(|object| is_ours(&name_of(object).1) || is_marked(object)).collect();
    collected.keep("objects/namespaces.json", kept);
    // Without the right to list namespaces, the one of the agents may still be readable.
    if ours.is_empty() { vec![FLEET_SYSTEM_NAMESPACE.to_owned()] } else { ours }
}

/// Keeps the Services that are exported or imported, and their EndpointSlices.
async fn services(cluster: &Cluster, names: &BTreeSet<(String, String)>, collected: &mut Collected) {
    let namespaces: BTreeSet<&String> = names.iter().map(|(namespace, _)| namespace).collect();
    for namespace in namespaces {
        let is_named = |name: &str| names.contains(&(namespace.clone(), name.to_owned()));
        let kinds = [resource("", "v1", "Service"), resource("discovery.k8s.io", "v1", "EndpointSlice")];
        for resource in kinds {
            match list(cluster, &resource, Some(namespace)).await {
                Ok(objects) => {
                    let service =
                        |object: &Value| match object["metadata"]["labels"]["kubernetes.io/service-name"].as_str() {
                            Some(service) if resource.kind == "EndpointSlice" => is_named(service),
                            _ => resource.kind == "Service" && is_named(&name_of(object).1),
                        };
                    let kept = objects.into_iter().filter(|object| service(object)).collect();
                    collected.keep(&format!("objects/{}/{}.json", part(namespace), resource.plural), kept);
                }
                Err(failure) => collected.fail(&format!("{} in {namespace}", resource.plural), &failure),
            }
        }
    }
}

/// Keeps the CustomResourceDefinitions of fleetnet.
async fn definitions(cluster: &Cluster, collected: &mut Collected) {
    let resource = resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    match list(cluster, &resource, None).await {
        Ok(objects) => {
            let kept = objects.into_iter().filter(|object| object["spec"]["group"] == GROUP).collect();
            collected.keep("objects/customresourcedefinitions.json", kept);
        }
        Err(failure) => collected.fail("customresourcedefinitions", &failure),
    }
}

/// Keeps the Events in the namespaces of fleetnet, and those about objects of fleetnet anywhere.
async fn events(
    cluster: &Cluster,
    namespaces: &[String],
    since: Option<Duration>,
    now: Timestamp,
    collected: &mut Collected,
) {
    match list(cluster, &resource("", "v1", "Event"), None).await {
        Ok(objects) => {
            let oldest = since.and_then(|since| now.checked_sub(SignedDuration::try_from(since).ok()?).ok());
            let is_kept =
                |event: &Value| is_ours(event, namespaces) && oldest.is_none_or(|oldest| is_after(event, oldest));
            collected.keep("events.json", objects.into_iter().filter(is_kept).collect());
        }
        Err(failure) => collected.fail("events", &failure),
    }
}

fn is_ours(event: &Value, namespaces: &[String]) -> bool {
    let version = event["involvedObject"]["apiVersion"].as_str().unwrap_or_default();
    let (namespace, _) = name_of(event);
    version.starts_with(GROUP) || namespaces.contains(&namespace)
}

/// True if an Event was seen after a time. An Event without a time counts as new.
fn is_after(event: &Value, oldest: Timestamp) -> bool {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ];
    let last = times.into_iter().find_map(|time| time.as_str()?.parse::<Timestamp>().ok());
    last.is_none_or(|last| last >= oldest)
}

/// Keeps logs and metrics of the agents' pods.
async fn agents(cluster: &Cluster, since: Option<Duration>, collected: &mut Collected) {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), FLEET_SYSTEM_NAMESPACE);
    let found = match cluster.find(pods.list(&ListParams::default().labels(AGENTS))).await {
        Ok(found) => found.map(|list| list.items).unwrap_or_default(),
        Err(failure) => return collected.fail("pods of the agents", &failure),
    };
    for pod in found {
        let name = pod.name_any();
        let restarts = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let has_previous = restarts.into_iter().any(|container| container.restart_count > 0);
        for previous in [false, true].into_iter().take(1 + usize::from(has_previous)) {
            let parameters = LogParams {
                tail_lines: Some(LOG_LINES),
                since_seconds: since.and_then(|since| i64::try_from(since.as_secs()).ok()),
                timestamps: true,
                previous,
                ..LogParams::default()
            };
            let end = if previous { ".previous" } else { "" };
            match cluster.ask(pods.logs(&name, &parameters)).await {
                Ok(text) => {
                    collected.files.insert(format!("logs/{}{end}.log", part(&name)), text);
                }
                Err(failure) => collected.fail(&format!("log of pod {name}"), &failure),
            }
        }
        metrics(cluster, &pod, collected).await;
    }
}

/// Keeps the metrics of a pod, through the API server.
async fn metrics(cluster: &Cluster, pod: &Pod, collected: &mut Collected) {
    let name = pod.name_any();
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let Some(port) = ports.find(|port| port.name.as_deref() == Some(METRICS_PORT)) else { return };
    let path = format!("/api/v1/namespaces/{FLEET_SYSTEM_NAMESPACE}/pods/{name}:{}/proxy/metrics", port.container_port);
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
    let answer = async { cluster.client.request_text(request?).await };
    match cluster.ask(answer).await {
        Ok(text) => {
            collected.files.insert(format!("metrics/{}.txt", part(&name)), text);
        }
        Err(failure) => collected.fail(&format!("metrics of pod {name}"), &failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_fleetnet_are_those_about_its_objects_or_in_its_namespaces() {
        let namespaces = ["fleet-system".to_owned()];
        let event = |namespace: &str, version: &str| json!({"metadata": {"namespace": namespace}, "involvedObject": {"apiVersion": version}});
        assert!(is_ours(&event("work", "networking.fleet.azure.com/v1alpha1"), &namespaces));
        assert!(is_ours(&event("fleet-system", "v1"), &namespaces));
        assert!(!is_ours(&event("work", "v1"), &namespaces));
    }

    #[test]
    fn an_event_is_as_old_as_its_last_occurrence() {
        let oldest: Timestamp = "2026-11-23T06:00:00Z".parse().unwrap();
        let (old, new) = ("2026-11-23T05:59:59Z", "2026-11-23T06:00:01.123456Z");
        for (event, expected) in [
            (json!({"lastTimestamp": old}), false),
            (json!({"lastTimestamp": new}), true),
            (json!({"eventTime": new, "lastTimestamp": null}), true),
            (json!({"lastTimestamp": old, "series": {"lastObservedTime": new}}), true),
            (json!({"metadata": {"creationTimestamp": old}}), false),
            (json!({}), true),
        ] {
            assert_eq!(is_after(&event, oldest), expected, "{event}");
        }
    }
}
