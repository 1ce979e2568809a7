//! What is told about a Service, in the words of kube-controller-manager.

use super::object_name;
use super::progress::Progress;
use endpointslice::Text;
use endpointslice::hints::{HintEvent, Severity as HintSeverity};
use endpointslice::plan::{Plan as SlicePlan, PlanError};
use fleetnet_core::ids::ObjectName;
use fleetnet_runtime::Severity;

/// A Kubernetes Event about a Service, by [`Controller::COMPONENT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceEvent {
    /// The Service.
    pub service: ObjectName,
    /// Its UID.
    pub uid: Text,
    /// Normal or Warning.
    pub severity: Severity,
    /// The reason, as kube-controller-manager has it.
    pub reason: &'static str,
    /// The message, as well.
    pub message: String,
}

/// Tells what keeps the plan from being the last word, once.
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
