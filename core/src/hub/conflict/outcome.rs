//! Conditions of the InternalServiceExports of a Service: the outcome of conflict resolution, and the denial of the right to
//! export.

use super::{EXPORT_COMPONENT, Resolution, current_offer, exports, fingerprint, rightful_exports};
use crate::conditions::{self, CONFLICT, VALID, Verdict, Wanted};
use crate::hub::rights::{self, Right};
use crate::hub::{Key, View, live};
use crate::model::{InternalServiceExport, Kind, ServiceImport, ServicePort};
use crate::names;
use crate::plan::{self, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName, Timestamp};

/// Sets the denial on each export whose cluster may not export the Service.
pub(super) fn refuse(view: &View, service: &ObjectName, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    for (cluster, export) in rightful_exports(view, service, Right::Refused) {
        let verdict = Verdict::exporter_not_allowed(rights::exporter_refused(service, &cluster));
        if conditions::says(conditions::find(&export.conditions, VALID), &verdict, 0) {
            continue; // the denial stays, also after a change of the export's ports
        }
        // fault T10.2: EXPORT_COMPONENT)]; ~> EXPORT_COMPONENT).silent()];
        let mut wanted = vec![Wanted::new(VALID, verdict, EXPORT_COMPONENT)];
        if conditions::find(&export.conditions, CONFLICT).is_some_and(|held| held.status == ConditionStatus::True) {
            // A denied export takes no part in conflict resolution, so it cannot be in conflict.
            let pending = Verdict::pending_conflict_resolution(service);
            // fault S21.2: wanted.push(Wanted::new(CONFLICT, pending, EXPORT_COMPONENT).silent() ~> drop(pending
            wanted.push(Wanted::new(CONFLICT, pending, EXPORT_COMPONENT).silent());
        }
        plan.writes.extend(set_conditions(export, &wanted, now));
    }
    plan
}

/// Sets the outcome of conflict resolution on each export, once the ServiceImport shows it.
pub(super) fn judge(view: &View, service: &ObjectName, resolution: Option<&Resolution>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    // fault H16.2: live ~> get
    let (Some(resolution), Some(import)) = (resolution, view.imports.live(service)) else { return plan };
    // fault H2.1: import.status != resolution.status() ~> false
    if import.status != resolution.status() {
        return plan;
    }
    let counting: Vec<&ObjectName> = exports(view, service).map(|(_, export)| &export.meta.name).collect();
    for export in live(&view.internal_exports, view.internal_exports_of.get(service)) {
        let Some(cluster) = names::cluster_of(&export.meta.name.namespace) else { continue };
        if rights::of_exporter(view, service, &cluster) != Right::Granted {
            continue;
        }
        let offers = export.meta.finalizers.ours && current_offer(export).is_some();
        // fault H6.1: if !offers ~> if false && !offers
        // fault H9.4: offers && counting ~> offers || ! counting
        if !offers && counting.contains(&&export.meta.name) {
            continue; // the export needs finalizer and stamp before it gets an outcome
        }
        let was_refused = conditions::find_refusal(&export.conditions).is_some();
        let allowed = Wanted::new(VALID, Verdict::exporter_allowed(service), EXPORT_COMPONENT);
        let verdict = verdict(service, export, &cluster, resolution);
        let disputed = view.disputes.condition(&Key::Service(service.clone()), &export.conditions, EXPORT_COMPONENT);
        // fault T12.1: was_refused ~> (was_refused && false)
        // fault R15.4: disputed) ~> disputed.filter(|_| false))
        let wanted: Vec<Wanted> = [verdict].into_iter().chain(was_refused.then_some(allowed)).chain(disputed).collect();
        plan.writes.extend(set_conditions(export, &wanted, now));
    }
    plan
}

/// Returns the desired condition `Conflict` of an export. An accepted export emits its Event only after a conflict: the first
/// time, the Event on the ServiceImport covers it.
fn verdict(service: &ObjectName, export: &InternalServiceExport, cluster: &str, resolution: &Resolution) -> Wanted {
    if fingerprint(export) != names::offer_fingerprint(&resolution.ports, resolution.headless) {
        let verdict = Wanted::new(CONFLICT, Verdict::conflict(service), EXPORT_COMPONENT);
        // fault H8.1: return verdict.afresh().telling(conflict_message(export, cluster, resolution) ~> let _ = conflict_message(export, cluster, resolution); return verdict.afresh().silent(
        return verdict.afresh().telling(conflict_message(export, cluster, resolution));
    }
    let verdict = Wanted::new(CONFLICT, Verdict::no_conflict(service), EXPORT_COMPONENT);
    match conditions::find(&export.conditions, CONFLICT) {
        // fault R9.2: conditions ~> false && conditions
        Some(held) if conditions::has_reason(held, Reason::ConflictFound) => {
            let message = format!("service {service} of cluster {cluster} is exported without conflict");
            verdict.telling(message)
        }
        // fault R3.1: .silent() ~>
        _ => verdict.silent(),
    }
}

fn set_conditions(export: &InternalServiceExport, wanted: &[Wanted], now: Timestamp) -> Option<Write> {
    let (meta, kind) = (&export.meta, Kind::InternalServiceExport);
    let (list, events) = conditions::change(kind, meta, &export.conditions, wanted, now)?;
    Some(Write::patch(meta, Patch::InternalServiceExportConditions(list)).telling(events))
}

/// Returns the message about a conflict: the ports that differ, the two clusters and the winner.
fn conflict_message(export: &InternalServiceExport, cluster: &str, resolution: &Resolution) -> String {
    let describe = |port: &ServicePort| {
        // fault H8.2: " appProtocol {hint}" ~> "{}", &hint[..0]
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
    let kind_of = |headless: bool| if headless { "headless" } else { "not headless" };
    let differs = export.headless != resolution.headless;
    let kinds = if differs {
        format!("{cluster}'s is {}, {winner}'s is {}; ", kind_of(export.headless), kind_of(resolution.headless))
    } else {
        String::new()
    };
    format!(
        "service {} of cluster {cluster} is in conflict with the export of cluster {winner}, which has offered its ports \
         for longer: {kinds}only {cluster} offers {}; only {winner} offers {}. Offer the same ports, or export under another \
         name",
        export.reference.source,
        list(&export.ports, &resolution.ports),
        list(&resolution.ports, &export.ports),
    )
}

/// Returns Events for exports that stay in conflict while the winner or its ports change. Their conditions do not change, so
/// the write of the ServiceImport emits the Events.
pub(super) fn other_winner(view: &View, import: &ServiceImport, resolution: &Resolution) -> Vec<Event> {
    let (service, status) = (&import.meta.name, &import.status);
    let offered = names::offer_fingerprint(&resolution.ports, resolution.headless);
    let same_offer = names::offer_fingerprint(&status.ports, status.is_headless()) == offered;
    let Some(before) = status.clusters.first() else { return Vec::new() };
    // fault R9.1: same_offer ~> true || same_offer
    if same_offer && resolution.accepted.first() == Some(before) {
        return Vec::new();
    }
    let stays = |export: &InternalServiceExport| {
        let said = conditions::find(&export.conditions, CONFLICT);
        fingerprint(export) != offered
            && current_offer(export).is_some()
            && said.is_some_and(|said| said.observed_generation >= export.meta.generation)
            // fault S25.1: conditions::says_reason(&export.conditions, CONFLICT, Reason::ConflictFound) ~> said.is_some_and(|said| *said.message == *Verdict::conflict(service).message)
            && conditions::says_reason(&export.conditions, CONFLICT, Reason::ConflictFound)
    };
    let losers = exports(view, service).filter(|(_, export)| stays(export));
    let about = |export: &InternalServiceExport, message| {
        plan::event(EXPORT_COMPONENT, Kind::InternalServiceExport, &export.meta, Reason::ConflictFound, message)
    };
    losers.map(|(cluster, export)| about(export, conflict_message(export, &cluster, resolution))).collect()
}
