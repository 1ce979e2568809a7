//! Decoder of InternalServiceExport.

use super::mcs::{RawMcsExport, mcs_part};
use super::meta::DecodedMeta;
use super::object::Root;
use super::shared::{RawAffinityConfig, conditions, reference, service_ports, session_affinity};
use crate::crd::internal_service_export::RawPlace;
use crate::crd::shared::{RawCondition, RawReference, RawServicePort};
use crate::lenient::{Few, Field, records};
use crate::names::annotations;
use crate::selection;
use crate::wire::{Plain, Rule};
use fleetnet_core::limits::{PLACES_MAX, PORTS_MAX};
use fleetnet_core::model::{InternalServiceExport, Object, PortSetStamp};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    ports: Field<Few<RawServicePort, PORTS_MAX>>,
    service_reference: Field<RawReference>,
    headless: Field<bool>,
    multicluster: Field<RawMcsExport>,
    weight: Field<i64>,
    session_affinity: Field<Box<str>>,
    session_affinity_config: Field<RawAffinityConfig>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawStatus {
    conditions: Field<Vec<RawCondition>>,
    precedence: Field<Few<RawPlace, PLACES_MAX>>,
}

records!(RawSpec, RawStatus);

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let spec = top.spec.or_default();
    let status = top.status.or_undecodable("status is not an object")?;
    Ok(Object::InternalServiceExport(InternalServiceExport {
        reference: reference(&decoded.meta, spec.service_reference).ok_or("spec.serviceReference names no Service")?,
        ports: service_ports(spec.ports)?,
        headless: spec.headless.or_default(),
        session_affinity: session_affinity(spec.session_affinity, spec.session_affinity_config),
        mcs: match spec.multicluster {
            Field::Absent => None,
            Field::Nonsense => return Err("spec.multicluster is not an object"),
            Field::Value(raw) => Some(Arc::new(mcs_part(raw)?)),
        },
        weight: selection::weight(&spec.weight),
        conditions: conditions(status.conditions)?,
        precedence: Plain::read(status.precedence, "status.precedence is not a list")?,
        stamp: decoded.annotations.get(annotations::PORTS_OFFERED_SINCE).and_then(|value| stamp(value)),
        meta: decoded.meta,
    }))
}

/// Decodes the hub agent's annotation `ports-offered-since`: the time since which the export has its present ports, a
/// space, and a hash of these ports. `None` if the value is malformed.
fn stamp(value: &str) -> Option<PortSetStamp> {
    let (since, ports) = value.split_once(' ')?;
    Some(PortSetStamp { since: crate::times::read(since)?, ports: ports.into() })
}
