//! Undecodable objects: objects that exist but fail to decode. A rule does not treat an undecodable object as absent.
//! Until the object is decodable or gone, the objects made from it stay and are not created again. The view's table
//! keeps its last decoded state.
//!
//! Each rule looks only for undecodable objects that its plan may depend on, so that one such object does not block
//! other keys. Its name often shows which objects depend on it. If only its unknown content would show this, the rule
//! treats all objects of the namespace as dependent.

use crate::index::Index;
use crate::model::Kind;
use crate::work;
use fleetnet_types::{ObjectName, Text};
use std::collections::{BTreeMap, BTreeSet};

/// Names of all undecodable objects, by kind. Lookups must be fast, because members can create many undecodable
/// objects, and each plan looks up several names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecodable {
    names: BTreeMap<Kind, BTreeSet<ObjectName>>,
    /// From a name to the undecodable objects with this name in all namespaces, by kind.
    named: BTreeMap<Kind, Index<Text>>,
}

impl Undecodable {
    /// Adds an undecodable object. Returns true if the object was not yet known as undecodable.
    pub fn insert(&mut self, kind: Kind, name: ObjectName) -> bool {
        self.named.entry(kind).or_default().insert(name.name.clone(), name.clone());
        self.names.entry(kind).or_default().insert(name)
    }

    /// Removes an object that is decodable again or gone. Returns true if the object was known as undecodable.
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

    pub fn has(&self, kind: Kind, name: &ObjectName) -> bool {
        self.names.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// Returns the undecodable objects of a kind with this name, in all namespaces.
    pub fn named<'a>(&'a self, kind: Kind, name: &Text) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        self.named.get(&kind).map(|named| named.get(name)).into_iter().flatten()
    }

    /// True if any object of a kind is undecodable.
    pub fn any_of(&self, kind: Kind) -> bool {
        self.names.contains_key(&kind)
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
        names.inspect(|_| work::step()).take_while(move |name| name.namespace == *namespace)
    }

    /// True if no object is undecodable, which is the normal state.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
