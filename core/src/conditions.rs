//! Conditions: types, reasons and messages, some of them with the Go agents' text; how they are set; and the Events for
//! changes.
//!
//! Each change of a condition emits one Event with the same reason, with the write of the change. The condition shows that the
//! Event was emitted. So a restart, or a fleet without changes, emits none.

use crate::limits::PORTS_MAX;
use crate::model::{Condition, Kind, Meta};
use crate::plan::{self, Event};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Text, Timestamp};

/// Type of a condition.
///
/// - ServiceExport: the Service may be exported, and can be.
/// - InternalServiceExport: its cluster may export it; absent if that was never denied.
/// - MultiClusterService: its import was found, and can be used.
pub const VALID: &str = "Valid";
/// Type of a condition of ServiceExport and InternalServiceExport: the export has a conflict with another cluster's.
pub const CONFLICT: &str = "Conflict";

/// Type of a condition of ServiceExport, MultiClusterService and InternalServiceExport: another writer undoes an agent's writes
/// for it. Absent if that never happened.
pub const DISPUTED: &str = "Disputed";

/// Type of a condition of ServiceExport: the export is withdrawn because its weight is 0. Absent if the weight was never 0. The
/// reason of `Valid`, which is that of the Go agents, does not tell weight 0 from an export.
pub const WITHDRAWN: &str = "Withdrawn";

/// Desired content of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    pub reason: Reason,
    /// Text for users.
    pub message: String,
}

impl Verdict {
    fn new(status: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into() }
    }

    /// The Service may be exported.
    pub fn service_is_valid(service: &ObjectName) -> Self {
        Self::new("True", Reason::ServiceIsValid, format!("service {service} is valid for export"))
    }

    /// The Service may be exported, but its weight 0 stops all traffic.
    pub fn weight_is_zero(service: &ObjectName) -> Self {
        Self::new("True", Reason::ServiceIsValid, format!("exported service {service} with 0 weight"))
    }

    pub fn withdrawn(service: &ObjectName) -> Self {
        Self::new("True", Reason::WeightIsZero, format!("service {service} is not exported because its weight is 0"))
    }

    pub fn not_withdrawn(service: &ObjectName) -> Self {
        Self::new("False", Reason::WeightIsNotZero, format!("the weight of service {service} is not 0 any more"))
    }

    pub fn service_not_found(service: &ObjectName) -> Self {
        Self::new("False", Reason::ServiceNotFound, format!("service {service} is not found"))
    }

    /// The Service is of type ExternalName or headless.
    pub fn service_ineligible(service: &ObjectName) -> Self {
        Self::new("False", Reason::ServiceIneligible, format!("service {service} is not eligible for export"))
    }

    /// The Service is headless and requested, and the hub agent does not announce support.
    pub fn headless_not_understood(service: &ObjectName) -> Self {
        let message = format!(
            "service {service} is not eligible for export: it is headless, and the hub agent does not announce that it takes \
             headless Services"
        );
        Self::new("False", Reason::ServiceIneligible, message)
    }

    /// The Service has more ports than the hub accepts.
    pub fn too_many_ports(service: &ObjectName, ports: usize) -> Self {
        let message = format!("service {service} has {ports} ports, and at most {PORTS_MAX} can be exported");
        Self::new("False", Reason::TooManyPorts, message)
    }

    /// The weight annotation is malformed.
    pub fn invalid_weight(service: &ObjectName, error: &str) -> Self {
        let message = format!("serviceExport {service} has an invalid weight annotation, err = {error}");
        Self::new("False", Reason::ServiceExportInvalidWeightAnnotation, message)
    }

    /// The hub has no outcome yet.
    pub fn pending_conflict_resolution(service: &ObjectName) -> Self {
        let message = format!("service {service} is pending export conflict resolution");
        Self::new("Unknown", Reason::ServicePendingConflictResolution, message)
    }

    /// The hub accepted the export.
    pub fn no_conflict(service: &ObjectName) -> Self {
        Self::new("False", Reason::NoConflictFound, format!("service {service} is exported without conflict"))
    }

    /// The export of another cluster with other ports is older.
    pub fn conflict(service: &ObjectName) -> Self {
        let message = format!("service {service} is in conflict with other exported services");
        Self::new("True", Reason::ConflictFound, message)
    }

    /// The Service's namespace in the hub does not list the cluster as an exporter.
    pub fn exporter_not_allowed(message: String) -> Self {
        Self::new("False", Reason::ExporterNotAllowed, message)
    }

    /// The Service's namespace in the hub allows the cluster again.
    pub fn exporter_allowed(service: &ObjectName) -> Self {
        Self::new("True", Reason::ExporterAllowed, format!("service {service} may be exported by this cluster"))
    }

    /// Other objects have all possible names of its counterpart.
    pub fn name_held_by_another(message: String) -> Self {
        Self::new("False", Reason::NameHeldByAnother, message)
    }

    /// A server rejected the write of its counterpart for its content.
    pub fn write_refused(message: String) -> Self {
        Self::new("False", Reason::WriteRefused, message)
    }

    pub fn writes_undone(message: String) -> Self {
        Self::new("True", Reason::WritesUndone, message)
    }

    /// Another writer has stopped undoing our writes.
    pub fn writes_stand() -> Self {
        Self::new("False", Reason::WritesStand, "no other writer undoes what the agents write")
    }

    /// The import has a malformed port.
    pub fn port_refused(message: String) -> Self {
        Self::new("False", Reason::PortRefused, message)
    }

    pub fn found_service_import() -> Self {
        Self::new("True", Reason::FoundServiceImport, "found valid service import")
    }

    /// The import works, but the hub has not granted type LoadBalancer.
    pub fn load_balancer_not_granted(service: &ObjectName, cluster: &str) -> Self {
        let message = format!(
            "service {service} stays imported into cluster {cluster} with type ClusterIP: type LoadBalancer is not granted. \
             Only one cluster may import it with that type: delete the MultiClusterService of the other cluster, which the \
             events of ServiceImport {service} in the hub name, or set spec.type to ClusterIP"
        );
        Self::new("True", Reason::LoadBalancerNotGranted, message)
    }

    /// The import of a MultiClusterService does not exist yet.
    pub fn unknown_service_import() -> Self {
        let message = "importing service; if the condition remains for a while, please verify that service has been \
                       exported or service has been exported by other multiClusterService";
        Self::new("Unknown", Reason::UnknownServiceImport, message)
    }
}

/// Returns the condition of a type.
pub fn find<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| &*condition.condition_type == condition_type)
}

/// Returns the condition that denies the cluster the export of the Service.
pub fn find_refusal(conditions: &[Condition]) -> Option<&Condition> {
    find(conditions, VALID).filter(|held| &*held.status == "False" && has_reason(held, Reason::ExporterNotAllowed))
}

pub fn has_reason(condition: &Condition, reason: Reason) -> bool {
    *condition.reason == *reason.as_str()
}

pub(crate) fn says_reason(conditions: &[Condition], condition_type: &str, reason: Reason) -> bool {
    find(conditions, condition_type).is_some_and(|condition| has_reason(condition, reason))
}

/// True if the conditions say that a write was rejected. After a restart, nothing else shows it.
pub(crate) fn say_refused(conditions: &[Condition]) -> bool {
    says_reason(conditions, VALID, Reason::WriteRefused)
}

/// True if a condition is up to date for this generation or a later one.
pub fn says(condition: Option<&Condition>, verdict: &Verdict, generation: i64) -> bool {
    condition.is_some_and(|held| {
        *held.status == *verdict.status
            && has_reason(held, verdict.reason)
            && *held.message == *verdict.message
            && held.observed_generation >= generation
    })
}

/// True if a condition would change for its readers. A new observed generation alone is no change.
pub fn is_news(condition: Option<&Condition>, verdict: &Verdict) -> bool {
    !says(condition, verdict, i64::MIN)
}

/// Desired condition, and the Event for its change.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    condition_type: &'static str,
    verdict: Verdict,
    /// Reporting component of the Event, as in the Go agents.
    component: &'static str,
    /// Text of the Event; `None` if another object gets the Event.
    text: Option<String>,
    /// True to emit the Event again for each new generation of the object.
    afresh: bool,
}

impl Wanted {
    /// Returns a condition whose Event has the condition's message.
    pub(crate) fn new(condition_type: &'static str, verdict: Verdict, component: &'static str) -> Self {
        let text = Some(verdict.message.clone());
        Self { condition_type, verdict, component, text, afresh: false }
    }

    /// Replaces the text of the Event, to say what to do.
    pub(crate) fn telling(self, text: String) -> Self {
        Self { text: Some(text), ..self }
    }

    /// Omits the Event.
    pub(crate) fn silent(self) -> Self {
        Self { text: None, ..self }
    }

    /// Emits the Event again for each new generation.
    pub(crate) fn afresh(self) -> Self {
        Self { afresh: true, ..self }
    }

    pub(crate) fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

/// Returns the conditions of an object with the desired ones set, and the Events for the changes; `None` if all are up to date.
pub(crate) fn change(
    kind: Kind,
    meta: &Meta,
    held: &[Condition],
    wanted: &[Wanted],
    now: Timestamp,
) -> Option<(Vec<Condition>, Vec<Event>)> {
    let mut list = held.to_vec();
    let mut events = Vec::new();
    for Wanted { condition_type, verdict, component, text, afresh } in wanted {
        let before = find(&list, condition_type);
        // fault R2.3: meta.generation ~> 0
        if says(before, verdict, meta.generation) {
            continue;
        }
        // fault R2.1: verdict)); ~> verdict) || true);
        let told = text.as_ref().filter(|_| *afresh || is_news(before, verdict));
        // fault R1.1: verdict.reason ~> Reason::ServiceIsValid
        events.extend(told.map(|text| plan::event(component, kind, meta, verdict.reason, text.clone())));
        list = set(&list, condition_type, verdict, meta.generation, now);
    }
    (list != held).then_some((list, events))
}

/// Returns the list with one condition set, in its place or at the end. The transition time changes only with the status.
#[must_use]
pub fn set(
    conditions: &[Condition],
    condition_type: &'static str,
    verdict: &Verdict,
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let before = find(conditions, condition_type);
    let last_transition = match before {
        // fault S18.1: status == *verdict.status ~> message == *verdict.message
        // fault S18.2: if *held ~> if held.observed_generation == generation && *held
        Some(held) if *held.status == *verdict.status => held.last_transition,
        _ => now.whole_seconds(),
    };
    let condition = Condition {
        condition_type: Text::from(condition_type),
        status: verdict.status.into(),
        reason: verdict.reason.as_str().into(),
        message: verdict.message.as_str().into(),
        observed_generation: generation,
        last_transition,
    };
    // fault S17.1: = conditions.to_vec ~> : Vec<Condition> = conditions.iter().filter(|held| &*held.condition_type == condition_type).cloned().collect
    let mut list = conditions.to_vec();
    match list.iter_mut().find(|held| &*held.condition_type == condition_type) {
        // fault S17.2: held) => *held = condition ~> _) => list.insert(0, condition)
        Some(held) => *held = condition,
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
        let first = set(&[], CONFLICT, &Verdict::pending_conflict_resolution(&service), 1, NOW);
        assert_eq!(first[0].last_transition, Timestamp(5_000_000), "whole seconds, as the API stores them");
        let later = NOW.plus_micros(60_000_000);
        let second = set(&first, CONFLICT, &Verdict::no_conflict(&service), 1, later);
        assert_eq!(second[0].last_transition, Timestamp(65_000_000));
        let third = set(&second, CONFLICT, &Verdict::no_conflict(&service), 2, later.plus_micros(9_000_000));
        assert_eq!((third[0].last_transition, third[0].observed_generation), (Timestamp(65_000_000), 2));
    }

    #[test]
    fn conditions_of_others_stay_where_they_are() {
        let service = ObjectName::new("work", "app");
        let mut list = set(&[], "Theirs", &Verdict::found_service_import(), 1, NOW);
        list = set(&list, VALID, &Verdict::service_is_valid(&service), 1, NOW);
        list = set(&list, VALID, &Verdict::service_not_found(&service), 1, NOW);
        let types: Vec<&str> = list.iter().map(|condition| &*condition.condition_type).collect();
        assert_eq!(types, ["Theirs", "Valid"]);
    }

    #[test]
    fn an_older_generation_does_not_speak_for_a_newer_one() {
        let service = ObjectName::new("work", "app");
        let list = set(&[], CONFLICT, &Verdict::no_conflict(&service), 2, NOW);
        assert!(says(find(&list, CONFLICT), &Verdict::no_conflict(&service), 2));
        assert!(says(find(&list, CONFLICT), &Verdict::no_conflict(&service), 1));
        assert!(!says(find(&list, CONFLICT), &Verdict::no_conflict(&service), 3));
        assert!(!says(find(&list, CONFLICT), &Verdict::conflict(&service), 2));
    }
}
