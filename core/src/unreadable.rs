//! Objects that are there and cannot be read. Absence takes things away, and such an object is not absent: what stands on it
//! stays and is not made a second time, until it can be read or is gone. What was known of one before is in its table.
//!
//! What an object is about is told by its name, or else by its content alone: then its namespace is all there is to go by.
//! Each rule asks in the narrowest of these, so that one such object holds up nothing else.

use crate::ids::ObjectName;
use crate::model::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Their names, by kind; as many as the watches tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable(BTreeMap<Kind, BTreeSet<ObjectName>>);

impl Unreadable {
    /// Takes note of one; whether that is new.
    pub fn insert(&mut self, kind: Kind, name: ObjectName) -> bool {
        self.0.entry(kind).or_default().insert(name)
    }

    /// It can be read, or is gone; whether it was one.
    pub fn remove(&mut self, kind: Kind, name: &ObjectName) -> bool {
        let Some(names) = self.0.get_mut(&kind) else { return false };
        let was = names.remove(name);
        if names.is_empty() {
            self.0.remove(&kind);
        }
        was
    }

    /// Whether the object of that name is one.
    pub fn has(&self, kind: Kind, name: &ObjectName) -> bool {
        self.0.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// Those of a kind that bear this name, in whatever namespace.
    pub fn named<'a>(&'a self, kind: Kind, name: &'a str) -> impl Iterator<Item = &'a ObjectName> + 'a {
        self.0.get(&kind).into_iter().flatten().filter(move |held| &*held.name == name)
    }

    /// Whether there is one of a kind in a namespace.
    pub fn any_in(&self, kind: Kind, namespace: &str) -> bool {
        self.0.get(&kind).is_some_and(|names| names.iter().any(|name| &*name.namespace == namespace))
    }

    /// There is none, as it should be.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
