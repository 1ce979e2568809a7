//! Decoder of ServiceExport of the standard API.

use super::meta::DecodedMeta;
use super::object::Root;
use super::shared::{RawConditions, conditions};
use crate::lenient::{Field, records};
use crate::names::annotations;
use crate::selectors;
use fleetnet_core::model::{McsServiceExport, Object};
use fleetnet_types::Text;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    exported_labels: Field<BTreeMap<Text, Text>>,
    exported_annotations: Field<BTreeMap<Text, Text>>,
}

records!(RawSpec);

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawConditions>) -> Result<Object, &'static str> {
    let spec = top.spec.or_undecodable("spec is not an object")?;
    let status = top.status.or_undecodable("status is not an object")?;
    Ok(Object::McsServiceExport(McsServiceExport {
        labels: spec.exported_labels.or_undecodable("spec.exportedLabels is not a map of strings")?,
        annotations: spec.exported_annotations.or_undecodable("spec.exportedAnnotations is not a map of strings")?,
        cluster_selectors: selectors::from_annotation(decoded.annotations.get(annotations::CLUSTER_SELECTORS)),
        weight: decoded.annotations.get(annotations::WEIGHT).cloned(),
        conditions: conditions(status.conditions)?,
        meta: decoded.meta,
    }))
}
