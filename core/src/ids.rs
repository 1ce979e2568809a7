//! Names and times: the basic values of this crate.

use std::fmt;
use std::sync::Arc;

/// Shared immutable text. Names are in many indexes and keys, so a copy must be cheap.
pub type Text = Arc<str>;

/// Namespace and name of an object. Its [`crate::model::Kind`] decides the cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Empty for cluster-scoped objects (Namespace).
    pub namespace: Text,
    pub name: Text,
}

impl ObjectName {
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

/// Time on the wall clock of the cluster that it was read in: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the time that is later by `micros`.
    #[must_use]
    pub fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Returns the time cut to whole seconds, as Kubernetes' `Time` stores it.
    #[must_use]
    pub fn whole_seconds(self) -> Self {
        Self(self.0.div_euclid(1_000_000) * 1_000_000)
    }
}
