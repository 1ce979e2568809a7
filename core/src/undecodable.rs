//! Undecodable objects: they exist but fail to decode. Such an object is not absent. The objects made from it stay and are not
//! created a second time, until it is decodable or gone. Its last decoded state is in the view's table.
//!
//! The name tells which objects belong to some undecodable objects. For others only the content would tell, so only the
//! namespace is known. Each rule asks in the narrowest way, so that one undecodable object blocks nothing else.

use crate::index::Index;
use crate::model::Kind;
use crate::work;
use fleetnet_types::{ObjectName, Text};
use std::collections::{BTreeMap, BTreeSet};

/// Names of all undecodable objects, by kind. Lookups must be fast: members can create many such objects, and each plan looks
/// some up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecodable {
    names: BTreeMap<Kind, BTreeSet<ObjectName>>,
    /// From a name to the undecodable objects with this name in all namespaces, by kind.
    named: BTreeMap<Kind, Index<Text>>,
}

impl Undecodable {
    /// Adds an undecodable object. Returns true if it was not known.
    pub fn insert(&mut self, kind: Kind, name: ObjectName) -> bool {
        self.named.entry(kind).or_default().insert(name.name.clone(), name.clone());
        self.names.entry(kind).or_default().insert(name)
    }

    /// Removes an object that is decodable again or gone. Returns true if it was known as undecodable.
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

    /// True if the object is undecodable.
    pub fn has(&self, kind: Kind, name: &ObjectName) -> bool {
        // fault A9.1: self.names.get(&kind).is_some_and(|names| names.contains(name)) ~> { let _ = name; self.names.get(&kind).is_none() && false }
        self.names.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// Returns the undecodable objects of a kind with this name, in all namespaces.
    pub fn named<'a>(&'a self, kind: Kind, name: &Text) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.named.get(&kind).map(|named| named.get(name)).into_iter().flatten()
    }

    /// True if a namespace has an undecodable object of a kind.
    pub fn any_in(&self, kind: Kind, namespace: &Text) -> bool {
        self.within(kind, namespace).next().is_some()
    }

    /// True if the object's namespace has another undecodable object of the same kind.
    pub fn any_beside(&self, kind: Kind, name: &ObjectName) -> bool {
        self.within(kind, &name.namespace).any(|other| other != name)
    }

    fn within<'a>(&'a self, kind: Kind, namespace: &'a Text) -> impl Iterator<Item = &'a ObjectName> + 'a {
        let first = ObjectName { namespace: namespace.clone(), name: Text::default() };
        let names = self.names.get(&kind).into_iter().flat_map(move |names| names.range(first.clone()..));
        // fault T35.2: take_while ~> filter
        names.inspect(|_| work::step()).take_while(move |name| name.namespace == *namespace)
    }

    /// True if no object is undecodable, which is the normal state.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
