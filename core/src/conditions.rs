//! Conditions: their types, reasons and messages (spec 1.2 and 1.3, the Go agents' words), and how they are set.

use crate::ids::{ObjectName, Text, Timestamp};
use crate::model::Condition;

/// On ServiceExport: the Service may be exported. On InternalServiceExport: its cluster may export it; absent where that was
/// never refused. On MultiClusterService: its import was found.
pub const VALID: &str = "Valid";
/// On ServiceExport and InternalServiceExport: the export disagrees with another cluster's.
pub const CONFLICT: &str = "Conflict";

const EXPORTER_NOT_ALLOWED: &str = "ExporterNotAllowed";

/// What a condition should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Machine-readable.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl Verdict {
    fn new(status: &'static str, reason: &'static str, message: String) -> Self {
        Self { status, reason, message }
    }

    /// The Service may be exported.
    pub fn service_is_valid(service: &ObjectName) -> Self {
        Self::new("True", "ServiceIsValid", format!("service {service} is valid for export"))
    }

    /// It may, but its weight keeps all traffic away.
    pub fn weight_is_zero(service: &ObjectName) -> Self {
        Self::new("True", "ServiceIsValid", format!("exported service {service} with 0 weight"))
    }

    /// There is no such Service.
    pub fn service_not_found(service: &ObjectName) -> Self {
        Self::new("False", "ServiceNotFound", format!("service {service} is not found"))
    }

    /// ExternalName and headless Services are not exported.
    pub fn service_ineligible(service: &ObjectName) -> Self {
        Self::new("False", "ServiceIneligible", format!("service {service} is not eligible for export"))
    }

    /// The weight annotation says nothing usable.
    pub fn invalid_weight(service: &ObjectName, error: &str) -> Self {
        let message = format!("serviceExport {service} has an invalid weight annotation, err = {error}");
        Self::new("False", "ServiceExportInvalidWeightAnnotation", message)
    }

    /// The hub has not judged the export yet.
    pub fn pending_conflict_resolution(service: &ObjectName) -> Self {
        let message = format!("service {service} is pending export conflict resolution");
        Self::new("Unknown", "ServicePendingConflictResolution", message)
    }

    /// The hub accepted the export.
    pub fn no_conflict(service: &ObjectName) -> Self {
        Self::new("False", "NoConflictFound", format!("service {service} is exported without conflict"))
    }

    /// Another cluster's export of other ports came first.
    pub fn conflict(service: &ObjectName) -> Self {
        let message = format!("service {service} is in conflict with other exported services");
        Self::new("True", "ConflictFound", message)
    }

    /// Its namespace in the hub does not name the cluster among its exporters.
    pub fn exporter_not_allowed(message: String) -> Self {
        Self::new("False", EXPORTER_NOT_ALLOWED, message)
    }

    /// It names it again.
    pub fn exporter_allowed(service: &ObjectName) -> Self {
        Self::new("True", "ExporterAllowed", format!("service {service} may be exported by this cluster"))
    }

    /// A MultiClusterService has its import.
    pub fn found_service_import() -> Self {
        Self::new("True", "FoundServiceImport", "found valid service import".to_owned())
    }

    /// It has none yet.
    pub fn unknown_service_import() -> Self {
        let message = "importing service; if the condition remains for a while, please verify that service has been \
                       exported or service has been exported by other multiClusterService";
        Self::new("Unknown", "UnknownServiceImport", message.to_owned())
    }
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], condition_type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| &*condition.condition_type == condition_type)
}

/// The condition that says that the cluster may not export the Service.
pub fn find_refusal(conditions: &[Condition]) -> Option<&Condition> {
    find(conditions, VALID).filter(|held| &*held.status == "False" && &*held.reason == EXPORTER_NOT_ALLOWED)
}

/// Whether a condition already says this, for this generation or a later one.
pub fn says(condition: Option<&Condition>, verdict: &Verdict, generation: i64) -> bool {
    condition.is_some_and(|held| {
        *held.status == *verdict.status
            && *held.reason == *verdict.reason
            && *held.message == *verdict.message
            && held.observed_generation >= generation
    })
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
        Some(held) if *held.status == *verdict.status => held.last_transition,
        _ => now.whole_seconds(),
    };
    let condition = Condition {
        condition_type: Text::from(condition_type),
        status: verdict.status.into(),
        reason: verdict.reason.into(),
        message: verdict.message.as_str().into(),
        observed_generation: generation,
        last_transition,
    };
    let mut list = conditions.to_vec();
    match list.iter_mut().find(|held| &*held.condition_type == condition_type) {
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
