//! Distinguishes own writes to this manager's slices from foreign writes ([`WriteOrigins`]).
//!
//! A change is an own write if the server returned its resourceVersion in the response to a write of this process. The
//! content may differ from the request, because webhooks change it. The watch may show the change before the response
//! arrives. So if a change is seen during an own write, its writer is known only when the own write ends. Only an own
//! write of unknown outcome is recognized by its content ([`Lost`]).
//!
//! The record is also kept while the controller is inactive, because foreign writes show that another controller is
//! active. For this purpose the record has only the generation of each slice. The API server raises the generation with
//! each change of the content.

use super::alike::Fingerprint;
use super::lost::Lost;
use super::view::Touched;
use super::writes::{self, Operation};
use endpointslice::Text;
use endpointslice::model::EndpointSlice;
use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use fleetnet_runtime::{Verb, WriteEnd};
use fleetnet_types::{ObjectName, Timestamp};
use std::collections::BTreeMap;

/// Record that distinguishes own from foreign writes to the slices of this manager.
#[derive(Debug)]
pub(super) struct WriteOrigins {
    manager: Text,
    /// Last seen generation of each slice that carries this manager's name.
    generations: BTreeMap<ObjectName, i64>,
    /// Generations that were seen before the present list began.
    before_list: BTreeMap<ObjectName, i64>,
    /// True once slices were listed completely. Until then, nobody knows which slices are old.
    is_listed: bool,
    /// Own writes in flight, at most one for each slice.
    in_flight: BTreeMap<ObjectName, InFlight>,
    lost: Lost,
}

/// Own write in flight to a slice.
#[derive(Debug, Default)]
struct InFlight {
    is_delete: bool,
    seen: Vec<Seen>,
}

/// State of a slice that a watch showed during an own write to the slice.
#[derive(Debug)]
struct Seen {
    version: u64,
    at: Timestamp,
    content: Fingerprint,
    is_terminating: bool,
    /// Services to plan because of this change.
    touched: Touched,
}

/// Writer of the current content of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOrigin {
    /// The content of the slice did not change, or the slice belongs to another manager.
    NoWrite,
    /// This process wrote the content.
    Own,
    /// Another writer wrote the content.
    Foreign,
    /// An own write to the slice is in flight. The writer is known when that write ends.
    Unknown,
}

/// Change that was seen during an own write to the same slice, with its writer.
#[derive(Debug)]
pub(super) struct AttributedChange {
    pub(super) is_own: bool,
    pub(super) at: Timestamp,
    pub(super) is_terminating: bool,
    pub(super) touched: Touched,
}

impl WriteOrigins {
    /// Returns an empty record for the slices of `manager`, the name in the label `managed-by`.
    pub(super) fn new(manager: Text) -> Self {
        Self {
            manager,
            generations: BTreeMap::new(),
            before_list: BTreeMap::new(),
            is_listed: false,
            in_flight: BTreeMap::new(),
            lost: Lost::default(),
        }
    }

    /// Handles that all slices are listed from the beginning. A slice that has another generation in the list was
    /// written in between.
    pub(super) fn list_again(&mut self) {
        self.before_list.append(&mut self.generations);
        self.in_flight.clear();
    }

    /// Records that slices were listed completely.
    pub(super) fn listed(&mut self) {
        self.is_listed = true;
        self.before_list.clear();
    }

    /// True once slices were listed completely. Earlier changes come from the first list and are no writes.
    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Records that an own write to a slice is sent.
    pub(super) fn begin(&mut self, slice: &ObjectName, operation: Operation) {
        let is_delete = operation == Operation::Delete;
        self.in_flight.insert(slice.clone(), InFlight { is_delete, seen: Vec::new() });
    }

    /// Records the end of an own write. Returns the changes that the watch showed during the write, each with its
    /// writer.
    pub(super) fn end(
        &mut self,
        slice: &ObjectName,
        verb: &Verb,
        end: WriteEnd,
        at: Timestamp,
    ) -> Vec<AttributedChange> {
        if end == WriteEnd::Unknown {
            self.lost.note(slice, writes::requested_slice(verb).map(|requested| Fingerprint::of(&requested)), at);
        }
        let seen = self.in_flight.remove(slice).unwrap_or_default().seen;
        let attribute = |Seen { version, at, content, is_terminating, touched }| {
            let is_answer = matches!(end, WriteEnd::Done { version: Some(answered) } if version <= answered);
            // If this write did not make the change, an earlier own write whose response was lost may have made it.
            let is_own = is_answer || self.lost.sees(slice, (!is_terminating).then_some(content), at);
            AttributedChange { is_own, at, is_terminating, touched }
        };
        seen.into_iter().map(attribute).collect()
    }

    /// Returns the writer of a slice's new state. If an own write to the slice is in flight, keeps `touched` until the
    /// write ends.
    pub(super) fn observe(&mut self, slice: &EndpointSlice, touched: &Touched, at: Timestamp) -> WriteOrigin {
        let metadata = &slice.metadata;
        let name = ObjectName::new(&*metadata.namespace, &*metadata.name);
        if metadata.labels.get(LABEL_MANAGED_BY) != Some(&self.manager)
            || !metadata.labels.contains_key(LABEL_SERVICE_NAME)
        {
            self.forget(&name);
            return WriteOrigin::NoWrite;
        }
        let listed_before = self.before_list.remove(&name);
        let seen_before = self.generations.insert(name.clone(), metadata.generation).or(listed_before);
        if seen_before == Some(metadata.generation) {
            return WriteOrigin::NoWrite;
        }
        let is_terminating = metadata.is_terminating();
        if let Some(in_flight) = self.in_flight.get_mut(&name) {
            let version = metadata.resource_version.parse().unwrap_or(u64::MAX);
            let (content, touched) = (Fingerprint::of(slice), touched.clone());
            in_flight.seen.push(Seen { version, at, content, is_terminating, touched });
            return WriteOrigin::Unknown;
        }
        let content = || (!is_terminating).then(|| Fingerprint::of(slice));
        if self.lost.has(&name) && self.lost.sees(&name, content(), at) {
            WriteOrigin::Own
        } else {
            WriteOrigin::Foreign
        }
    }

    /// Records that a slice was deleted. True if an own write deleted the slice.
    pub(super) fn observe_removal(&mut self, name: &ObjectName, at: Timestamp) -> bool {
        self.forget(name);
        self.in_flight.get(name).is_some_and(|in_flight| in_flight.is_delete) || self.lost.sees(name, None, at)
    }

    fn forget(&mut self, name: &ObjectName) {
        self.generations.remove(name);
        self.before_list.remove(name);
    }

    #[cfg(test)]
    pub(super) fn seen(&self) -> usize {
        self.generations.len()
    }
}
