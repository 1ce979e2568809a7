//! Decoders of EndpointSliceExport and EndpointSliceImport, which have the same spec.

use super::content::keep_ips;
use super::meta::DecodedMeta;
use super::object::{Root, Unread};
use crate::crd::endpoint_slice_export::RawSpec;
use crate::names::annotations;
use crate::wire::Wire;
use fleetnet_core::limits::ENDPOINTS_MAX;
use fleetnet_core::model::HubSlice;
use std::sync::Arc;

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, Unread>) -> Result<HubSlice, &'static str> {
    let is_deleting = decoded.meta.deleting;
    let raw = if is_deleting { top.spec.or_default() } else { top.spec.value().ok_or("spec is not an object")? };
    let misnamed = !raw.reference.is_named_once() || !raw.owner.is_named_once();
    if !is_deleting && !raw.reference.names_object() {
        return Err("spec.endpointSliceReference names no slice");
    }
    if !is_deleting && !raw.owner.names_object() {
        return Err("spec.ownerServiceReference names no Service");
    }
    let mut spec = raw.model()?;
    let content = Arc::make_mut(&mut spec.content);
    if content.endpoints.len() + content.draining.len() > ENDPOINTS_MAX {
        return Err("endpoints and drainingEndpoints have more than 1000 elements together");
    }
    keep_ips(content);
    let observed = decoded.annotations.get(annotations::LAST_OBSERVED_GENERATION);
    let traced = decoded.traced();
    Ok(HubSlice {
        spec,
        observed_generation: observed.and_then(|value| value.parse().ok()),
        misnamed,
        deleted: decoded.deleted,
        traced,
        meta: decoded.meta,
    })
}
