//! Tables of objects by name, and indexes from keys to names. All are ordered, so that plans never depend on a hash
//! seed.

use crate::model::Stored;
use crate::work;
use fleetnet_types::{ObjectName, Text};
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::Bound;

/// Result of storing an object with [`Table::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken<T> {
    /// Only the resourceVersion differs, so there is nothing to plan.
    Same,
    /// The object is new or changed. Contains the previous state, if there is one.
    Changed(Option<T>),
}

impl<T> Taken<T> {
    /// Passes the previous state of a changed object to `then`. Returns true if the object changed.
    pub(crate) fn changed(self, then: impl FnOnce(Option<T>)) -> bool {
        let Self::Changed(before) = self else { return false };
        then(before);
        true
    }

    /// Returns the result of [`Table::remove`] as that of a change.
    pub(crate) fn removed(object: Option<T>) -> Self {
        object.map_or(Self::Same, |object| Self::Changed(Some(object)))
    }
}

/// Objects of one kind, with their names as keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<T>(BTreeMap<ObjectName, T>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Stored> Table<T> {
    pub fn get(&self, name: &ObjectName) -> Option<&T> {
        work::step();
        self.0.get(name)
    }

    /// Returns the object with this name; `None` also if it is being deleted.
    pub fn live(&self, name: &ObjectName) -> Option<&T> {
        self.get(name).filter(|object| !object.meta().deleting)
    }

    /// Returns all objects in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.values().inspect(|_| work::step())
    }

    /// Returns all objects of a namespace in the order of their names.
    pub fn in_namespace<'a>(&'a self, namespace: &'a Text) -> impl Iterator<Item = &'a T> + 'a {
        self.0
            .range(ObjectName::new(namespace.clone(), "")..)
            .inspect(|_| work::step())
            .take_while(move |(name, _)| name.namespace == *namespace)
            .map(|(_, object)| object)
    }

    /// Stores the newest state of an object. Returns [`Taken::Same`] if only the resourceVersion changed, so that the
    /// caller requeues nothing.
    pub fn take(&mut self, object: T) -> Taken<T> {
        match self.0.get_mut(&object.meta().name) {
            Some(present) => {
                present.meta_mut().resource_version = object.meta().resource_version;
                if *present == object {
                    return Taken::Same;
                }
                Taken::Changed(Some(std::mem::replace(present, object)))
            }
            None => {
                self.0.insert(object.meta().name.clone(), object);
                Taken::Changed(None)
            }
        }
    }

    /// Changes how an object is stored, without a change of its value.
    pub(crate) fn compact(&mut self, name: &ObjectName, compact: impl FnMut(&mut T)) {
        self.0.get_mut(name).into_iter().for_each(compact);
    }

    /// Removes and returns the object with this name and UID. If the object with this name has another UID, it was
    /// created again and stays.
    pub fn remove(&mut self, name: &ObjectName, uid: &str) -> Option<T> {
        let same = self.0.get(name).is_some_and(|present| &*present.meta().uid == uid);
        if same { self.0.remove(name) } else { None }
    }
}

/// Map from keys to sets of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index<K: Ord>(BTreeMap<K, BTreeSet<ObjectName>>);

impl<K: Ord> Default for Index<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Index<K> {
    pub fn insert(&mut self, key: K, name: ObjectName) {
        self.0.entry(key).or_default().insert(name);
    }

    /// Removes a name from a key's set. Removes the key too if its set becomes empty.
    pub fn remove(&mut self, key: &K, name: &ObjectName) {
        if let Some(names) = self.0.get_mut(key) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// Moves a name from the set of one key to the set of another key. `None` means that there is no such key: then the
    /// name is only added or only removed.
    pub fn shift(&mut self, from: Option<K>, to: Option<K>, name: &ObjectName) {
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.remove(&from, name);
        }
        if let Some(to) = to {
            self.insert(to, name.clone());
        }
    }

    /// Returns the names in a key's set, in order.
    pub fn get<'a>(&'a self, key: &K) -> impl Iterator<Item = &'a ObjectName> + use<'a, K> {
        self.0.get(key).into_iter().flatten().inspect(|_| work::step())
    }

    /// Returns the names of one namespace in a key's set, in order.
    pub fn get_in<'a>(&'a self, key: &K, namespace: &Text) -> impl Iterator<Item = &'a ObjectName> + use<'a, K> {
        let (first, namespace) = (ObjectName::new(namespace.clone(), ""), namespace.clone());
        let names = self.0.get(key).into_iter().flat_map(move |names| names.range(first.clone()..));
        names.inspect(|_| work::step()).take_while(move |name| name.namespace == namespace)
    }

    /// Returns the names in a key's set, those next to `name` first: `name` itself if the set contains it, and then
    /// names after it and before it in turn.
    pub fn around<'a>(&'a self, key: &K, name: &ObjectName) -> impl Iterator<Item = &'a ObjectName> + use<'a, K> {
        let names = self.0.get(key);
        let before = names.map(|names| names.range(..=name).rev()).into_iter().flatten();
        let after = names.map(|names| names.range((Bound::Excluded(name), Bound::Unbounded))).into_iter().flatten();
        let pairs = before.map(Some).chain(iter::repeat(None)).zip(after.map(Some).chain(iter::repeat(None)));
        let pairs = pairs.take_while(|(before, after)| before.is_some() || after.is_some());
        pairs.flat_map(|(before, after)| before.into_iter().chain(after)).inspect(|_| work::step())
    }

    /// True if the key's set contains the name.
    pub fn holds(&self, key: &K, name: &ObjectName) -> bool {
        work::step();
        self.0.get(key).is_some_and(|names| names.contains(name))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_holds_what_was_added_until_it_is_removed() {
        let (mut index, name) = (Index::default(), ObjectName::new("work", "app"));
        assert!(index.is_empty() && !index.holds(&1, &name));
        index.shift(None, Some(1), &name);
        assert!(!index.is_empty() && index.holds(&1, &name) && !index.holds(&2, &name));
        assert!(!index.holds(&1, &ObjectName::new("work", "web")));
        index.shift(Some(1), Some(2), &name);
        assert!(!index.holds(&1, &name) && index.holds(&2, &name));
        index.shift(Some(2), None, &name);
        assert!(index.is_empty());
    }
}
