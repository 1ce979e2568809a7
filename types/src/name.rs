//! Names of objects.

use std::fmt;
use std::sync::Arc;

/// Shared immutable text. The same names are in many indexes and keys, so a copy costs no allocation.
pub type Text = Arc<str>;

/// Namespace and name of an object.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: Text,
    /// Name in the namespace.
    pub name: Text,
}

impl ObjectName {
    /// Returns the name of an object in a namespace.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
