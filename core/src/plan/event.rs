//! Kubernetes Events of plans.

use crate::message;
use crate::model::{Kind, Meta};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Severity, Uid};

/// Kubernetes Event about an object. The component has the same name as in the Go agents, such as
/// `serviceexport-controller`.
pub type Event = fleetnet_types::Event<Kind, Reason>;

/// Returns an Event about the object with this metadata. The reason determines the type of the Event (Warning or
/// Normal).
pub(crate) fn event(
    component: &'static str,
    kind: Kind,
    meta: &Meta,
    reason: Reason,
    message: impl Into<String>,
) -> Event {
    event_about((kind, meta.name.clone(), meta.uid.clone()), component, reason, message.into())
}

/// Returns an Event about an object. The reason determines the type of the Event (Warning or Normal).
pub fn event_about(
    (source, name, uid): (Kind, ObjectName, Uid),
    component: &'static str,
    reason: Reason,
    message: String,
) -> Event {
    let message = message::text(message);
    let severity = if reason.is_warning() { Severity::Warning } else { Severity::Normal };
    Event { source, name, uid, severity, component, reason, message }
}
