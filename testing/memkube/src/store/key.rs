//! Keys of objects, in the order of etcd.

use std::fmt;

/// Namespace and name of an object.
///
/// Keys have the order of the text `namespace/name`, as in etcd. So namespace `a-b` comes before `a`, because `-` comes
/// before `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Key as text: `namespace/name`, or `name` for cluster-scoped objects.
    text: Box<str>,
    /// Length of the namespace within `text`.
    namespace_bytes: usize,
}

impl Key {
    /// Returns the key of an object. `namespace` is empty for cluster-scoped objects.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        let text = if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() };
        Self { text, namespace_bytes: namespace.len() }
    }

    /// Returns the lower bound of all keys of a namespace, or of all keys if `namespace` is empty.
    pub(super) fn first_of(namespace: &str) -> Self {
        Self::new(namespace, "")
    }

    /// Namespace of the object. Empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.text[..self.namespace_bytes]
    }

    #[must_use]
    pub fn name(&self) -> &str {
        if self.namespace_bytes == 0 { &self.text } else { &self.text[self.namespace_bytes + 1..] }
    }

    /// Key as text: `namespace/name`, or `name` for cluster-scoped objects.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
