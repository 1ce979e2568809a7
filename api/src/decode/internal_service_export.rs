//! Decoder of InternalServiceExport.

use super::Root;
use super::lenient::{Few, Field, records};
use super::meta::Known;
use super::shared::{
    RawAffinityConfig, RawConditions, RawReference, RawServicePort, conditions, reference, service_ports,
    session_affinity,
};
use crate::names::annotations;
use fleetnet_core::limits::PORTS_MAX;
use fleetnet_core::model::{InternalServiceExport, Object, PortSetStamp};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    ports: Field<Few<RawServicePort, PORTS_MAX>>,
    service_reference: Field<RawReference>,
    headless: Field<bool>,
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
