//! Decoder of Namespace. Reads only the metadata, with the annotations that list which clusters may export and import,
//! which addresses a member may export, and which properties it has.

use super::meta::DecodedMeta;
use super::object::{Root, Unread};
use crate::limits::NAME_BYTES_MAX;
use crate::names::{annotations, labels};
use fleetnet_core::limits::{PROPERTIES_MAX, PROPERTY_BYTES_MAX};
use fleetnet_core::model::{Namespace, Object, Properties};
use fleetnet_core::names::is_property;
use fleetnet_core::ranges::SourceRanges;
use fleetnet_types::Text;
use std::collections::BTreeMap;

/// Reads the namespace `kube-system`, of which only the UID matters.
pub(super) fn read_system(decoded: DecodedMeta, _: Root<Unread, Unread>) -> Result<Object, &'static str> {
    Ok(Object::SystemNamespace(decoded.meta))
}

pub(super) fn read(decoded: DecodedMeta, _: Root<Unread, Unread>) -> Result<Object, &'static str> {
    let named = |annotation| decoded.annotations.get(annotation).map(|clusters| Namespace::clusters(clusters));
    Ok(Object::Namespace(Namespace {
        exporters: named(annotations::EXPORTERS),
        importers: named(annotations::IMPORTERS),
        source_ranges: decoded
            .annotations
            .get(annotations::SOURCE_RANGES)
            .map_or(SourceRanges::Any, |ranges| SourceRanges::of(ranges)),
        properties: decoded.annotations.get(annotations::CLUSTER_PROPERTIES).map_or(Ok(Properties::new()), properties),
        is_importing: decoded.labels.get(labels::IMPORT).is_some_and(|value| &**value == "true"),
        meta: decoded.meta,
    }))
}

/// Returns the properties in an annotation, or why it is malformed.
fn properties(annotation: &Text) -> Result<Properties, Text> {
    let found: BTreeMap<String, String> = serde_json::from_str(annotation)
        .map_err(|error| format!("it is no JSON object of texts, such as {{\"region\":\"north\"}}: {error}"))?;
    if found.len() > PROPERTIES_MAX {
        return Err(format!("it has {} properties, and at most {PROPERTIES_MAX} count", found.len()).into());
    }
    if let Some((name, _)) = found.iter().find(|(name, value)| !is_property(name, value)) {
        let name = name.chars().take(NAME_BYTES_MAX).collect::<String>();
        return Err(format!(
            "{name:?} is no name of a property, or its value has more than {PROPERTY_BYTES_MAX} bytes"
        )
        .into());
    }
    Ok(found.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
}
