//! Times at which changes were observed: the only state of a view that is not an object. The events carry the times.

use crate::limits::PENDING_CHANGES_MAX;
use crate::member::import::admission::NotImported;
use fleetnet_types::{ObjectName, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Latency of a Service: from the time when its change was first seen to the hub's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLatency {
    pub service: ObjectName,
    /// Time at which the change was first seen, as the InternalServiceExport states it.
    pub exported_since: Option<Timestamp>,
    /// Time at which this agent saw the hub's outcome.
    pub outcome_at: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// For each source slice: changes of its content that the hub may lack, oldest first, as generation and time.
    changes: BTreeMap<ObjectName, Vec<(i64, Timestamp)>>,
    /// For each Service: time at which its slices became exportable.
    exportable_since: BTreeMap<ObjectName, Timestamp>,
    /// For each Service: time of the last change of its exported content.
    service_changed: BTreeMap<ObjectName, Timestamp>,
    /// For each ServiceImport without an exporter: time since when.
    unresolved_since: BTreeMap<ObjectName, Timestamp>,
    /// For each ServiceImport with a granted claim: time since when.
    fulfilled_since: BTreeMap<ObjectName, Timestamp>,
    /// For each imported slice that the hub no longer distributes: time since when.
    orphaned_since: BTreeMap<Text, Timestamp>,
    /// For each distributed slice with parts that are not imported: these parts, and the first source generation that had them.
    not_imported: BTreeMap<Text, (NotImported, i64)>,
    /// Services that were exported and have not got the hub's outcome since.
    awaiting_outcome: BTreeSet<ObjectName>,
    latencies: Vec<ServiceLatency>,
}

impl Stamps {
    /// Moves all times by a step of the wall clock.
    pub(super) fn clock_set(&mut self, micros: i64) {
        let changes = self.changes.values_mut().flatten().map(|(_, at)| at);
        let by_name = [
            &mut self.exportable_since,
            &mut self.service_changed,
            &mut self.unresolved_since,
            &mut self.fulfilled_since,
        ];
        let since = by_name.into_iter().flat_map(BTreeMap::values_mut).chain(self.orphaned_since.values_mut());
        // fault A13.1: micros) ~> micros * 0)
        changes.chain(since).for_each(|at| *at = at.plus_micros(micros));
    }

    /// Records a change of a slice's content. A new slice (`new`) under an old name drops the earlier changes.
    pub(crate) fn slice_changed(&mut self, slice: &ObjectName, generation: i64, at: Timestamp, new: bool) {
        let changes = self.changes.entry(slice.clone()).or_default();
        if new {
            changes.clear();
        }
        let full = changes.len() >= PENDING_CHANGES_MAX;
        match changes.last_mut() {
            Some(newest) if full || newest.1 == at => newest.0 = generation,
            _ => changes.push((generation, at)),
        }
    }

    /// Updates the generation of a slice whose content did not change.
    pub(crate) fn slice_touched(&mut self, slice: &ObjectName, generation: i64) {
        if let Some(newest) = self.changes.get_mut(slice).and_then(|changes| changes.last_mut()) {
            newest.0 = generation;
        }
    }

    /// Forgets the recorded changes of a slice, because the hub has its present content.
    pub(crate) fn slice_settled(&mut self, slice: &ObjectName) {
        self.changes.remove(slice);
    }

    /// Records that the hub lacks the present content of a slice. `carried` is the generation that the hub has.
    pub(crate) fn slice_pending(&mut self, slice: &ObjectName, carried: Option<i64>, generation: i64, at: Timestamp) {
        let changes = self.changes.entry(slice.clone()).or_default();
        changes.retain(|(pending, _)| carried.is_none_or(|carried| *pending > carried));
        if changes.is_empty() {
            // fault L3.1: changes.push((generation, at)); ~>
            changes.push((generation, at)); // the hub had this content and lost it, so measure again from now
        }
    }

    pub(crate) fn slice_gone(&mut self, slice: &ObjectName) {
        self.changes.remove(slice);
    }

    /// Returns the time of a slice's oldest change that the hub lacks; `None` if it lacks none.
    pub(crate) fn oldest_change(&self, slice: &ObjectName) -> Option<Timestamp> {
        // fault L1.1: first ~> last
        self.changes.get(slice)?.first().map(|(_, at)| *at)
    }

    /// Sets whether the slices of a Service are exportable. Returns true if that changed.
    pub(crate) fn set_exportable(&mut self, service: &ObjectName, exportable: bool, at: Timestamp) -> bool {
        if exportable {
            let known = self.exportable_since.contains_key(service);
            self.exportable_since.entry(service.clone()).or_insert(at);
            !known
        } else {
            self.exportable_since.remove(service).is_some()
        }
    }

    pub(crate) fn exportable_since(&self, service: &ObjectName) -> Option<Timestamp> {
        self.exportable_since.get(service).copied()
    }

    pub(crate) fn service_changed(&mut self, service: &ObjectName, at: Timestamp) {
        self.service_changed.insert(service.clone(), at);
    }

    /// Forgets a Service when neither the Service nor its ServiceExport exists any more.
    pub(crate) fn service_forgotten(&mut self, service: &ObjectName) {
        self.service_changed.remove(service);
    }

    pub(crate) fn service_gone(&mut self, service: &ObjectName) {
        self.awaiting_outcome.remove(service);
    }

    pub(crate) fn service_changed_at(&self, service: &ObjectName) -> Option<Timestamp> {
        self.service_changed.get(service).copied()
    }

    /// Sets whether a ServiceImport has exporters.
    pub(crate) fn set_resolved(&mut self, import: &ObjectName, resolved: bool, at: Timestamp) {
        if resolved {
            self.unresolved_since.remove(import);
        } else {
            self.unresolved_since.entry(import.clone()).or_insert(at);
        }
    }

    pub(crate) fn import_forgotten(&mut self, import: &ObjectName) {
        self.unresolved_since.remove(import);
    }

    pub(crate) fn unresolved_since(&self, import: &ObjectName) -> Option<Timestamp> {
        self.unresolved_since.get(import).copied()
    }

    /// Sets whether the claim of a ServiceImport is granted.
    pub(crate) fn set_fulfilled(&mut self, import: &ObjectName, fulfilled: bool, at: Timestamp) {
        if fulfilled {
            self.fulfilled_since.entry(import.clone()).or_insert(at);
        } else {
            self.fulfilled_since.remove(import);
        }
    }

    pub(crate) fn fulfilled_since(&self, import: &ObjectName) -> Option<Timestamp> {
        self.fulfilled_since.get(import).copied()
    }

    /// Sets whether the hub no longer distributes an imported slice.
    pub(crate) fn set_orphaned(&mut self, slice: &Text, orphaned: bool, at: Timestamp) {
        if orphaned {
            self.orphaned_since.entry(slice.clone()).or_insert(at);
        } else {
            self.orphaned_since.remove(slice);
        }
    }

    pub(crate) fn orphaned_since(&self, slice: &Text) -> Option<Timestamp> {
        self.orphaned_since.get(slice).copied()
    }

    /// Returns all imported slices that the hub no longer distributes.
    pub(crate) fn orphans(&self) -> impl Iterator<Item = &Text> {
        self.orphaned_since.keys()
    }

    /// Sets the parts of a distributed slice that are not imported, as found at this source generation.
    pub(crate) fn set_not_imported(&mut self, slice: &Text, not_imported: NotImported, generation: i64) {
        if not_imported.is_empty() {
            self.not_imported.remove(slice);
        } else if self.not_imported.get(slice).is_none_or(|(held, _)| *held != not_imported) {
            self.not_imported.insert(slice.clone(), (not_imported, generation));
        }
    }

    /// Returns the first source generation that had the present parts that are not imported.
    pub(crate) fn not_imported_since(&self, slice: &Text) -> Option<i64> {
        self.not_imported.get(slice).map(|(_, generation)| *generation)
    }

    pub(crate) fn await_outcome(&mut self, service: &ObjectName) {
        self.awaiting_outcome.insert(service.clone());
    }

    /// Records that the hub has an outcome for the present generation of an export.
    pub(crate) fn outcome_seen(&mut self, service: &ObjectName, exported_since: Option<Timestamp>, at: Timestamp) {
        if self.awaiting_outcome.remove(service) {
            self.latencies.push(ServiceLatency { service: service.clone(), exported_since, outcome_at: at });
        }
    }

    pub(crate) fn take_latencies(&mut self) -> Vec<ServiceLatency> {
        std::mem::take(&mut self.latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_moves_every_stamp() {
        let name = ObjectName::new("work", "app");
        for by in [-3_600_000_000, 3_600_000_000] {
            let (mut stamps, seen) = (Stamps::default(), Timestamp(7_000_000_000));
            stamps.slice_changed(&name, 1, seen, true);
            stamps.set_exportable(&name, true, seen);
            stamps.service_changed(&name, seen);
            stamps.set_resolved(&name, false, seen);
            stamps.set_fulfilled(&name, true, seen);
            stamps.set_orphaned(&"app-1".into(), true, seen);
            stamps.clock_set(by);
            let stamped = [
                stamps.oldest_change(&name),
                stamps.exportable_since(&name),
                stamps.service_changed_at(&name),
                stamps.unresolved_since(&name),
                stamps.fulfilled_since(&name),
                stamps.orphaned_since(&"app-1".into()),
            ];
            assert_eq!(stamped, [Some(Timestamp(7_000_000_000 + by)); 6]);
        }
    }
}
