//! Kubernetes Events about a Service, with the messages of kube-controller-manager.

use super::progress::Progress;
use endpointslice::Text;
use endpointslice::hints::{HintEvent, Severity as HintSeverity};
use endpointslice::plan::Plan as SlicePlan;
use fleetnet_runtime::Severity;
use fleetnet_types::ObjectName;

/// Kubernetes Event about a Service, with [`Controller::COMPONENT`] as its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceEvent {
    /// Service that the Event is about.
    pub service: ObjectName,
    /// UID of the Service.
    pub uid: Text,
    /// Severity: Normal or Warning.
    pub severity: Severity,
    /// Reason of the Event, as in kube-controller-manager.
    pub reason: &'static str,
    /// Message of the Event, as in kube-controller-manager.
    pub message: String,
}

/// Returns an Event about the errors of a plan. Errors that the previous plan of the Service already had are not
/// included.
pub(super) fn errors_event(
    progress: &Progress,
    plan: &SlicePlan,
    key: &ObjectName,
    uid: &Text,
) -> Option<ServiceEvent> {
    let errors = plan.errors().filter(|error| !progress.reported.contains(error));
    let new: Vec<String> = errors.map(|error| error.to_string()).collect();
    match &new[..] {
        [] => None,
        [only] => Some(failed_to_update(key, uid, only)),
        several => Some(failed_to_update(key, uid, &format!("[{}]", several.join(", ")))),
    }
}

pub(super) fn failed_to_update(service: &ObjectName, uid: &Text, why: &str) -> ServiceEvent {
    ServiceEvent {
        service: service.clone(),
        uid: uid.clone(),
        severity: Severity::Warning,
        reason: "FailedToUpdateEndpointSlices",
        message: format!("Error updating Endpoint Slices for Service {service}: {why}"),
    }
}

pub(super) fn hint_event(uid: &Text, event: &HintEvent) -> ServiceEvent {
    ServiceEvent {
        service: ObjectName::new(&*event.service.namespace, &*event.service.name),
        uid: uid.clone(),
        severity: match event.severity() {
            HintSeverity::Normal => Severity::Normal,
            HintSeverity::Warning => Severity::Warning,
        },
        reason: event.reason(),
        message: event.message(),
    }
}
