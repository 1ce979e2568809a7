//! Conditions of the InternalServiceExports of a Service: the outcome of conflict resolution, and the denial of the
//! right to export.

use super::{EXPORT_COMPONENT, Resolution, current_stamp, exports, exports_by_cluster, fingerprint};
use crate::conditions::{self, CONFLICT, ConditionValue, DesiredCondition, VALID};
use crate::hub::rights::{self, Right};
use crate::hub::view::Key;
use crate::hub::view::reader::{Reader, live};
use crate::model::{ImportType, InternalServiceExport, Kind, ServiceImport, ServicePort};
use crate::names;
use crate::plan::{self, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName, Timestamp};

/// Sets the condition `Valid` to False on each export whose cluster has no right to export the Service.
pub(super) fn set_denials(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let is_denied = |cluster: &ClusterId| rights::of_exporter(view, service, cluster) == Right::Denied;
    for (cluster, export) in exports_by_cluster(view, service).filter(|(cluster, _)| is_denied(cluster)) {
        let value = ConditionValue::exporter_not_allowed(rights::exporter_denial_message(view, service, &cluster));
        if conditions::has_value(conditions::find(&export.conditions, VALID), &value, 0) {
            continue; // the export already shows the denial, which is valid for every generation of the export
        }
        let mut wanted = vec![DesiredCondition::new(VALID, value, EXPORT_COMPONENT)];
        if conditions::find(&export.conditions, CONFLICT).is_some_and(|present| present.status == ConditionStatus::True)
        {
            // A denied export takes no part in conflict resolution and cannot be in conflict, so the condition
            // `Conflict` becomes Unknown.
            let pending = ConditionValue::pending_conflict_resolution(service);
            wanted.push(DesiredCondition::new(CONFLICT, pending, EXPORT_COMPONENT).without_event());
        }
        plan.writes.extend(set_conditions(export, &wanted, now));
    }
    plan
}

/// Sets the condition `Conflict` on each export. Waits until the ServiceImport shows the same outcome of conflict
/// resolution.
pub(super) fn set_outcomes(
    view: Reader<'_>,
    service: &ObjectName,
    resolution: Option<&Resolution>,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    let (Some(resolution), Some(import)) = (resolution, view.hub_imports().live(service)) else { return plan };
    if import.status != resolution.status() {
        return plan;
    }
    let counting: Vec<&ObjectName> = exports(view, service).map(|(_, export)| &export.meta.name).collect();
    for export in live(view.internal_exports(), view.internal_exports_of(service)) {
        let Some(cluster) = names::cluster_of(&export.meta.name.namespace) else { continue };
        if !export.is_of_fleet_api() || rights::of_exporter(view, service, &cluster) != Right::Granted {
            continue;
        }
        let has_stamp = export.meta.finalizers.ours && current_stamp(export).is_some();
        if !has_stamp && counting.contains(&&export.meta.name) {
            continue; // the export first needs our finalizer and the start time of its port set
        }
        let was_denied = conditions::find_denial(&export.conditions).is_some();
        let allowed = DesiredCondition::new(VALID, ConditionValue::exporter_allowed(service), EXPORT_COMPONENT);
        let condition = conflict_condition(service, export, &cluster, resolution);
        let disputed = view.disputes().condition(&Key::Service(service.clone()), &export.conditions, EXPORT_COMPONENT);
        let wanted: Vec<_> = [condition].into_iter().chain(was_denied.then_some(allowed)).chain(disputed).collect();
        plan.writes.extend(set_conditions(export, &wanted, now));
    }
    plan
}

/// Returns the desired condition `Conflict` of an export. An accepted export gets an Event only if it was in conflict
/// before. For a first acceptance, the Event on the ServiceImport is enough.
fn conflict_condition(
    service: &ObjectName,
    export: &InternalServiceExport,
    cluster: &str,
    resolution: &Resolution,
) -> DesiredCondition {
    if fingerprint(export) != names::export_fingerprint(&resolution.ports, resolution.import_type) {
        let condition = DesiredCondition::new(CONFLICT, ConditionValue::conflict(service), EXPORT_COMPONENT);
        return condition.event_per_generation().with_event_message(conflict_message(export, cluster, resolution));
    }
    let condition = DesiredCondition::new(CONFLICT, ConditionValue::no_conflict(service), EXPORT_COMPONENT);
    match conditions::find(&export.conditions, CONFLICT) {
        Some(present) if conditions::has_reason(present, Reason::ConflictFound) => {
            let message = format!("service {service} of cluster {cluster} is exported without conflict");
            condition.with_event_message(message)
        }
        _ => condition.without_event(),
    }
}

fn set_conditions(export: &InternalServiceExport, wanted: &[DesiredCondition], now: Timestamp) -> Option<Write> {
    let (meta, kind) = (&export.meta, Kind::InternalServiceExport);
    let (list, events) = conditions::change(kind, meta, &export.conditions, wanted, now)?;
    Some(Write::patch(meta, Patch::InternalServiceExportConditions(list)).with_events(events))
}

/// Returns the message about a conflict: the ports that differ, the two clusters and the winner.
fn conflict_message(export: &InternalServiceExport, cluster: &str, resolution: &Resolution) -> String {
    let describe = |port: &ServicePort| {
        let hint = port.app_protocol.as_ref().map_or_else(String::new, |hint| format!(" appProtocol {hint}"));
        format!("{} {}/{}{hint}", if port.name.is_empty() { "(unnamed)" } else { &port.name }, port.port, port.protocol)
    };
    let same = |one: &ServicePort, other: &ServicePort| {
        (&one.name, &one.protocol, one.port, &one.app_protocol)
            == (&other.name, &other.protocol, other.port, &other.app_protocol)
    };
    let list = |these: &[ServicePort], those: &[ServicePort]| {
        let only: Vec<String> =
            these.iter().filter(|port| !those.iter().any(|other| same(port, other))).map(describe).collect();
        if only.is_empty() { "nothing".to_owned() } else { only.join(", ") }
    };
    let winner = resolution.accepted.first().map_or("", |winner| winner);
    let kind_of = |import_type| match import_type {
        ImportType::Headless => "headless",
        ImportType::ClusterSetIp => "not headless",
    };
    let differs = export.import_type() != resolution.import_type;
    let kinds = if differs {
        format!("{cluster}'s is {}, {winner}'s is {}; ", kind_of(export.import_type()), kind_of(resolution.import_type))
    } else {
        String::new()
    };
    format!(
        "service {} of cluster {cluster} is in conflict with the export of cluster {winner}, which has exported its \
         ports for longer: {kinds}only {cluster} exports {}; only {winner} exports {}. Export the same ports, or \
         export under another name",
        export.reference.source,
        list(&export.ports, &resolution.ports),
        list(&resolution.ports, &export.ports),
    )
}

/// Returns Events for exports that stay in conflict, but with another winner or with other ports of the winner. The
/// conditions of these exports do not change, so the Events are emitted with the write of the ServiceImport.
pub(super) fn other_winner(view: Reader<'_>, import: &ServiceImport, resolution: &Resolution) -> Vec<Event> {
    let (service, status) = (&import.meta.name, &import.status);
    let resolved = names::export_fingerprint(&resolution.ports, resolution.import_type);
    let same_ports = names::export_fingerprint(&status.ports, status.import_type.unwrap_or_default()) == resolved;
    let Some(before) = status.clusters.first() else { return Vec::new() };
    if same_ports && resolution.accepted.first() == Some(before) {
        return Vec::new();
    }
    let stays = |export: &InternalServiceExport| {
        let present = conditions::find(&export.conditions, CONFLICT);
        fingerprint(export) != resolved
            && current_stamp(export).is_some()
            && present.is_some_and(|present| present.observed_generation >= export.meta.generation)
            && conditions::has_type_with_reason(&export.conditions, CONFLICT, Reason::ConflictFound)
    };
    let losers = exports(view, service).filter(|(_, export)| stays(export));
    let about = |export: &InternalServiceExport, message| {
        plan::event(EXPORT_COMPONENT, Kind::InternalServiceExport, &export.meta, Reason::ConflictFound, message)
    };
    losers.map(|(cluster, export)| about(export, conflict_message(export, &cluster, resolution))).collect()
}
