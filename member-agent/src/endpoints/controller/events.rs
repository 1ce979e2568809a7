//! Events about a Service, with the texts of kube-controller-manager.

use super::object_name;
use super::progress::Progress;
use endpointslice::Text;
use endpointslice::hints::{HintEvent, Severity as HintSeverity};
use endpointslice::plan::{Plan as SlicePlan, PlanError};
use fleetnet_runtime::Severity;
use fleetnet_types::ObjectName;

/// Kubernetes Event about a Service, from [`Controller::COMPONENT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceEvent {
    /// Service that the Event is about.
    pub service: ObjectName,
    /// UID of the Service.
    pub uid: Text,
    /// Severity: Normal or Warning.
    pub severity: Severity,
    /// Reason, as in kube-controller-manager.
    pub reason: &'static str,
    /// Message, as in kube-controller-manager.
    pub message: String,
}

/// Adds an Event for each error of a plan that the plan before it did not have.
pub(super) fn tell_errors(
    progress: &mut Progress,
    plan: &SlicePlan,
    key: &ObjectName,
    uid: &Text,
    events: &mut Vec<ServiceEvent>,
) {
    let errors: Vec<PlanError> = plan.errors().collect();
    let new = errors.iter().filter(|error| !progress.told.contains(error)).map(PlanError::to_string);
    let new: Vec<String> = new.collect();
    match &new[..] {
        [] => {}
        [only] => events.push(failed_to_update(key, uid, only)),
        several => events.push(failed_to_update(key, uid, &format!("[{}]", several.join(", ")))),
    }
    progress.told = errors;
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
        service: object_name(&event.service.namespace, &event.service.name),
        uid: uid.clone(),
        severity: match event.severity() {
            HintSeverity::Normal => Severity::Normal,
            HintSeverity::Warning => Severity::Warning,
        },
        reason: event.reason(),
        message: event.message(),
    }
}
