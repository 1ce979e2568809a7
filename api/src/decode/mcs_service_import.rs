//! Decoder of ServiceImport of the standard API.

use super::meta::DecodedMeta;
use super::object::Root;
use super::shared::{RawAffinityConfig, RawCluster, conditions, import_type, service_ports, session_affinity};
use crate::crd::shared::{RawCondition, RawServicePort};
use crate::lenient::{Field, records};
use crate::names::{annotations, labels};
use crate::selection;
use fleetnet_core::model::{IpFamily, McsImportSpec, McsImportStatus, McsProperties, McsServiceImport, Object};
use fleetnet_types::{ClusterId, Text};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    #[serde(rename = "type")]
    import_type: Field<Text>,
    ports: Field<Vec<RawServicePort>>,
    ips: Field<Vec<Text>>,
    ip_families: Field<Vec<IpFamily>>,
    session_affinity: Field<Box<str>>,
    session_affinity_config: Field<RawAffinityConfig>,
    internal_traffic_policy: Field<Text>,
    traffic_distribution: Field<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawStatus {
    clusters: Field<Vec<RawCluster>>,
    endpoint_slice_objects: Field<Box<str>>,
    conditions: Field<Vec<RawCondition>>,
}

/// Value of the annotation with the labels and annotations that exports gave to the object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawExported {
    labels: Field<BTreeMap<Text, Text>>,
    annotations: Field<BTreeMap<Text, Text>>,
}

records!(RawSpec, RawStatus, RawExported);

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let spec = top.spec.or_default();
    let status = top.status.or_undecodable("status is not an object")?;
    let read = |text: &Text| serde_json::from_str::<Field<RawExported>>(text).ok()?.value();
    let exported = decoded.annotations.get(annotations::EXPORTED).and_then(read).unwrap_or_default();
    let clusters = status.clusters.or_default().into_iter().filter_map(|raw| raw.cluster.value()).map(ClusterId::from);
    Ok(Object::McsServiceImport(McsServiceImport {
        relabelled: false,
        is_ours: decoded.labels.get(labels::WRITER).is_some_and(|writer| &**writer == labels::WRITER_MEMBER_AGENT),
        spec: McsImportSpec {
            import_type: import_type(spec.import_type).unwrap_or_default(),
            ports: service_ports(spec.ports)?,
            session_affinity: session_affinity(spec.session_affinity, spec.session_affinity_config),
            properties: McsProperties {
                families: spec.ip_families.or_default(),
                internal_traffic_policy: spec.internal_traffic_policy.value(),
                traffic_distribution: spec.traffic_distribution.value(),
                labels: exported.labels.or_default(),
                annotations: exported.annotations.or_default(),
            },
            ips: spec.ips.or_default(),
            derived: decoded.annotations.get(annotations::MCS_DERIVED_SERVICE).cloned(),
            selector_results: decoded
                .annotations
                .get(annotations::CLUSTER_SELECTOR_RESULTS)
                .and_then(|text| selection::results_from_annotation(text))
                .unwrap_or_default(),
        },
        weights: selection::declared_weights(decoded.annotations.get(annotations::WEIGHTS)),
        status: McsImportStatus {
            clusters: clusters.collect(),
            has_slices: status.endpoint_slice_objects.value().as_deref() == Some("Present"),
            conditions: conditions(status.conditions)?,
        },
        meta: decoded.meta,
    }))
}
