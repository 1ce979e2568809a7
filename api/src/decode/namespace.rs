//! Decoder of Namespace. Reads only the metadata, with the annotations that list which clusters may export and import,
//! and which addresses a member may export.

use super::meta::Known;
use super::object::{Root, Unread};
use crate::names::{annotations, labels};
use fleetnet_core::model::{Namespace, Object};
use fleetnet_core::ranges::SourceRanges;

/// Reads the namespace `kube-system`, of which only the UID matters.
pub(super) fn read_system(known: Known, _: Root<Unread, Unread>) -> Result<Object, &'static str> {
    Ok(Object::SystemNamespace(known.meta))
}

pub(super) fn read(known: Known, _: Root<Unread, Unread>) -> Result<Object, &'static str> {
    let named = |annotation| known.annotations.get(annotation).map(|clusters| Namespace::clusters(clusters));
    Ok(Object::Namespace(Namespace {
        exporters: named(annotations::EXPORTERS),
        importers: named(annotations::IMPORTERS),
        source_ranges: known
            .annotations
            .get(annotations::SOURCE_RANGES)
            .map_or(SourceRanges::Any, |ranges| SourceRanges::of(ranges)),
        is_importing: known.labels.get(labels::IMPORT).is_some_and(|value| &**value == "true"),
        meta: known.meta,
    }))
}
