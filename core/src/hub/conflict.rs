//! Conflict resolution: merges the accepted exports of a Service into one ServiceImport.
//!
//! The export with the oldest port set wins. Another export is accepted too if it has the same port set, and if both
//! Services are headless or neither is. All other exports are in conflict. The hub agent stores the start time of the
//! port set in each export: the stamp. So the outcome depends only on the objects, not on the order of events or on
//! restarts.

mod candidates;
mod outcome;

use crate::conditions;
use crate::hub::claims::{self, Exports};
use crate::hub::rights::Right;
use crate::hub::view::reader::Reader;
use crate::limits::SUBDOMAIN_CHARS_MAX;
use crate::model::{Kind, PortSetStamp, ServiceImport};
use crate::names;
use crate::plan::{self, Desired, Event, Patch, Plan, Write};
use crate::reasons::Reason;
pub(super) use candidates::EXPORT_COMPONENT;
use candidates::{Candidates, Resolution};
use fleetnet_types::{ClusterId, ObjectName, Timestamp};

const REQUIRED: [Kind; 3] = [Kind::InternalServiceExport, Kind::InternalServiceImport, Kind::ServiceImport];
const IMPORT_COMPONENT: &str = "serviceimport-controller";

/// Plans the ServiceImport of a Service, the conditions of its exports, and its claims.
pub fn plan_service(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    // While the ServiceImport is undecodable, nothing is planned: only the ServiceImport records which exports and
    // claims were accepted.
    let unknown = view.is_undecodable(Kind::ServiceImport, service);
    if unknown || !view.complete(&REQUIRED) {
        return Plan::default();
    }
    let import = view.hub_imports().get(service);
    let candidates = Candidates::of(view, service);
    let resolution = candidates.resolution();
    let undecided = candidates.with_right(Right::Unknown).next().is_some();
    let mut plan = candidates.stamp(now);
    plan.join(match (import, &resolution) {
        (None, None) => Plan::default(),
        (None, Some(_)) if !names::can_be_service(service) => Plan::blocked(Reason::NameRefused, unnameable(service)),
        (None, Some(_)) => create(service),
        (Some(import), None) => candidates.remove_unless_exported(import),
        // Only the ServiceImport records which exports a Go hub agent accepted. So the ServiceImport stays unchanged
        // until the hub agent has stored the start time of the port set in each of these exports.
        (Some(_), Some(resolution)) if candidates.loses_place(resolution) => Plan::default(),
        // While the right of an exporting cluster is unknown, the ServiceImport stays unchanged: accepted exports stay
        // accepted, and no other export is accepted.
        (Some(_), Some(_)) if undecided => Plan::default(),
        (Some(import), Some(resolution)) => candidates.update(import, resolution),
    });
    plan.join(candidates.release());
    plan.join(outcome::set_denials(&candidates, now));
    if !undecided {
        plan.join(outcome::set_outcomes(&candidates, resolution.as_ref(), now));
    }
    let exports = if resolution.is_some() || undecided { Exports::Some } else { Exports::None };
    plan.join(claims::plan(view, service, exports, &plan, now));
    // A plan writes each object at most once.
    if plan.writes.iter().all(|write| write.kind() != Kind::ServiceImport)
        && let Some(import) = candidates.import
    {
        plan.writes.extend(silent_exporters(view, import, now));
    }
    plan
}

/// Returns the write of the condition `ExporterSilent` of a ServiceImport; `None` if it is up to date.
fn silent_exporters(view: Reader<'_>, import: &ServiceImport, now: Timestamp) -> Option<Write> {
    if !view.knows_features() {
        return None; // it is not known yet which exporters are silent
    }
    let exporters = &import.status.clusters;
    let silences = exporters.iter().filter_map(|exporter| Some((exporter, view.silence_of(exporter)?.since)));
    let (silent, since): (Vec<_>, Vec<_>) = silences.unzip();
    let desired = conditions::exporter_silent(exporters, &silent, &import.conditions, IMPORT_COMPONENT)?;
    // A CRD that is older than the conditions drops them. With the same time, the same write is not repeated.
    let since = since.into_iter().max().unwrap_or(now);
    let (conditions, events) =
        conditions::change(Kind::ServiceImport, &import.meta, &import.conditions, &[desired], since)?;
    Some(Write::patch(&import.meta, Patch::ServiceImportConditions(conditions)).with_events(events))
}

impl Candidates<'_> {
    /// Adds our finalizer and the stamp (start time of the port set) to exports that are new or have new ports.
    fn stamp(&self, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        for export in self.granted().filter(|export| !export.is_marked() || export.stamp().is_none()) {
            let since = self.port_set_since(export).unwrap_or(now);
            let stamp = PortSetStamp { since, ports: export.fingerprint.clone() };
            let patch =
                Patch::InternalServiceExportStamp { finalizers: export.object.meta.finalizers.with_ours(), stamp };
            plan.push(Write::patch(&export.object.meta, patch));
        }
        plan
    }

    /// Deletes the ServiceImport of a Service that no cluster exports any more. An export counts even if it does not
    /// take part in conflict resolution yet. It does not count if its cluster is denied the right to export.
    fn remove_unless_exported(&self, import: &ServiceImport) -> Plan {
        if import.meta.deleting || self.of_fleet_api().any(|export| export.right != Right::Denied) {
            return Plan::default();
        }
        let message = format!("service {} is exported by no cluster any more", self.service);
        let event = about_import(import, Reason::NoExportedService, message);
        Plan::one(Write::delete(Kind::ServiceImport, &import.meta).with_events([event]))
    }

    fn update(&self, import: &ServiceImport, resolution: &Resolution) -> Plan {
        let status = resolution.status();
        if import.meta.deleting || import.status == status {
            // No write is due. If the ServiceImport is being deleted, this key is requeued when the ServiceImport is
            // gone (B5 in docs/contributors/behaviour.md).
            return Plan::default();
        }
        let event = about_import(import, Reason::SuccessfulUpdateStatus, exporters(&import.meta.name, resolution));
        let write = Write::patch(&import.meta, Patch::ServiceImportStatus(status));
        Plan::one(write.with_events([event]).with_events(outcome::other_winner(self, import, resolution)))
    }

    /// Removes our finalizer from exports that are being deleted. While the ServiceImport lists the cluster, the
    /// finalizer stays, unless the cluster has a new export of the Service.
    fn release(&self) -> Plan {
        let listed = self.import.map_or(&[][..], |import| &import.status.clusters[..]);
        let names = self.view.internal_exports_of(self.service);
        let mut plan = Plan::default();
        for export in names.filter_map(|name| self.view.internal_exports().get(name)) {
            let cluster = names::cluster_of(&export.meta.name.namespace);
            let is = |other: &ClusterId| Some(other) == cluster.as_ref();
            let is_released = || !listed.iter().any(is) || self.granted().any(|export| is(&export.cluster));
            if export.meta.deleting && export.meta.finalizers.ours && is_released() {
                plan.push(Write::remove_finalizer(Kind::InternalServiceExport, &export.meta));
            }
        }
        plan
    }
}

fn create(service: &ObjectName) -> Plan {
    let desired = Desired::ServiceImport { controller: None, finalizer: false };
    Plan::one(Write::create(service.clone(), desired))
}

/// Returns the message of the blocking reason for an export whose name or namespace is not valid for a Service.
fn unnameable(service: &ObjectName) -> String {
    let named = format!("{service}");
    let shown: String = named.chars().take(SUBDOMAIN_CHARS_MAX).flat_map(char::escape_debug).collect();
    format!(
        "Service \"{shown}\" is exported under a name that no Service can have, so the hub agent creates nothing for \
         it. Member agents write no such InternalServiceExport: find the client that wrote it"
    )
}

/// Returns the Event's message that names the exporting clusters and the winner.
fn exporters(service: &ObjectName, resolution: &Resolution) -> String {
    match &resolution.accepted[..] {
        [] => format!("service {service} keeps its ports, and no cluster's export of it can be evaluated now"),
        [only] => format!("service {service} is exported by cluster {only}"),
        [winner, ..] => {
            format!(
                "service {service} is exported by clusters {}, with the ports of {winner}",
                resolution.accepted.join(", ")
            )
        }
    }
}

fn about_import(import: &ServiceImport, reason: Reason, message: String) -> Event {
    plan::event(IMPORT_COMPONENT, Kind::ServiceImport, &import.meta, reason, message)
}
