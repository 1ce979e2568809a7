//! Reads objects, Events, logs and metrics of one cluster. Secrets and ConfigMaps are never requested.

use super::archive::{Files, part};
use super::redact;
use crate::cli::contexts::connect::Cluster;
use crate::cli::contexts::failure::Failure;
use crate::limits::LOG_LINES;
use fleetnet_api::names::{GROUP, MCS_GROUP, MCS_VERSION, SERVICE_EXPORT_VERSION, VERSION, labels};
use fleetnet_core::names::{cluster_of, mcs_derived};
use fleetnet_types::ObjectName;
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
/// Flag of an agent that serves metrics only to authorized callers.
const SECURE: &str = "--metrics-secure";

/// Kinds of our group and of the standard API: group, version, kind.
const FLEET_KINDS: [(&str, &str, &str); 11] = [
    (GROUP, SERVICE_EXPORT_VERSION, "ServiceExport"),
    (GROUP, VERSION, "EndpointSliceExport"),
    (GROUP, VERSION, "EndpointSliceImport"),
    (GROUP, VERSION, "InternalServiceExport"),
    (GROUP, VERSION, "InternalServiceImport"),
    (GROUP, VERSION, "MemberAgent"),
    (GROUP, VERSION, "MergedServiceImport"),
    (GROUP, VERSION, "MultiClusterService"),
    (GROUP, VERSION, "ServiceImport"),
    (MCS_GROUP, MCS_VERSION, "ServiceExport"),
    (MCS_GROUP, MCS_VERSION, "ServiceImport"),
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
    for (group, version, kind) in FLEET_KINDS {
        kinds.push((resource(group, version, kind), None));
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
                let is_mcs = resource.group == MCS_GROUP;
                if ["ServiceExport", "MultiClusterService"].contains(&resource.kind.as_str()) || is_mcs {
                    exported.extend(objects.iter().map(name_of));
                }
                // Both APIs have kinds with the same names.
                let group = if is_mcs { format!(".{MCS_GROUP}") } else { String::new() };
                collected.keep(&format!("objects/{place}/{}{group}.json", resource.plural), objects);
            }
            Err(failure) => collected.fail(&format!("{} in {place}", resource.plural), &failure),
        }
    }
    exported.extend(imported(cluster, &mut collected).await);
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

/// Keeps the namespaces of fleetnet, and those with an annotation or the label of fleetnet. Returns the namespaces of
/// fleetnet.
async fn namespaces(cluster: &Cluster, collected: &mut Collected) -> Vec<String> {
    let listed = list(cluster, &resource("", "v1", "Namespace"), None).await;
    let objects = listed.unwrap_or_else(|failure| {
        collected.fail("namespaces", &failure);
        Vec::new()
    });
    let is_ours = |name: &str| name == &*cluster.agent_namespace || cluster_of(name).is_some();
    let is_marked = |object: &Value| {
        let keys = object["metadata"]["annotations"].as_object();
        let imports = !object["metadata"]["labels"][labels::IMPORT].is_null();
        imports || keys.is_some_and(|keys| keys.keys().any(|key| key.starts_with(GROUP)))
    };
    let ours: Vec<String> = objects.iter().map(|object| name_of(object).1).filter(|name| is_ours(name)).collect();
    let kept = objects.into_iter().filter(|object| is_ours(&name_of(object).1) || is_marked(object)).collect();
    collected.keep("objects/namespaces.json", kept);
    // Without the right to list namespaces, the one of the agents may still be readable.
    if ours.is_empty() { vec![cluster.agent_namespace.to_string()] } else { ours }
}

/// Returns the Services that the standard API imports, and their derived Services: by the labels of their slices and
/// derived Services, because a ServiceImport may be missing. A routing slice names only the derived Service.
async fn imported(cluster: &Cluster, collected: &mut Collected) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for resource in [resource("", "v1", "Service"), resource("discovery.k8s.io", "v1", "EndpointSlice")] {
        let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
        let labelled = ListParams::default().labels(labels::MCS_SERVICE_NAME);
        match cluster.find(api.list_metadata(&labelled)).await {
            Ok(list) => found.extend(list.map(|list| list.items).unwrap_or_default().iter().filter_map(|object| {
                Some((object.namespace()?, object.labels().get(labels::MCS_SERVICE_NAME)?.clone()))
            })),
            Err(failure) => collected.fail(&format!("imported {}", resource.plural), &failure),
        }
    }
    let derived = |(namespace, service): &(String, String)| {
        let at = mcs_derived(&ObjectName::new(&**namespace, &**service));
        (at.namespace.to_string(), at.name.to_string())
    };
    let all_derived: Vec<_> = found.iter().map(derived).collect();
    found.extend(all_derived);
    found
}

/// Keeps the Services that are exported or imported, and their EndpointSlices. Those that the standard API imports are
/// in the same namespace.
async fn services(cluster: &Cluster, names: &BTreeSet<(String, String)>, collected: &mut Collected) {
    let namespaces: BTreeSet<&String> = names.iter().map(|(namespace, _)| namespace).collect();
    for namespace in namespaces {
        let is_named = |name: &str| names.contains(&(namespace.clone(), name.to_owned()));
        let kinds = [resource("", "v1", "Service"), resource("discovery.k8s.io", "v1", "EndpointSlice")];
        for resource in kinds {
            match list(cluster, &resource, Some(namespace)).await {
                Ok(objects) => {
                    let is_kept = |object: &Value| {
                        let label = |name: &str| object["metadata"]["labels"][name].as_str();
                        let service = match &*resource.kind {
                            "EndpointSlice" => label(labels::SERVICE_NAME).map(str::to_owned),
                            _ => Some(name_of(object).1),
                        };
                        service.is_some_and(|name| is_named(&name))
                            || label(labels::MCS_SERVICE_NAME).is_some_and(is_named)
                    };
                    let kept = objects.into_iter().filter(is_kept).collect();
                    collected.keep(&format!("objects/{}/{}.json", part(namespace), resource.plural), kept);
                }
                Err(failure) => collected.fail(&format!("{} in {namespace}", resource.plural), &failure),
            }
        }
    }
}

/// Keeps the CustomResourceDefinitions of fleetnet and of the standard API.
async fn definitions(cluster: &Cluster, collected: &mut Collected) {
    let resource = resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    match list(cluster, &resource, None).await {
        Ok(objects) => {
            let is_ours = |object: &Value| [GROUP, MCS_GROUP].iter().any(|group| object["spec"]["group"] == *group);
            let kept = objects.into_iter().filter(is_ours).collect();
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
    version.starts_with(GROUP) || version.starts_with(MCS_GROUP) || namespaces.contains(&namespace)
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
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.agent_namespace);
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
    let arguments =
        pod.spec.iter().flat_map(|spec| &spec.containers).flat_map(|container| container.args.iter().flatten());
    if arguments.into_iter().any(|argument| argument == SECURE || argument.strip_prefix(SECURE) == Some("=true")) {
        // The API server does not pass on the caller's token, so the agent refuses.
        let why =
            format!("metrics of pod {name}: {SECURE} serves them only to authorized callers. Read them in Prometheus");
        return collected.failures.push(why);
    }
    let path =
        format!("/api/v1/namespaces/{}/pods/{name}:{}/proxy/metrics", cluster.agent_namespace, port.container_port);
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
    use http::{Request, Response};
    use kube::client::Body;
    use kube::{Client, Config};
    use tower::BoxError;

    /// Returns a cluster with these pods. Each log and the metrics contain the path and query of their request. A pod
    /// that is called `broken` has no log.
    fn cluster_with(pods: &Value) -> Cluster {
        let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": pods}).to_string();
        let service = tower::service_fn(move |request: Request<Body>| {
            let asked = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let (code, text) = match asked.as_str() {
                path if path.contains("/pods/broken/log") => (400, failure("the container is waiting to start")),
                path if path.contains("/log?") || path.contains("/proxy/") => (200, format!("answer to {path}")),
                path if path.contains("labelSelector=app.kubernetes.io") => (200, list.clone()),
                path => (404, failure(path)),
            };
            async move { Ok::<_, BoxError>(Response::builder().status(code).body(Body::from(text.into_bytes())).unwrap()) }
        });
        Cluster {
            context: "west".to_owned(),
            agent_namespace: diagnosis::agents::AgentNamespace::default(),
            client: Client::new(service, "default"),
            config: Config::new(http::Uri::from_static("https://west.example")),
            version: String::new(),
            request_timeout: Duration::from_secs(60),
        }
    }

    fn failure(message: &str) -> String {
        json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": message, "reason": "BadRequest", "code": 400})
            .to_string()
    }

    fn pod(name: &str, restarts: i64, arguments: &[&str]) -> Value {
        let port = json!({"name": "metrics", "containerPort": 8080});
        json!({
            "metadata": {"name": name, "namespace": "fleet-system"},
            "spec": {"containers": [{"name": "agent", "args": arguments, "ports": [port]}]},
            "status": {"containerStatuses": [
                {"name": "agent", "restartCount": restarts, "image": "", "imageID": "", "ready": true},
            ]},
        })
    }

    #[tokio::test]
    async fn logs_and_metrics_of_each_agent_are_kept_and_the_previous_log_of_a_restarted_one() {
        let cluster = cluster_with(&json!([pod("one", 0, &["--v=2"]), pod("two", 3, &[])]));
        let mut collected = Collected::default();
        agents(&cluster, Some(Duration::from_secs(90)), &mut collected).await;
        assert_eq!(collected.failures, Vec::<String>::new());
        let names: Vec<&str> = collected.files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["logs/one.log", "logs/two.log", "logs/two.previous.log", "metrics/one.txt", "metrics/two.txt"]
        );
        let previous = &collected.files["logs/two.previous.log"];
        for part in ["/namespaces/fleet-system/pods/two/log?", "previous=true", "sinceSeconds=90", "tailLines="] {
            assert!(previous.contains(part), "{previous} has {part}");
        }
        assert!(!collected.files["logs/two.log"].contains("previous"));
        let metrics = "answer to /api/v1/namespaces/fleet-system/pods/one:8080/proxy/metrics";
        assert_eq!(collected.files["metrics/one.txt"], metrics);
    }

    #[tokio::test]
    async fn a_log_that_is_missing_and_metrics_that_are_protected_are_named_and_the_rest_is_kept() {
        let cluster =
            cluster_with(&json!([pod("broken", 0, &["--metrics-secure"]), pod("one", 0, &["--metrics-secure=false"])]));
        let mut collected = Collected::default();
        agents(&cluster, None, &mut collected).await;
        let names: Vec<&str> = collected.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["logs/one.log", "metrics/one.txt"]);
        let [log, metrics] = &collected.failures[..] else { panic!("{:?}", collected.failures) };
        assert!(log.starts_with("log of pod broken: ") && log.contains("the container is waiting to start"), "{log}");
        assert!(metrics.starts_with("metrics of pod broken: --metrics-secure"), "{metrics}");
    }

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
