//! Decoder of MergedServiceImport.

use super::lenient::{Few, Field, Short, records};
use super::meta::Known;
use super::multicluster::{Families, NamedValues, ShortText, standard_properties};
use super::object::Root;
use super::shared::{
    RawAffinityConfig, RawConditions, RawOwnerService, RawServicePort, import_type, owner_service, service_ports,
    session_affinity,
};
use crate::limits::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use fleetnet_core::limits::{MERGED_CLUSTERS_MAX, PORTS_MAX};
use fleetnet_core::model::{ImportType, MergedCluster, MergedImport, MergedServiceImport, Object, ServedPort};
use fleetnet_types::{ClusterId, Text};
use serde::Deserialize;
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
    clusters: Field<Few<RawCluster, MERGED_CLUSTERS_MAX>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCluster {
    cluster: Field<Short<Text, NAME_BYTES_MAX>>,
    ports: Field<Few<RawServedPort, PORTS_MAX>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawServedPort {
    name: Field<ShortText>,
    own_name: Field<ShortText>,
}

records!(RawSpec, RawCluster, RawServedPort);

pub(super) fn read(known: Known, top: Root<RawSpec, RawConditions>) -> Result<Object, &'static str> {
    let spec = top.spec.or_default();
    let import_type = match import_type(spec.import_type.text()) {
        Some(import_type) => import_type,
        None if known.meta.deleting => ImportType::ClusterSetIp,
        None => return Err("spec.type is none"),
    };
    let clusters = spec.clusters.list().or_undecodable("spec.clusters is not a list")?;
    let import = MergedImport {
        import_type,
        ports: service_ports(spec.ports.list())?,
        session_affinity: session_affinity(spec.session_affinity.text(), spec.session_affinity_config),
        properties: standard_properties(
            spec.ip_families,
            [spec.internal_traffic_policy, spec.traffic_distribution],
            [spec.exported_labels, spec.exported_annotations],
        ),
        clusters: clusters.into_iter().filter_map(cluster).collect(),
    };
    Ok(Object::MergedServiceImport(MergedServiceImport {
        service: owner_service(&known.meta, spec.service_reference).ok_or("spec.serviceReference names no Service")?,
        import: Arc::new(import),
        meta: known.meta,
    }))
}

fn cluster(raw: RawCluster) -> Option<MergedCluster> {
    let port = |raw: RawServedPort| ServedPort {
        name: raw.name.text().or_default(),
        own_name: raw.own_name.text().or_default(),
    };
    let ports = raw.ports.list().value().map(|ports| ports.into_iter().map(port).collect());
    Some(MergedCluster { cluster: ClusterId::from(raw.cluster.text().value()?), ports })
}
