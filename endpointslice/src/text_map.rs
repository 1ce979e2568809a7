//! Labels and annotations, as a sorted list: [`TextMap`].

use crate::text::{SharedText, Text};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// Map from text to text: a list sorted by key, in one allocation. A `BTreeMap` would allocate room for 11 entries even
/// for the two labels of a pod.
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TextMap(Vec<(Text, Text)>);

impl TextMap {
    /// Returns an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of `key`, or `None` if the map does not contain `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Text> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    /// True if the map contains `key`, with any value.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// Sets `key` to `value`. Returns the previous value, or `None` if there was none.
    pub fn insert(&mut self, key: impl Into<Text>, value: impl Into<Text>) -> Option<Text> {
        let key = key.into();
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value.into())),
            Err(at) => {
                self.0.insert(at, (key, value.into()));
                None
            }
        }
    }

    /// Removes `key`. Returns its value, or `None` if the map did not contain `key`.
    pub fn remove(&mut self, key: &str) -> Option<Text> {
        self.find(key).ok().map(|at| self.0.remove(at).1)
    }

    /// Returns the pairs, sorted by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Text, &Text)> + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(key))
    }
}

impl<K: Into<Text>, V: Into<Text>> FromIterator<(K, V)> for TextMap {
    /// Collects pairs into a map. A repeated key gets the later value.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Self::new();
        for (key, value) in pairs {
            map.insert(key, value);
        }
        map
    }
}

impl<K: Into<Text>, V: Into<Text>, const N: usize> From<[(K, V); N]> for TextMap {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl fmt::Debug for TextMap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for TextMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for TextMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MapVisitor)
    }
}

struct MapVisitor;

impl<'de> Visitor<'de> for MapVisitor {
    type Value = TextMap;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map of texts")
    }

    fn visit_unit<E>(self) -> Result<TextMap, E> {
        Ok(TextMap::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<TextMap, A::Error> {
        let mut map = TextMap::new();
        while let Some((SharedText(key), SharedText(value))) = pairs.next_entry()? {
            map.insert(key, value);
        }
        map.0.shrink_to_fit();
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_sorted_and_the_later_value_of_a_key_wins() {
        let map = TextMap::from([("b", "1"), ("a", "2"), ("b", "3")]);
        assert_eq!(format!("{map:?}"), r#"{"a": "2", "b": "3"}"#);
        assert_eq!(map.get("b").unwrap(), "3");
    }

    #[test]
    fn null_reads_as_no_pairs() {
        assert_eq!(serde_json::from_str::<TextMap>("null").unwrap(), TextMap::new());
    }
}
