//! [`Hands`]: by whose hand this manager's slices change.
//!
//! It is asked whether or not slices are made here: while they are not, a slice that changes tells who makes them. All that
//! is held for that of a slice is its generation, which an API server counts up with everything that a slice says.

use super::asked::{Asked, Wished};
use endpointslice::Text;
use endpointslice::model::EndpointSlice;
use endpointslice::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use fleetnet_core::ids::ObjectName;
use fleetnet_runtime::clock::Timestamp;
use std::collections::BTreeMap;

/// Who has changed what slices say.
#[derive(Debug)]
pub(super) struct Hands {
    /// The manager's name.
    manager: Text,
    /// The generation that was last seen of each of its slices.
    generations: BTreeMap<ObjectName, i64>,
    /// Who sees a slice so sees our own doing.
    asked: Asked,
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
}

impl Hands {
    /// Of the slices of this manager.
    pub(super) fn new(manager: Text) -> Self {
        Self { manager, generations: BTreeMap::new(), asked: Asked::default() }
    }

    /// A slice is asked to become this, or to go.
    pub(super) fn ask(&mut self, slice: &ObjectName, content: Wished, at: Timestamp) {
        self.asked.note(slice, content, at);
    }

    /// A slice is there in this state, of whichever manager.
    pub(super) fn sees(&mut self, name: &ObjectName, slice: &EndpointSlice, at: Timestamp) -> Hand {
        let labels = &slice.metadata.labels;
        if labels.get(LABEL_MANAGED_BY) != Some(&self.manager) || !labels.contains_key(LABEL_SERVICE_NAME) {
            self.generations.remove(name);
            return Hand::Nobodys;
        }
        let generation = slice.metadata.generation;
        match self.generations.insert(name.clone(), generation) {
            Some(before) if before == generation => Hand::Nobodys,
            _ if self.asked.sees(name, slice, at) => Hand::Ours,
            _ => Hand::Anothers,
        }
    }

    /// A slice is gone. True if that is our doing.
    pub(super) fn sees_gone(&mut self, name: &ObjectName, at: Timestamp) -> bool {
        self.generations.remove(name);
        self.asked.sees_gone(name, at)
    }

    /// How many slices are remembered.
    #[cfg(test)]
    pub(super) fn seen(&self) -> usize {
        self.generations.len()
    }
}
