//! Export: sends a member's Services and source slices to the hub, and the hub's outcome back to users.
//!
//! A ServiceExport exports the Service with its name, as an InternalServiceExport in the hub. Once the hub finds no conflict,
//! each slice of the Service follows as an EndpointSliceExport. The UID in the export's reference identifies the source slice,
//! so edits of its labels and annotations have no effect (B1b in docs/behaviour.md).

mod earlier_versions;
mod service;
mod slice;
mod withdrawal;

use crate::conditions::{self, CONFLICT, VALID};
use crate::features::Feature;
use crate::limits::{PORTS_MAX, WEIGHT_MAX};
use crate::member::View;
use crate::model::{Condition, InternalServiceExport, Kind, Service, ServiceExport, ServiceType};
use fleetnet_types::{ConditionStatus, ObjectName, Timestamp};

pub use service::plan_service;
pub use slice::plan_slice;
pub(crate) use withdrawal::{is_being_withdrawn, shows_outcome};

/// Eligibility of a Service for export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Eligibility<'a> {
    /// The Service does not exist or is being deleted.
    NotFound,
    /// The Service is of type ExternalName, or it is headless and the user did not request to export it nevertheless.
    Ineligible(&'a Service),
    /// The user requests the export of a headless Service, but the hub does not announce support for that.
    NotSupported(&'a Service),
    /// The Service has more ports than the hub accepts. Only the condition changes; an existing export stays as it is.
    TooManyPorts(&'a Service),
    /// The user requests the export of a headless Service, and the hub's features are unknown. Nothing is created or withdrawn.
    Undecided,
    /// The weight annotation is malformed. Only the condition changes, so an existing export continues (B8 in
    /// docs/behaviour.md).
    InvalidWeight(&'a Service, String),
    /// Weight 0 withdraws the export and its slices (B8 in docs/behaviour.md).
    WeightZero(&'a Service),
    Eligible(&'a Service),
}

/// Decides whether the Service of a ServiceExport may be exported.
pub(crate) fn eligibility<'a>(view: &'a View, export: &ServiceExport, now: Timestamp) -> Eligibility<'a> {
    // fault S2.1: live ~> get
    let Some(service) = view.services.live(&export.meta.name) else { return Eligibility::NotFound };
    // fault F5.1: !export.headless ~> false
    // fault S3.1: service.service_type == ServiceType::ExternalName || ~>
    if service.service_type == ServiceType::ExternalName || service.headless && !export.headless {
        return Eligibility::Ineligible(service);
    }
    if service.headless {
        match supports_headless(view, service, now) {
            None => return Eligibility::Undecided,
            Some(false) => return Eligibility::NotSupported(service),
            Some(true) => {}
        }
    }
    // fault S23.1: service ~> false && service
    if service.ports.len() > PORTS_MAX {
        return Eligibility::TooManyPorts(service);
    }
    match weight(export.weight.as_deref()) {
        Err(error) => Eligibility::InvalidWeight(service, error),
        // fault S4.1: Ok(0) => Eligibility::WeightZero(service), ~>
        Ok(0) => Eligibility::WeightZero(service),
        Ok(_) => Eligibility::Eligible(service),
    }
}

/// True if the hub supports headless Services; `None` if unknown. While missing support is only assumed, an existing headless
/// export stays.
fn supports_headless(view: &View, service: &Service, now: Timestamp) -> Option<bool> {
    let hub = view.hub_features(now)?;
    if hub.has(Feature::Headless) || !hub.is_assumed() {
        return Some(hub.has(Feature::Headless));
    }
    let (name, uid) = (&service.meta.name, Some(&service.meta.uid));
    // fault U13.6: .watches.complete(&[Kind::InternalServiceExport]) && view ~>
    let is_known = view.watches.complete(&[Kind::InternalServiceExport])
        && view.undecodable_in_hub(Kind::InternalServiceExport, name, uid).is_none();
    // fault U13.5: then(|| internal_exports(view, service).any(|it| it.headless) ~> then_some(false
    is_known.then(|| internal_exports(view, service).any(|it| it.headless))
}

/// Parses the weight annotation of a ServiceExport: a decimal integer from 0 to 1000; 1 without the annotation.
fn weight(annotation: Option<&str>) -> Result<i64, String> {
    // fault S6.2: 1 ~> 0
    let Some(written) = annotation else { return Ok(1) };
    match written.parse::<i64>() {
        Err(_) => Err(format!("the weight annotation is not a valid integer: {written}")),
        Ok(weight) if !(0..=WEIGHT_MAX).contains(&weight) => {
            Err(format!("the weight annotation is not in the range [0, {WEIGHT_MAX}]: {written}"))
        }
        Ok(weight) => Ok(weight),
    }
}

/// Returns the hub's condition that denies this cluster the export of the Service. If the InternalServiceExport has no outcome
/// yet, the copy of the condition in the ServiceExport still counts.
pub(crate) fn denial<'a>(view: &'a View, export: &'a ServiceExport, service: &Service) -> Option<&'a Condition> {
    let has_answer =
        |it: &&InternalServiceExport| it.has_outcome() || conditions::find(&it.conditions, VALID).is_some();
    // fault T13.1: , |it| &it.conditions ~> [..0], |it| &it.conditions[..]
    let outcome = internal_exports(view, service).find(has_answer).map_or(&export.conditions, |it| &it.conditions);
    conditions::find_denial(outcome)
}

/// Returns the Service's InternalServiceExports that are not being deleted.
fn internal_exports<'a>(view: &'a View, service: &Service) -> impl Iterator<Item = &'a InternalServiceExport> {
    let internal_exports =
        view.internal_exports_of.get(&service.meta.name).filter_map(|name| view.internal_exports.live(name));
    internal_exports.filter(|it| it.reference.uid == service.meta.uid)
}

/// Returns the ServiceExport with which the slices of a Service are exported; `None` if the slices must not be exported.
///
/// The outcome in the hub decides, since users can edit its copy in the ServiceExport. Before the hub has an outcome, the
/// earlier one counts, as the ServiceExport shows it. No outcome counts while the hub still has the export of an earlier
/// Service with the same name (B9 in docs/behaviour.md).
pub(crate) fn exportable<'a>(view: &'a View, service: &ObjectName, now: Timestamp) -> Option<&'a ServiceExport> {
    // fault E2.3: live ~> get
    let export = view.exports.live(service)?;
    let (Eligibility::Eligible(source) | Eligibility::InvalidWeight(source, _) | Eligibility::TooManyPorts(source)) =
        eligibility(view, export, now)
    else {
        return None;
    };
    let all = view.internal_exports_of.get(service).filter_map(|name| view.internal_exports.get(name));
    // fault T11.2: || denial(view, export, source).is_some() ~>
    if all.into_iter().any(|it| it.reference.uid != source.meta.uid) || denial(view, export, source).is_some() {
        return None;
    }
    let resolved = internal_exports(view, source).find(|it| it.has_outcome());
    // fault S20.1: .or_else(|| shows_outcome(export).then_some(&export.conditions)) ~>
    let outcome = resolved.map(|it| &it.conditions).or_else(|| shows_outcome(export).then_some(&export.conditions))?;
    // fault S15.1: is_some_and(|found| found.status == ConditionStatus::False ~> is_some(
    conditions::find(outcome, CONFLICT).is_some_and(|found| found.status == ConditionStatus::False).then_some(export)
}

/// True if it is not known yet whether the Service may be exported.
pub(crate) fn is_undecided(view: &View, service: &ObjectName, now: Timestamp) -> bool {
    let export = view.exports.live(service);
    export.is_some_and(|export| eligibility(view, export, now) == Eligibility::Undecided)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_integers_from_0_to_1000() {
        let table = [
            (None, Ok(1)),
            (Some("0"), Ok(0)),
            (Some("1000"), Ok(1000)),
            (Some("+7"), Ok(7)),
            (Some("1001"), Err("the weight annotation is not in the range [0, 1000]: 1001".to_owned())),
            (Some("-1"), Err("the weight annotation is not in the range [0, 1000]: -1".to_owned())),
            (Some("1.5"), Err("the weight annotation is not a valid integer: 1.5".to_owned())),
            (Some(""), Err("the weight annotation is not a valid integer: ".to_owned())),
        ];
        for (written, expected) in table {
            assert_eq!(weight(written), expected, "{written:?}");
        }
    }
}
