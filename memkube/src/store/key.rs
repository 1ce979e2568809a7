//! Keys of objects, ordered as etcd orders them.

use std::fmt;

/// Namespace and name of an object.
///
/// Ordered by `namespace/name` as one text, as in etcd: namespace `a-b` comes before `a`, since `-` comes before `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// `namespace/name`, or `name` alone for cluster-scoped objects.
    text: Box<str>,
    /// How much of it is the namespace.
    namespace_bytes: usize,
}

impl Key {
    /// Of an object; the namespace is empty for cluster-scoped ones.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        let text = if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() };
        Self { text, namespace_bytes: namespace.len() }
    }

    /// What comes before all keys of a namespace, and of all where it is empty.
    pub(super) fn first_of(namespace: &str) -> Self {
        Self::new(namespace, "")
    }

    /// Empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.text[..self.namespace_bytes]
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.namespace_bytes == 0 { &self.text } else { &self.text[self.namespace_bytes + 1..] }
    }

    /// `namespace/name`, or `name` alone for cluster-scoped objects.
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

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn keys_are_ordered_as_etcd_orders_them() {
        assert!(Key::new("a-b", "x") < Key::new("a", "x"));
        assert!(Key::new("a", "x") < Key::new("a", "y"));
        assert_eq!(Key::new("a", "x").namespace(), "a");
        assert_eq!(Key::new("a", "x").name(), "x");
        assert_eq!(Key::new("", "x").name(), "x");
    }
}
