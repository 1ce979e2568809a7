//! Export: what a member tells the hub of its Services and slices, and what it tells its users of the hub's verdict
//! (spec 2.2, 2.3, 2.4, 2.6; design sections 3 and 4).
//!
//! A ServiceExport of the same name makes a Service exported: an InternalServiceExport stands for it in the hub. Once
//! the hub found no conflict, the Service's slices follow, each as an EndpointSliceExport. Identity is the source's
//! UID, kept in the reference: what other writers do to labels and annotations of a slice does not matter (B1b).

mod service;
mod slice;

use crate::conditions::{self, CONFLICT, VALID, Verdict};
use crate::features::Feature;
use crate::ids::{ObjectName, Timestamp};
use crate::limits::{PORTS_MAX, WEIGHT_MAX};
use crate::member::View;
use crate::model::{Condition, InternalServiceExport, Kind, Service, ServiceExport, ServiceType};
use crate::reasons::Reason;

pub use service::plan_service;
pub use slice::plan_slice;

/// What may be done about the export of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Eligibility<'a> {
    /// There is no such Service, or it is being deleted.
    NotFound,
    /// ExternalName, or headless and not asked for.
    Ineligible(&'a Service),
    /// Headless and asked for, and the hub does not say that it understands that.
    NotUnderstood(&'a Service),
    /// It has more ports than the hub takes: nothing changes but the condition, so an export that stands stays as it was.
    TooManyPorts(&'a Service),
    /// Headless and asked for, and it is not known whether the hub understands that: nothing is begun or withdrawn.
    Undecided,
    /// The weight says nothing usable: nothing changes but the condition (B8), so an export that stands is kept up.
    InvalidWeight(&'a Service, String),
    /// Weight 0 withdraws the export and its slices (B8).
    WeightZero(&'a Service),
    /// To be exported.
    Eligible(&'a Service),
}

/// Judges the Service of a ServiceExport.
pub(crate) fn eligibility<'a>(view: &'a View, export: &ServiceExport, now: Timestamp) -> Eligibility<'a> {
    // fault S2.1: live ~> get
    let Some(service) = view.services.live(&export.meta.name) else { return Eligibility::NotFound };
    // fault F5.1: !export.headless ~> false
    // fault S3.1: service.service_type == ServiceType::ExternalName || ~>
    if service.service_type == ServiceType::ExternalName || service.headless && !export.headless {
        return Eligibility::Ineligible(service);
    }
    if service.headless {
        match takes_headless(view, service, now) {
            None => return Eligibility::Undecided,
            Some(false) => return Eligibility::NotUnderstood(service),
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

/// True if the hub takes a headless Service; `None` if that is not known. While the hub is only assumed not to, what it has
/// already it keeps.
fn takes_headless(view: &View, service: &Service, now: Timestamp) -> Option<bool> {
    let hub = view.hub_features(now)?;
    if hub.has(Feature::Headless) || !hub.is_assumed() {
        return Some(hub.has(Feature::Headless));
    }
    let (name, uid) = (&service.meta.name, Some(&service.meta.uid));
    // fault U13.6: .watches.complete(&[Kind::InternalServiceExport]) && view ~>
    let is_known = view.watches.complete(&[Kind::InternalServiceExport])
        && view.unreadable_in_hub(Kind::InternalServiceExport, name, uid).is_none();
    // fault U13.5: then(|| offers(view, service).any(|offer| offer.headless) ~> then_some(false
    is_known.then(|| offers(view, service).any(|offer| offer.headless))
}

/// The weight of an export (spec 1.3): a decimal integer from 0 to 1000, 1 where there is none.
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

/// The hub's word that this cluster may not export the Service, if that stands: where the hub says nothing yet, what it said
/// before does, as the ServiceExport repeats it.
pub(crate) fn refusal<'a>(view: &'a View, export: &'a ServiceExport, service: &Service) -> Option<&'a Condition> {
    let speaks =
        |offer: &&InternalServiceExport| offer.is_judged() || conditions::find(&offer.conditions, VALID).is_some();
    // fault T13.1: , |offer| &offer.conditions ~> [..0], |offer| &offer.conditions[..]
    let said = offers(view, service).find(speaks).map_or(&export.conditions, |offer| &offer.conditions);
    conditions::find_refusal(said)
}

/// What stands for a Service in the hub.
fn offers<'a>(view: &'a View, service: &Service) -> impl Iterator<Item = &'a InternalServiceExport> {
    let offers = view.internal_exports_of.get(&service.meta.name).filter_map(|name| view.internal_exports.live(name));
    offers.filter(|offer| offer.reference.uid == service.meta.uid)
}

/// The ServiceExport under which the slices of a Service are exported; `None` where they are not.
///
/// What the hub says of the export as it is decides, since what the ServiceExport repeats of it may be edited. Where the hub
/// says nothing yet, what it said before stands, as the ServiceExport remembers it; nothing stands where the hub still has
/// the export of an earlier Service of that name (B9).
pub(crate) fn exportable<'a>(view: &'a View, service: &ObjectName, now: Timestamp) -> Option<&'a ServiceExport> {
    // fault E2.3: live ~> get
    let export = view.exports.live(service)?;
    let (Eligibility::Eligible(source) | Eligibility::InvalidWeight(source, _) | Eligibility::TooManyPorts(source)) =
        eligibility(view, export, now)
    else {
        return None;
    };
    let held = view.internal_exports_of.get(service).filter_map(|name| view.internal_exports.get(name));
    // fault T11.2: || refusal(view, export, source).is_some() ~>
    if held.into_iter().any(|offer| offer.reference.uid != source.meta.uid) || refusal(view, export, source).is_some() {
        return None;
    }
    let judged = offers(view, source).find(|offer| offer.is_judged());
    // fault S20.1: .or_else(|| remembers(export).then_some(&export.conditions)) ~>
    let said = judged.map(|offer| &offer.conditions).or_else(|| remembers(export).then_some(&export.conditions))?;
    // fault S15.1: is_some_and(|verdict| &*verdict.status == "False" ~> is_some(
    conditions::find(said, CONFLICT).is_some_and(|verdict| &*verdict.status == "False").then_some(export)
}

/// True if it is not known yet whether the Service may be exported.
pub(crate) fn is_undecided(view: &View, service: &ObjectName, now: Timestamp) -> bool {
    let export = view.exports.live(service);
    export.is_some_and(|export| eligibility(view, export, now) == Eligibility::Undecided)
}

/// Whether the verdict that a ServiceExport repeats is that on its present export: the cleanup finalizer stands, and it does
/// not say that the Service was withdrawn, or was about to be (B9).
pub(crate) fn remembers(export: &ServiceExport) -> bool {
    let valid = conditions::find(&export.conditions, VALID);
    // fault S10.1: export.meta.finalizers.ours ~> true
    let Some(valid) = valid.filter(|_| export.meta.finalizers.ours) else { return false };
    let name = &export.meta.name;
    let offered = [
        Reason::ServiceIsValid,
        Reason::ServiceExportInvalidWeightAnnotation,
        Reason::TooManyPorts,
        Reason::NameHeldByAnother,
        Reason::WriteRefused,
    ];
    let withdrawn = *valid.message == *Verdict::weight_is_zero(name).message;
    // fault S10.3: !withdrawn && offered.iter().any(|reason| conditions::has_reason(valid, *reason)) ~> { let _ = (withdrawn, valid); offered.len() == 4 }
    // fault S10.4: !withdrawn ~> (withdrawn || !withdrawn)
    !withdrawn && offered.iter().any(|reason| conditions::has_reason(valid, *reason))
}

/// Whether the withdrawal of a ServiceExport's export was begun and is not finished: it says why, and is still marked.
pub(crate) fn is_being_withdrawn(export: &ServiceExport) -> bool {
    let name = &export.meta.name;
    let verdicts = [
        Verdict::weight_is_zero(name),
        Verdict::service_not_found(name),
        Verdict::service_ineligible(name),
        Verdict::headless_not_understood(name),
    ];
    let valid = conditions::find(&export.conditions, VALID);
    export.meta.finalizers.ours && valid.is_some_and(|valid| verdicts.iter().any(|it| *it.message == *valid.message))
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
