//! Objects that members have in the hub, and objects of users in member 0.

use super::scenario::{Api, Exported, NAMESPACE};
use crate::objects::{hub_endpoints, service_name, slice_name};
use fleetnet_api::names::{GROUP, annotations, finalizers};
use fleetnet_core::features::Feature;
use fleetnet_core::names::{joined, member_namespace, merged_import_name};
use fleetnet_runtime::clock::{Clock, micro_time};
use fleetnet_types::ObjectName;
use serde_json::{Value, json};

/// Returns the cluster id of a member. Member 0 has the id `member-1`.
#[must_use]
pub fn cluster_id(member: u32) -> String {
    format!("member-{}", member + 1)
}

/// Returns the path of the collection of one of the fleet's kinds, in the hub namespace of a member.
#[must_use]
pub fn hub_collection(plural: &str, member: u32) -> String {
    format!("/apis/{GROUP}/v1alpha1/namespaces/{}/{plural}", &*member_namespace(&cluster_id(member)))
}

/// Returns the path of the collection of a kind in a namespace of the users.
#[must_use]
pub fn user_collection(group_version: &str, namespace: &str, plural: &str) -> String {
    format!("/{group_version}/namespaces/{namespace}/{plural}")
}

/// Returns the heartbeat of a member: the fields that the agent renews.
#[must_use]
pub fn renewal(clock: &Clock) -> Value {
    json!({"spec": {"renewTime": micro_time(clock.now())}})
}

/// Returns the `MemberAgent` of a member, whose agent supports all features.
#[must_use]
pub fn member_agent(member: u32, clock: &Clock) -> Value {
    let mut object = object("MemberAgent", &cluster_id(member), renewal(clock)["spec"].clone());
    object["spec"]["version"] = env!("CARGO_PKG_VERSION").into();
    object["spec"]["features"] = Feature::ALL.iter().map(|feature| feature.name()).collect();
    object["spec"]["leaderIdentity"] = cluster_id(member).into();
    object["spec"]["clusterUid"] = format!("uid-of-{}", cluster_id(member)).into();
    object
}

/// Returns the `InternalServiceExport` of a Service.
#[must_use]
pub fn service_export(of: Exported) -> Value {
    let name = service_name(of.service);
    let mut spec = json!({
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
        "serviceReference": reference(of.namespace, &name, of.member, 0, None),
    });
    if of.api == Api::Mcs {
        spec["multicluster"] = json!({"only": true, "ipFamilies": ["IPv4"], "internalTrafficPolicy": "Cluster"});
    }
    object("InternalServiceExport", &joined_name(of.namespace, of.service), spec)
}

/// Returns the name of the `EndpointSliceExport` of a Service.
#[must_use]
pub fn slice_export_name(of: Exported) -> String {
    let Exported { service, namespace, member, .. } = of;
    format!("{}-{namespace}-{}-{service:05x}", cluster_id(member), slice_name(service, 0))
}

/// Returns the `EndpointSliceExport` of a Service. The marker identifies the state of the endpoints.
#[must_use]
pub fn slice_export(of: Exported, marker: u32, endpoints: usize, clock: &Clock) -> Value {
    let (namespace, name) = (of.namespace, service_name(of.service));
    let mut spec = slice_change(of, marker, endpoints, clock)["spec"].clone();
    spec["addressType"] = "IPv4".into();
    spec["ports"] = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    spec["ownerServiceReference"] =
        json!({"namespace": namespace, "name": name, "namespacedName": format!("{namespace}/{name}")});
    object("EndpointSliceExport", &slice_export_name(of), spec)
}

/// Returns the patch with which a member exports a changed slice.
#[must_use]
pub fn slice_change(of: Exported, marker: u32, endpoints: usize, clock: &Clock) -> Value {
    let since = micro_time(clock.now());
    json!({"spec": {
        "endpoints": hub_endpoints(marker, endpoints),
        "endpointSliceReference": reference(of.namespace, &slice_name(of.service, 0), of.member, marker, Some(&since)),
    }})
}

/// Returns the `InternalServiceImport` with which a member claims a Service, as one of several importers.
#[must_use]
pub fn claim(service: u32, member: u32) -> Value {
    let reference = reference(NAMESPACE, &service_name(service), member, 1, None);
    let name = joined_name(NAMESPACE, service);
    let mut claim = object("InternalServiceImport", &name, json!({"serviceImportReference": reference}));
    claim["metadata"]["annotations"] = json!({annotations::SERVICE_TYPE: "ClusterIP"});
    claim
}

/// Returns the path of the `MergedServiceImport` of a Service for a member.
#[must_use]
pub fn merged_import(of: Exported, member: u32) -> String {
    let name = merged_import_name(&ObjectName::new(of.namespace, service_name(of.service)));
    format!("{}/{name}", hub_collection("mergedserviceimports", member))
}

/// Returns the patch with which an importer requests the slices of a `MergedServiceImport`.
#[must_use]
pub fn requested() -> Value {
    json!({"metadata": {"finalizers": [finalizers::MERGED_SERVICE_IMPORT]}})
}

/// Returns the patch with which an importer marks a slice that it has imported.
#[must_use]
pub fn imported() -> Value {
    json!({"metadata": {"finalizers": [finalizers::ENDPOINT_SLICE_IMPORT]}})
}

fn reference(namespace: &str, name: &str, member: u32, generation: u32, since: Option<&str>) -> Value {
    let mut reference = json!({
        "clusterId": cluster_id(member), "kind": "", "namespace": namespace, "name": name,
        "namespacedName": format!("{namespace}/{name}"), "uid": format!("uid-of-{name}-in-{}", cluster_id(member)),
        "resourceVersion": generation.to_string(), "generation": generation,
    });
    if let Some(since) = since {
        reference["exportedSince"] = since.into();
    }
    reference
}

fn joined_name(namespace: &str, service: u32) -> String {
    joined(namespace, &service_name(service)).map(|name| name.to_string()).unwrap_or_default()
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind, "metadata": {"name": name}, "spec": spec})
}
