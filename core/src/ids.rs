//! Names and times: the small values that everything else is made of.

use std::fmt;
use std::sync::Arc;

/// Shared immutable text: names stand in many indexes and keys, so a copy must cost nothing.
pub type Text = Arc<str>;

/// Namespace and name of an object; which cluster it lives in follows from its [`crate::model::Kind`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace; empty for cluster-scoped objects (Namespace).
    pub namespace: Text,
    /// The name.
    pub name: Text,
}

impl ObjectName {
    /// A name in a namespace.
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

/// A moment on the wall clock of the cluster that it was read in: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The same moment, later by that many microseconds.
    #[must_use]
    pub fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Cut to whole seconds, as Kubernetes' `Time` stores it.
    #[must_use]
    pub fn whole_seconds(self) -> Self {
        Self(self.0.div_euclid(1_000_000) * 1_000_000)
    }
}
