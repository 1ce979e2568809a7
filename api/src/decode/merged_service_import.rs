//! Decoder of MergedServiceImport.

use super::mcs::{Families, NamedValues, ShortText, mcs_properties};
use super::meta::DecodedMeta;
use super::object::Root;
use super::shared::{RawAffinityConfig, RawConditions, import_type, reference, service_ports, session_affinity};
use crate::crd::merged_service_import::RawMergedCluster;
use crate::crd::shared::{RawOwnerService, RawServicePort};
use crate::lenient::{Few, Field, Short, records};
use crate::limits::LABEL_BYTES_MAX;
use crate::selection;
use crate::wire::{Plain, Rule, Strict};
use fleetnet_core::limits::{MERGED_CLUSTERS_MAX, PORTS_MAX};
use fleetnet_core::model::{ClusterSelection, ImportType, MergedImport, MergedServiceImport, Object};
use fleetnet_types::ClusterId;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    service_reference: Field<RawOwnerService>,
    #[serde(rename = "type")]
    import_type: Field<ShortText>,
    ports: Field<Few<RawServicePort, PORTS_MAX>>,
    ip_families: Field<Families>,
    session_affinity: Field<Short<Box<str>, LABEL_BYTES_MAX>>,
    session_affinity_config: Field<RawAffinityConfig>,
    internal_traffic_policy: Field<ShortText>,
    traffic_distribution: Field<ShortText>,
    exported_labels: Field<NamedValues>,
    exported_annotations: Field<NamedValues>,
    clusters: Field<Few<RawMergedCluster, MERGED_CLUSTERS_MAX>>,
    cluster_selector_results: Field<selection::Results>,
}

records!(RawSpec);

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawConditions>) -> Result<Object, &'static str> {
    let spec = top.spec.or_default();
    let import_type = match import_type(spec.import_type.text()) {
        Some(import_type) => import_type,
        None if decoded.meta.deleting => ImportType::ClusterSetIp,
        None => return Err("spec.type is none"),
    };
    let weights = weights(&spec.clusters);
    let clusters = Strict::<Plain<_>>::read(spec.clusters, "spec.clusters is not a list")?;
    let import = MergedImport {
        import_type,
        ports: service_ports(spec.ports)?,
        session_affinity: session_affinity(spec.session_affinity.text(), spec.session_affinity_config),
        properties: mcs_properties(
            spec.ip_families,
            [spec.internal_traffic_policy, spec.traffic_distribution],
            [spec.exported_labels, spec.exported_annotations],
        ),
        clusters,
    };
    Ok(Object::MergedServiceImport(MergedServiceImport {
        service: reference(&decoded.meta, spec.service_reference).ok_or("spec.serviceReference names no Service")?,
        import: Arc::new(import),
        selection: ClusterSelection { results: selection::results(spec.cluster_selector_results)?, weights },
        meta: decoded.meta,
    }))
}

fn weights(clusters: &Field<Few<RawMergedCluster, MERGED_CLUSTERS_MAX>>) -> BTreeMap<ClusterId, i64> {
    let clusters = clusters.as_value().into_iter().flat_map(|few| &few.elements);
    let weight =
        |raw: &RawMergedCluster| Some((raw.cluster.as_value()?.as_text().clone(), selection::weight(&raw.weight)?));
    clusters.filter_map(weight).collect()
}
