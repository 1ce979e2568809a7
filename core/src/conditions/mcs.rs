//! Values of the conditions of the standard API. It has reasons of its own, so a condition shows another reason than
//! its Event.

use super::{ConditionValue, MCS_CONFLICT, find, listed};
use crate::limits::EXPORTED_LABELS_MAX;
use crate::model::Condition;
use crate::plan::BlockingReason;
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName};

/// Reason of the standard API: the Service of a ServiceExport does not exist.
pub const NO_SERVICE: &str = "NoService";

/// Reason of the standard API: the Service of a ServiceExport has a type that is not exported.
pub const INVALID_SERVICE_TYPE: &str = "InvalidServiceType";

/// Returns the outcome of the merge in the conditions of an InternalServiceExport; `None` if there is none.
pub(crate) fn merge_outcome(conditions: &[Condition]) -> Option<&Condition> {
    find(conditions, MCS_CONFLICT).filter(|it| it.status != ConditionStatus::Unknown)
}

impl ConditionValue {
    pub(super) fn shown_as(self, reason: impl Into<String>) -> Self {
        Self { shown_reasons: Some(reason.into()), ..self }
    }

    /// Condition `multicluster.x-k8s.io/Conflict` False: the exports of all clusters agree.
    pub fn no_merge_conflict(service: &ObjectName) -> Self {
        let message = format!("all exports of service {service} agree");
        Self::new(ConditionStatus::False, Reason::NoConflictFound, message).shown_as("NoConflicts")
    }

    /// Condition `multicluster.x-k8s.io/Conflict` True. The standard API has a reason for each property.
    pub fn merge_conflict(reasons: &[&str], message: String) -> Self {
        Self::new(ConditionStatus::True, Reason::ConflictFound, message).shown_as(reasons.join(","))
    }

    /// Condition `Conflict` of a ServiceExport: the outcome of the merge, as the InternalServiceExport shows it.
    pub(crate) fn outcome_of_merge(outcome: &Condition) -> Self {
        let reason =
            if outcome.status == ConditionStatus::True { Reason::ConflictFound } else { Reason::NoConflictFound };
        Self::new(outcome.status, reason, outcome.message.to_string()).shown_as(outcome.reason.to_string())
    }

    /// Condition `Valid` True of a ServiceExport of the standard API.
    pub(crate) fn mcs_export_is_valid(service: &ObjectName) -> Self {
        Self::service_is_valid(service).shown_as("Valid")
    }

    /// Condition `Valid` False: the Service does not exist.
    pub(crate) fn no_service(service: &ObjectName) -> Self {
        Self::service_not_found(service).shown_as(NO_SERVICE)
    }

    /// Condition `Valid` False: a Service of type ExternalName has no endpoints of its own.
    pub(crate) fn invalid_service_type(service: &ObjectName) -> Self {
        let message = format!("service {service} is of type ExternalName and has no endpoints of its own");
        Self::new(ConditionStatus::False, Reason::ServiceIneligible, message).shown_as(INVALID_SERVICE_TYPE)
    }

    /// Condition `Ready` True: the hub has merged the export. `left_out` are the names of labels and annotations that
    /// are not exported.
    pub(crate) fn exported(service: &ObjectName, left_out: &[&str]) -> Self {
        let mut message = format!("service {service} is exported");
        if !left_out.is_empty() {
            message = format!(
                "{message} without the labels and annotations {}: names of Kubernetes and fleetnet are not exported, nor \
                 values that are too long, nor more than {EXPORTED_LABELS_MAX} of each",
                listed(left_out)
            );
        }
        Self::new(ConditionStatus::True, Reason::ServiceIsValid, message).shown_as("Exported")
    }

    /// Condition `Ready` Unknown: the hub agent has not merged the export yet.
    pub(crate) fn export_pending(service: &ObjectName) -> Self {
        let message = format!("service {service} waits for the hub agent");
        Self::new(ConditionStatus::Unknown, Reason::ServicePendingConflictResolution, message).shown_as("Pending")
    }

    /// Condition `Ready` True of a ServiceImport: clients can use the Service.
    pub(crate) fn import_is_ready(service: &ObjectName) -> Self {
        let message = format!("service {service} can be used in this cluster");
        Self::new(ConditionStatus::True, Reason::FoundServiceImport, message).shown_as("Ready")
    }

    /// Condition `Ready` False of a ServiceImport. The standard API has only two reasons for it.
    pub(crate) fn import_is_not_ready(BlockingReason { reason, message }: BlockingReason) -> Self {
        let is_of_mcs = reason == Reason::IPFamilyNotSupported;
        let shown = if is_of_mcs { reason.as_str() } else { "Pending" };
        Self::new(ConditionStatus::False, reason, message).shown_as(shown)
    }

    /// Condition `Ready` False of a ServiceExport.
    pub(crate) fn not_exported(reason: Reason, message: String) -> Self {
        Self::new(ConditionStatus::False, reason, message).shown_as("Failed")
    }
}
