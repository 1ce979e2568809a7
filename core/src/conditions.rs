//! Conditions: their types, reasons and messages (spec 1.2 and 1.3, the Go agents' words), how they are set, and what is told
//! when they change.
//!
//! A change of a condition is told by one Event, of the same reason, with the write that makes it. The condition is the memory
//! of that: who finds it as it should be, after a restart or in a fleet that has settled, has nothing to tell.

use crate::ids::{ObjectName, Text, Timestamp};
use crate::limits::PORTS_MAX;
use crate::model::{Condition, Kind, Meta};
use crate::plan::Event;
use crate::reasons::Reason;

/// On ServiceExport: the Service may be exported, and can be. On InternalServiceExport: its cluster may export it; absent where
/// that was never refused. On MultiClusterService: its import was found, and can be used.
pub const VALID: &str = "Valid";
/// On ServiceExport and InternalServiceExport: the export disagrees with another cluster's.
pub const CONFLICT: &str = "Conflict";

/// On ServiceExport, MultiClusterService and InternalServiceExport: another writer undoes what an agent writes for it; absent
/// where that never happened.
pub const DISPUTED: &str = "Disputed";

/// What a condition should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Machine-readable.
    pub reason: Reason,
    /// For people.
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

    /// It may, but its weight keeps all traffic away.
    pub fn weight_is_zero(service: &ObjectName) -> Self {
        Self::new("True", Reason::ServiceIsValid, format!("exported service {service} with 0 weight"))
    }

    /// There is no such Service.
    pub fn service_not_found(service: &ObjectName) -> Self {
        Self::new("False", Reason::ServiceNotFound, format!("service {service} is not found"))
    }

    /// ExternalName and headless Services are not exported.
    pub fn service_ineligible(service: &ObjectName) -> Self {
        Self::new("False", Reason::ServiceIneligible, format!("service {service} is not eligible for export"))
    }

    /// Headless, asked for, and the hub agent would not understand it.
    pub fn headless_not_understood(service: &ObjectName) -> Self {
        let message = format!(
            "service {service} is not eligible for export: it is headless, and the hub agent does not announce that it takes \
             headless Services"
        );
        Self::new("False", Reason::ServiceIneligible, message)
    }

    /// The Service has more ports than the hub takes.
    pub fn too_many_ports(service: &ObjectName, ports: usize) -> Self {
        let message = format!("service {service} has {ports} ports, and at most {PORTS_MAX} can be exported");
        Self::new("False", Reason::TooManyPorts, message)
    }

    /// The weight annotation says nothing usable.
    pub fn invalid_weight(service: &ObjectName, error: &str) -> Self {
        let message = format!("serviceExport {service} has an invalid weight annotation, err = {error}");
        Self::new("False", Reason::ServiceExportInvalidWeightAnnotation, message)
    }

    /// The hub has not judged the export yet.
    pub fn pending_conflict_resolution(service: &ObjectName) -> Self {
        let message = format!("service {service} is pending export conflict resolution");
        Self::new("Unknown", Reason::ServicePendingConflictResolution, message)
    }

    /// The hub accepted the export.
    pub fn no_conflict(service: &ObjectName) -> Self {
        Self::new("False", Reason::NoConflictFound, format!("service {service} is exported without conflict"))
    }

    /// Another cluster's export of other ports came first.
    pub fn conflict(service: &ObjectName) -> Self {
        let message = format!("service {service} is in conflict with other exported services");
        Self::new("True", Reason::ConflictFound, message)
    }

    /// Its namespace in the hub does not name the cluster among its exporters.
    pub fn exporter_not_allowed(message: String) -> Self {
        Self::new("False", Reason::ExporterNotAllowed, message)
    }

    /// It names it again.
    pub fn exporter_allowed(service: &ObjectName) -> Self {
        Self::new("True", Reason::ExporterAllowed, format!("service {service} may be exported by this cluster"))
    }

    /// What would stand for it, under each of its names, is somebody else's.
    pub fn name_held_by_another(message: String) -> Self {
        Self::new("False", Reason::NameHeldByAnother, message)
    }

    /// A server refused for its content what was to stand for it.
    pub fn write_refused(message: String) -> Self {
        Self::new("False", Reason::WriteRefused, message)
    }

    /// Another writer undoes what we write.
    pub fn writes_undone(message: String) -> Self {
        Self::new("True", Reason::WritesUndone, message)
    }

    /// It does so no more.
    pub fn writes_stand() -> Self {
        Self::new("False", Reason::WritesStand, "no other writer undoes what the agents write")
    }

    /// The import has a port that is none.
    pub fn port_refused(message: String) -> Self {
        Self::new("False", Reason::PortRefused, message)
    }

    /// A MultiClusterService has its import.
    pub fn found_service_import() -> Self {
        Self::new("True", Reason::FoundServiceImport, "found valid service import")
    }

    /// The import works, but the hub has not granted the type LoadBalancer.
    pub fn load_balancer_not_granted(service: &ObjectName, cluster: &str) -> Self {
        let message = format!(
            "service {service} stays imported into cluster {cluster} with type ClusterIP: type LoadBalancer is not granted. \
             Only one cluster may import it with that type: delete the MultiClusterService of the other cluster, which the \
             events of ServiceImport {service} in the hub name, or set spec.type to ClusterIP"
        );
        Self::new("True", Reason::LoadBalancerNotGranted, message)
    }

    /// It has none yet.
    pub fn unknown_service_import() -> Self {
        let message = "importing service; if the condition remains for a while, please verify that service has been \
                       exported or service has been exported by other multiClusterService";
        Self::new("Unknown", Reason::UnknownServiceImport, message)
    }
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| &*condition.condition_type == condition_type)
}

/// The condition that says that the cluster may not export the Service.
pub fn find_refusal(conditions: &[Condition]) -> Option<&Condition> {
    find(conditions, VALID).filter(|held| &*held.status == "False" && has_reason(held, Reason::ExporterNotAllowed))
}

/// Whether that is why a condition says what it says.
pub fn has_reason(condition: &Condition, reason: Reason) -> bool {
    *condition.reason == *reason.as_str()
}

/// True if the condition of a type has this reason.
pub(crate) fn says_reason(conditions: &[Condition], condition_type: &str, reason: Reason) -> bool {
    find(conditions, condition_type).is_some_and(|condition| has_reason(condition, reason))
}

/// Whether they say that something was refused: whoever has just started does not know it from elsewhere.
pub(crate) fn say_refused(conditions: &[Condition]) -> bool {
    says_reason(conditions, VALID, Reason::WriteRefused)
}

/// Whether a condition already says this, for this generation or a later one.
pub fn says(condition: Option<&Condition>, verdict: &Verdict, generation: i64) -> bool {
    condition.is_some_and(|held| {
        *held.status == *verdict.status
            && has_reason(held, verdict.reason)
            && *held.message == *verdict.message
            && held.observed_generation >= generation
    })
}

/// Whether it is news to whoever reads a condition that it says this now: not where only what it was observed of changes.
pub fn is_news(condition: Option<&Condition>, verdict: &Verdict) -> bool {
    !says(condition, verdict, i64::MIN)
}

/// What a condition is to say, and what is told when it comes to say so.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    condition_type: &'static str,
    verdict: Verdict,
    /// Who tells it, as the Go agents name it.
    component: &'static str,
    /// What the Event says; `None` where another object's tells it.
    text: Option<String>,
    /// It is told whenever it is said of another generation, since what it is about has changed.
    afresh: bool,
}

impl Wanted {
    /// The Event says what the condition does.
    pub(crate) fn new(condition_type: &'static str, verdict: Verdict, component: &'static str) -> Self {
        let text = Some(verdict.message.clone());
        Self { condition_type, verdict, component, text, afresh: false }
    }

    /// The Event says more: what to do.
    pub(crate) fn telling(self, text: String) -> Self {
        Self { text: Some(text), ..self }
    }

    /// There is no Event.
    pub(crate) fn silent(self) -> Self {
        Self { text: None, ..self }
    }

    /// There is one for each generation.
    pub(crate) fn afresh(self) -> Self {
        Self { afresh: true, ..self }
    }

    /// What the condition is to say.
    pub(crate) fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

/// The conditions of an object with those wanted, and the Events that tell what changes; `None` where they are as wanted.
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
        events.extend(told.map(|text| Event::new(component, kind, meta, verdict.reason, text.clone())));
        list = set(&list, condition_type, verdict, meta.generation, now);
    }
    (list != held).then_some((list, events))
}

/// The list with one condition set: in its place, or at the end; the others as they are. The time of transition changes
/// only with the status.
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
