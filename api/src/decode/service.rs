//! Decoder of Service (core/v1), for users' Services and derived Services.

use super::meta::DecodedMeta;
use super::object::Root;
use super::shared::{RawAffinityConfig, load_balancer, service_ports, session_affinity};
use crate::crd::multi_cluster_service::RawLoadBalancer;
use crate::crd::shared::RawServicePort;
use crate::lenient::{Field, Shape, records};
use crate::names::{annotations, labels};
use fleetnet_core::model::{IpFamily, Object, Service, ServiceType};
use fleetnet_types::{ObjectName, Text};
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawSpec {
    #[serde(rename = "type")]
    service_type: Field<Box<str>>,
    #[serde(rename = "clusterIP")]
    cluster_ip: Field<Box<str>>,
    ports: Field<Vec<RawServicePort>>,
    #[serde(rename = "sessionAffinity")]
    session_affinity: Field<Box<str>>,
    #[serde(rename = "sessionAffinityConfig")]
    session_affinity_config: Field<RawAffinityConfig>,
    #[serde(rename = "ipFamilyPolicy")]
    ip_family_policy: Field<Box<str>>,
    #[serde(rename = "ipFamilies")]
    families: Field<Vec<IpFamily>>,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Field<Vec<Text>>,
    selector: Field<HasEntries>,
    #[serde(rename = "externalIPs")]
    external_ips: Field<HasEntries>,
    #[serde(rename = "externalTrafficPolicy")]
    external_traffic_policy: Field<Box<str>>,
    #[serde(rename = "internalTrafficPolicy")]
    internal_traffic_policy: Field<Text>,
    #[serde(rename = "trafficDistribution")]
    traffic_distribution: Field<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawStatus {
    load_balancer: Field<RawLoadBalancer>,
}

records!(RawSpec, RawStatus);

/// True if a list or a map has an entry. The entries are not stored.
struct HasEntries(bool);

impl Shape for HasEntries {
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut has = false;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            has = true;
        }
        Ok(Some(Self(has)))
    }

    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut has = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            has = true;
        }
        Ok(Some(Self(has)))
    }
}

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let spec = top.spec.or_undecodable("spec is not an object")?;
    let name = decoded.labels.get(labels::MULTI_CLUSTER_SERVICE_NAME);
    let namespace = decoded.labels.get(labels::MULTI_CLUSTER_SERVICE_NAMESPACE);
    let internal = decoded.annotations.get(annotations::SERVICE_AZURE_LOAD_BALANCER_INTERNAL);
    let is_ours = decoded.labels.get(labels::WRITER).is_some_and(|writer| &**writer == labels::WRITER_MEMBER_AGENT);
    let imports = decoded.labels.get(labels::MCS_SERVICE_NAME).filter(|_| is_ours).cloned();
    Ok(Object::Service(Service {
        service_type: match spec.service_type.value().as_deref() {
            Some("ExternalName") => ServiceType::ExternalName,
            Some("LoadBalancer") => ServiceType::LoadBalancer,
            Some("NodePort") => ServiceType::NodePort,
            _ => ServiceType::ClusterIp,
        },
        headless: spec.cluster_ip.value().as_deref() == Some("None"),
        ports: service_ports(spec.ports)?,
        session_affinity: session_affinity(spec.session_affinity, spec.session_affinity_config),
        dual_stack: matches!(spec.ip_family_policy.value().as_deref(), Some("PreferDualStack" | "RequireDualStack")),
        families: spec.families.or_default(),
        has_selector_or_external_ips: [spec.selector, spec.external_ips]
            .into_iter()
            .any(|field| field.value().is_some_and(|HasEntries(has)| has)),
        is_external_policy_local: spec.external_traffic_policy.value().as_deref() == Some("Local"),
        internal_traffic_policy: spec.internal_traffic_policy.value(),
        traffic_distribution: spec.traffic_distribution.value(),
        cluster_ips: spec.cluster_ips.or_default(),
        imports,
        derived_from: namespace.zip(name).map(|(namespace, name)| ObjectName::new(namespace.clone(), name.clone())),
        relabelled: false,
        internal_load_balancer: internal.is_some_and(|value| &**value == "true"),
        load_balancer: load_balancer(top.status.or_default().load_balancer),
        meta: decoded.meta,
    }))
}
