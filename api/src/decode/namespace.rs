//! Decoder of Namespace. Reads only the metadata, with the annotations that list which clusters may export and import,
//! and which addresses a member may export.

use super::meta::DecodedMeta;
use super::object::{Root, Unread};
use crate::names::{annotations, labels};
use fleetnet_core::model::{Namespace, Object};
use fleetnet_core::ranges::SourceRanges;

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
        is_importing: decoded.labels.get(labels::IMPORT).is_some_and(|value| &**value == "true"),
        meta: decoded.meta,
    }))
}
