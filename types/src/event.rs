//! Kubernetes Event that an agent emits.

use crate::name::{ObjectName, Uid};

/// Kubernetes Event (core/v1) about an object, in the cluster of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<S, R = &'static str> {
    /// Kind of the object that the Event is about. The kind determines the cluster that gets the Event.
    pub source: S,
    /// Name of the object. An Event about an object of a cluster-scoped kind goes to the namespace `default`.
    pub name: ObjectName,
    /// UID of the object.
    pub uid: Uid,
    /// Type of the Event: Normal or Warning.
    pub severity: Severity,
    /// Reporting component, as `source.component` of the Event.
    pub component: &'static str,
    /// Reason of the Event, in CamelCase when written to the API server.
    pub reason: R,
    /// Message for people: what happened, why, and what to do.
    pub message: String,
}

impl<S, R> Event<S, R> {
    /// Converts the object's kind and the reason to other types.
    pub fn map<T, Q>(self, source: impl FnOnce(S) -> T, reason: impl FnOnce(R) -> Q) -> Event<T, Q> {
        let Self { source: kind, name, uid, severity, component, reason: why, message } = self;
        Event { source: source(kind), name, uid, severity, component, reason: reason(why), message }
    }
}

/// Type of a Kubernetes Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Type `Normal`: information.
    Normal,
    /// Type `Warning`: a user must act.
    Warning,
}

impl Severity {
    /// Returns the name of the type in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
