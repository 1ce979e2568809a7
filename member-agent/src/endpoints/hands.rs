//! Tells this agent's own writes to its slices from foreign ones ([`Hands`]).
//!
//! A change is our own if the server returned its resourceVersion in the answer to one of our writes. Its content may differ
//! from the request, because webhooks change it. The watch may be faster than the answer, so a change seen during a write is
//! judged when that write ends. Only a write of unknown outcome is recognized by its content ([`Lost`]).
//!
//! This runs also while the controller does not serve, because foreign writes then show which controller makes the slices. For
//! that it keeps only the generation of each slice. The API server raises the generation with each change of the content.

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

/// Record from which own and foreign writes to this manager's slices are told apart.
#[derive(Debug)]
pub(super) struct Hands {
    manager: Text,
    /// Last seen generation of each slice that carries this manager's name.
    generations: BTreeMap<ObjectName, i64>,
    /// Own writes in flight, at most one for each slice.
    underway: BTreeMap<ObjectName, Underway>,
    lost: Lost,
}

/// Own write to a slice that is in flight.
#[derive(Debug, Default)]
struct Underway {
    is_delete: bool,
    seen: Vec<Seen>,
}

/// State of a slice that a watch showed while a write to it was in flight.
#[derive(Debug)]
struct Seen {
    version: u64,
    at: Timestamp,
    content: Fingerprint,
    is_terminating: bool,
    /// Services that the changed slice belongs to.
    touched: Touched,
}

/// Writer of the present state of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// No write to its content was made, or the slice belongs to another manager.
    Nobodys,
    /// This process wrote it.
    Ours,
    /// Another writer wrote it.
    Anothers,
    /// Not known until the write in flight ends.
    NotKnownYet,
}

/// Verdict on a change that was seen while a write was in flight: own or foreign.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) is_ours: bool,
    pub(super) at: Timestamp,
    pub(super) is_terminating: bool,
    pub(super) touched: Touched,
}

impl Hands {
    /// Returns an empty record for the slices of this manager.
    pub(super) fn new(manager: Text) -> Self {
        Self { manager, generations: BTreeMap::new(), underway: BTreeMap::new(), lost: Lost::default() }
    }

    /// Records that a write to a slice is sent.
    pub(super) fn begin(&mut self, slice: &ObjectName, operation: Operation) {
        let is_delete = operation == Operation::Delete;
        self.underway.insert(slice.clone(), Underway { is_delete, seen: Vec::new() });
    }

    /// Records the end of a write, and judges the changes that the watch showed meanwhile.
    pub(super) fn end(&mut self, slice: &ObjectName, verb: &Verb, end: WriteEnd, at: Timestamp) -> Vec<Judged> {
        if end == WriteEnd::Unknown {
            self.lost.note(slice, writes::asked(verb).map(|asked| Fingerprint::of(&asked)), at);
        }
        let seen = self.underway.remove(slice).unwrap_or_default().seen;
        let judge = |Seen { version, at, content, is_terminating, touched }| {
            let is_answer = matches!(end, WriteEnd::Done { version: Some(answered) } if version <= answered);
            // The change may also come from an earlier write whose answer was lost.
            let is_ours = is_answer || self.lost.sees(slice, (!is_terminating).then_some(content), at);
            Judged { is_ours, at, is_terminating, touched }
        };
        seen.into_iter().map(judge).collect()
    }

    /// Returns the writer of a slice's new state. If only the end of a write in flight can tell, keeps `touched` until then.
    pub(super) fn sees(&mut self, slice: &EndpointSlice, touched: &Touched, at: Timestamp) -> Hand {
        let metadata = &slice.metadata;
        let name = ObjectName::new(&*metadata.namespace, &*metadata.name);
        if metadata.labels.get(LABEL_MANAGED_BY) != Some(&self.manager)
            || !metadata.labels.contains_key(LABEL_SERVICE_NAME)
        {
            self.generations.remove(&name);
            return Hand::Nobodys;
        }
        if self.generations.insert(name.clone(), metadata.generation) == Some(metadata.generation) {
            return Hand::Nobodys;
        }
        let is_terminating = metadata.is_terminating();
        if let Some(underway) = self.underway.get_mut(&name) {
            let version = metadata.resource_version.parse().unwrap_or(u64::MAX);
            let (content, touched) = (Fingerprint::of(slice), touched.clone());
            underway.seen.push(Seen { version, at, content, is_terminating, touched });
            return Hand::NotKnownYet;
        }
        let content = || (!is_terminating).then(|| Fingerprint::of(slice));
        if self.lost.has(&name) && self.lost.sees(&name, content(), at) { Hand::Ours } else { Hand::Anothers }
    }

    /// Records that a slice is gone. True if our own write deleted it.
    pub(super) fn sees_gone(&mut self, name: &ObjectName, at: Timestamp) -> bool {
        self.generations.remove(name);
        self.underway.get(name).is_some_and(|underway| underway.is_delete) || self.lost.sees(name, None, at)
    }

    #[cfg(test)]
    pub(super) fn seen(&self) -> usize {
        self.generations.len()
    }
}
