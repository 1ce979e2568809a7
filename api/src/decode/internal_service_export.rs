//! Decoder of InternalServiceExport.

use super::lenient::{Few, Field, Short, records};
use super::meta::Known;
use super::multicluster::{RawMulticluster, multicluster};
use super::object::Root;
use super::shared::{
    RawAffinityConfig, RawCondition, RawReference, RawServicePort, conditions, reference, service_ports,
    session_affinity,
};
use crate::limits::NAME_BYTES_MAX;
use crate::names::annotations;
use fleetnet_core::limits::{PLACES_MAX, PORTS_MAX};
use fleetnet_core::model::{InternalServiceExport, Object, Place, PortSetStamp};
use fleetnet_types::{ClusterId, Text, Timestamp};
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

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawStatus {
    conditions: Field<Vec<RawCondition>>,
    precedence: Field<Few<RawPlace, PLACES_MAX>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPlace {
    cluster: Field<Short<Text, NAME_BYTES_MAX>>,
    export_creation_timestamp: Field<Timestamp>,
    since: Field<Timestamp>,
}

records!(RawSpec, RawStatus, RawPlace);

pub(super) fn read(known: Known, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let spec = top.spec.or_default();
    let status = top.status.or_undecodable("status is not an object")?;
    Ok(Object::InternalServiceExport(InternalServiceExport {
        reference: reference(&known.meta, spec.service_reference).ok_or("spec.serviceReference names no Service")?,
        ports: service_ports(spec.ports.list())?,
        headless: spec.headless.or_default(),
        session_affinity: session_affinity(spec.session_affinity, spec.session_affinity_config),
        multicluster: match spec.multicluster {
            Field::Absent => None,
            Field::Nonsense => return Err("spec.multicluster is not an object"),
            Field::Value(raw) => Some(Arc::new(multicluster(raw))),
        },
        conditions: conditions(status.conditions)?,
        precedence: status.precedence.list().or_default().into_iter().filter_map(place).collect(),
        stamp: known.annotations.get(annotations::PORTS_OFFERED_SINCE).and_then(|value| stamp(value)),
        meta: known.meta,
    }))
}

/// Returns a place that the hub agent recorded. `None` if a value is missing or malformed.
fn place(raw: RawPlace) -> Option<Place> {
    Some(Place {
        cluster: ClusterId::from(raw.cluster.text().value()?),
        export_created: raw.export_creation_timestamp.value()?,
        since: raw.since.value()?,
    })
}

/// Decodes the hub agent's annotation `ports-offered-since`: the time since which the export has its present ports, a
/// space, and a hash of these ports. `None` if the value is malformed.
fn stamp(value: &str) -> Option<PortSetStamp> {
    let (since, ports) = value.split_once(' ')?;
    Some(PortSetStamp { since: crate::times::read(since)?, ports: ports.into() })
}
