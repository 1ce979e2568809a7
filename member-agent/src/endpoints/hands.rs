//! [`Hands`]: by whose hand this manager's slices change.
//!
//! A change is ours if the server has answered it to a write of ours: it has the version of that answer, whatever webhooks
//! have made of what was asked for. The watch may be faster than the answer, so what is seen of a slice while a write to it
//! is under way is judged when that has ended. Only of a write whose outcome nobody knows is the content the sign ([`Lost`]).
//!
//! It is asked whether or not slices are made here: while they are not, a slice that changes tells who makes them. All that
//! is held for that of a slice is its generation, which an API server counts up with everything that a slice says.

use super::alike::Fingerprint;
use super::lost::Lost;
use super::view::Touched;
use super::writes::{self, Operation};
use endpointslice::Text;
use endpointslice::model::EndpointSlice;
use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use fleetnet_core::ids::ObjectName;
use fleetnet_runtime::clock::Timestamp;
use fleetnet_runtime::{Verb, WriteEnd};
use std::collections::BTreeMap;

/// Who has changed what slices say.
#[derive(Debug)]
pub(super) struct Hands {
    /// The manager's name.
    manager: Text,
    /// The generation that was last seen of each of its slices.
    generations: BTreeMap<ObjectName, i64>,
    /// Own writes, by slice: there is one at a time.
    underway: BTreeMap<ObjectName, Underway>,
    lost: Lost,
}

/// A write to a slice.
#[derive(Debug, Default)]
struct Underway {
    is_delete: bool,
    seen: Vec<Seen>,
}

/// What was seen of a slice while a write to it was under way.
#[derive(Debug)]
struct Seen {
    version: u64,
    at: Timestamp,
    content: Fingerprint,
    is_terminating: bool,
    /// The Services that this concerns.
    touched: Touched,
}

/// Whose doing it is that a slice is as it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// It says what it said, or is another manager's.
    Nobodys,
    /// Ours.
    Ours,
    /// Another's.
    Anothers,
    /// The end of the write that is under way will tell.
    NotKnownYet,
}

/// What the end of a write has told of a change that was seen meanwhile.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) is_ours: bool,
    pub(super) at: Timestamp,
    pub(super) is_terminating: bool,
    pub(super) touched: Touched,
}

impl Hands {
    /// Of the slices of this manager.
    pub(super) fn new(manager: Text) -> Self {
        Self { manager, generations: BTreeMap::new(), underway: BTreeMap::new(), lost: Lost::default() }
    }

    /// A write to a slice leaves.
    pub(super) fn begin(&mut self, slice: &ObjectName, operation: Operation) {
        let is_delete = operation == Operation::Delete;
        self.underway.insert(slice.clone(), Underway { is_delete, seen: Vec::new() });
    }

    /// It has ended. Whose what was seen meanwhile is.
    pub(super) fn end(&mut self, slice: &ObjectName, verb: &Verb, end: WriteEnd, at: Timestamp) -> Vec<Judged> {
        if end == WriteEnd::Unknown {
            self.lost.note(slice, writes::asked(verb).map(|asked| Fingerprint::of(&asked)), at);
        }
        let seen = self.underway.remove(slice).unwrap_or_default().seen;
        let judge = |Seen { version, at, content, is_terminating, touched }| {
            let is_answer = matches!(end, WriteEnd::Done { version: Some(answered) } if version <= answered);
            // What a write meets may be what an earlier one has done that was lost.
            let is_ours = is_answer || self.lost.sees(slice, (!is_terminating).then_some(content), at);
            Judged { is_ours, at, is_terminating, touched }
        };
        seen.into_iter().map(judge).collect()
    }

    /// A slice is there in this state, of whichever manager; what it says concerns these Services.
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

    /// A slice is gone. True if that is our doing.
    pub(super) fn sees_gone(&mut self, name: &ObjectName, at: Timestamp) -> bool {
        self.generations.remove(name);
        self.underway.get(name).is_some_and(|underway| underway.is_delete) || self.lost.sees(name, None, at)
    }

    /// How many slices are remembered.
    #[cfg(test)]
    pub(super) fn seen(&self) -> usize {
        self.generations.len()
    }
}
