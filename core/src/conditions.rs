//! Conditions of users' objects: types, reasons and messages, some of them with the Go agents' text; how they are set; and the
//! Events for changes.
//!
//! Each change of a condition emits one Event with the same reason, together with the write of the change. The condition
//! records that the Event was emitted, so a restart, or a fleet without changes, emits none.

use crate::limits::PORTS_MAX;
use crate::model::{Condition, Kind, Meta};
use crate::plan::{self, Event};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName, Text, Timestamp};

/// Condition type `Valid`.
///
/// - On a ServiceExport: the Service may be exported, and can be.
/// - On an InternalServiceExport: the cluster may export the Service; absent if the right was never denied.
/// - On a MultiClusterService: its ServiceImport was found, and can be used.
pub const VALID: &str = "Valid";
/// Condition type `Conflict` of ServiceExport and InternalServiceExport: the export has a conflict with another cluster's
/// export.
pub const CONFLICT: &str = "Conflict";

/// Condition type `Disputed` of ServiceExport, MultiClusterService and InternalServiceExport: another writer undoes an agent's
/// writes for this object. Absent if that never happened.
pub const DISPUTED: &str = "Disputed";

/// Condition type `Withdrawn` of ServiceExport: the export is withdrawn because its weight is 0. Absent if the weight was never
/// 0. The condition `Valid` cannot show this: its reason is `ServiceIsValid` for weight 0 too, as with the Go agents.
pub const WITHDRAWN: &str = "Withdrawn";

/// Desired status, reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionValue {
    pub status: ConditionStatus,
    pub reason: Reason,
    /// Text for users.
    pub message: String,
}

impl ConditionValue {
    fn new(status: ConditionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into() }
    }

    /// The Service may be exported.
    pub fn service_is_valid(service: &ObjectName) -> Self {
        Self::new(ConditionStatus::True, Reason::ServiceIsValid, format!("service {service} is valid for export"))
    }

    /// The Service may be exported, but its weight 0 withdraws the export.
    pub fn weight_is_zero(service: &ObjectName) -> Self {
        Self::new(ConditionStatus::True, Reason::ServiceIsValid, format!("exported service {service} with 0 weight"))
    }

    pub fn withdrawn(service: &ObjectName) -> Self {
        Self::new(
            ConditionStatus::True,
            Reason::WeightIsZero,
            format!("service {service} is not exported because its weight is 0"),
        )
    }

    pub fn not_withdrawn(service: &ObjectName) -> Self {
        Self::new(
            ConditionStatus::False,
            Reason::WeightIsNotZero,
            format!("the weight of service {service} is not 0 any more"),
        )
    }

    pub fn service_not_found(service: &ObjectName) -> Self {
        Self::new(ConditionStatus::False, Reason::ServiceNotFound, format!("service {service} is not found"))
    }

    /// The Service may not be exported: it is of type ExternalName or headless.
    pub fn service_ineligible(service: &ObjectName) -> Self {
        Self::new(
            ConditionStatus::False,
            Reason::ServiceIneligible,
            format!("service {service} is not eligible for export"),
        )
    }

    /// The user requests the export of a headless Service, but the hub agent does not announce support for that.
    pub fn headless_not_supported(service: &ObjectName) -> Self {
        let message = format!(
            "service {service} is not eligible for export: it is headless, and the hub agent does not announce \
             support for headless Services"
        );
        Self::new(ConditionStatus::False, Reason::ServiceIneligible, message)
    }

    /// The Service has more ports than the hub accepts for an export.
    pub fn too_many_ports(service: &ObjectName, ports: usize) -> Self {
        let message = format!("service {service} has {ports} ports, and at most {PORTS_MAX} can be exported");
        Self::new(ConditionStatus::False, Reason::TooManyPorts, message)
    }

    /// The weight annotation of the ServiceExport is malformed.
    pub fn invalid_weight(service: &ObjectName, error: &str) -> Self {
        let message = format!("serviceExport {service} has an invalid weight annotation, err = {error}");
        Self::new(ConditionStatus::False, Reason::ServiceExportInvalidWeightAnnotation, message)
    }

    /// The hub has not resolved conflicts for this export yet.
    pub fn pending_conflict_resolution(service: &ObjectName) -> Self {
        let message = format!("service {service} is pending export conflict resolution");
        Self::new(ConditionStatus::Unknown, Reason::ServicePendingConflictResolution, message)
    }

    /// The hub accepted the export: it has no conflict.
    pub fn no_conflict(service: &ObjectName) -> Self {
        Self::new(
            ConditionStatus::False,
            Reason::NoConflictFound,
            format!("service {service} is exported without conflict"),
        )
    }

    /// The hub did not accept the export: another cluster's export with other ports is older.
    pub fn conflict(service: &ObjectName) -> Self {
        let message = format!("service {service} is in conflict with other exported services");
        Self::new(ConditionStatus::True, Reason::ConflictFound, message)
    }

    /// The Service's namespace in the hub does not list this cluster as an exporter.
    pub fn exporter_not_allowed(message: String) -> Self {
        Self::new(ConditionStatus::False, Reason::ExporterNotAllowed, message)
    }

    /// The Service's namespace in the hub allows this cluster to export again.
    pub fn exporter_allowed(service: &ObjectName) -> Self {
        Self::new(
            ConditionStatus::True,
            Reason::ExporterAllowed,
            format!("service {service} may be exported by this cluster"),
        )
    }

    /// Other objects have all possible names of the object that the agent must create in the hub for this one.
    pub fn name_held_by_another(message: String) -> Self {
        Self::new(ConditionStatus::False, Reason::NameHeldByAnother, message)
    }

    /// A server rejected the write of the object's counterpart in the hub for its content.
    pub fn write_rejected(message: String) -> Self {
        Self::new(ConditionStatus::False, Reason::WriteRefused, message)
    }

    pub fn writes_undone(message: String) -> Self {
        Self::new(ConditionStatus::True, Reason::WritesUndone, message)
    }

    /// Another writer has stopped undoing the agent's writes.
    pub fn writes_stand() -> Self {
        Self::new(ConditionStatus::False, Reason::WritesStand, "no other writer undoes the agents' writes")
    }

    /// The imported Service has a malformed port, so it is not imported.
    pub fn port_malformed(message: String) -> Self {
        Self::new(ConditionStatus::False, Reason::PortRefused, message)
    }

    pub fn found_service_import() -> Self {
        Self::new(ConditionStatus::True, Reason::FoundServiceImport, "found valid service import")
    }

    /// The Service is imported, but as ClusterIP: the hub has not granted type LoadBalancer.
    pub fn load_balancer_not_granted(service: &ObjectName, cluster: &str) -> Self {
        let message = format!(
            "service {service} stays imported into cluster {cluster} with type ClusterIP: type LoadBalancer is not granted. \
             Only one cluster may import it with that type: delete the MultiClusterService of the other cluster, which the \
             events of ServiceImport {service} in the hub name, or set spec.type to ClusterIP"
        );
        Self::new(ConditionStatus::True, Reason::LoadBalancerNotGranted, message)
    }

    /// The ServiceImport of a MultiClusterService does not exist yet.
    pub fn unknown_service_import() -> Self {
        let message = "importing service; if the condition remains for a while, please verify that service has been \
                       exported or service has been exported by other multiClusterService";
        Self::new(ConditionStatus::Unknown, Reason::UnknownServiceImport, message)
    }
}

/// Returns the condition with this type.
pub fn find<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| &*condition.condition_type == condition_type)
}

/// Returns the hub's condition that denies a cluster the export of the Service.
pub fn find_denial(conditions: &[Condition]) -> Option<&Condition> {
    find(conditions, VALID).filter(|existing| {
        existing.status == ConditionStatus::False && has_reason(existing, Reason::ExporterNotAllowed)
    })
}

pub fn has_reason(condition: &Condition, reason: Reason) -> bool {
    *condition.reason == *reason.as_str()
}

pub(crate) fn has_type_with_reason(conditions: &[Condition], condition_type: &str, reason: Reason) -> bool {
    find(conditions, condition_type).is_some_and(|condition| has_reason(condition, reason))
}

/// True if the conditions say that a server rejected a write for this object. After a restart, nothing else shows it.
pub(crate) fn shows_rejection(conditions: &[Condition]) -> bool {
    has_type_with_reason(conditions, VALID, Reason::WriteRefused)
}

/// True if a condition has the desired content and was set for this generation of the object or a later one.
pub fn has_value(condition: Option<&Condition>, value: &ConditionValue, generation: i64) -> bool {
    condition.is_some_and(|existing| {
        existing.status == value.status
            && has_reason(existing, value.reason)
            && *existing.message == *value.message
            && existing.observed_generation >= generation
    })
}

/// True if a condition would change for its readers. A new observedGeneration alone is no change.
pub fn is_changed_by(condition: Option<&Condition>, value: &ConditionValue) -> bool {
    !has_value(condition, value, i64::MIN)
}

/// Desired condition of an object, and the Event to emit when it changes.
#[derive(Clone, Debug)]
pub(crate) struct DesiredCondition {
    condition_type: &'static str,
    value: ConditionValue,
    /// Reporting component of the Event, as in the Go agents.
    component: &'static str,
    /// Message of the Event. `None` if another object gets the Event instead.
    event_message: Option<String>,
    /// True to emit the Event again for each new generation of the object, even if the condition stays.
    event_per_generation: bool,
}

impl DesiredCondition {
    /// Returns a desired condition whose Event has the same message.
    pub(crate) fn new(condition_type: &'static str, value: ConditionValue, component: &'static str) -> Self {
        let event_message = Some(value.message.clone());
        Self { condition_type, value, component, event_message, event_per_generation: false }
    }

    /// Replaces the Event's message by one that also says what to do.
    pub(crate) fn with_event_message(self, event_message: String) -> Self {
        Self { event_message: Some(event_message), ..self }
    }

    /// Emits no Event for this condition.
    pub(crate) fn without_event(self) -> Self {
        Self { event_message: None, ..self }
    }

    /// Emits the Event again for each new generation of the object.
    pub(crate) fn event_per_generation(self) -> Self {
        Self { event_per_generation: true, ..self }
    }

    pub(crate) fn value(&self) -> &ConditionValue {
        &self.value
    }
}

/// Returns the object's conditions with the desired ones set, and the Events for the changes. `None` if all desired conditions
/// are set already.
pub(crate) fn change(
    kind: Kind,
    meta: &Meta,
    existing: &[Condition],
    desired: &[DesiredCondition],
    now: Timestamp,
) -> Option<(Vec<Condition>, Vec<Event>)> {
    let mut list = existing.to_vec();
    let mut events = Vec::new();
    for DesiredCondition { condition_type, value, component, event_message, event_per_generation } in desired {
        let before = find(&list, condition_type);
        // fault R2.3: meta.generation ~> 0
        if has_value(before, value, meta.generation) {
            continue;
        }
        // fault R2.1: value)); ~> value) || true);
        let event_text = event_message.as_ref().filter(|_| *event_per_generation || is_changed_by(before, value));
        // fault R1.1: value.reason ~> Reason::ServiceIsValid
        events.extend(event_text.map(|text| plan::event(component, kind, meta, value.reason, text.clone())));
        list = set(&list, condition_type, value, meta.generation, now);
    }
    (list != existing).then_some((list, events))
}

/// Returns the conditions with one set, in its old place or at the end. Its transition time changes only with its status.
#[must_use]
pub fn set(
    conditions: &[Condition],
    condition_type: &'static str,
    value: &ConditionValue,
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let before = find(conditions, condition_type);
    let last_transition = match before {
        // fault S18.1: status == value.status ~> message == *value.message
        // fault S18.2: if existing ~> if existing.observed_generation == generation && existing
        Some(existing) if existing.status == value.status => existing.last_transition,
        _ => now.whole_seconds(),
    };
    let condition = Condition {
        condition_type: Text::from(condition_type),
        status: value.status,
        reason: value.reason.as_str().into(),
        message: value.message.as_str().into(),
        observed_generation: generation,
        last_transition,
    };
    // fault S17.1: = conditions.to_vec ~> : Vec<Condition> = conditions.iter().filter(|existing| &*existing.condition_type == condition_type).cloned().collect
    let mut list = conditions.to_vec();
    match list.iter_mut().find(|existing| &*existing.condition_type == condition_type) {
        // fault S17.2: existing) => *existing = condition ~> _) => list.insert(0, condition)
        Some(existing) => *existing = condition,
        None => list.push(condition),
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(5_700_000);

    #[test]
    fn the_time_of_transition_changes_only_with_the_status() {
        let service = ObjectName::new("work", "app");
        let first = set(&[], CONFLICT, &ConditionValue::pending_conflict_resolution(&service), 1, NOW);
        assert_eq!(first[0].last_transition, Timestamp(5_000_000), "whole seconds, as the API stores them");
        let later = NOW.plus_micros(60_000_000);
        let second = set(&first, CONFLICT, &ConditionValue::no_conflict(&service), 1, later);
        assert_eq!(second[0].last_transition, Timestamp(65_000_000));
        let third = set(&second, CONFLICT, &ConditionValue::no_conflict(&service), 2, later.plus_micros(9_000_000));
        assert_eq!((third[0].last_transition, third[0].observed_generation), (Timestamp(65_000_000), 2));
    }

    #[test]
    fn conditions_of_others_stay_where_they_are() {
        let service = ObjectName::new("work", "app");
        let mut list = set(&[], "Theirs", &ConditionValue::found_service_import(), 1, NOW);
        list = set(&list, VALID, &ConditionValue::service_is_valid(&service), 1, NOW);
        list = set(&list, VALID, &ConditionValue::service_not_found(&service), 1, NOW);
        let types: Vec<&str> = list.iter().map(|condition| &*condition.condition_type).collect();
        assert_eq!(types, ["Theirs", "Valid"]);
    }

    #[test]
    fn an_older_generation_does_not_speak_for_a_newer_one() {
        let service = ObjectName::new("work", "app");
        let list = set(&[], CONFLICT, &ConditionValue::no_conflict(&service), 2, NOW);
        assert!(has_value(find(&list, CONFLICT), &ConditionValue::no_conflict(&service), 2));
        assert!(has_value(find(&list, CONFLICT), &ConditionValue::no_conflict(&service), 1));
        assert!(!has_value(find(&list, CONFLICT), &ConditionValue::no_conflict(&service), 3));
        assert!(!has_value(find(&list, CONFLICT), &ConditionValue::conflict(&service), 2));
    }
}
