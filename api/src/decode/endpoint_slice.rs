//! Decoder of EndpointSlice (discovery.k8s.io/v1), for source slices and imported slices.

use super::content::content;
use super::meta::{DecodedMeta, RawMeta};
use super::object::Top;
use crate::crd::endpoint_slice_export::{RawEndpoint, RawEndpointPort, address_type};
use crate::lenient::{Field, records};
use crate::names::{annotations, labels};
use fleetnet_core::model::{EndpointSlice, McsLabels, Object};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSlice {
    metadata: Field<RawMeta>,
    address_type: Field<Box<str>>,
    endpoints: Field<Vec<RawEndpoint>>,
    ports: Field<Vec<RawEndpointPort>>,
}

records!(RawSlice);

impl Top for RawSlice {
    fn take_metadata(&mut self) -> Field<RawMeta> {
        std::mem::take(&mut self.metadata)
    }
}

pub(super) fn read(decoded: DecodedMeta, top: RawSlice) -> Result<Object, &'static str> {
    let address_type = address_type(&top.address_type.or_default());
    let (content, further_addresses) = content(address_type, top.endpoints, top.ports)?;
    let observed = decoded.annotations.get(annotations::LAST_OBSERVED_GENERATION);
    let managed_by = decoded.labels.get(labels::MANAGED_BY);
    let mcs = decoded.labels.get(labels::MCS_SERVICE_NAME).map(|service| McsLabels {
        service: service.clone(),
        cluster: decoded.labels.get(labels::SOURCE_CLUSTER).cloned().unwrap_or_default().into(),
        headless: decoded.labels.get(labels::HEADLESS).is_some(),
    });
    let traced = decoded.traced();
    Ok(Object::EndpointSlice(EndpointSlice {
        service: decoded.labels.get(labels::SERVICE_NAME).cloned(),
        mcs: mcs.map(Box::new),
        imported: managed_by.is_some_and(|value| &**value == labels::MANAGED_BY_IMPORT),
        relabelled: false,
        content,
        further_addresses,
        excess: 0,
        observed_generation: observed.and_then(|value| value.parse().ok()),
        traced,
        meta: decoded.meta,
    }))
}
