//! Bodies of the objects that the member agent makes in the namespaces of users for the standard API.

use super::parts;
use crate::crd::shared::RawServicePort;
use crate::names::{annotations, labels};
use crate::selection;
use crate::wire::elements;
use fleetnet_core::model::{McsImportSpec, McsImportStatus, McsProperties};
use fleetnet_core::plan::McsDerivedService;
use fleetnet_types::Text;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Returns the fields of a derived Service that a patch may set. It never sets families: the first one is immutable.
pub(super) fn derived_service(service: &McsDerivedService) -> Value {
    let (affinity, config) = parts::session_affinity(service.session_affinity);
    let mut object = json!({
        "metadata": {
            "labels": {
                labels::MCS_SERVICE_NAME: *service.service,
                labels::WRITER: labels::WRITER_MEMBER_AGENT,
            },
        },
        "spec": {
            "type": "ClusterIP",
            "ports": elements::<RawServicePort>(&service.ports),
            "sessionAffinity": affinity.unwrap_or("None"),
            "sessionAffinityConfig": config,
            // Imported endpoints have no node, so with `Local` no client would reach them.
            "internalTrafficPolicy": "Cluster",
            "selector": null,
            "externalIPs": null,
        },
    });
    parts::put(&mut object["spec"], "ipFamilyPolicy", service.dual_stack.then_some("PreferDualStack"));
    object
}

/// Returns the fields of a ServiceImport. `recorded` are the labels and annotations that exports gave to it before; a
/// patch removes those that are not in `spec`.
pub(super) fn service_import(spec: &McsImportSpec, recorded: &McsProperties) -> Value {
    let (affinity, config) = parts::session_affinity(spec.session_affinity);
    let McsProperties { families, internal_traffic_policy, traffic_distribution, labels, annotations } =
        &spec.properties;
    let exported = json!({ "labels": labels_of(labels), "annotations": labels_of(annotations) });
    let has_exported = !labels.is_empty() || !annotations.is_empty();
    let mut all_labels = changes(labels, &recorded.labels);
    all_labels.insert(labels::WRITER.to_owned(), labels::WRITER_MEMBER_AGENT.into());
    let mut all_annotations = changes(annotations, &recorded.annotations);
    all_annotations.insert(annotations::EXPORTED.to_owned(), has_exported.then(|| exported.to_string()).into());
    all_annotations.insert(annotations::MCS_DERIVED_SERVICE.to_owned(), spec.derived.as_deref().into());
    let results = selection::results_annotation(&spec.selector_results);
    all_annotations.insert(annotations::CLUSTER_SELECTOR_RESULTS.to_owned(), results.into());
    json!({
        "metadata": { "labels": all_labels, "annotations": all_annotations },
        "spec": {
            "type": parts::import_type(spec.import_type),
            "ports": elements::<RawServicePort>(&spec.ports),
            "ips": parts::list_or_null(spec.ips.iter().map(|ip| (**ip).into()).collect()),
            "ipFamilies": parts::families(families),
            "sessionAffinity": affinity,
            "sessionAffinityConfig": config,
            "internalTrafficPolicy": internal_traffic_policy.as_deref(),
            "trafficDistribution": traffic_distribution.as_deref(),
        },
    })
}

fn labels_of(pairs: &BTreeMap<Text, Text>) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| (name.to_string(), (**value).into())).collect()
}

/// Returns the entries to set, and null for each entry of `before` that is to go.
fn changes(after: &BTreeMap<Text, Text>, before: &BTreeMap<Text, Text>) -> Map<String, Value> {
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| (name.to_string(), Value::Null));
    labels_of(after).into_iter().chain(gone).collect()
}

pub(super) fn import_status(status: &McsImportStatus) -> Value {
    let clusters: Vec<Value> = status.clusters.iter().map(|cluster| json!({ "cluster": **cluster })).collect();
    json!({
        "clusters": parts::list_or_null(clusters),
        "endpointSliceObjects": if status.has_slices { "Present" } else { "Absent" },
        "conditions": parts::conditions(&status.conditions),
    })
}
