//! Holders of source slices. Several exports may claim the same source slice. The export that is distributed is the
//! holder.
//!
//! The view stores the exports of each source slice in order of priority. So a plan or a change finds the holder
//! without a visit to all exports. One member can create as many exports as its quota allows.

use super::value::Source;
use crate::work;
use fleetnet_types::{ObjectName, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Sort key for the exports of one source slice; the first export is the holder. Exports of a member that is an
/// accepted exporter of the Service come first, then the oldest export.
pub(crate) type Rank = (bool, Timestamp, ObjectName);

/// Exports of each source slice in order of priority; the first is the holder. Of several exports with the same name,
/// only the holder of the name is included.
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

    /// Stores the source slice and the rank of the export with this name; `None` removes both. Returns the source
    /// slices that have another holder now.
    pub(in crate::hub) fn place(&mut self, name: &Text, place: Option<(Source, Rank)>) -> Vec<Source> {
        let old = self.places.remove(name);
        let sources: BTreeSet<Source> =
            [&old, &place].into_iter().flatten().map(|(source, _)| source.clone()).collect();
        let before: Vec<Option<ObjectName>> = sources.iter().map(|source| self.of(source).cloned()).collect();
        if let Some((source, rank)) = old
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
        let both = sources.into_iter().zip(before);
        both.filter(|(source, holder)| self.of(source) != holder.as_ref()).map(|(source, _)| source).collect()
    }
}
