//! Decoder of InternalServiceImport.

use super::meta::DecodedMeta;
use super::multi_cluster_service::consumer_type;
use super::object::Root;
use super::shared::{RawImportStatus, import_status, reference};
use crate::crd::shared::RawReference;
use crate::lenient::{Field, records};
use crate::names::annotations;
use crate::selection;
use crate::selectors;
use fleetnet_core::model::{InternalServiceImport, Object};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    service_import_reference: Field<RawReference>,
}

records!(RawSpec);

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawImportStatus>) -> Result<Object, &'static str> {
    let reference = reference(&decoded.meta, top.spec.or_default().service_import_reference);
    Ok(Object::InternalServiceImport(InternalServiceImport {
        reference: reference.ok_or("spec.serviceImportReference names no ServiceImport")?,
        consumer_type: consumer_type(decoded.annotations.get(annotations::SERVICE_TYPE).map(|value| &**value)),
        status: import_status(top.status)?,
        selection: decoded
            .annotations
            .get(annotations::CLUSTER_SELECTION)
            .and_then(|text| selection::from_annotation(text))
            .unwrap_or_default(),
        // Only the member itself can make it malformed, and writes it again.
        selectors: selectors::from_annotation(decoded.annotations.get(annotations::CLUSTER_SELECTORS))
            .unwrap_or_default(),
        meta: decoded.meta,
    }))
}
