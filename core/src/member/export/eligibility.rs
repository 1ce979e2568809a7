//! Eligibility: the rules that decide if a Service and its slices may be exported. The module `withdrawal` removes the
//! exported slices of a Service for which [`exportable`] returns `None`.

use super::in_hub::{has_earlier_export, live_exports};
use super::mcs;
use super::recorded::shows_outcome;
use super::weight::weight;
use crate::conditions::{self, CONFLICT, VALID};
use crate::features::Feature;
use crate::limits::PORTS_MAX;
use crate::member::derived::is_derived;
use crate::member::view::Reader;
use crate::model::{Condition, InternalServiceExport, Kind, Meta, Service, ServiceExport, ServiceType};
use fleetnet_types::{ConditionStatus, ObjectName, Timestamp};

/// Eligibility of a Service for export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Eligibility<'a> {
    Eligible(&'a Service),
    /// An existing export stays unchanged, and no new one begins.
    Unchanged(&'a Service, Problem),
    /// The Service and its slices are withdrawn.
    Withdrawn(Problem),
    /// The user requests the export of a headless Service, but the hub's features are not known yet. Until then, the
    /// agent neither creates nor withdraws the export.
    Undecided,
}

/// Reason why a Service is not eligible. The condition `Valid` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The Service does not exist or is being deleted.
    NotFound,
    ExternalName,
    /// The Service is headless, and the ServiceExport has no annotation that requests the export of a headless Service.
    Headless,
    /// The user requests the export of a headless Service, but the hub agent does not announce support for headless
    /// Services.
    HeadlessNotSupported,
    /// The agents made the Service for an import.
    Imported,
    /// The weight is 0 (B8 in docs/contributors/behaviour.md).
    WeightZero,
    /// The Service has this number of ports, more than the hub accepts.
    TooManyPorts(usize),
    /// The weight annotation is malformed (B8 in docs/contributors/behaviour.md).
    InvalidWeight(String),
}

/// Returns the eligibility of the Service that a ServiceExport names.
pub(crate) fn eligibility<'a>(view: Reader<'a>, export: &ServiceExport, now: Timestamp) -> Eligibility<'a> {
    let Some(service) = view.services().live(&export.meta.name) else {
        return Eligibility::Withdrawn(Problem::NotFound);
    };
    if is_derived(view, service) {
        return Eligibility::Withdrawn(Problem::Imported);
    }
    if service.service_type == ServiceType::ExternalName {
        return Eligibility::Withdrawn(Problem::ExternalName);
    }
    if service.headless && !export.headless {
        return Eligibility::Withdrawn(Problem::Headless);
    }
    match service.headless.then(|| supports_headless(view, service, now)) {
        Some(None) => return Eligibility::Undecided,
        Some(Some(false)) => return Eligibility::Withdrawn(Problem::HeadlessNotSupported),
        Some(Some(true)) | None => {}
    }
    if service.ports.len() > PORTS_MAX {
        return Eligibility::Unchanged(service, Problem::TooManyPorts(service.ports.len()));
    }
    match weight(export.weight.as_deref()) {
        Err(error) => Eligibility::Unchanged(service, Problem::InvalidWeight(error)),
        Ok(0) => Eligibility::Withdrawn(Problem::WeightZero),
        Ok(_) => Eligibility::Eligible(service),
    }
}

/// True if the hub supports headless Services; `None` if unknown. While the agent only assumes that the hub does not
/// support them, the result is true for a Service that already has a headless export, so that the export stays.
fn supports_headless(view: Reader<'_>, service: &Service, now: Timestamp) -> Option<bool> {
    let hub = view.hub_features(now)?;
    if !hub.is_assumed() {
        return Some(hub.has(Feature::Headless));
    }
    let (name, uid) = (&service.meta.name, Some(&service.meta.uid));
    let is_known = view.complete(&[Kind::InternalServiceExport])
        && view.undecodable_in_hub(Kind::InternalServiceExport, name, uid).is_none();
    is_known.then(|| live_exports(view, service).any(|it| it.headless))
}

/// Returns the condition by which the hub agent denies this cluster the right to export the Service. If the
/// InternalServiceExport has no outcome yet, the copy of this condition in the ServiceExport counts.
pub(crate) fn denial<'a>(view: Reader<'a>, export: &'a ServiceExport, service: &Service) -> Option<&'a Condition> {
    let has_answer =
        |it: &&InternalServiceExport| it.has_outcome() || conditions::find(&it.conditions, VALID).is_some();
    let outcome = live_exports(view, service).find(has_answer).map_or(&export.conditions, |it| &it.conditions);
    conditions::find_denial(outcome)
}

/// Returns the metadata of the ServiceExport, of either API, with which the slices of a Service are exported. `None` if
/// they must not be exported.
pub(crate) fn exportable<'a>(view: Reader<'a>, service: &ObjectName, now: Timestamp) -> Option<&'a Meta> {
    by_fleet_api(view, service, now).map(|export| &export.meta).or_else(|| mcs::exportable(view, service, now))
}

/// Returns the ServiceExport with which the slices of a Service are exported; `None` if the fleet's API does not export
/// them.
///
/// The slices are exported if conflict resolution accepted the export. The outcome is read from the
/// InternalServiceExport in the hub, because users can edit the copy in the ServiceExport. If the hub has no outcome
/// yet, the previous outcome in the ServiceExport counts. While the hub still has the export of an earlier Service with
/// the same name, no outcome counts (B9 in docs/contributors/behaviour.md).
fn by_fleet_api<'a>(view: Reader<'a>, service: &ObjectName, now: Timestamp) -> Option<&'a ServiceExport> {
    let export = view.exports().live(service)?;
    let (Eligibility::Eligible(source) | Eligibility::Unchanged(source, _)) = eligibility(view, export, now) else {
        return None;
    };
    let is_replaced = has_earlier_export(view, source);
    if is_replaced || denial(view, export, source).is_some() {
        return None;
    }
    let resolved = live_exports(view, source).find(|it| it.has_outcome());
    let outcome = resolved.map(|it| &it.conditions).or_else(|| shows_outcome(export).then_some(&export.conditions))?;
    conditions::find(outcome, CONFLICT).is_some_and(|found| found.status == ConditionStatus::False).then_some(export)
}

/// True if it is not known yet whether the slices of a Service must be exported. There are two reasons. The Service is
/// headless, and it is not known whether the hub supports this. Or only the standard API may export them, and its
/// request is not known.
pub(crate) fn is_undecided(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> bool {
    let export = view.exports().live(service);
    export.is_some_and(|export| eligibility(view, export, now) == Eligibility::Undecided)
        || mcs::is_unknown(view, service, now) && exportable(view, service, now).is_none()
}
