//! Decoder of MultiClusterService.

use super::Root;
use super::lenient::{Field, records};
use super::meta::Known;
use super::shared::{RawCondition, RawLoadBalancer, conditions, load_balancer};
use crate::names::{annotations, labels};
use fleetnet_core::model::{ConsumerType, MultiClusterService, Object};
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

pub(super) fn read(known: Known, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let spec = top.spec.or_undecodable("spec is not an object")?;
    let import = spec.service_import.or_undecodable("spec.serviceImport is not an object")?;
    let status = top.status.or_undecodable("status is not an object")?;
    let internal = known.annotations.get(annotations::AZURE_LOAD_BALANCER_INTERNAL);
    Ok(Object::MultiClusterService(MultiClusterService {
        // fault X4.5: import.name.or_undecodable("spec.serviceImport.name is not a string")? ~> import.name.or_default()
        import_name: import.name.or_undecodable("spec.serviceImport.name is not a string")?,
        consumer_type: consumer_type(spec.consumer_type.value().as_deref()),
        internal_load_balancer: internal.is_some_and(|value| is_true(value)),
        import_label: known.labels.get(labels::SERVICE_IMPORT).cloned(),
        derived_label: known.labels.get(labels::DERIVED_SERVICE).cloned(),
        conditions: conditions(status.conditions)?,
        load_balancer: load_balancer(status.load_balancer),
        meta: known.meta,
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

/// True for every value of the annotation that Go's `strconv.ParseBool` reads as true. Users of the Go agents may have written
/// any of these values.
fn is_true(value: &str) -> bool {
    // fault X10.4: "1" | "t" | ~>
    matches!(value, "1" | "t" | "T" | "true" | "True" | "TRUE")
}
