//! Timers of keys. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

/// Timers of keys, at most one for each key.
#[derive(Debug)]
pub(crate) struct Timers<K, T> {
    by_key: BTreeMap<K, T>,
    by_time: BTreeSet<(T, K)>,
}

impl<K, T> Default for Timers<K, T> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Clone + Ord, T: Copy + Ord> Timers<K, T> {
    /// Sets the timer of a key, or clears it with `None`. Replaces an earlier time.
    pub(crate) fn set(&mut self, key: &K, at: Option<T>) {
        if let Some(old) = self.by_key.remove(key) {
            self.by_time.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// Removes and returns the key with the earliest time. `None` if there is no key or this time is in the future.
    pub(crate) fn pop_due(&mut self, now: T) -> Option<K> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// Returns the earliest time of all timers. `None` if no timer is set.
    pub(crate) fn next(&self) -> Option<T> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_time_and_the_last_one_counts() {
        let mut timers = Timers::default();
        timers.set(&"a", Some(10));
        timers.set(&"b", Some(20));
        timers.set(&"a", Some(30));
        assert_eq!(timers.next(), Some(20));
        timers.set(&"b", None);
        assert_eq!(timers.next(), Some(30));
        assert_eq!(timers.pop_due(29), None);
        assert_eq!(timers.pop_due(30), Some("a"));
        assert_eq!(timers.len(), 0);
        assert_eq!(timers.next(), None);
    }
}
