//! Decoder of MultiClusterService.

use super::meta::DecodedMeta;
use super::object::Root;
use super::shared::{conditions, load_balancer};
use crate::crd::multi_cluster_service::RawLoadBalancer;
use crate::crd::shared::RawCondition;
use crate::lenient::{Field, records};
use crate::names::{annotations, labels};
use crate::selection;
use crate::selectors;
use fleetnet_core::model::{ConsumerType, InternalLoadBalancer, MultiClusterService, Object};
use fleetnet_types::Text;
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    service_import: Field<RawServiceImport>,
    #[serde(rename = "type")]
    consumer_type: Field<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawServiceImport {
    name: Field<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawStatus {
    conditions: Field<Vec<RawCondition>>,
    load_balancer: Field<RawLoadBalancer>,
}

records!(RawSpec, RawServiceImport, RawStatus);

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let spec = top.spec.or_undecodable("spec is not an object")?;
    let import = spec.service_import.or_undecodable("spec.serviceImport is not an object")?;
    let status = top.status.or_undecodable("status is not an object")?;
    // Azure's documentation names its own annotation, which it reads only from Services.
    let requests = [annotations::AZURE_LOAD_BALANCER_INTERNAL, annotations::SERVICE_AZURE_LOAD_BALANCER_INTERNAL]
        .into_iter()
        .filter_map(|key| decoded.annotations.get(key))
        .map(|written| internal_load_balancer(written));
    Ok(Object::MultiClusterService(MultiClusterService {
        import_name: import.name.or_undecodable("spec.serviceImport.name is not a string")?,
        consumer_type: consumer_type(spec.consumer_type.value().as_deref()),
        internal_load_balancer: requests.max().unwrap_or_default(),
        import_label: decoded.labels.get(labels::SERVICE_IMPORT).cloned(),
        derived_label: decoded.labels.get(labels::DERIVED_SERVICE).cloned(),
        weights: selection::declared_weights(decoded.annotations.get(annotations::WEIGHTS)),
        conditions: conditions(status.conditions)?,
        load_balancer: load_balancer(status.load_balancer),
        cluster_selectors: selectors::from_annotation(decoded.annotations.get(annotations::CLUSTER_SELECTORS)),
        meta: decoded.meta,
    }))
}

/// Returns the type of an import from its name in `spec.type` or in the annotation `service-type`. An absent name means
/// LoadBalancer.
pub(super) fn consumer_type(name: Option<&str>) -> ConsumerType {
    match name {
        Some("ClusterIP") => ConsumerType::ClusterIp,
        _ => ConsumerType::LoadBalancer,
    }
}

/// Reads an annotation of a MultiClusterService for an internal load balancer as Go's `strconv.ParseBool` does, as the
/// Go agents read it. Azure's cloud provider accepts only `true`.
#[must_use]
pub fn internal_load_balancer(written: &str) -> InternalLoadBalancer {
    match written {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => InternalLoadBalancer::Requested,
        "0" | "f" | "F" | "false" | "False" | "FALSE" => InternalLoadBalancer::NotRequested,
        _ => InternalLoadBalancer::Malformed,
    }
}
