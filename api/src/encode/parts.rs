//! JSON of parts of objects that have no record in [`crate::crd`]. Each function is the inverse of a function in
//! `decode`.

use crate::crd::endpoint_slice_export::{RawEndpoint, RawEndpointPort};
use crate::crd::internal_service_export::RawSelector;
use crate::crd::shared::{RawCondition, RawOwner, RawServicePort};
use crate::resources::{finalizer, resource};
use crate::times;
use crate::wire::{Wire, elements};
use fleetnet_core::model::{
    Condition, ConsumerType, ExportedBy, Finalizers, ImportStatus, ImportType, IpFamily, Kind, McsExport,
    McsProperties, Owner, PortSetStamp, SessionAffinity, SliceContent,
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
    others.iter().map(RawOwner::json).chain(controller.map(controlling)).collect()
}

fn controlling(controller: &Controller) -> Value {
    let resource = resource(Kind::MultiClusterService);
    RawOwner::json(&Owner {
        api_version: resource.api_version().into(),
        kind: resource.kind.into(),
        name: controller.name.clone(),
        uid: controller.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    })
}

/// Returns the fields with endpoints and ports of an imported slice. A ready endpoint has no conditions, as in the Go
/// form.
pub(crate) fn content(content: &SliceContent) -> Map<String, Value> {
    let mut endpoints = elements::<RawEndpoint>(&content.endpoints);
    endpoints.extend(elements::<RawEndpoint>(&content.draining).into_iter().map(|mut draining| {
        draining["conditions"] = json!({ "ready": false, "serving": true, "terminating": true });
        draining
    }));
    let ports = elements::<RawEndpointPort>(&content.ports);
    Map::from_iter([("endpoints".to_owned(), endpoints.into()), ("ports".to_owned(), ports.into())])
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

/// Returns the value of the field `multicluster` of an InternalServiceExport. A patch replaces its lists.
pub(super) fn mcs_part(mcs: &McsExport) -> Value {
    let value = json!({
        "only": (mcs.exported_by == ExportedBy::McsApi).then_some(true),
        "exportCreationTimestamp": mcs.export_created.map(times::seconds),
        "recreated": mcs.is_recreated.then_some(true),
        "clusterSelectors": list_or_null(elements::<RawSelector>(&mcs.cluster_selectors)),
    });
    with_properties(value, &mcs.properties)
}

/// Sets the fields of the properties in an object.
pub(super) fn with_properties(mut value: Value, properties: &McsProperties) -> Value {
    value["ipFamilies"] = families(&properties.families);
    value["internalTrafficPolicy"] = properties.internal_traffic_policy.as_deref().into();
    value["trafficDistribution"] = properties.traffic_distribution.as_deref().into();
    value["exportedLabels"] = named_values(&properties.labels);
    value["exportedAnnotations"] = named_values(&properties.annotations);
    value
}

pub(super) fn families(families: &[IpFamily]) -> Value {
    list_or_null(elements::<IpFamily>(families))
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

pub(super) fn conditions(conditions: &[Condition]) -> Value {
    elements::<RawCondition>(conditions).into()
}

pub(super) fn import_status(status: &ImportStatus) -> Value {
    let clusters = status.clusters.iter().map(|cluster| json!({ "cluster": **cluster })).collect();
    let (affinity, config) = session_affinity(status.session_affinity);
    json!({
        "type": status.import_type.map(import_type),
        "ports": list_or_null(elements::<RawServicePort>(&status.ports)),
        "clusters": list_or_null(clusters),
        "sessionAffinity": affinity,
        "sessionAffinityConfig": config,
    })
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
