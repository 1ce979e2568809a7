//! Decoders of EndpointSliceExport and EndpointSliceImport, which have the same spec.

use super::content::{HubEndpoints, HubPorts, address_type, hub_content};
use super::lenient::{Field, records};
use super::meta::Known;
use super::object::{Root, Unread};
use super::shared::{RawOwnerService, RawReference, owner_service, reference};
use crate::names::annotations;
use fleetnet_core::model::{AddressType, HubSlice, HubSliceSpec};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    address_type: Field<Box<str>>,
    endpoints: HubEndpoints,
    draining_endpoints: HubEndpoints,
    ports: HubPorts,
    endpoint_slice_reference: Field<RawReference>,
    owner_service_reference: Field<RawOwnerService>,
}

records!(RawSpec);

pub(super) fn read(known: Known, top: Root<RawSpec, Unread>) -> Result<HubSlice, &'static str> {
    let spec =
        if known.meta.deleting { top.spec.or_default() } else { top.spec.value().ok_or("spec is not an object")? };
    let misnamed = !spec.endpoint_slice_reference.is_named_once() || !spec.owner_service_reference.is_named_once();
    let reference =
        reference(&known.meta, spec.endpoint_slice_reference).ok_or("spec.endpointSliceReference names no slice")?;
    let owner = owner_service(&known.meta, spec.owner_service_reference)
        .ok_or("spec.ownerServiceReference names no Service")?;
    let address_type = match spec.address_type {
        Field::Absent => AddressType::IPv4,
        other => address_type(&other.or_default()),
    };
    let content = hub_content(address_type, spec.endpoints, spec.draining_endpoints, spec.ports)?;
    let observed = known.annotations.get(annotations::LAST_OBSERVED_GENERATION);
    let traced = known.traced();
    Ok(HubSlice {
        spec: HubSliceSpec { reference, owner, content: content.into() },
        observed_generation: observed.and_then(|value| value.parse().ok()),
        misnamed,
        deleted: known.deleted,
        traced,
        meta: known.meta,
    })
}
