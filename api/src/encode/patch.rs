//! Merge patches: the owned fields, and null for those that are to go.

use super::parts;
use crate::names::{annotations, labels};
use fleetnet_core::ids::{ObjectName, Text};
use fleetnet_core::model::{ConsumerType, HubSliceSpec, Kind, Reference, ServicePort};
use fleetnet_core::plan::{DerivedService, ImportedSlice, Patch};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The subresource and the body.
pub(super) fn body(kind: Kind, patch: &Patch) -> (Option<&'static str>, Value) {
    let body = match patch {
        Patch::ServiceExportConditions(conditions) | Patch::InternalServiceExportConditions(conditions) => {
            return status(json!({ "conditions": parts::conditions(conditions) }));
        }
        Patch::MultiClusterServiceStatus { conditions, load_balancer } => {
            let load_balancer = parts::load_balancer(load_balancer);
            return status(json!({ "conditions": parts::conditions(conditions), "loadBalancer": load_balancer }));
        }
        Patch::ImportStatus(import) => return status(parts::import_status(import)),
        Patch::Finalizers(finalizers) => json!({ "metadata": { "finalizers": parts::finalizers(kind, finalizers) } }),
        Patch::InternalServiceExport { reference, ports } => internal_service_export(reference, ports),
        Patch::InternalServiceExportStamp { finalizers, offered } => json!({
            "metadata": {
                "annotations": { annotations::PORTS_OFFERED_SINCE: parts::offered(offered) },
                "finalizers": parts::finalizers(kind, finalizers),
            },
        }),
        Patch::HubSlice(spec) => hub_slice(spec),
        Patch::MultiClusterService { finalizers, import_label, derived_label } => json!({
            "metadata": {
                "finalizers": parts::finalizers(kind, finalizers),
                "labels": {
                    labels::SERVICE_IMPORT: import_label.as_deref(),
                    labels::DERIVED_SERVICE: derived_label.as_deref(),
                },
            },
        }),
        Patch::ServiceImportOwners { others, controller, finalizers } => json!({
            "metadata": {
                "ownerReferences": parts::owners(others, Some(controller)),
                "finalizers": parts::finalizers(kind, finalizers),
            },
        }),
        Patch::Claims { importers, finalizers } => json!({
            "metadata": {
                "annotations": { annotations::SERVICE_IN_USE_BY: claims(importers) },
                "finalizers": parts::finalizers(kind, finalizers),
            },
        }),
        Patch::ConsumerType(consumer) => {
            json!({ "metadata": { "annotations": consumer_annotation(*consumer) } })
        }
        Patch::DerivedService(service) => derived_service(service),
        Patch::ImportedSlice(slice) => imported_slice(slice),
    };
    (None, body)
}

fn status(status: Value) -> (Option<&'static str>, Value) {
    (Some("status"), json!({ "status": status }))
}

pub(super) fn internal_service_export(reference: &Reference, ports: &[ServicePort]) -> Value {
    let annotations = json!({ annotations::LAST_OBSERVED_RESOURCE_VERSION: *reference.resource_version });
    let spec = json!({ "ports": parts::service_ports(ports), "serviceReference": parts::reference(reference) });
    json!({ "metadata": { "annotations": annotations }, "spec": spec })
}

pub(super) fn hub_slice(spec: &HubSliceSpec) -> Value {
    let mut fields = parts::content(&spec.content);
    fields.insert("addressType".into(), parts::address_type(&spec.content.address_type).into());
    fields.insert("endpointSliceReference".into(), parts::reference(&spec.reference));
    fields.insert("ownerServiceReference".into(), owner_service(&spec.owner));
    json!({ "spec": fields })
}

/// Node ports are not named: the server fills those of a port again by its name.
pub(super) fn derived_service(service: &DerivedService) -> Value {
    let internal = service.internal_load_balancer.then_some("true");
    json!({
        "metadata": {
            "labels": {
                labels::MULTI_CLUSTER_SERVICE_NAME: *service.derived_from.name,
                labels::MULTI_CLUSTER_SERVICE_NAMESPACE: *service.derived_from.namespace,
            },
            "annotations": { annotations::SERVICE_AZURE_LOAD_BALANCER_INTERNAL: internal },
        },
        "spec": {
            "type": parts::service_type(service.consumer_type),
            "ports": parts::service_ports(&service.ports),
        },
    })
}

/// The address type is not named: it cannot change.
pub(super) fn imported_slice(slice: &ImportedSlice) -> Value {
    let mut fields = parts::content(&slice.content);
    let labels = json!({ labels::SERVICE_NAME: *slice.service, labels::MANAGED_BY: labels::MANAGED_BY_IMPORT });
    let annotations = json!({ annotations::LAST_OBSERVED_GENERATION: slice.observed_generation.to_string() });
    fields.insert("metadata".into(), json!({ "labels": labels, "annotations": annotations }));
    Value::Object(fields)
}

/// The type of an import as an annotation says it; LoadBalancer is said by its absence.
pub(super) fn consumer_annotation(consumer: ConsumerType) -> Value {
    json!({ annotations::SERVICE_TYPE: (consumer == ConsumerType::ClusterIp).then_some("ClusterIP") })
}

/// The annotation that says who imports a Service; no importer removes it. The key is Go's name of its field.
fn claims(importers: &BTreeMap<Text, Text>) -> Option<String> {
    let importers: BTreeMap<&str, &str> = importers.iter().map(|(namespace, id)| (&**namespace, &**id)).collect();
    (!importers.is_empty()).then(|| json!({ "MemberClusters": importers }).to_string())
}

fn owner_service(owner: &ObjectName) -> Value {
    json!({
        "namespace": *owner.namespace,
        "name": *owner.name,
        "namespacedName": format!("{}/{}", owner.namespace, owner.name),
    })
}
