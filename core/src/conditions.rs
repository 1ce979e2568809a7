//! Conditions of users' objects: types, reasons and messages, the rule that sets a condition, and the Events for
//! changes. Some messages are those of the Go agents.
//!
//! Each change of a condition emits one Event with the same reason, together with the write of the change. The
//! condition records that the Event was emitted, so a restart emits no Event.

mod mcs;
mod selection;

pub(crate) use mcs::merge_outcome;
pub use mcs::{INVALID_SERVICE_TYPE, NO_SERVICE};

use crate::annotations::{AZURE_LOAD_BALANCER_INTERNAL, WEIGHT};
use crate::limits::{PORTS_MAX, REPORTED_NAMES_MAX};
use crate::message;
use crate::model::{Condition, ExportState, InternalServiceExport, Kind, Meta};
use crate::plan::{self, BlockingReason, Event};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName, Text, Timestamp};

/// Condition type `Valid`.
///
/// - On a ServiceExport: the Service can be exported, and its cluster has the right to export it.
/// - On an InternalServiceExport: the cluster has the right to export the Service; absent if the right was never
///   denied.
/// - On a MultiClusterService: its ServiceImport was found, and can be used.
pub const VALID: &str = "Valid";
/// Condition type `Conflict` of ServiceExport and InternalServiceExport: the export has a conflict with another
/// cluster's export.
pub const CONFLICT: &str = "Conflict";

/// Condition type of an InternalServiceExport: exports of several clusters disagree, according to the standard API. It
/// is present if the hub agent has merged the export.
pub const MCS_CONFLICT: &str = "multicluster.x-k8s.io/Conflict";

/// Condition type `Ready` of the standard API.
///
/// - On a ServiceExport: the hub agent has merged the export.
/// - On a ServiceImport: clients can use the Service.
pub const READY: &str = "Ready";

/// Condition type `Disputed` of ServiceExport, MultiClusterService and InternalServiceExport: another writer undoes an
/// agent's writes for this object. Absent if that never happened.
pub const DISPUTED: &str = "Disputed";

/// Condition type `Withdrawn` of ServiceExport: the export is withdrawn because its weight is 0. Absent if the weight
/// was never
/// 0. The condition `Valid` cannot show this: its reason is `ServiceIsValid` for weight 0 too, as with the Go agents.
pub const WITHDRAWN: &str = "Withdrawn";

/// Condition type `ExporterSilent` of MultiClusterService and of the hub's ServiceImport: the hub agent does not hear
/// from an exporting member. Absent if that never happened.
pub const EXPORTER_SILENT: &str = "ExporterSilent";

/// Condition type `ClusterSelectorsValid` of MultiClusterService: its annotation with cluster selectors is well-formed.
/// Absent if it never was malformed.
pub const CLUSTER_SELECTORS_VALID: &str = "ClusterSelectorsValid";

/// Condition type `Joined` of an agent in an InternalMemberCluster.
pub const JOINED: &str = "Joined";

/// Desired status, reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionValue {
    pub status: ConditionStatus,
    /// Reason, and reason of the Event.
    pub reason: Reason,
    /// Reasons that the condition shows instead, joined with commas.
    pub shown_reasons: Option<String>,
    /// Text for users.
    pub message: String,
}

impl ConditionValue {
    fn new(status: ConditionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, reason, shown_reasons: None, message: message::text(message) }
    }

    /// Returns the reason as the condition shows it.
    fn shown_reason(&self) -> &str {
        self.shown_reasons.as_deref().unwrap_or(self.reason.as_str())
    }

    /// Condition `Valid` False: the export of a Service cannot begin.
    pub fn export_blocked(reason: &BlockingReason) -> Self {
        Self::new(ConditionStatus::False, reason.reason, reason.message.clone())
    }
}

/// Declares the constructor of each value: its arguments, and the status, reason and message.
macro_rules! values {
    ($(
        $(#[$doc:meta])*
        $visible:vis $name:ident($($of:ident: $type:ty),*): $status:ident $reason:ident, $message:literal;
    )*) => {
        impl ConditionValue {$(
            $(#[$doc])*
            $visible fn $name($($of: $type),*) -> Self {
                Self::new(ConditionStatus::$status, Reason::$reason, format!($message))
            }
        )*}
    };
}

values! {
    /// Condition `Valid` True: the Service may be exported.
    pub service_is_valid(service: &ObjectName): True ServiceIsValid, "service {service} is valid for export";
    /// Condition `Valid` True: the Service may be exported, but its weight 0 withdraws the export.
    pub weight_is_zero(service: &ObjectName): True ServiceIsValid, "exported service {service} with 0 weight";
    pub withdrawn(service: &ObjectName): True WeightIsZero, "service {service} is not exported because its weight is 0";
    pub not_withdrawn(service: &ObjectName): False WeightIsNotZero, "the weight of service {service} is not 0 any more";
    pub service_not_found(service: &ObjectName): False ServiceNotFound, "service {service} is not found";
    /// Condition `Valid` False: a Service that is headless or of type ExternalName cannot be exported.
    pub service_ineligible(service: &ObjectName): False ServiceIneligible,
        "service {service} is not eligible for export";
    /// Condition `Valid` False, of both APIs: the agents made the Service for an import.
    pub(crate) imported_service(service: &ObjectName): False ServiceImported,
        "service {service} is the derived Service of an import, so its endpoints are of other clusters. Delete the ServiceExport: each \
         cluster can import the Service from the clusters that run it";
    /// Condition `Valid` False: the user requests the export of a headless Service, but the hub agent does not announce
    /// support for headless Services.
    pub headless_not_supported(service: &ObjectName): False ServiceIneligible,
        "service {service} is not eligible for export: it is headless, and the hub agent does not announce \
         support for headless Services";
    /// Condition `Valid` False: the Service has more than [`PORTS_MAX`] ports, which the hub does not accept.
    pub too_many_ports(service: &ObjectName, ports: usize): False TooManyPorts,
        "service {service} has {ports} ports, and at most {PORTS_MAX} can be exported";
    /// Condition `Valid` False: the weight annotation of the ServiceExport is malformed.
    pub invalid_weight(service: &ObjectName, error: &str): False ServiceExportInvalidWeightAnnotation,
        "serviceExport {service} has an invalid annotation {WEIGHT}: {error}";
    /// Condition `Conflict` Unknown: the hub agent has not resolved conflicts for this export yet.
    pub pending_conflict_resolution(service: &ObjectName): Unknown ServicePendingConflictResolution,
        "service {service} is pending export conflict resolution";
    /// Condition `Conflict` False: the hub agent accepted the export.
    pub no_conflict(service: &ObjectName): False NoConflictFound, "service {service} is exported without conflict";
    /// Condition `Conflict` True: the hub agent did not accept the export, because another cluster exported the Service
    /// earlier with other ports, or only one of the two Services is headless.
    pub conflict(service: &ObjectName): True ConflictFound,
        "service {service} is in conflict with other exported services";
    /// Condition `Valid` False: the Service's namespace in the hub does not list this cluster as an exporter.
    pub exporter_not_allowed(message: String): False ExporterNotAllowed, "{message}";
    /// Condition `Valid` True: this cluster may export the Service again, after it had no right to export it.
    pub exporter_allowed(service: &ObjectName): True ExporterAllowed,
        "service {service} may be exported by this cluster";
    /// Condition `Valid` False: the agent cannot create its object for this export or import, because other objects
    /// have all names that it may have.
    pub name_held_by_another(message: String): False NameHeldByAnother, "{message}";
    /// Condition `Valid` False: a server rejected the content of a write that the agent made for this object. An
    /// example is the write of an InternalServiceExport for a ServiceExport.
    pub write_rejected(message: String): False WriteRefused, "{message}";
    pub writes_undone(message: String): True WritesUndone, "{message}";
    /// Condition `Disputed` False: the other writer has stopped, so the writes of the agent stay.
    pub writes_stand(): False WritesStand, "no other writer undoes the agents' writes";
    /// Condition `ExporterSilent` True.
    pub exporter_silent(message: String): True MemberSilent, "{message}";
    /// Condition `ExporterSilent` False: each exporting member that was silent renews its MemberAgent again, or exports
    /// no more.
    pub exporters_heard(): False MemberReturned, "no exporting cluster is silent any more";
    /// Condition `Valid` False: the Service is not imported because one of its ports is malformed.
    pub port_malformed(message: String): False PortRefused, "{message}";
    pub found_service_import(): True FoundServiceImport, "found valid service import";
    /// Condition `Valid` True: the Service is imported, but with type ClusterIP, because the hub agent has not granted
    /// type LoadBalancer.
    pub load_balancer_not_granted(service: &ObjectName, cluster: &str): True LoadBalancerNotGranted,
        "service {service} stays imported into cluster {cluster} with type ClusterIP: type LoadBalancer is not granted. \
         Only one cluster may import it with that type: delete the MultiClusterService of the other cluster, which the \
         events of ServiceImport {service} in the hub name, or set spec.type to ClusterIP";
    /// Condition `Valid` False: the namespace has its maximum of load balancers (`--load-balancers-per-namespace`).
    pub too_many_load_balancers(request: &ObjectName, cluster: &str, limit: usize): False TooManyLoadBalancers,
        "MultiClusterService {request} of cluster {cluster} gets no load balancer: its namespace may have at most \
         {limit} (--load-balancers-per-namespace of the member agent), and others come first. Set spec.type to ClusterIP, \
         or delete another MultiClusterService of type LoadBalancer of the namespace";
    /// Condition `Valid` False: it is not known if the load balancer must be internal, so none is made.
    pub internal_load_balancer_malformed(request: &ObjectName, cluster: &str): False InternalLoadBalancerInvalid,
        "the load balancer of MultiClusterService {request} of cluster {cluster} is neither created nor changed: an \
         annotation for an internal load balancer has a value other than true and false. Correct \
         {AZURE_LOAD_BALANCER_INTERNAL} or service.beta.kubernetes.io/azure-load-balancer-internal of the \
         MultiClusterService";
    /// Condition `Valid` Unknown: the ServiceImport of the MultiClusterService does not exist yet.
    pub unknown_service_import(): Unknown UnknownServiceImport,
        "importing service; if the condition remains for a while, please verify that service has been \
         exported or service has been exported by other multiClusterService";
}

/// Returns names for a message, at most [`REPORTED_NAMES_MAX`] of them, and the number of the others.
pub(crate) fn listed(names: &[impl ToString]) -> String {
    let named: Vec<String> = names.iter().take(REPORTED_NAMES_MAX).map(ToString::to_string).collect();
    let more = match names.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

/// True if a ServiceExport of the standard API shows the outcome of the merge.
pub(crate) fn has_outcome(conditions: &[Condition]) -> bool {
    find(conditions, CONFLICT).is_some_and(|it| it.status != ConditionStatus::Unknown)
}

pub fn find<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| &*condition.condition_type == condition_type)
}

/// Returns the condition by which the hub agent denies the cluster the right to export; `None` if there is no such
/// condition.
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

/// True if the condition `Valid` shows that a server rejected a write for this object. After a restart, the agent knows
/// this rejection only from the condition.
pub(crate) fn shows_rejection(conditions: &[Condition]) -> bool {
    has_type_with_reason(conditions, VALID, Reason::WriteRefused)
}

/// True if a condition has the desired status, reason and message. It must also have been set for this generation of
/// the object, or for a later one.
pub fn has_value(condition: Option<&Condition>, value: &ConditionValue, generation: i64) -> bool {
    condition.is_some_and(|existing| {
        existing.status == value.status
            && *existing.reason == *value.shown_reason()
            && *existing.message == *value.message
            && existing.observed_generation >= generation
    })
}

/// True if the status, reason or message of a condition differs from `value`. A new observedGeneration alone is no
/// change.
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
    /// True to emit the Event again for each new generation of the object, even if the condition's value stays the
    /// same.
    event_per_generation: bool,
}

impl DesiredCondition {
    /// Returns a desired condition whose Event has the message of the condition.
    pub(crate) fn new(condition_type: &'static str, value: ConditionValue, component: &'static str) -> Self {
        let event_message = Some(value.message.clone());
        Self { condition_type, value, component, event_message, event_per_generation: false }
    }

    /// Replaces the message of the Event. The new message also says what the user must do next.
    pub(crate) fn with_event_message(self, event_message: String) -> Self {
        Self { event_message: Some(event_message), ..self }
    }

    /// Returns the same desired condition, but without an Event for the change.
    pub(crate) fn without_event(self) -> Self {
        Self { event_message: None, ..self }
    }

    /// Returns the same desired condition, with an Event for each new generation of the object, even if the condition's
    /// value stays the same.
    pub(crate) fn event_per_generation(self) -> Self {
        Self { event_per_generation: true, ..self }
    }

    pub(crate) fn value(&self) -> &ConditionValue {
        &self.value
    }
}

/// Returns the desired condition `ExporterSilent` of a Service with these exporters, of which `silent` are silent.
/// `None` if the condition is absent and stays so.
pub(crate) fn exporter_silent(
    exporters: &[ClusterId],
    silent: &[&ClusterId],
    existing: &[Condition],
    component: &'static str,
) -> Option<DesiredCondition> {
    let is_shown = || find(existing, EXPORTER_SILENT).is_some_and(|it| it.status == ConditionStatus::True);
    let value = if silent.is_empty() {
        return is_shown()
            .then(|| DesiredCondition::new(EXPORTER_SILENT, ConditionValue::exporters_heard(), component));
    } else if silent.len() == exporters.len() {
        format!("no exporting cluster renews its MemberAgent ({}), so their endpoints stay in use", listed(silent))
    } else {
        format!(
            "exporting clusters are silent: {}. Importers use their endpoints only while no other cluster has ready endpoints",
            listed(silent)
        )
    };
    Some(DesiredCondition::new(EXPORTER_SILENT, ConditionValue::exporter_silent(value), component))
}

/// Returns the object's conditions with the desired conditions set, and the Events for the changes. `None` if the
/// object already has all desired conditions.
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
        if has_value(before, value, meta.generation) {
            continue;
        }
        let event_text = event_message.as_ref().filter(|_| *event_per_generation || is_changed_by(before, value));
        events.extend(event_text.map(|text| plan::event(component, kind, meta, value.reason, text.clone())));
        list = set(&list, condition_type, value, meta.generation, now);
    }
    (list != existing).then_some((list, events))
}

/// Returns the conditions with a new value for one condition type. The new condition replaces the condition of the same
/// type, or is appended. `lastTransitionTime` changes only if the status changes.
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
        Some(existing) if existing.status == value.status => existing.last_transition,
        _ => now.whole_seconds(),
    };
    let condition = Condition {
        condition_type: Text::from(condition_type),
        status: value.status,
        reason: value.shown_reason().into(),
        message: value.message.as_str().into(),
        observed_generation: generation,
        last_transition,
    };
    let mut list = conditions.to_vec();
    match list.iter_mut().find(|existing| &*existing.condition_type == condition_type) {
        Some(existing) => *existing = condition,
        None => list.push(condition),
    }
    list
}

/// Outcome of conflict resolution, which the hub agent writes as a condition.
impl InternalServiceExport {
    /// True if the outcome of conflict resolution is for the present generation of the export.
    pub fn has_outcome(&self) -> bool {
        find(&self.conditions, CONFLICT).is_some_and(|condition| condition.observed_generation >= self.meta.generation)
    }

    /// Returns the outcome for the present generation of the export: of conflict resolution, or of the merge if only
    /// the standard API requests the export.
    pub(crate) fn outcome(&self) -> Option<&Condition> {
        let condition_type = if self.is_of_fleet_api() { CONFLICT } else { MCS_CONFLICT };
        find(&self.conditions, condition_type).filter(|condition| condition.observed_generation >= self.meta.generation)
    }

    /// Returns the state of the export for metrics. `None` while the export is being deleted.
    pub fn state(&self) -> Option<ExportState> {
        if self.meta.deleting {
            return None;
        }
        if find_denial(&self.conditions).is_some() {
            return Some(ExportState::Denied);
        }
        Some(match self.outcome().map(|condition| condition.status) {
            Some(ConditionStatus::False) => ExportState::Accepted,
            Some(ConditionStatus::True) => ExportState::Conflicted,
            Some(ConditionStatus::Unknown) | None => ExportState::Pending,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Finalizers;

    const NOW: Timestamp = Timestamp(5_700_000);

    /// Rule S18: The member agent writes an existing condition again
    /// Then: The member agent changes `lastTransitionTime` only if the status of the condition changes
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

    /// Also rule S17.
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
    fn a_value_is_status_reason_and_message() {
        let value = ConditionValue::no_conflict(&ObjectName::new("work", "app"));
        let list = set(&[], CONFLICT, &value, 1, NOW);
        let others = [
            Condition { status: ConditionStatus::True, ..list[0].clone() },
            Condition { reason: "Other".into(), ..list[0].clone() },
            Condition { message: "other".into(), ..list[0].clone() },
        ];
        assert!(has_value(list.first(), &value, 1));
        assert!(others.iter().all(|other| !has_value(Some(other), &value, 1)), "{others:?}");
    }

    #[test]
    fn only_a_false_condition_denies() {
        let value = ConditionValue::exporter_not_allowed("denied".into());
        let denied = set(&[], VALID, &value, 1, NOW);
        assert!(find_denial(&denied).is_some());
        let over = set(&[], VALID, &ConditionValue { status: ConditionStatus::True, ..value }, 1, NOW);
        assert_eq!(find_denial(&over), None);
    }

    /// Also rule R2.
    #[test]
    fn conditions_that_are_set_stay_as_they_are() {
        let service = ObjectName::new("work", "app");
        let (conflict, valid) = (ConditionValue::conflict(&service), ConditionValue::exporter_allowed(&service));
        let meta = Meta {
            name: service,
            uid: "uid".into(),
            resource_version: 1,
            generation: 1,
            created: NOW,
            deleting: false,
            finalizers: Finalizers::default(),
        };
        let desired = [(CONFLICT, conflict.clone()), (VALID, valid)]
            .map(|(kind, value)| DesiredCondition::new(kind, value, "it"));
        let desired = desired.map(DesiredCondition::event_per_generation);
        let present = set(&[], CONFLICT, &conflict, 2, NOW);
        let kind = Kind::InternalServiceExport;
        assert_eq!(change(kind, &meta, &present, &desired[..1], NOW), None, "it is for a later generation");
        let (_, events) = change(kind, &meta, &present, &desired, NOW).expect("the other one is new");
        assert_eq!(events.len(), 1, "{events:?}");
    }

    /// Also rule O23.
    #[test]
    fn exporters_that_are_heard_are_shown_once() {
        let set = |value| set(&[], EXPORTER_SILENT, &value, 1, NOW);
        let shown = |present: &[Condition]| exporter_silent(&["member-1".into()], &[], present, "it").is_some();
        let (silent, heard) = (ConditionValue::exporter_silent("silent".into()), ConditionValue::exporters_heard());
        assert_eq!([shown(&[]), shown(&set(silent)), shown(&set(heard))], [false, true, false]);
    }

    #[test]
    fn the_outcome_of_a_merge_has_the_reason_of_its_status() {
        let service = ObjectName::new("work", "app");
        for value in [
            ConditionValue::no_merge_conflict(&service),
            ConditionValue::merge_conflict(&["PortConflict"], "it".into()),
        ] {
            let shown = set(&[], MCS_CONFLICT, &value, 1, NOW);
            assert_eq!(ConditionValue::outcome_of_merge(&shown[0]).reason, value.reason);
        }
        assert_eq!(ConditionValue::exported(&service, &[]).message, "service work/app is exported");
    }

    #[test]
    fn a_condition_of_an_older_generation_does_not_apply_to_a_newer_one() {
        let service = ObjectName::new("work", "app");
        let list = set(&[], CONFLICT, &ConditionValue::no_conflict(&service), 2, NOW);
        assert!(has_value(find(&list, CONFLICT), &ConditionValue::no_conflict(&service), 2));
        assert!(has_value(find(&list, CONFLICT), &ConditionValue::no_conflict(&service), 1));
        assert!(!has_value(find(&list, CONFLICT), &ConditionValue::no_conflict(&service), 3));
        assert!(!has_value(find(&list, CONFLICT), &ConditionValue::conflict(&service), 2));
    }
}
