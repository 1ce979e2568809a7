//! Export of a Service: writes the InternalServiceExport of a Service in the hub, and writes the outcome of conflict
//! resolution to the ServiceExport.

use super::eligibility::{Eligibility, denial, eligibility};
use super::in_hub::{cannot_begin, exports_in_hub, free_name, has_earlier_export, live_exports};
use super::recorded::{self, is_being_withdrawn, shows_outcome};
use super::standard::{self, Request};
use crate::annotations::EXPORT_HEADLESS;
use crate::conditions::{self, CONFLICT, ConditionValue, DesiredCondition, VALID};
use crate::feature_set::FeatureSet;
use crate::limits::PORTS_MAX;
use crate::member::disputed;
use crate::member::view::Key;
use crate::member::view::Reader;
use crate::model::{
    ExportedBy, InternalServiceExport, Kind, Multicluster, Reference, Service, ServiceExport, ServiceType,
};
use crate::plan::{BlockingReason, Desired, ExportContent, Patch, Plan, Sample, Write};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName, Text, Timestamp};
use std::sync::Arc;

/// Kinds of the member cluster that must be completely listed before a Service is exported or withdrawn.
const LOCAL: [Kind; 2] = [Kind::Service, Kind::ServiceExport];
const COMPONENT: &str = "serviceexport-controller";
const OUTCOME_COMPONENT: &str = "internalserviceexport-controller";

/// Plans the export of a Service by both APIs.
pub(crate) fn plan_service(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    if view.is_export_unknown(service) || !view.complete(&LOCAL) {
        return Plan::default();
    }
    let mut plan = plan_fleet_export(view, service, now);
    let writes_to_hub = plan.writes.iter().any(|write| write.kind() == Kind::InternalServiceExport);
    let rejection = view.rejection(&Key::Export(service.clone())).filter(|_| writes_to_hub);
    plan.join(standard::plan_conditions(view, service, rejection, now));
    plan.plan_again_at(standard::again(view, now));
    plan
}

fn plan_fleet_export(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    let Some(export) = view.exports().get(service) else { return withdraw_from_hub(view, service, now) };
    if export.meta.deleting {
        return withdraw(view, export, now);
    }
    match eligibility(view, export, now) {
        Eligibility::Undecided => Plan::default(), // the hub's features are not known yet
        Eligibility::NotFound => {
            let valid = valid_condition(ConditionValue::service_not_found(service));
            let text = format!(
                "service {service} is not found in cluster {}: create a Service of that name, or delete the \
                 ServiceExport",
                view.settings().cluster
            );
            withdraw_with_conditions(view, export, vec![valid.with_event_message(text)], now)
        }
        Eligibility::NotSupported(_) => {
            let value = ConditionValue::headless_not_supported(service);
            let text = format!("{}. Upgrade the hub agent, or apply the CRD of MemberAgent in the hub", value.message);
            withdraw_with_conditions(view, export, vec![valid_condition(value).with_event_message(text)], now)
        }
        Eligibility::Ineligible(source) => {
            let value = ConditionValue::service_ineligible(service);
            let text = format!("{}: {}", value.message, why_ineligible(source));
            withdraw_with_conditions(view, export, vec![valid_condition(value).with_event_message(text)], now)
        }
        Eligibility::Imported(_) => {
            let valid = valid_condition(ConditionValue::imported_service(service));
            withdraw_with_conditions(view, export, vec![valid], now)
        }
        Eligibility::WeightZero(_) => {
            let value = ConditionValue::weight_is_zero(service);
            let text = format!("{}: other clusters send it no traffic until its weight is above 0", value.message);
            let valid = valid_condition(value).with_event_message(text);
            let wanted = [valid].into_iter().chain(recorded::withdrawn(export, COMPONENT)).collect();
            withdraw_with_conditions(view, export, wanted, now)
        }
        // A withdrawal that has started is completed first, even if the Service is now invalid for another reason.
        Eligibility::TooManyPorts(_) | Eligibility::InvalidWeight(..) if is_being_withdrawn(export) => {
            withdraw(view, export, now)
        }
        Eligibility::TooManyPorts(source) => {
            let value = ConditionValue::too_many_ports(service, source.ports.len());
            let text = format!(
                "{}. The existing export stays as it was. Remove ports, or split them between several Services",
                value.message
            );
            unchanged(view, export, source, valid_condition(value).with_event_message(text), now)
        }
        Eligibility::InvalidWeight(source, error) => {
            let value = ConditionValue::invalid_weight(service, &error);
            let text = format!("{}. The existing export continues unchanged. Correct the annotation", value.message);
            unchanged(view, export, source, valid_condition(value).with_event_message(text), now)
        }
        Eligibility::Eligible(source) => start_export(view, export, source, now),
    }
}

/// Sets the condition `Valid` of a ServiceExport that is invalid for now. An existing export continues; no new export
/// is created.
fn unchanged(
    view: Reader<'_>,
    export: &ServiceExport,
    service: &Service,
    valid: DesiredCondition,
    now: Timestamp,
) -> Plan {
    if export.meta.finalizers.ours {
        return update_export(view, export, service, valid, now);
    }
    let set = set_conditions(view, export, &[valid], now);
    if live_exports(view, service).any(InternalServiceExport::is_of_fleet_api) {
        // The hub was restored, or somebody has removed the finalizer: the export is an existing one.
        return Plan::one(set.unwrap_or_else(|| Write::add_finalizer(Kind::ServiceExport, &export.meta)));
    }
    let mut plan = set.map_or_else(Plan::default, Plan::one);
    // The fleet's API exports nothing of this Service. An export of an earlier Service is in a hub that was restored.
    plan.join(withdraw_from_hub(view, &export.meta.name, now));
    plan
}

fn valid_condition(value: ConditionValue) -> DesiredCondition {
    DesiredCondition::new(VALID, value, COMPONENT)
}

fn why_ineligible(service: &Service) -> String {
    match service.service_type {
        ServiceType::ExternalName => "it is of type ExternalName and has no endpoints of its own".to_owned(),
        ServiceType::ClusterIp | ServiceType::NodePort | ServiceType::LoadBalancer => {
            format!(
                "it is headless; set the annotation {EXPORT_HEADLESS} of the ServiceExport to \"true\" to export it"
            )
        }
    }
}

/// Withdraws the export from the hub, then removes the finalizer of the ServiceExport.
fn withdraw(view: Reader<'_>, export: &ServiceExport, now: Timestamp) -> Plan {
    if !view.complete(&[Kind::InternalServiceExport]) {
        return Plan::default();
    }
    let mut plan = withdraw_from_hub(view, &export.meta.name, now);
    if plan.writes.is_empty() && export.meta.finalizers.ours {
        let name = &export.meta.name;
        let service = view.services().get(name).map(|service| &service.meta.uid);
        if let Some(undecodable) = view.undecodable_in_hub(Kind::InternalServiceExport, name, service) {
            return Plan::blocked_by_undecodable(Kind::ServiceExport, name, Kind::InternalServiceExport, &undecodable);
        }
        plan.push(Write::remove_finalizer(Kind::ServiceExport, &export.meta));
    }
    plan
}

/// Withdraws the export from the hub and sets the condition `Valid` to the reason. A withdrawn export has no conflict,
/// so the condition `Conflict` becomes Unknown.
fn withdraw_with_conditions(
    view: Reader<'_>,
    export: &ServiceExport,
    mut wanted: Vec<DesiredCondition>,
    now: Timestamp,
) -> Plan {
    if conditions::find(&export.conditions, CONFLICT).is_some_and(|it| it.status == ConditionStatus::True) {
        wanted.push(pending(&export.meta.name, COMPONENT));
    }
    match set_conditions(view, export, &wanted, now) {
        // The conditions are written before the withdrawal. After the withdrawal, only these conditions show that the
        // outcome in the status is out of date (B9 in docs/contributors/behaviour.md).
        Some(status) if shows_outcome(export) => Plan::one(status),
        // A plan writes each object at most once. If the withdrawal already writes the ServiceExport, the conditions
        // wait for the next plan.
        Some(status) => {
            let mut plan = withdraw(view, export, now);
            if plan.writes.iter().all(|write| write.kind() != Kind::ServiceExport) {
                plan.push(status);
            }
            plan
        }
        None => withdraw(view, export, now),
    }
}

/// Ends the export of a Service by the fleet's API. The InternalServiceExport stays, or is created, if the standard API
/// requests the export.
fn withdraw_from_hub(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    if !view.complete(&[Kind::InternalServiceExport]) {
        return Plan::default();
    }
    let request = standard::request(view, service, now);
    if let (Request::Export(_, source), Some(hub)) = (request, view.hub_features(now)) {
        return export_to_hub(view, source, hub, ExportedBy::StandardApi, now);
    }
    let mut plan = Plan::default();
    for present in exports_in_hub(view, service).filter(|export| !export.meta.deleting) {
        match &present.multicluster {
            Some(multicluster) if request == Request::Unknown => {
                if multicluster.exported_by != ExportedBy::StandardApi {
                    let multicluster =
                        Multicluster { exported_by: ExportedBy::StandardApi, ..(**multicluster).clone() };
                    let content = ExportContent { multicluster: Some(Arc::new(multicluster)), ..content_in(present) };
                    let patch = Patch::InternalServiceExport { reference: present.reference.clone(), content };
                    plan.push(Write::patch(&present.meta, patch));
                }
            }
            _ => plan.push(Write::delete(Kind::InternalServiceExport, &present.meta)),
        }
    }
    plan
}

/// Exports the Service in several plans: first the conditions, then the finalizer, then the InternalServiceExport. The
/// finalizer exists before the InternalServiceExport, so a crash leaves no export without cleanup.
fn start_export(view: Reader<'_>, export: &ServiceExport, service: &Service, now: Timestamp) -> Plan {
    let name = &export.meta.name;
    let valid = valid_condition(ConditionValue::service_is_valid(name));
    if !export.meta.finalizers.ours {
        // Reset the condition `Conflict`: the outcome for an earlier export with this name does not apply to the new
        // export (B9 in docs/contributors/behaviour.md).
        let again = [valid, pending(name, COMPONENT)];
        let wanted: Vec<DesiredCondition> =
            again.into_iter().chain(recorded::not_withdrawn(export, COMPONENT)).collect();
        let write = set_conditions(view, export, &wanted, now)
            .unwrap_or_else(|| Write::add_finalizer(Kind::ServiceExport, &export.meta));
        return Plan::one(write);
    }
    update_export(view, export, service, valid, now)
}

/// Updates the InternalServiceExport in the hub, and sets the conditions of the ServiceExport, such as the outcome of
/// conflict resolution.
fn update_export(
    view: Reader<'_>,
    export: &ServiceExport,
    service: &Service,
    valid: DesiredCondition,
    now: Timestamp,
) -> Plan {
    let blocking = cannot_begin(view, service);
    let rejection = view.rejection(&Key::Export(service.meta.name.clone()));
    let mut to_hub = Plan::default();
    if view.complete(&[Kind::InternalServiceExport])
        && let Some(hub) = view.hub_features(now)
    {
        to_hub = export_to_hub(view, service, hub, ExportedBy::Both, now);
        let is_fuller = |export: &&InternalServiceExport| {
            let desired = content_of(view, (service, hub), Some(export), ExportedBy::Both, now);
            export.headless || content_in(export) != desired
        };
        to_hub.plan_again_at(hub.again(exports_in_hub(view, &service.meta.name).find(is_fuller)));
    }
    let valid = unless_blocked(view, export, service, valid, blocking.as_ref());
    let rejection = rejection.filter(|_| !to_hub.writes.is_empty());
    let mut wanted: Vec<DesiredCondition> = unless_rejected(export, &to_hub, valid, rejection).into_iter().collect();
    wanted.extend(outcome_of_hub(view, export, service));
    wanted.extend(recorded::not_withdrawn(export, COMPONENT));
    let blocking_reason = |reason| move |message| BlockingReason { reason, message };
    let mut plan = Plan::default()
        .blocked_by(rejection.map(str::to_owned).map(blocking_reason(Reason::WriteRefused)))
        .blocked_by(blocking);
    if let Some(write) = set_conditions(view, export, &wanted, now) {
        plan.push(write);
        if has_earlier_export(view, service) {
            // The Service was created again. The condition is written before the old export is deleted: afterwards only
            // the condition shows that the outcome of the old export does not apply.
            return plan;
        }
    }
    plan.join(to_hub);
    plan
}

/// Returns the condition `Valid`: False with the hub's message if the hub rejected the write of the export, otherwise
/// `valid`. `None` while a retry runs: the condition shows the last rejection, and must stay until the retry has a
/// result.
fn unless_rejected(
    export: &ServiceExport,
    to_hub: &Plan,
    valid: DesiredCondition,
    rejection: Option<&str>,
) -> Option<DesiredCondition> {
    if valid.value().status != ConditionStatus::True || to_hub.writes.is_empty() {
        return Some(valid);
    }
    match rejection {
        Some(message) => Some(valid_condition(ConditionValue::write_rejected(message.to_owned()))),
        None => (!conditions::shows_rejection(&export.conditions)).then_some(valid),
    }
}

/// Returns the condition `Valid`: False if this cluster has no right to export the Service, or if its export cannot
/// begin ([`cannot_begin`]). Otherwise returns `valid`.
fn unless_blocked(
    view: Reader<'_>,
    export: &ServiceExport,
    service: &Service,
    valid: DesiredCondition,
    blocking: Option<&BlockingReason>,
) -> DesiredCondition {
    if valid.value().status != ConditionStatus::True {
        return valid;
    }
    if let Some(denial) = denial(view, export, service) {
        return DesiredCondition::new(
            VALID,
            ConditionValue::exporter_not_allowed(denial.message.to_string()),
            OUTCOME_COMPONENT,
        );
    }
    blocking.map_or(valid, |blocking| valid_condition(ConditionValue::export_blocked(blocking)))
}

fn pending(service: &ObjectName, component: &'static str) -> DesiredCondition {
    DesiredCondition::new(CONFLICT, ConditionValue::pending_conflict_resolution(service), component)
}

/// Returns the outcome of conflict resolution as the condition `Conflict` of the ServiceExport. `None` if the hub has
/// no outcome for the present generation of the InternalServiceExport.
fn outcome_of_hub(view: Reader<'_>, export: &ServiceExport, service: &Service) -> Option<DesiredCondition> {
    let name = &export.meta.name;
    if has_earlier_export(view, service) {
        // The Service was created again: the outcome for the earlier Service does not apply (B9 in
        // docs/contributors/behaviour.md).
        return Some(pending(name, OUTCOME_COMPONENT));
    }
    let internal = exports_in_hub(view, name).find(|internal| !internal.meta.deleting);
    let outcome = internal.and_then(|internal| {
        conditions::find(&internal.conditions, CONFLICT)
            .filter(|condition| condition.observed_generation >= internal.meta.generation)
    });
    match outcome.map(|condition| condition.status) {
        Some(ConditionStatus::True) => {
            let internal = internal.map(|internal| internal.meta.name.to_string()).unwrap_or_default();
            let value = ConditionValue::conflict(name);
            let text = format!(
                "{}. The Events of InternalServiceExport {internal} in the hub name the ports, the clusters and the \
                 winner",
                value.message
            );
            Some(DesiredCondition::new(CONFLICT, value, OUTCOME_COMPONENT).with_event_message(text))
        }
        Some(ConditionStatus::False) => {
            Some(DesiredCondition::new(CONFLICT, ConditionValue::no_conflict(name), OUTCOME_COMPONENT))
        }
        _ if conditions::find(&export.conditions, CONFLICT).is_none() || !shows_outcome(export) => {
            Some(pending(name, OUTCOME_COMPONENT))
        }
        _ => None,
    }
}

/// Creates or updates the InternalServiceExport of a Service. `exported_by` are the APIs that export it, if the
/// standard API requests the export.
fn export_to_hub(
    view: Reader<'_>,
    service: &Service,
    hub: FeatureSet,
    exported_by: ExportedBy,
    now: Timestamp,
) -> Plan {
    let name = &service.meta.name;
    let content = |present| content_of(view, (service, hub), present, exported_by, now);
    let fits = service.ports.len() <= PORTS_MAX;
    let mut plan = Plan::default();
    let mut exists = false;
    for present in exports_in_hub(view, name) {
        exists = true; // also true for an export that is being deleted, because its name is still in use
        if present.meta.deleting {
            continue;
        }
        let is_elsewhere = present.reference.cluster != view.settings().cluster;
        if present.reference.uid != service.meta.uid {
            // The Service was created again: a new UID needs a new export, so the old one is deleted (B16 in
            // docs/contributors/behaviour.md).
            if standard::shows_outcome(view, name) {
                continue; // first the outcome of the earlier Service is removed from the ServiceExport, which may be all that is left
            }
            plan.push(Write::delete(Kind::InternalServiceExport, &present.meta));
        } else if fits && (!is_up_to_date(present, service, hub, &content(Some(present))) || is_elsewhere) {
            let reference = reference(view, service, now);
            let patch = Patch::InternalServiceExport { reference, content: content(Some(present)) };
            let write = Write::patch(&present.meta, patch);
            plan.push(write.measured(Some(Sample::ServiceExported { service: name.clone() })));
        }
    }
    if !exists
        && fits
        && view.may_export_more(Kind::InternalServiceExport, &name.namespace)
        && let Some(at) = free_name(view, service)
    {
        let desired =
            Desired::InternalServiceExport { reference: reference(view, service, now), content: content(None) };
        let write = Write::create(at, desired);
        plan.push(write.measured(Some(Sample::ServiceExported { service: name.clone() })));
    }
    plan
}

/// Returns the content of a Service to export, reduced to the hub's features. `present` is its InternalServiceExport.
fn content_of(
    view: Reader<'_>,
    (service, hub): (&Service, FeatureSet),
    present: Option<&InternalServiceExport>,
    exported_by: ExportedBy,
    now: Timestamp,
) -> ExportContent {
    ExportContent {
        ports: service.ports.clone(),
        headless: service.headless,
        session_affinity: hub.affinity(service.session_affinity),
        multicluster: standard::part(view, &service.meta.name, present, exported_by, now),
    }
}

/// Returns the content of an InternalServiceExport.
fn content_in(present: &InternalServiceExport) -> ExportContent {
    ExportContent {
        ports: present.ports.clone(),
        headless: present.headless,
        session_affinity: present.session_affinity,
        multicluster: present.multicluster.clone(),
    }
}

/// True if the InternalServiceExport `present` needs no update. While the agent only assumes that the hub supports just
/// the Go form, an export may also have more than the Go form (`content`).
fn is_up_to_date(present: &InternalServiceExport, service: &Service, hub: FeatureSet, content: &ExportContent) -> bool {
    if !standard::is_part(present.multicluster.as_deref(), content.multicluster.as_deref()) {
        return false;
    }
    let present_content = ExportContent { multicluster: content.multicluster.clone(), ..content_in(present) };
    let fuller = || ExportContent { session_affinity: service.session_affinity, ..content.clone() };
    present_content == *content || hub.is_assumed() && (service.headless || present_content == fuller())
}

fn reference(view: Reader<'_>, service: &Service, now: Timestamp) -> Reference {
    Reference {
        cluster: view.settings().cluster.clone(),
        source: service.meta.name.clone(),
        uid: service.meta.uid.clone(),
        resource_version: Text::from(service.meta.resource_version.to_string()),
        generation: service.meta.generation,
        exported_since: Some(view.service_changed_at(&service.meta.name).unwrap_or(now)),
    }
}

/// Returns one status write that sets the desired conditions and emits their Events; `None` if the ServiceExport
/// already has all desired conditions.
fn set_conditions(
    view: Reader<'_>,
    export: &ServiceExport,
    wanted: &[DesiredCondition],
    now: Timestamp,
) -> Option<Write> {
    let wanted: Vec<DesiredCondition> =
        wanted.iter().cloned().chain(disputed::of_export(view, export, COMPONENT)).collect();
    let (list, events) = conditions::change(Kind::ServiceExport, &export.meta, &export.conditions, &wanted, now)?;
    Some(Write::patch(&export.meta, Patch::ServiceExportConditions(list)).with_events(events))
}
