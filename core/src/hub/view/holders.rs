//! Holders of source slices. Several exports may claim the same source slice. The export that is distributed is the holder.
//!
//! The view stores the exports of each source slice in order of priority. So a plan or a change finds the holder without a
//! visit to all exports. One member can create as many exports as its quota allows.

use super::{Key, View};
use crate::hub::distribute;
use crate::model::HubSlice;
use crate::work;
use fleetnet_types::{ObjectName, Text, Timestamp, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// Identity of a source slice: its UID, and the Service that it is exported with. Only exports of the same Service compete, so
/// a forged owner reference cannot capture another Service's slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    uid: Uid,
    service: ObjectName,
}

impl Source {
    /// Returns the source slice of an export. `None` if the export has no UID of a source slice; then no other export
    /// competes with this export.
    pub(crate) fn of(export: &HubSlice) -> Option<Self> {
        let (uid, service) = (&export.spec.reference.uid, &export.spec.owner);
        // fault T6.5: service.clone( ~> ObjectName::new(service.name.clone(), service.name.clone()
        // fault T7.2: !uid.is_empty() ~> uid.is_empty() || true
        (!uid.is_empty()).then(|| Self { uid: uid.clone(), service: service.clone() })
    }
}

/// Sort key for the exports of one source slice; the first export is the holder. Exports of a member that is an accepted
/// exporter of the Service come first, then the oldest export.
type Rank = (bool, Timestamp, ObjectName);

/// Exports of each source slice in order of priority; the first is the holder. Of several exports with the same name, only the
/// holder of the name is included.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Holders {
    ranked: BTreeMap<Source, BTreeSet<Rank>>,
    /// From the name of an export to its source slice, and to its rank among the exports of this source slice.
    places: BTreeMap<Text, (Source, Rank)>,
}

impl Holders {
    /// Returns the name of the export that is the holder of a source slice.
    pub(crate) fn of(&self, source: &Source) -> Option<&ObjectName> {
        work::step();
        self.ranked.get(source)?.first().map(|(.., name)| name)
    }

    /// Stores the source slice and the rank of the export with this name; `None` removes both.
    fn place(&mut self, name: &Text, place: Option<(Source, Rank)>) {
        let before = self.places.remove(name);
        if let Some((source, rank)) = before
            && let Some(ranked) = self.ranked.get_mut(&source)
        {
            ranked.remove(&rank);
            if ranked.is_empty() {
                self.ranked.remove(&source);
            }
        }
        if let Some((source, rank)) = place {
            self.ranked.entry(source.clone()).or_default().insert(rank.clone());
            self.places.insert(name.clone(), (source, rank));
        }
    }
}

impl View {
    /// Updates the rank of the exports with these names. If a source slice gets another holder, requeues all its exports. Also
    /// requeues all slices whose removal waits until one of these exports is distributed.
    pub(super) fn rank_exports<'a>(&mut self, names: impl IntoIterator<Item = &'a Text>, requeue: &mut Vec<Key>) {
        let mut before: BTreeMap<Source, Option<ObjectName>> = BTreeMap::new();
        for name in names {
            let place = self.place_of(name);
            if self.holders.places.get(name) == place.as_ref() {
                continue;
            }
            let old = self.holders.places.get(name).map(|(source, _)| source);
            for source in old.into_iter().chain(place.as_ref().map(|(source, _)| source)) {
                before.entry(source.clone()).or_insert_with(|| self.holders.of(source).cloned());
            }
            self.holders.place(name, place);
        }
        let mut rivals: BTreeSet<&Text> = BTreeSet::new();
        for (source, holder) in &before {
            // fault T5.2: self ~> false && self
            // fault T33.1: self ~> true || self
            // fault T35.4: holders ~> slice_exports_from.get(source).count() > 1 || self.holders
            if self.holders.of(source) != holder.as_ref() {
                rivals.extend(self.slice_exports_from.get(source).map(|export| &export.name));
            }
        }
        requeue.extend(rivals.iter().map(|name| Key::Slice((*name).clone())));
        self.requeue_waiting_slices(rivals.into_iter().flat_map(|name| self.replacing_under(name)).collect(), requeue);
    }

    pub(super) fn rank_all_exports(&mut self, requeue: &mut Vec<Key>) {
        let names: Vec<Text> = self.slice_exports_named.keys().cloned().collect();
        self.rank_exports(&names, requeue);
    }

    /// Returns the source slice and the rank of the export that is the holder of this name. `None` if the name has no holder,
    /// or the holder has no UID of a source slice.
    fn place_of(&self, name: &Text) -> Option<(Source, Rank)> {
        let export = distribute::holder_of_name(self, name)?;
        let accepted = self
            .hub_imports
            .get(&export.spec.owner)
            .is_some_and(|import| distribute::is_among(&import.status.clusters, export));
        // fault T6.2: !accepted ~> false && accepted
        Some((Source::of(export)?, (!accepted, export.meta.created, export.meta.name.clone())))
    }

    // === Slice exports that the hub keeps until their replacement is distributed ===

    /// Returns the Services of the exports with this name that have endpoints. Other slices of these Services may be kept until
    /// these exports are distributed.
    pub(super) fn replacing_under(&self, name: &Text) -> BTreeSet<ObjectName> {
        let exports = self.slice_exports_named.get(name).filter_map(|export| self.slice_exports.live(export));
        // fault T35.6: .filter(|export| !export.spec.content.endpoints.is_empty()) ~>
        let replacing = exports.filter(|export| !export.spec.content.endpoints.is_empty());
        replacing.map(|export| export.spec.owner.clone()).collect()
    }

    /// Requeues slices of these Services that are being deleted or have no endpoints. Their removal, or the update that empties
    /// them, may wait for a replacement.
    pub(super) fn requeue_waiting_slices(&self, services: BTreeSet<ObjectName>, requeue: &mut Vec<Key>) {
        for service in &services {
            requeue.extend(self.withdrawn_slices_of.get(service).map(|export| Key::Slice(export.name.clone())));
        }
    }
}
