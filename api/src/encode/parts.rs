//! JSON of parts of objects. Each function is the inverse of a function in `decode`.

use crate::resources::{finalizer, resource};
use crate::times;
use fleetnet_core::model::{
    AddressType, Condition, ConsumerType, Endpoint, EndpointPort, ExportedBy, Finalizers, ImportStatus, ImportType,
    IpFamily, Kind, LoadBalancerIngress, LoadBalancerStatus, MergedCluster, Multicluster, Owner, Place, PortNumber,
    PortSetStamp, Reference, ServedPort, ServicePort, SessionAffinity, SliceContent, StandardProperties, TargetPort,
};
use fleetnet_core::plan::Controller;
use fleetnet_types::Text;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Sets a field of a JSON object. Does nothing if there is no value.
pub(super) fn put(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object[key] = value.into();
    }
}

/// Returns the JSON of a list, or null for an empty list, so that a patch removes the field.
pub(super) fn list_or_null(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { Value::Array(list) }
}

/// Returns the JSON of `metadata.finalizers`: the finalizers of other writers in their order, then our finalizer.
pub(super) fn finalizers(kind: Kind, finalizers: &Finalizers) -> Value {
    let ours = finalizer(kind).filter(|_| finalizers.ours);
    finalizers.others.iter().map(|other| &**other).chain(ours).collect()
}

/// Returns the JSON of `metadata.ownerReferences`: other owners in their order, then the MultiClusterService that
/// controls the object, if there is one.
pub(super) fn owners(others: &[Owner], controller: Option<&Controller>) -> Value {
    others.iter().map(owner).chain(controller.map(controlling)).collect()
}

fn controlling(controller: &Controller) -> Value {
    let resource = resource(Kind::MultiClusterService);
    owner(&Owner {
        api_version: resource.api_version().into(),
        kind: resource.kind.into(),
        name: controller.name.clone(),
        uid: controller.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    })
}

fn owner(owner: &Owner) -> Value {
    json!({
        "apiVersion": *owner.api_version,
        "kind": *owner.kind,
        "name": *owner.name,
        "uid": *owner.uid,
        "controller": owner.controller,
        "blockOwnerDeletion": owner.block_owner_deletion,
    })
}

pub(super) fn service_ports(ports: &[ServicePort]) -> Vec<Value> {
    ports.iter().map(service_port).collect()
}

fn service_port(port: &ServicePort) -> Value {
    let mut value = json!({ "protocol": *port.protocol, "port": port.port.as_written() });
    put(&mut value, "name", Some(&*port.name).filter(|name| !name.is_empty()));
    put(&mut value, "appProtocol", port.app_protocol.as_deref());
    let target = port.target_port.as_ref().map(|target| match target {
        TargetPort::Number(number) => json!(number.as_written()),
        TargetPort::Name(name) => json!(**name),
    });
    put(&mut value, "targetPort", target);
    value
}

/// Returns the JSON of a reference for a patch, without kind and apiVersion. No agent reads these two fields, so they
/// keep the values from the create.
pub(super) fn reference(reference: &Reference) -> Value {
    let source = &reference.source;
    json!({
        "clusterId": *reference.cluster,
        "namespace": *source.namespace,
        "name": *source.name,
        "namespacedName": format!("{}/{}", source.namespace, source.name),
        "uid": *reference.uid,
        "resourceVersion": *reference.resource_version,
        "generation": reference.generation,
        "exportedSince": reference.exported_since.map(times::micros),
    })
}

/// Returns the fields with endpoints and ports of a slice in the hub. Draining endpoints have a separate list, because
/// every reader treats an entry of `endpoints` as ready.
pub(super) fn hub_content(content: &SliceContent) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("endpoints".into(), content.endpoints.iter().map(endpoint).collect());
    fields.insert("drainingEndpoints".into(), list_or_null(content.draining.iter().map(endpoint).collect()));
    fields.insert("ports".into(), content.ports.iter().map(endpoint_port).collect());
    fields
}

/// Returns the fields with endpoints and ports of an imported slice. A ready endpoint has no conditions, as in the Go
/// form.
pub(crate) fn content(content: &SliceContent) -> Map<String, Value> {
    let draining = content.draining.iter().map(|draining| {
        let mut value = endpoint(draining);
        value["conditions"] = json!({ "ready": false, "serving": true, "terminating": true });
        value
    });
    let mut fields = Map::new();
    fields.insert("endpoints".into(), content.endpoints.iter().map(endpoint).chain(draining).collect());
    fields.insert("ports".into(), content.ports.iter().map(endpoint_port).collect());
    fields
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let addresses: Vec<Value> = endpoint.addresses.iter().map(|address| address.to_string().into()).collect();
    let mut value = json!({ "addresses": addresses });
    put(&mut value, "hostname", endpoint.hostname.as_deref());
    put(&mut value, "zone", endpoint.zone.as_deref());
    value
}

/// Returns the values of the fields `sessionAffinity` and `sessionAffinityConfig`. They are `None` and null if there is
/// no session affinity.
pub(super) fn session_affinity(affinity: SessionAffinity) -> (Option<&'static str>, Value) {
    match affinity {
        SessionAffinity::None => (None, Value::Null),
        SessionAffinity::ClientIp { timeout_seconds } => {
            (Some("ClientIP"), json!({ "clientIP": { "timeoutSeconds": timeout_seconds } }))
        }
    }
}

fn endpoint_port(port: &EndpointPort) -> Value {
    let mut value = json!({ "name": *port.name, "protocol": *port.protocol });
    put(&mut value, "port", port.port.map(PortNumber::as_written));
    put(&mut value, "appProtocol", port.app_protocol.as_deref());
    value
}

/// Returns the value of the field `multicluster` of an InternalServiceExport. A patch replaces its lists.
pub(super) fn multicluster(multicluster: &Multicluster) -> Value {
    let value = json!({
        "only": (multicluster.exported_by == ExportedBy::StandardApi).then_some(true),
        "exportCreationTimestamp": multicluster.export_created.map(times::seconds),
        "recreated": multicluster.is_recreated.then_some(true),
    });
    with_properties(value, &multicluster.properties)
}

pub(super) fn place(place: &Place) -> Value {
    json!({
        "cluster": *place.cluster,
        "exportCreationTimestamp": times::micros(place.export_created),
        "since": times::micros(place.since),
    })
}

/// Sets the fields of the properties in an object.
pub(super) fn with_properties(mut value: Value, properties: &StandardProperties) -> Value {
    value["ipFamilies"] = families(&properties.families);
    value["internalTrafficPolicy"] = properties.internal_traffic_policy.as_deref().into();
    value["trafficDistribution"] = properties.traffic_distribution.as_deref().into();
    value["exportedLabels"] = named_values(&properties.labels);
    value["exportedAnnotations"] = named_values(&properties.annotations);
    value
}

pub(super) fn families(families: &[IpFamily]) -> Value {
    let name = |family: &IpFamily| match family {
        IpFamily::IPv4 => "IPv4".into(),
        IpFamily::IPv6 => "IPv6".into(),
    };
    list_or_null(families.iter().map(name).collect())
}

/// Returns labels or annotations as a list. A patch replaces a list as a whole, but merges an object.
fn named_values(pairs: &BTreeMap<Text, Text>) -> Value {
    list_or_null(pairs.iter().map(|(name, value)| json!({ "name": **name, "value": **value })).collect())
}

pub(super) fn import_type(import_type: ImportType) -> &'static str {
    match import_type {
        ImportType::ClusterSetIp => "ClusterSetIP",
        ImportType::Headless => "Headless",
    }
}

pub(super) fn merged_cluster(cluster: &MergedCluster) -> Value {
    let port = |port: &ServedPort| json!({ "name": *port.name, "ownName": *port.own_name });
    let mut value = json!({ "cluster": *cluster.cluster });
    put(&mut value, "ports", cluster.ports.as_ref().map(|ports| ports.iter().map(port).collect::<Vec<_>>()));
    value
}

pub(super) fn address_type(address_type: &AddressType) -> &str {
    match address_type {
        AddressType::IPv4 => "IPv4",
        AddressType::IPv6 => "IPv6",
        AddressType::Other(other) => other,
    }
}

pub(super) fn conditions(conditions: &[Condition]) -> Value {
    conditions.iter().map(condition).collect()
}

fn condition(condition: &Condition) -> Value {
    json!({
        "type": *condition.condition_type,
        "status": condition.status.as_str(),
        "reason": *condition.reason,
        "message": *condition.message,
        "observedGeneration": condition.observed_generation,
        "lastTransitionTime": times::seconds(condition.last_transition),
    })
}

pub(super) fn import_status(status: &ImportStatus) -> Value {
    let clusters = status.clusters.iter().map(|cluster| json!({ "cluster": **cluster })).collect();
    let (affinity, config) = session_affinity(status.session_affinity);
    json!({
        "type": status.import_type.map(import_type),
        "ports": list_or_null(service_ports(&status.ports)),
        "clusters": list_or_null(clusters),
        "sessionAffinity": affinity,
        "sessionAffinityConfig": config,
    })
}

pub(super) fn load_balancer(status: &LoadBalancerStatus) -> Value {
    json!({ "ingress": list_or_null(status.ingress.iter().map(ingress).collect()) })
}

fn ingress(ingress: &LoadBalancerIngress) -> Value {
    let mut value = json!({});
    put(&mut value, "ip", ingress.ip.as_deref());
    put(&mut value, "hostname", ingress.hostname.as_deref());
    put(&mut value, "ipMode", ingress.ip_mode.as_deref());
    let port = |port: &fleetnet_core::model::LoadBalancerPort| {
        let mut value = json!({ "port": port.port.as_written(), "protocol": *port.protocol });
        put(&mut value, "error", port.error.as_deref());
        value
    };
    let ports: Vec<Value> = ingress.ports.iter().map(port).collect();
    put(&mut value, "ports", Some(ports).filter(|ports| !ports.is_empty()));
    value
}

/// Returns the value of the annotation `ports-offered-since`: the time since which the export has its present ports, a
/// space, and a hash of these ports.
pub(super) fn stamp(stamp: &PortSetStamp) -> String {
    format!("{} {}", times::micros(stamp.since), stamp.ports)
}

/// Returns the value of `spec.type` for a derived Service.
pub(super) fn service_type(consumer: ConsumerType) -> &'static str {
    match consumer {
        ConsumerType::LoadBalancer => "LoadBalancer",
        ConsumerType::ClusterIp => "ClusterIP",
    }
}
