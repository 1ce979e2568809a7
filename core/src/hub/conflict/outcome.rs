//! Conditions of the InternalServiceExports of a Service: the outcome of conflict resolution, and the denial of the
//! right to export.

use super::candidates::{Candidates, EXPORT_COMPONENT, Export, Resolution, import_fingerprint};
use crate::conditions::{self, CONFLICT, ConditionValue, DesiredCondition, VALID};
use crate::hub::rights::{self, Right};
use crate::hub::view::Key;
use crate::model::{ImportType, InternalServiceExport, Kind, ServiceImport, ServicePort};
use crate::plan::{self, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName, Timestamp};

/// Sets the condition `Valid` to False on each export whose cluster has no right to export the Service.
pub(super) fn set_denials(candidates: &Candidates<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let service = candidates.service;
    for export in candidates.exports.iter().filter(|export| export.is_first && export.right == Right::Denied) {
        let conditions = &export.object.conditions;
        let message = rights::exporter_denial_message(candidates.view, service, &export.cluster);
        let value = ConditionValue::exporter_not_allowed(message);
        if conditions::has_value(conditions::find(conditions, VALID), &value, 0) {
            continue; // the export already shows the denial, which is valid for every generation of the export
        }
        let mut wanted = vec![DesiredCondition::new(VALID, value, EXPORT_COMPONENT)];
        if conditions::find(conditions, CONFLICT).is_some_and(|present| present.status == ConditionStatus::True) {
            // A denied export takes no part in conflict resolution and cannot be in conflict, so the condition
            // `Conflict` becomes Unknown.
            let pending = ConditionValue::pending_conflict_resolution(service);
            wanted.push(DesiredCondition::new(CONFLICT, pending, EXPORT_COMPONENT).without_event());
        }
        plan.writes.extend(set_conditions(export.object, &wanted, now));
    }
    plan
}

/// Sets the condition `Conflict` on each export. Waits until the ServiceImport shows the same outcome of conflict
/// resolution.
pub(super) fn set_outcomes(candidates: &Candidates<'_>, resolution: Option<&Resolution>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let (Some(resolution), Some(import)) = (resolution, candidates.import) else { return plan };
    if import.status != resolution.status() {
        return plan;
    }
    let service = candidates.service;
    for export in &candidates.exports {
        let object = export.object;
        // An export that counts first needs our finalizer and the start time of its port set.
        let is_ready = !export.is_first || export.is_marked() && export.stamp().is_some();
        if !object.is_of_fleet_api() || export.right != Right::Granted || !is_ready {
            continue;
        }
        let was_denied = conditions::find_denial(&object.conditions).is_some();
        let allowed = DesiredCondition::new(VALID, ConditionValue::exporter_allowed(service), EXPORT_COMPONENT);
        let condition = conflict_condition(service, export, resolution);
        let key = Key::Service(service.clone());
        let disputed = candidates.view.disputes().condition(&key, &object.conditions, EXPORT_COMPONENT);
        let wanted: Vec<_> = [condition].into_iter().chain(was_denied.then_some(allowed)).chain(disputed).collect();
        plan.writes.extend(set_conditions(object, &wanted, now));
    }
    plan
}

/// Returns the desired condition `Conflict` of an export. An accepted export gets an Event only if it was in conflict
/// before. For a first acceptance, the Event on the ServiceImport is enough.
fn conflict_condition(service: &ObjectName, export: &Export<'_>, resolution: &Resolution) -> DesiredCondition {
    if export.fingerprint != resolution.fingerprint {
        let condition = DesiredCondition::new(CONFLICT, ConditionValue::conflict(service), EXPORT_COMPONENT);
        return condition.event_per_generation().with_event_message(conflict_message(export, resolution));
    }
    let condition = DesiredCondition::new(CONFLICT, ConditionValue::no_conflict(service), EXPORT_COMPONENT);
    match conditions::find(&export.object.conditions, CONFLICT) {
        Some(present) if conditions::has_reason(present, Reason::ConflictFound) => {
            let message = format!("service {service} of cluster {} is exported without conflict", export.cluster);
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
fn conflict_message(Export { object: export, cluster, .. }: &Export<'_>, resolution: &Resolution) -> String {
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
pub(super) fn other_winner(candidates: &Candidates<'_>, import: &ServiceImport, resolution: &Resolution) -> Vec<Event> {
    let Some(before) = import.status.clusters.first() else { return Vec::new() };
    if import_fingerprint(import) == resolution.fingerprint && resolution.accepted.first() == Some(before) {
        return Vec::new();
    }
    let stays = |export: &&Export<'_>| {
        let (meta, conditions) = (&export.object.meta, &export.object.conditions);
        export.fingerprint != resolution.fingerprint
            && export.stamp().is_some()
            && conditions::find(conditions, CONFLICT).is_some_and(|it| it.observed_generation >= meta.generation)
            && conditions::has_type_with_reason(conditions, CONFLICT, Reason::ConflictFound)
    };
    let event = |export: &Export<'_>| {
        let (kind, message) = (Kind::InternalServiceExport, conflict_message(export, resolution));
        plan::event(EXPORT_COMPONENT, kind, &export.object.meta, Reason::ConflictFound, message)
    };
    candidates.granted().filter(stays).map(event).collect()
}
