//! Times at which the agent saw changes. Latencies and grace periods start at these times. `export/slice.rs` writes the
//! time of a slice's change to the EndpointSliceExport as `exportedSince`.

use super::value::Fact;
use crate::limits::PENDING_CHANGES_MAX;
use fleetnet_types::{ObjectName, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Latency of a Service at its exporter: the time at which the exporter first saw a change, and the time at which the
/// exporter saw the hub's outcome for this change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLatency {
    pub service: ObjectName,
    /// Time at which the exporter first saw the change, as recorded in the InternalServiceExport.
    pub exported_since: Option<Timestamp>,
    /// Time at which this agent saw the outcome of conflict resolution.
    pub outcome_at: Timestamp,
}

/// Facts that are true now, each with the time since which it is true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts(BTreeMap<Fact, Timestamp>);

impl Facts {
    /// Records that a fact is true. Returns true if it was not recorded before.
    pub(crate) fn begin(&mut self, fact: &Fact, at: Timestamp) -> bool {
        if self.0.contains_key(fact) {
            return false;
        }
        self.0.insert(fact.clone(), at);
        true
    }

    /// Records that a fact is not true any more. Returns true if it was recorded before.
    pub(crate) fn end(&mut self, fact: &Fact) -> bool {
        self.0.remove(fact).is_some()
    }

    pub(crate) fn since(&self, fact: &Fact) -> Option<Timestamp> {
        self.0.get(fact).copied()
    }

    /// Moves all times by `micros`, after the wall clock was set by this duration.
    pub(super) fn clock_set(&mut self, micros: i64) {
        self.0.values_mut().for_each(|at| *at = at.plus_micros(micros));
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Records {
    /// For each source slice: generation and time of the content changes that the hub perhaps does not have yet, oldest
    /// first.
    changes: BTreeMap<ObjectName, Vec<(i64, Timestamp)>>,
    /// For each Service: time of the last change of its exported content.
    service_changed: BTreeMap<ObjectName, Timestamp>,
    /// Services whose export was written, but has no outcome of conflict resolution yet.
    awaiting_outcome: BTreeSet<ObjectName>,
    latencies: Vec<ServiceLatency>,
}

impl Records {
    /// Moves all times by `micros`, after the wall clock was set by this duration.
    pub(super) fn clock_set(&mut self, micros: i64) {
        let changes = self.changes.values_mut().flatten().map(|(_, at)| at);
        changes.chain(self.service_changed.values_mut()).for_each(|at| *at = at.plus_micros(micros));
    }

    /// Records the content of a new slice. Drops the recorded changes of an earlier slice with the same name.
    pub(crate) fn slice_created(&mut self, slice: &ObjectName, generation: i64, at: Timestamp) {
        self.changes.insert(slice.clone(), vec![(generation, at)]);
    }

    /// Records a change of a slice's content.
    pub(crate) fn slice_changed(&mut self, slice: &ObjectName, generation: i64, at: Timestamp) {
        let changes = self.changes.entry(slice.clone()).or_default();
        let full = changes.len() >= PENDING_CHANGES_MAX;
        match changes.last_mut() {
            Some(newest) if full || newest.1 == at => newest.0 = generation,
            _ => changes.push((generation, at)),
        }
    }

    /// Records a new generation of a slice with the same content. Its last content change then counts as a change of
    /// this generation.
    pub(crate) fn slice_touched(&mut self, slice: &ObjectName, generation: i64) {
        if let Some(newest) = self.changes.get_mut(slice).and_then(|changes| changes.last_mut()) {
            newest.0 = generation;
        }
    }

    /// Drops the recorded changes of a slice, because the hub has its present content, or because it is gone.
    pub(crate) fn slice_settled(&mut self, slice: &ObjectName) {
        self.changes.remove(slice);
    }

    /// Records that the hub does not have the present content of a slice. `carried` is the generation of the slice that
    /// the hub has; `None` if the hub does not have the slice.
    pub(crate) fn slice_pending(&mut self, slice: &ObjectName, carried: Option<i64>, generation: i64, at: Timestamp) {
        let changes = self.changes.entry(slice.clone()).or_default();
        changes.retain(|(pending, _)| carried.is_none_or(|carried| *pending > carried));
        if changes.is_empty() {
            changes.push((generation, at)); // the hub had this content and lost it, so the latency is measured from now
        }
    }

    /// Returns the time of a slice's oldest change that is not in the hub; `None` if the hub has all changes.
    pub(crate) fn oldest_change(&self, slice: &ObjectName) -> Option<Timestamp> {
        self.changes.get(slice)?.first().map(|(_, at)| *at)
    }

    pub(crate) fn service_changed(&mut self, service: &ObjectName, at: Timestamp) {
        self.service_changed.insert(service.clone(), at);
    }

    /// Drops the time of a Service's last change.
    pub(crate) fn service_forgotten(&mut self, service: &ObjectName) {
        self.service_changed.remove(service);
    }

    pub(crate) fn service_gone(&mut self, service: &ObjectName) {
        self.awaiting_outcome.remove(service);
    }

    pub(crate) fn service_changed_at(&self, service: &ObjectName) -> Option<Timestamp> {
        self.service_changed.get(service).copied()
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
    fn the_oldest_change_is_the_first_that_the_hub_does_not_have() {
        let name = ObjectName::new("work", "app-1");
        let mut records = Records::default();
        records.slice_created(&name, 1, Timestamp(1));
        records.slice_changed(&name, 2, Timestamp(2));
        records.slice_changed(&name, 3, Timestamp(3));
        assert_eq!(records.oldest_change(&name), Some(Timestamp(1)));
        records.slice_pending(&name, Some(1), 3, Timestamp(9));
        assert_eq!(records.oldest_change(&name), Some(Timestamp(2)));
        records.slice_pending(&name, Some(2), 3, Timestamp(9));
        assert_eq!(records.oldest_change(&name), Some(Timestamp(3)));
    }

    /// Also rule L1.
    #[test]
    fn two_changes_at_one_time_are_one_and_beyond_the_limit_the_newest_one_grows() {
        let name = ObjectName::new("work", "app-1");
        let mut records = Records::default();
        records.slice_created(&name, 1, Timestamp(1));
        records.slice_changed(&name, 2, Timestamp(1));
        assert_eq!(records.changes[&name], [(2, Timestamp(1))]);
        let most = i64::try_from(PENDING_CHANGES_MAX).unwrap();
        for generation in 3..=most + 10 {
            records.slice_changed(&name, generation, Timestamp(generation));
        }
        let changes = &records.changes[&name];
        assert_eq!((changes.len(), changes[PENDING_CHANGES_MAX - 1].0), (PENDING_CHANGES_MAX, most + 10));
    }

    /// Also rule A13.
    #[test]
    fn a_clock_that_is_set_moves_every_time() {
        let name = ObjectName::new("work", "app");
        for by in [-3_600_000_000, 3_600_000_000] {
            let (mut records, mut facts, seen) = (Records::default(), Facts::default(), Timestamp(7_000_000_000));
            records.slice_created(&name, 1, seen);
            records.service_changed(&name, seen);
            let all = [
                Fact::Exportable(name.clone()),
                Fact::Unresolved(name.clone()),
                Fact::Fulfilled(name.clone()),
                Fact::Orphaned(name.clone()),
                Fact::Outdated(name.clone()),
            ];
            all.iter().for_each(|fact| assert!(facts.begin(fact, seen)));
            records.clock_set(by);
            facts.clock_set(by);
            let moved = Some(Timestamp(7_000_000_000 + by));
            assert_eq!([records.oldest_change(&name), records.service_changed_at(&name)], [moved; 2]);
            assert_eq!(all.map(|fact| facts.since(&fact)), [moved; 5]);
        }
    }
}
