//! Decoder of InternalServiceExport.

use super::Root;
use super::lenient::{Few, Field, records};
use super::meta::Known;
use super::multicluster::{RawMulticluster, multicluster};
use super::shared::{
    RawAffinityConfig, RawConditions, RawReference, RawServicePort, conditions, reference, service_ports,
    session_affinity,
};
use crate::names::annotations;
use fleetnet_core::limits::PORTS_MAX;
use fleetnet_core::model::{InternalServiceExport, Object, PortSetStamp};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    ports: Field<Few<RawServicePort, PORTS_MAX>>,
    service_reference: Field<RawReference>,
    headless: Field<bool>,
    multicluster: Field<RawMulticluster>,
    session_affinity: Field<Box<str>>,
    session_affinity_config: Field<RawAffinityConfig>,
}

records!(RawSpec);

pub(super) fn read(known: Known, top: Root<RawSpec, RawConditions>) -> Result<Object, &'static str> {
    let spec = top.spec.or_default();
    Ok(Object::InternalServiceExport(InternalServiceExport {
        reference: reference(&known.meta, spec.service_reference).ok_or("spec.serviceReference names no Service")?,
        ports: service_ports(spec.ports.list())?,
        headless: spec.headless.or_default(),
        session_affinity: session_affinity(spec.session_affinity, spec.session_affinity_config),
        multicluster: match spec.multicluster {
            Field::Absent => None,
            // fault X4.7 (decode::parts_for_the_standard_api_are_read_and_what_would_end_an_export_makes_the_object_undecodable): Field::Nonsense => return Err("spec.multicluster is not an object") ~> Field::Nonsense => None
            Field::Nonsense => return Err("spec.multicluster is not an object"),
            Field::Value(raw) => Some(Arc::new(multicluster(raw))),
        },
        conditions: conditions(top.status.or_undecodable("status is not an object")?.conditions)?,
        stamp: known.annotations.get(annotations::PORTS_OFFERED_SINCE).and_then(|value| stamp(value)),
        meta: known.meta,
    }))
}

/// Decodes the hub agent's annotation `ports-offered-since`: the time since which the export has its present ports, a space, and
/// a hash of these ports. `None` if the value is malformed.
fn stamp(value: &str) -> Option<PortSetStamp> {
    let (since, ports) = value.split_once(' ')?;
    Some(PortSetStamp { since: crate::times::read(since)?, ports: ports.into() })
}
