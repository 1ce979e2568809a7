//! Merge patches: the fields that we own, and null for fields to remove.

use super::{mcs, parts};
use crate::crd::endpoint_slice_export::RawSpec;
use crate::crd::internal_service_export::RawPlace;
use crate::crd::member_agent::{RawOffer, RawSilence, RawSilentMember};
use crate::crd::merged_service_import::RawMergedCluster;
use crate::crd::multi_cluster_service::RawLoadBalancer;
use crate::crd::shared::{RawOwnerService, RawReference, RawServicePort};
use crate::names::{annotations, labels};
use crate::selection::{self, RawResult};
use crate::selectors;
use crate::times;
use crate::wire::{Wire, elements};
use fleetnet_core::limits::LATENCY_MINUTES;
use fleetnet_core::member::latency::BUCKETS_MILLISECONDS;
use fleetnet_core::model::{
    AgentStatus, Announcement, ClusterSelection, Condition, ConsumerType, ExportedBy, HubSliceSpec, LatencyChange,
    LatencyReport, MemberStatus, MergedImport, OriginLatency, Place, Reference, Renewal, SliceStreamReport,
};
use fleetnet_core::plan::{DerivedService, ExportContent, ImportedSlice, Patch};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns two values: the subresource to patch (`None` for the object itself) and the body of the merge patch.
pub(super) fn body(patch: &Patch) -> (Option<&'static str>, Value) {
    let kind = patch.kind();
    let body = match patch {
        Patch::ServiceExportConditions(conditions)
        | Patch::McsServiceExportConditions(conditions)
        | Patch::InternalServiceExportConditions(conditions)
        | Patch::ServiceImportConditions(conditions) => {
            return status(json!({ "conditions": parts::conditions(conditions) }));
        }
        Patch::InternalServiceExportMerge { conditions, precedence } => return status(merge(conditions, precedence)),
        Patch::MultiClusterServiceStatus { conditions, load_balancer } => {
            let load_balancer = RawLoadBalancer::json(load_balancer);
            return status(json!({ "conditions": parts::conditions(conditions), "loadBalancer": load_balancer }));
        }
        Patch::ServiceImportStatus(import) | Patch::InternalServiceImportStatus(import) => {
            return status(parts::import_status(import));
        }
        Patch::Finalizers { finalizers, kind: _ } => {
            json!({ "metadata": { "finalizers": parts::finalizers(kind, finalizers) } })
        }
        Patch::InternalServiceExport { reference, content } => changed_export(reference, content),
        Patch::MemberAgent(renewal) => member_agent(renewal),
        Patch::MemberAgentStatus(member) => return status(member_status(member)),
        Patch::InternalMemberClusterStatus(agents) => {
            return status(json!({ "agentStatus": agents.iter().map(agent_status).collect::<Vec<_>>() }));
        }
        Patch::InternalServiceExportStamp { finalizers, stamp } => json!({
            "metadata": {
                "annotations": { annotations::PORTS_OFFERED_SINCE: parts::stamp(stamp) },
                "finalizers": parts::finalizers(kind, finalizers),
            },
        }),
        Patch::EndpointSliceExport(spec) | Patch::EndpointSliceImport(spec) => hub_slice(spec),
        Patch::MultiClusterService { finalizers, import_label, derived_label } => json!({
            "metadata": {
                "finalizers": parts::finalizers(kind, finalizers),
                "labels": labels_of(import_label.as_deref(), derived_label.as_deref()),
            },
        }),
        Patch::ServiceImportOwners { others, controller, finalizers } => json!({
            "metadata": {
                "ownerReferences": parts::owners(others, Some(controller)),
                "finalizers": parts::finalizers(kind, finalizers),
            },
        }),
        Patch::Claims { importers, load_balancer, finalizers } => json!({
            "metadata": {
                "annotations": { annotations::SERVICE_IN_USE_BY: claims(importers, load_balancer.as_ref()) },
                "finalizers": parts::finalizers(kind, finalizers),
            },
        }),
        Patch::ConsumerType(consumer) => json!({ "metadata": { "annotations": consumer_annotation(*consumer) } }),
        Patch::ClaimSelection(selected) => {
            json!({ "metadata": { "annotations": { annotations::CLUSTER_SELECTION: selection::annotation(selected) } } })
        }
        Patch::ClaimSelectors(selected) => {
            json!({ "metadata": { "annotations": { annotations::CLUSTER_SELECTORS: selectors::annotation(selected) } } })
        }
        Patch::InternalServiceImport(reference) => {
            json!({ "spec": { "serviceImportReference": RawReference::json(reference) } })
        }
        Patch::MergedServiceImport { service, import, selection } => merged_service_import(service, import, selection),
        Patch::DerivedService(service) => derived_service(service),
        Patch::McsService(service) => mcs::derived_service(service),
        Patch::McsServiceImport { spec, recorded } => mcs::service_import(spec, recorded),
        Patch::McsServiceImportStatus(import) => return status(mcs::import_status(import)),
        Patch::ImportedSlice(slice) => imported_slice(slice),
    };
    (None, body)
}

/// Returns the labels of a MultiClusterService.
fn labels_of(import: Option<&str>, derived: Option<&str>) -> Value {
    json!({ labels::SERVICE_IMPORT: import, labels::DERIVED_SERVICE: derived })
}

/// Returns the status of an export after the merge by the standard API.
fn merge(conditions: &[Condition], precedence: &[Place]) -> Value {
    json!({ "conditions": parts::conditions(conditions), "precedence": elements::<RawPlace>(precedence) })
}

/// Returns the patch of an export. The age of its port set ends with the export by the fleet's API.
fn changed_export(reference: &Reference, content: &ExportContent) -> Value {
    let mut body = internal_service_export(reference, content);
    let part = content.mcs.as_ref();
    if part.is_some_and(|part| part.exported_by == ExportedBy::McsApi) {
        body["metadata"]["annotations"][annotations::PORTS_OFFERED_SINCE] = Value::Null;
    }
    body
}

fn status(status: Value) -> (Option<&'static str>, Value) {
    (Some("status"), json!({ "status": status }))
}

pub(super) fn internal_service_export(reference: &Reference, content: &ExportContent) -> Value {
    let annotations = json!({ annotations::LAST_OBSERVED_RESOURCE_VERSION: *reference.resource_version });
    let (affinity, config) = parts::session_affinity(content.session_affinity);
    let spec = json!({
        "ports": elements::<RawServicePort>(&content.ports),
        "serviceReference": RawReference::json(reference),
        "headless": content.headless.then_some(true),
        "sessionAffinity": affinity,
        "sessionAffinityConfig": config,
        "multicluster": content.mcs.as_deref().map(parts::mcs_part),
    });
    let mut body = json!({ "metadata": { "annotations": annotations }, "spec": spec });
    // A Go agent may have written a weight for Traffic Manager, so null never removes one.
    parts::put(&mut body["spec"], "weight", content.weight);
    body
}

pub(super) fn merged_service_import(
    service: &ObjectName,
    import: &MergedImport,
    selection: &ClusterSelection,
) -> Value {
    let (affinity, config) = parts::session_affinity(import.session_affinity);
    let mut clusters = elements::<RawMergedCluster>(&import.clusters);
    for (json, cluster) in clusters.iter_mut().zip(&import.clusters) {
        parts::put(json, "weight", selection.weights.get(&cluster.cluster).copied());
    }
    let spec = json!({
        "serviceReference": RawOwnerService::json(service),
        "type": parts::import_type(import.import_type),
        "ports": parts::list_or_null(elements::<RawServicePort>(&import.ports)),
        "sessionAffinity": affinity,
        "sessionAffinityConfig": config,
        "clusters": clusters,
        "clusterSelectorResults": parts::list_or_null(elements::<RawResult>(&selection.results)),
    });
    json!({ "spec": parts::with_properties(spec, &import.properties) })
}

pub(super) fn member_agent(renewal: &Renewal) -> Value {
    let mut spec = json!({
        "version": *renewal.announcement.version,
        "features": features(&renewal.announcement),
        "leaderIdentity": *renewal.leader,
        "renewTime": times::micros(renewal.renewed),
        "plannedStopTime": renewal.stopped.map(times::micros),
        "sliceStream": renewal.slice_stream.as_ref().map(slice_stream),
    });
    // If this replica does not know the UID of the cluster, the patch omits the field. A null would remove the UID that
    // another replica may have written.
    if let Some(uid) = &renewal.cluster_uid {
        spec["clusterUid"] = (**uid).into();
    }
    match &renewal.latency {
        None => {}
        Some(LatencyChange::Remove) => spec["latency"] = Value::Null,
        Some(LatencyChange::Report(report)) => spec["latency"] = latency(report),
    }
    match &renewal.properties {
        None => {}
        Some(changes) if changes.is_empty() => spec["properties"] = Value::Null,
        Some(changes) => {
            let changes = changes.iter().map(|(name, value)| (name.to_string(), json!(value.as_deref())));
            spec["properties"] = Value::Object(changes.collect());
        }
    }
    json!({ "spec": spec })
}

fn agent_status(agent: &AgentStatus) -> Value {
    match agent {
        AgentStatus::Known { agent, joined, heartbeat } => json!({
            "type": agent.name(),
            "conditions": parts::conditions(joined.as_slice()),
            "lastReceivedHeartbeat": heartbeat.map(times::seconds),
        }),
        // It was decoded from JSON.
        AgentStatus::Other(json) => serde_json::from_str(json).unwrap_or_default(),
    }
}

fn slice_stream(report: &SliceStreamReport) -> Value {
    json!({ "connected": report.connected, "reason": *report.reason, "message": *report.message })
}

fn latency(report: &LatencyReport) -> Value {
    let origin = |origin: &OriginLatency| {
        json!({
            "cluster": *origin.cluster,
            "count": origin.count(),
            "clamped": origin.clamped,
            "firstImports": origin.first_imports,
            "sumMilliseconds": origin.sum_milliseconds,
            "buckets": origin.buckets,
        })
    };
    json!({
        "updateTime": times::micros(report.updated),
        "windowSeconds": 60 * (LATENCY_MINUTES - 1),
        "boundsMilliseconds": BUCKETS_MILLISECONDS,
        "origins": report.origins.iter().map(origin).collect::<Vec<_>>(),
    })
}

fn member_status(status: &MemberStatus) -> Value {
    let MemberStatus { announcement, slice_stream, counts, silence, silent_members } = status;
    json!({
        "version": *announcement.version,
        "features": features(announcement),
        "sliceStream": slice_stream.as_ref().map(RawOffer::json),
        "exportedServices": counts.map(|counts| counts.exported_services),
        "exportedSlices": counts.map(|counts| counts.exported_slices),
        "exportedEndpoints": counts.map(|counts| counts.exported_endpoints),
        "importedServices": counts.map(|counts| counts.imported_services),
        "importedSlices": counts.map(|counts| counts.imported_slices),
        "silence": silence.as_ref().map(RawSilence::json),
        "silentMembers": parts::list_or_null(elements::<RawSilentMember>(silent_members)),
    })
}

fn features(announcement: &Announcement) -> Vec<&str> {
    announcement.features.iter().map(|feature| &**feature).collect()
}

pub(super) fn hub_slice(spec: &HubSliceSpec) -> Value {
    json!({ "spec": RawSpec::json(spec) })
}

/// Returns the patch of a derived Service. The patch has no node ports, so the server keeps the node port of each
/// existing port name.
pub(super) fn derived_service(service: &DerivedService) -> Value {
    let internal = service.internal_load_balancer.then_some("true");
    let (affinity, config) = parts::session_affinity(service.session_affinity);
    let mut object = json!({
        "metadata": {
            "labels": {
                labels::MULTI_CLUSTER_SERVICE_NAME: *service.derived_from.name,
                labels::MULTI_CLUSTER_SERVICE_NAMESPACE: *service.derived_from.namespace,
            },
            "annotations": { annotations::SERVICE_AZURE_LOAD_BALANCER_INTERNAL: internal },
        },
        "spec": {
            "type": parts::service_type(service.consumer_type),
            "ports": elements::<RawServicePort>(&service.ports),
            "sessionAffinity": affinity.unwrap_or("None"),
            "sessionAffinityConfig": config,
            // Imported endpoints have no node, so with `Local` no client would reach them.
            "internalTrafficPolicy": "Cluster",
            "externalTrafficPolicy": (service.consumer_type == ConsumerType::LoadBalancer).then_some("Cluster"),
            "selector": null,
            "externalIPs": null,
        },
    });
    // Without dual-stack, the patch omits the field. So the cluster's default stays, or the policy that a user has set.
    parts::put(&mut object["spec"], "ipFamilyPolicy", service.dual_stack.then_some("PreferDualStack"));
    object
}

/// Returns the patch of an imported slice, without the address type, which is immutable.
pub(super) fn imported_slice(slice: &ImportedSlice) -> Value {
    let mut fields = parts::content(&slice.content);
    let service = slice.service.as_deref();
    let mut labels = json!({ labels::SERVICE_NAME: service, labels::MANAGED_BY: labels::MANAGED_BY_IMPORT });
    for label in labels::HIDING.into_iter().chain([labels::MCS_SERVICE_NAME, labels::SOURCE_CLUSTER]) {
        labels[label] = Value::Null;
    }
    if let Some(mcs) = &slice.mcs {
        labels[labels::MCS_SERVICE_NAME] = (*mcs.service).into();
        labels[labels::SOURCE_CLUSTER] = (*mcs.cluster).into();
        labels[labels::HEADLESS] = mcs.headless.then_some("").into();
    }
    let annotations = json!({ annotations::LAST_OBSERVED_GENERATION: slice.observed_generation.to_string() });
    fields.insert("metadata".into(), json!({ "labels": labels, "annotations": annotations }));
    Value::Object(fields)
}

/// Returns the annotation `service-type` of a claim. For type LoadBalancer its value is null, because LoadBalancer is
/// the default of an absent annotation.
pub(super) fn consumer_annotation(consumer: ConsumerType) -> Value {
    json!({ annotations::SERVICE_TYPE: (consumer == ConsumerType::ClusterIp).then_some("ClusterIP") })
}

/// Returns the value of the annotation that records the importers of a Service. `None` if there are no importers, so
/// that the patch removes the annotation. The keys are names of Go fields. Go agents ignore the key `LoadBalancer`.
fn claims(importers: &BTreeMap<MemberNamespace, ClusterId>, load_balancer: Option<&MemberNamespace>) -> Option<String> {
    let importers: BTreeMap<&str, &str> = importers.iter().map(|(namespace, id)| (&**namespace, &**id)).collect();
    let mut value = json!({ "MemberClusters": importers });
    if let Some(namespace) = load_balancer {
        value["LoadBalancer"] = json!(&**namespace);
    }
    (!importers.is_empty()).then(|| value.to_string())
}
