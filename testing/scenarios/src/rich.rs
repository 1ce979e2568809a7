//! Service that uses every feature, and the expected content of its slices in the hub and in the importer.

use crate::environment::{Backend, Environment};
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport};
use harness::eventually;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Name of the Service's slice with IPv4 addresses.
pub const SLICE: &str = "app-4";
/// Name of the Service's slice with IPv6 addresses.
pub const SIXES: &str = "app-6";
/// Timeout of the Service's session affinity.
pub const AFFINITY_SECONDS: i32 = 600;

/// Creates the Service `app` with session affinity and a slice of each family. Each slice has three endpoints: a ready
/// endpoint with a host name and a zone, a draining endpoint, and an endpoint that is not serving.
pub async fn create(exporter: &User) -> anyhow::Result<()> {
    let mut service = sticky();
    service["metadata"] = json!({"name": "app"});
    service["spec"]["ports"] = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    service["spec"]["ipFamilyPolicy"] = json!("PreferDualStack");
    exporter.create::<Service>(service).await?;
    create_slice(exporter, SLICE, "IPv4", fours()).await?;
    create_slice(exporter, SIXES, "IPv6", sixes()).await
}

/// Creates the Service `app` that uses every feature in the first member, and imports it into the second. Waits until
/// its slices arrive.
pub async fn export_and_import(env: &Environment<impl Backend>) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    create(&exporter).await?;
    exporter.export("app").await?;
    importer.import("app", "app", Consume::ClusterIp).await?;
    arrives(&importer, &imported()).await
}

/// Turns an ordinary Service `app` with one slice into the Service that uses every feature.
pub async fn enrich(exporter: &User, slice: &str) -> anyhow::Result<()> {
    exporter.merge::<Service>("app", sticky()).await?;
    exporter.merge::<EndpointSlice>(slice, json!({"endpoints": fours()})).await?;
    create_slice(exporter, SIXES, "IPv6", sixes()).await
}

fn sticky() -> Value {
    let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
    json!({"spec": {"sessionAffinity": "ClientIP", "sessionAffinityConfig": config}})
}

/// True if a Service has the session affinity of the Service that uses every feature.
#[must_use]
pub fn is_sticky(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    let client_ip = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
    spec.session_affinity.as_deref() == Some("ClientIP")
        && client_ip.and_then(|client_ip| client_ip.timeout_seconds) == Some(AFFINITY_SECONDS)
}

fn fours() -> Value {
    json!([
        {"addresses": ["10.1.0.1"], "conditions": ready(), "hostname": "web-0", "zone": "zone-1", "nodeName": "node-1"},
        {"addresses": ["10.1.0.2"], "conditions": draining(), "hostname": "web-1", "zone": "zone-2"},
        {"addresses": ["10.1.0.3"], "conditions": {"ready": false, "serving": false, "terminating": true}},
    ])
}

fn sixes() -> Value {
    json!([{"addresses": ["fd00:1::1"], "conditions": ready(), "zone": "zone-1"}])
}

#[must_use]
pub fn headless_service(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// Returns the annotation that requests the export of a headless Service.
#[must_use]
pub fn export_headless() -> Value {
    json!({"metadata": {"annotations": {"networking.fleet.azure.com/export-headless": "true"}}})
}

/// Creates a slice of the Service `app`.
pub async fn create_slice(exporter: &User, name: &str, family: &str, endpoints: Value) -> anyhow::Result<()> {
    let slice = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "app"}},
        "addressType": family,
        "endpoints": endpoints,
        "ports": ports(),
    });
    exporter.create::<EndpointSlice>(slice).await.map(drop)
}

#[must_use]
pub fn ready() -> Value {
    json!({"ready": true, "serving": true, "terminating": false})
}

/// Returns the conditions of a draining endpoint: the endpoint serves existing connections and gets no new connections.
#[must_use]
pub fn draining() -> Value {
    json!({"ready": false, "serving": true, "terminating": true})
}

/// Returns the expected content of the Service's slices in the hub.
#[must_use]
pub fn in_hub() -> Vec<Value> {
    vec![
        json!({
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.0.1"], "hostname": "web-0", "zone": "zone-1"}],
            "drainingEndpoints": [{"addresses": ["10.1.0.2"], "hostname": "web-1", "zone": "zone-2"}],
            "ports": ports(),
        }),
        json!({
            "addressType": "IPv6",
            "endpoints": [{"addresses": ["fd00:1::1"], "zone": "zone-1"}],
            "ports": ports(),
        }),
    ]
}

/// Returns the expected content of the Service's slices in the hub in the Go form.
#[must_use]
pub fn in_go_form() -> Vec<Value> {
    vec![slice("IPv4", json!([{"addresses": ["10.1.0.1"]}]))]
}

/// Returns the expected content of the Service's slices in an importer.
#[must_use]
pub fn imported() -> Vec<Value> {
    vec![
        slice(
            "IPv4",
            json!([
                {"addresses": ["10.1.0.1"], "hostname": "web-0", "zone": "zone-1"},
                {"addresses": ["10.1.0.2"], "conditions": draining(), "hostname": "web-1", "zone": "zone-2"},
            ]),
        ),
        slice("IPv6", json!([{"addresses": ["fd00:1::1"], "zone": "zone-1"}])),
    ]
}

/// Returns the expected content of a slice of the Service: this family, these endpoints, and the Service's ports.
#[must_use]
pub fn slice(family: &str, endpoints: Value) -> Value {
    json!({"addressType": family, "endpoints": endpoints, "ports": ports()})
}

fn ports() -> Value {
    json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
}

/// Waits until the imported slices of `app` have exactly this content, sorted by family.
pub async fn arrives(importer: &User, expected: &[Value]) -> anyhow::Result<()> {
    let are_there = |objects: &BTreeMap<String, EndpointSlice>| {
        let found = objects.values().map(|slice| content(&serde_json::to_value(slice).unwrap_or_default()));
        by_family(found) == expected
    };
    importer.sees_slices("app", &format!("to be {}", json!(expected)), are_there).await.map(drop)
}

/// Waits until the first member's exported slices in the hub have exactly this content, sorted by family.
pub async fn is_exported(env: &Environment<impl Backend>, expected: &[Value]) -> anyhow::Result<()> {
    have_content(env, &env.hub::<EndpointSliceExport>(&env.members[0].hub_namespace), expected).await
}

/// Waits until the slices distributed to the second member have exactly this content, sorted by family.
pub async fn is_distributed(env: &Environment<impl Backend>, expected: &[Value]) -> anyhow::Result<()> {
    have_content(env, &env.hub::<EndpointSliceImport>(&env.members[1].hub_namespace), expected).await
}

/// Waits until the slices of a kind have this content. Slices that are being deleted do not count.
async fn have_content<K: eventually::Shown>(
    env: &Environment<impl Backend>,
    api: &Api<K>,
    expected: &[Value],
) -> anyhow::Result<()> {
    let ours = format!("-{}-", env.namespace);
    let are_there = |objects: &BTreeMap<String, K>| {
        let live = objects.iter().filter(|(name, it)| name.contains(&ours) && it.meta().deletion_timestamp.is_none());
        let found = live.map(|(_, object)| content(&serde_json::to_value(object).unwrap_or_default()["spec"]));
        by_family(found) == expected
    };
    let what = format!("the slices of {} to be {}", env.namespace, json!(expected));
    eventually::objects(api, &Default::default(), &what, are_there).await.map(drop)
}

fn by_family(slices: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut slices: Vec<Value> = slices.collect();
    slices.sort_by_key(|slice| slice["addressType"].to_string());
    slices
}

/// Returns the content of a slice: address type, endpoints, draining endpoints and ports. An empty `conditions` of an
/// endpoint is omitted.
fn content(of: &Value) -> Value {
    let mut content = Value::Object(Default::default());
    for field in ["addressType", "endpoints", "drainingEndpoints", "ports"] {
        if let Some(value) = of.get(field) {
            content[field] = value.clone();
        }
    }
    for endpoint in content["endpoints"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.retain(|field, value| field != "conditions" || *value != json!({}));
    }
    content
}
