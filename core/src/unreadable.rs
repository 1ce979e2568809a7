//! Objects that are there and cannot be read. Absence takes things away, and such an object is not absent: what stands on it
//! stays and is not made a second time, until it can be read or is gone. What was known of one before is in its table.
//!
//! What an object is about is told by its name, or else by its content alone: then its namespace is all there is to go by.
//! Each rule asks in the narrowest of these, so that one such object holds up nothing else.

use crate::ids::{ObjectName, Text};
use crate::index::Index;
use crate::model::Kind;
use crate::work;
use std::collections::{BTreeMap, BTreeSet};

/// Their names, by kind; as many as the watches tell. Any member can make many, and each plan of everybody asks for some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    names: BTreeMap<Kind, BTreeSet<ObjectName>>,
    /// Name to the objects that bear it, in whatever namespace.
    named: BTreeMap<Kind, Index<Text>>,
}

impl Unreadable {
    /// Takes note of one; whether that is new.
    pub fn insert(&mut self, kind: Kind, name: ObjectName) -> bool {
        self.named.entry(kind).or_default().insert(name.name.clone(), name.clone());
        self.names.entry(kind).or_default().insert(name)
    }

    /// It can be read, or is gone; whether it was one.
    pub fn remove(&mut self, kind: Kind, name: &ObjectName) -> bool {
        let Some(names) = self.names.get_mut(&kind) else { return false };
        let was = names.remove(name);
        if names.is_empty() {
            self.names.remove(&kind);
        }
        if let Some(named) = self.named.get_mut(&kind) {
            named.remove(&name.name, name);
            if named.is_empty() {
                self.named.remove(&kind);
            }
        }
        was
    }

    /// Whether the object of that name is one.
    pub fn has(&self, kind: Kind, name: &ObjectName) -> bool {
        // fault A9.1: self.names.get(&kind).is_some_and(|names| names.contains(name)) ~> { let _ = name; self.names.get(&kind).is_none() && false }
        self.names.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// Those of a kind that bear this name, in whatever namespace.
    pub fn named<'a>(&'a self, kind: Kind, name: &Text) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.named.get(&kind).map(|named| named.get(name)).into_iter().flatten()
    }

    /// Whether there is one of a kind in a namespace.
    pub fn any_in(&self, kind: Kind, namespace: &Text) -> bool {
        self.within(kind, namespace).next().is_some()
    }

    /// Whether there is another of a kind in the namespace of one.
    pub fn any_beside(&self, kind: Kind, name: &ObjectName) -> bool {
        self.within(kind, &name.namespace).any(|held| held != name)
    }

    fn within<'a>(&'a self, kind: Kind, namespace: &'a Text) -> impl Iterator<Item = &'a ObjectName> + 'a {
        let first = ObjectName { namespace: namespace.clone(), name: Text::default() };
        let names = self.names.get(&kind).into_iter().flat_map(move |names| names.range(first.clone()..));
        // fault T35.2: take_while ~> filter
        names.inspect(|_| work::step()).take_while(move |name| name.namespace == *namespace)
    }

    /// There is none, as it should be.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
