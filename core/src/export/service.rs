//! Export of a Service: ServiceExport and Service to InternalServiceExport, and the hub's verdict back.

use super::{Eligibility, eligibility, is_being_withdrawn, refusal, remembers};
use crate::conditions::{self, CONFLICT, VALID, Verdict};
use crate::features::{self, Features};
use crate::ids::{ObjectName, Text, Timestamp};
use crate::member::View;
use crate::model::{InternalServiceExport, Kind, Reference, Service, ServiceExport};
use crate::plan::{Desired, Event, Offer, Patch, Plan, Sample, Write};

/// What decides whether a Service is exported at all.
const LOCAL: [Kind; 2] = [Kind::Service, Kind::ServiceExport];
const COMPONENT: &str = "serviceexport-controller";
const VERDICT_COMPONENT: &str = "internalserviceexport-controller";

/// Plans the export of the Service of that name.
pub fn plan_service(view: &View, service: &ObjectName, now: Timestamp) -> Plan {
    if view.is_export_unknown(service) || !view.watches.complete(&LOCAL) {
        return Plan::default();
    }
    let Some(export) = view.exports.get(service) else { return withdraw_from_hub(view, service) };
    if export.meta.deleting {
        return withdraw(view, export);
    }
    match eligibility(view, export, now) {
        Eligibility::NotUnderstood(_) if view.hub_features(now).is_none() => Plan::default(), // it may yet say so
        Eligibility::NotFound => {
            let event = warning(
                export,
                "ServiceNotFound",
                format!("Service {} is not found or in the deleting state", service.name),
            );
            refuse(view, export, &Verdict::service_not_found(service), event, now)
        }
        Eligibility::NotUnderstood(_) => {
            let message = format!(
                "Service {} is headless, and the hub agent does not announce that it takes headless Services: it may be a Go \
                 agent, or the definition of MemberAgent is missing in the hub",
                service.name
            );
            let event = warning(export, "ServiceNotEligible", message);
            refuse(view, export, &Verdict::service_ineligible(service), event, now)
        }
        Eligibility::Ineligible(_) => {
            let message =
                format!("Service {} is not eligible for exporting and please check service spec", service.name);
            let event = warning(export, "ServiceNotEligible", message);
            refuse(view, export, &Verdict::service_ineligible(service), event, now)
        }
        Eligibility::WeightZero(_) => {
            let event = normal(export, "Service", format!("Service {} weight is set to 0", service.name));
            refuse(view, export, &Verdict::weight_is_zero(service), event, now)
        }
        // What is being withdrawn is not begun anew with a weight that says nothing.
        Eligibility::InvalidWeight(..) if is_being_withdrawn(export) => withdraw(view, export),
        Eligibility::InvalidWeight(held, error) => {
            let event = warning(export, "ServiceExportInvalidWeightAnnotation", error.clone());
            let verdict = (VALID, Verdict::invalid_weight(service, &error), vec![event]);
            if export.meta.finalizers.ours {
                return keep_offering(view, export, held, verdict, now);
            }
            set_conditions(export, &[verdict], now).map_or_else(Plan::default, Plan::one)
        }
        Eligibility::Eligible(held) => offer(view, export, held, now),
    }
}

/// A condition's type, what it should say, and what to tell the user when it changes.
type Wanted = (&'static str, Verdict, Vec<Event>);

/// Withdraws the export, then lets the ServiceExport go.
fn withdraw(view: &View, export: &ServiceExport) -> Plan {
    if !view.watches.complete(&[Kind::InternalServiceExport]) {
        return Plan::default();
    }
    let mut plan = withdraw_from_hub(view, &export.meta.name);
    if plan.writes.is_empty() && export.meta.finalizers.ours {
        let name = &export.meta.name;
        let service = view.services.get(name).map(|service| &service.meta.uid);
        if let Some(unreadable) = view.unreadable_in_hub(Kind::InternalServiceExport, name, service) {
            return Plan::held_by_unreadable(Kind::ServiceExport, name, Kind::InternalServiceExport, &unreadable);
        }
        plan.push(Write::finalizer(Kind::ServiceExport, &export.meta, false));
    }
    plan
}

/// Withdraws the export and says why it may not stay. What is not exported is in conflict with nobody.
fn refuse(view: &View, export: &ServiceExport, verdict: &Verdict, event: Event, now: Timestamp) -> Plan {
    let mut wanted: Vec<Wanted> = vec![(VALID, verdict.clone(), vec![event])];
    if conditions::find(&export.conditions, CONFLICT).is_some_and(|held| &*held.status == "True") {
        wanted.push((CONFLICT, Verdict::pending_conflict_resolution(&export.meta.name), Vec::new()));
    }
    match set_conditions(export, &wanted, now) {
        // Once the export is gone, nothing else tells that its verdict does not hold any more (B9).
        Some(status) if remembers(export) => Plan::one(status),
        // Two writes to one object cannot stand in one plan; the withdrawal goes first.
        Some(status) => {
            let mut plan = withdraw(view, export);
            if plan.writes.iter().all(|write| write.kind != Kind::ServiceExport) {
                plan.push(status);
            }
            plan
        }
        None => withdraw(view, export),
    }
}

fn withdraw_from_hub(view: &View, service: &ObjectName) -> Plan {
    let mut plan = Plan::default();
    if view.watches.complete(&[Kind::InternalServiceExport]) {
        for export in exports_in_hub(view, service).filter(|export| !export.meta.deleting) {
            plan.push(Write::delete(Kind::InternalServiceExport, &export.meta));
        }
    }
    plan
}

/// Offers the Service to the hub: first the condition, then the finalizer, then the export (mark before acting).
fn offer(view: &View, export: &ServiceExport, service: &Service, now: Timestamp) -> Plan {
    let name = &export.meta.name;
    let valid = (VALID, Verdict::service_is_valid(name), vec![valid_event(export)]);
    if !export.meta.finalizers.ours {
        // Whatever the hub said of an earlier export does not hold for this one (B9).
        let pending = Verdict::pending_conflict_resolution(name);
        let pending_event = normal(
            export,
            "PendingExportConflictResolution",
            format!("Service {} is pending export conflict resolution", name.name),
        );
        let wanted = [valid, (CONFLICT, pending, vec![pending_event])];
        let write = set_conditions(export, &wanted, now)
            .unwrap_or_else(|| Write::finalizer(Kind::ServiceExport, &export.meta, true));
        return Plan::one(write);
    }
    keep_offering(view, export, service, valid, now)
}

/// Keeps what the hub holds as the Service is, and tells the hub's verdict beside ours.
fn keep_offering(view: &View, export: &ServiceExport, service: &Service, valid: Wanted, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let mut wanted = vec![unless_refused(view, export, service, valid)];
    wanted.extend(verdict_of_hub(view, export, service));
    if let Some(write) = set_conditions(export, &wanted, now) {
        plan.push(write);
        if exports_in_hub(view, &service.meta.name).any(|held| held.reference.uid != service.meta.uid) {
            return plan; // once that is gone, nothing else tells that its verdict does not hold for this one (B9)
        }
    }
    if view.watches.complete(&[Kind::InternalServiceExport])
        && let Some((hub, until)) = view.hub_features(now)
    {
        plan.join(export_to_hub(view, service, hub, now));
        plan.look_again(until);
    }
    plan
}

/// What would be valid here is not where the hub does not let this cluster export it.
fn unless_refused(view: &View, export: &ServiceExport, service: &Service, valid: Wanted) -> Wanted {
    match refusal(view, export, service) {
        Some(refusal) if valid.1.status == "True" => {
            let message = refusal.message.to_string();
            let event =
                Event { component: VERDICT_COMPONENT, ..warning(export, "ExporterNotAllowed", message.clone()) };
            (VALID, Verdict::exporter_not_allowed(message), vec![event])
        }
        _ => valid,
    }
}

/// The condition that the hub set on this export, in the member's words; nothing where it has not judged it as it is.
fn verdict_of_hub(view: &View, export: &ServiceExport, service: &Service) -> Option<Wanted> {
    let name = &export.meta.name;
    if exports_in_hub(view, name).any(|internal| internal.reference.uid != service.meta.uid) {
        // The Service was made anew: what the hub said of the one before does not hold for it (B9).
        return Some((CONFLICT, Verdict::pending_conflict_resolution(name), Vec::new()));
    }
    let internal = exports_in_hub(view, name).find(|internal| !internal.meta.deleting);
    let judged = internal.and_then(|internal| {
        conditions::find(&internal.conditions, CONFLICT)
            .filter(|verdict| verdict.observed_generation >= internal.meta.generation)
    });
    match judged.map(|condition| &*condition.status) {
        Some("True") => {
            let internal = internal.map(|internal| internal.meta.name.to_string()).unwrap_or_default();
            let message = format!(
                "service {name} is in conflict with other exported services; the events of InternalServiceExport \
                 {internal} in the hub name the ports, the clusters and the winner"
            );
            let event =
                Event { component: VERDICT_COMPONENT, ..warning(export, "ServiceExportConflictFound", message) };
            Some((CONFLICT, Verdict::conflict(name), vec![event]))
        }
        Some("False") => {
            let message = format!("service {name} is exported without conflict");
            let event =
                Event { component: VERDICT_COMPONENT, ..normal(export, "NoServiceExportConflictFound", message) };
            Some((CONFLICT, Verdict::no_conflict(name), vec![event]))
        }
        _ if conditions::find(&export.conditions, CONFLICT).is_none() || !remembers(export) => {
            Some((CONFLICT, Verdict::pending_conflict_resolution(name), Vec::new()))
        }
        _ => None,
    }
}

/// Makes or updates the InternalServiceExport.
fn export_to_hub(view: &View, service: &Service, hub: Features, now: Timestamp) -> Plan {
    let name = &service.meta.name;
    let offer = offer_of(service, hub);
    let mut plan = Plan::default();
    let mut present = false;
    for held in exports_in_hub(view, name) {
        present = true; // also one that is still going: its name is free only when it is gone (B4)
        if held.meta.deleting {
            continue;
        }
        if held.reference.uid != service.meta.uid {
            // The Service was made anew: another identity is another export (B16).
            plan.push(Write::delete(Kind::InternalServiceExport, &held.meta));
        } else if !offers(held, &offer) || held.reference.cluster != view.settings.cluster {
            let reference = reference(view, service, now);
            let patch = Patch::InternalServiceExport { reference, offer: offer.clone() };
            let write = Write::patch(Kind::InternalServiceExport, &held.meta, patch);
            plan.push(write.measured(Some(Sample::ServiceExported { service: name.clone() })));
        }
    }
    if !present && let Some(at) = free_name(view, service) {
        let desired = Desired::InternalServiceExport { reference: reference(view, service, now), offer };
        let write = Write::create(Kind::InternalServiceExport, at, desired);
        plan.push(write.measured(Some(Sample::ServiceExported { service: name.clone() })));
    }
    plan
}

/// What the hub is told of a Service.
fn offer_of(service: &Service, hub: Features) -> Offer {
    let session_affinity = features::affinity_for(hub, service.session_affinity);
    Offer { ports: service.ports.clone(), headless: service.headless, session_affinity }
}

fn offers(held: &InternalServiceExport, offer: &Offer) -> bool {
    (&held.ports, held.headless, held.session_affinity) == (&offer.ports, offer.headless, offer.session_affinity)
}

/// The name of a new export: `<namespace>-<name>` unless another Service's export bears it (B3); `None` where one of its
/// names is borne by what cannot be read, since that may be its export.
fn free_name(view: &View, service: &Service) -> Option<ObjectName> {
    let (name, uid) = (&service.meta.name, Some(&service.meta.uid));
    if view.unreadable_in_hub(Kind::InternalServiceExport, name, uid).is_some() {
        return None;
    }
    view.names_in_hub(name, uid).find(|at| view.internal_exports.get(at).is_none())
}

fn reference(view: &View, service: &Service, now: Timestamp) -> Reference {
    Reference {
        cluster: view.settings.cluster.clone(),
        source: service.meta.name.clone(),
        uid: service.meta.uid.clone(),
        resource_version: Text::from(service.meta.resource_version.to_string()),
        generation: service.meta.generation,
        exported_since: Some(view.stamps.service_changed_at(&service.meta.name).unwrap_or(now)),
    }
}

fn exports_in_hub<'a>(view: &'a View, service: &ObjectName) -> impl Iterator<Item = &'a InternalServiceExport> {
    view.internal_exports_of.get(service).filter_map(|name| view.internal_exports.get(name))
}

/// One status write that makes the conditions say so; `None` where they do. Events only of what changed.
fn set_conditions(export: &ServiceExport, wanted: &[Wanted], now: Timestamp) -> Option<Write> {
    let generation = export.meta.generation;
    let mut list = export.conditions.clone();
    let mut events = Vec::new();
    for (condition_type, verdict, tell) in wanted {
        if !conditions::says(conditions::find(&list, condition_type), verdict, generation) {
            list = conditions::set(&list, condition_type, verdict, generation, now);
            events.extend(tell.iter().cloned());
        }
    }
    if list == export.conditions {
        return None;
    }
    let mut write = Write::patch(Kind::ServiceExport, &export.meta, Patch::ServiceExportConditions(list));
    write.events = events;
    Some(write)
}

fn valid_event(export: &ServiceExport) -> Event {
    normal(export, "ValidServiceExport", format!("Service {} is valid for export", export.meta.name.name))
}

fn normal(export: &ServiceExport, reason: &'static str, message: String) -> Event {
    Event {
        kind: Kind::ServiceExport,
        about: export.meta.name.clone(),
        uid: export.meta.uid.clone(),
        warning: false,
        reason,
        message,
        component: COMPONENT,
    }
}

fn warning(export: &ServiceExport, reason: &'static str, message: String) -> Event {
    Event { warning: true, ..normal(export, reason, message) }
}
