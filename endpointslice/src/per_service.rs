//! Map from Services to values: [`PerService`].

use crate::text::Text;
use std::collections::BTreeMap;

/// Map from Services to values. A lookup copies no name, a namespace without Services takes no memory, and iteration is
/// in order of names.
#[derive(Clone, Debug)]
pub(crate) struct PerService<T>(BTreeMap<Text, BTreeMap<Text, T>>);

impl<T> Default for PerService<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> PerService<T> {
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&T> {
        self.0.get(namespace)?.get(name)
    }

    pub(crate) fn get_mut(&mut self, namespace: &str, name: &str) -> Option<&mut T> {
        self.0.get_mut(namespace)?.get_mut(name)
    }

    pub(crate) fn get_or_default(&mut self, namespace: &Text, name: &Text) -> &mut T
    where
        T: Default,
    {
        self.0.entry(namespace.clone()).or_default().entry(name.clone()).or_default()
    }

    pub(crate) fn remove(&mut self, namespace: &str, name: &str) -> Option<T> {
        let names = self.0.get_mut(namespace)?;
        let removed = names.remove(name);
        if names.is_empty() {
            self.0.remove(namespace);
        }
        removed
    }

    /// Returns namespace, name and value of each Service.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Text, &Text, &T)> {
        self.0.iter().flat_map(|(namespace, names)| names.iter().map(move |(name, value)| (namespace, name, value)))
    }

    /// Keeps only the values for which `keep` returns true. The arguments of `keep` are namespace, name and value.
    #[cfg(feature = "apply")]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Text, &Text, &mut T) -> bool) {
        self.0.retain(|namespace, names| {
            names.retain(|name, value| keep(namespace, name, value));
            !names.is_empty()
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
