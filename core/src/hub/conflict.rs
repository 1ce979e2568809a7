//! Conflict resolution: merges the accepted exports of a Service into one ServiceImport.
//!
//! The export with the oldest port set wins. Another export is accepted too if it has the same port set, and if both
//! Services are headless or neither is. All other exports are in conflict. The hub agent stores the start time of the
//! port set in each export: the stamp. So the outcome depends only on the objects, not on the order of events or on
//! restarts.

mod outcome;

use crate::conditions::{self, CONFLICT};
use crate::hub::claims::{self, Exports};
use crate::hub::rights::{self, Right};
use crate::hub::view::reader::{Reader, live};
use crate::limits::SUBDOMAIN_CHARS_MAX;
use crate::model::{
    Condition, ImportStatus, ImportType, InternalServiceExport, Kind, PortSetStamp, ServiceImport, ServicePort,
    SessionAffinity,
};
use crate::names;
use crate::plan::{self, Desired, Event, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName, Text, Timestamp};

const REQUIRED: [Kind; 3] = [Kind::InternalServiceExport, Kind::InternalServiceImport, Kind::ServiceImport];
const IMPORT_COMPONENT: &str = "serviceimport-controller";
pub(super) const EXPORT_COMPONENT: &str = "internalserviceexport-controller";

/// Plans the ServiceImport of a Service, the conditions of its exports, and its claims.
pub fn plan_service(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    // While the ServiceImport is undecodable, nothing is planned: only the ServiceImport records which exports and
    // claims were accepted.
    let unknown = view.is_undecodable(Kind::ServiceImport, service);
    if unknown || !view.complete(&REQUIRED) {
        return Plan::default();
    }
    let import = view.hub_imports().get(service);
    let resolution = resolution(view, service);
    let undecided = exports_with_right(view, service, Right::Unknown).next().is_some();
    let mut plan = stamp(view, service, now);
    plan.join(match (import, &resolution) {
        (None, None) => Plan::default(),
        (None, Some(_)) if !names::can_be_service(service) => Plan::blocked(Reason::NameRefused, unnameable(service)),
        (None, Some(_)) => create(service),
        (Some(import), None) => remove_unless_exported(view, import),
        // Only the ServiceImport records which exports a Go hub agent accepted. So the ServiceImport stays unchanged
        // until the hub agent has stored the start time of the port set in each of these exports.
        (Some(_), Some(resolution)) if loses_place(view, service, resolution) => Plan::default(),
        // While the right of an exporting cluster is unknown, the ServiceImport stays unchanged: accepted exports stay
        // accepted, and no other export is accepted.
        (Some(_), Some(_)) if undecided => Plan::default(),
        (Some(import), Some(resolution)) => update(view, import, resolution),
    });
    plan.join(release(view, service));
    plan.join(outcome::set_denials(view, service, now));
    if !undecided {
        plan.join(outcome::set_outcomes(view, service, resolution.as_ref(), now));
    }
    let exports = if resolution.is_some() || undecided { Exports::Some } else { Exports::None };
    plan.join(claims::plan(view, service, exports, &plan, now));
    // A plan writes each object at most once.
    if plan.writes.iter().all(|write| write.kind() != Kind::ServiceImport)
        && let Some(import) = view.hub_imports().live(service)
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

/// Outcome of conflict resolution for a Service: ports, type and session affinity of the winning export, and the
/// accepted clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// Ports of the winning export, in its order.
    pub(crate) ports: Vec<ServicePort>,
    /// Type of the winning export's Service.
    pub(crate) import_type: ImportType,
    /// Session affinity of the winning export.
    pub(crate) session_affinity: SessionAffinity,
    /// Clusters of the accepted exports, which all have the winner's ports. The winner comes first.
    pub(crate) accepted: Vec<ClusterId>,
}

impl Resolution {
    /// Returns the outcome as the status of the ServiceImport.
    fn status(&self) -> ImportStatus {
        ImportStatus {
            import_type: Some(self.import_type),
            ports: self.ports.clone(),
            session_affinity: self.session_affinity,
            clusters: self.accepted.clone(),
        }
    }
}

/// Export that takes part in conflict resolution, because it has our finalizer. The fields are the start time of its
/// port set, its cluster, and the object.
type Candidate<'a> = (Timestamp, ClusterId, &'a InternalServiceExport);

/// Resolves conflicts between the exports that have our finalizer. `None` if there is no such export.
pub(crate) fn resolution(view: Reader<'_>, service: &ObjectName) -> Option<Resolution> {
    let mut candidates: Vec<Candidate<'_>> = exports(view, service)
        .filter(|(_, export)| export.meta.finalizers.ours)
        .filter_map(|(cluster, export)| Some((port_set_since(view, service, &cluster, export)?, cluster, export)))
        .collect();
    candidates.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    let undecodable = accepted_undecodable(view, service);
    if !undecodable.is_empty() {
        return view.hub_imports().live(service).map(|import| resolution_beside(import, &undecodable, &candidates));
    }
    let winner = candidates.first()?.2;
    let of_winner = fingerprint(winner);
    let same = |export: &InternalServiceExport| fingerprint(export) == of_winner;
    let accepted =
        candidates.iter().filter(|(.., export)| same(export)).map(|(_, cluster, _)| cluster.clone()).collect();
    Some(Resolution {
        ports: winner.ports.clone(),
        import_type: winner.import_type(),
        session_affinity: winner.session_affinity,
        accepted,
    })
}

/// Returns a fingerprint of an export's ports and type (headless or not). All accepted exports of a Service have the
/// same fingerprint.
fn fingerprint(export: &InternalServiceExport) -> Text {
    names::export_fingerprint(&export.ports, export.import_type())
}

/// Returns the accepted clusters whose export may be undecodable: the cluster has an undecodable export, and has no
/// decodable export of this Service.
fn accepted_undecodable(view: Reader<'_>, service: &ObjectName) -> Vec<ClusterId> {
    let accepted = view.hub_imports().live(service).into_iter().flat_map(|import| &import.status.clusters);
    let undecodable = |cluster: &&ClusterId| {
        let namespace = names::member_namespace(cluster);
        view.has_undecodable(Kind::InternalServiceExport, &namespace)
            && rights::of_exporter(view, service, cluster) != Right::Denied
            && view.internal_exports_of(service).all(|export| export.namespace != namespace)
    };
    accepted.filter(undecodable).cloned().collect()
}

/// Returns the outcome while exports of some accepted clusters are undecodable: these clusters keep their positions in
/// the list of accepted clusters, and the ServiceImport keeps its present ports.
fn resolution_beside(import: &ServiceImport, undecodable: &[ClusterId], candidates: &[Candidate<'_>]) -> Resolution {
    let status = &import.status;
    let import_type = status.import_type.unwrap_or_default();
    let present = names::export_fingerprint(&status.ports, import_type);
    let same = |export: &InternalServiceExport| fingerprint(export) == present;
    let matching: Vec<&Candidate<'_>> = candidates.iter().filter(|(.., export)| same(export)).collect();
    let find_matching = |cluster: &ClusterId| matching.iter().find(|(_, other, _)| other == cluster);
    let named = &status.clusters;
    let stay = named.iter().filter(|cluster| undecodable.contains(cluster) || find_matching(cluster).is_some());
    let join = matching.iter().map(|(_, cluster, _)| cluster).filter(|cluster| !named.contains(cluster));
    let accepted: Vec<ClusterId> = stay.chain(join).cloned().collect();
    let winner = accepted.first().and_then(find_matching);
    Resolution {
        ports: winner.map_or(&status.ports, |(.., winner)| &winner.ports).clone(),
        import_type,
        session_affinity: winner.map_or(status.session_affinity, |(.., winner)| winner.session_affinity),
        accepted,
    }
}

/// Returns the exports of a Service that are not being deleted and whose cluster has the right to export, with their
/// clusters.
fn exports<'a>(
    view: Reader<'a>,
    service: &'a ObjectName,
) -> impl Iterator<Item = (ClusterId, &'a InternalServiceExport)> {
    exports_with_right(view, service, Right::Granted)
}

/// Returns the exports of a Service that are not being deleted and whose cluster has this right to export (granted,
/// denied or unknown), with their clusters.
fn exports_with_right<'a>(
    view: Reader<'a>,
    service: &'a ObjectName,
    right: Right,
) -> impl Iterator<Item = (ClusterId, &'a InternalServiceExport)> {
    all_exports(view, service).filter(move |(cluster, _)| rights::of_exporter(view, service, cluster) == right)
}

/// Returns the exports of a Service by the fleet's API that are not being deleted, with their clusters.
fn all_exports<'a>(
    view: Reader<'a>,
    service: &ObjectName,
) -> impl Iterator<Item = (ClusterId, &'a InternalServiceExport)> + use<'a> {
    exports_by_cluster(view, service).filter(|(_, export)| export.is_of_fleet_api())
}

/// Returns the exports of a Service that are not being deleted, with their clusters.
pub(super) fn exports_by_cluster<'a>(
    view: Reader<'a>,
    service: &ObjectName,
) -> impl Iterator<Item = (ClusterId, &'a InternalServiceExport)> + use<'a> {
    with_clusters(live(view.internal_exports(), view.internal_exports_of(service)))
}

/// Returns exports of a Service, in the order of their names, with their clusters. The cluster comes from the member
/// namespace, because a member can forge the reference in the object. If a member namespace has several exports of the
/// Service, only the first counts.
pub(super) fn with_clusters<'a>(
    exports: impl Iterator<Item = &'a InternalServiceExport>,
) -> impl Iterator<Item = (ClusterId, &'a InternalServiceExport)> {
    let mut seen: Option<ClusterId> = None;
    exports.filter_map(move |export| {
        let cluster = names::cluster_of(&export.meta.name.namespace)?;
        if seen.as_ref() == Some(&cluster) {
            return None;
        }
        seen = Some(cluster.clone());
        Some((cluster, export))
    })
}

/// Returns the stamp of an export: the start time of its port set, with a fingerprint of these ports. `None` if there
/// is no stamp, or if the stamp has other ports than the export has now.
fn current_stamp(export: &InternalServiceExport) -> Option<&PortSetStamp> {
    export.stamp.as_ref().filter(|stamp| stamp.ports == fingerprint(export))
}

/// Returns the start time of an export's present port set, which is its priority in a conflict. `None` if a stamp must
/// be written first.
///
/// - A stamp for the present ports decides. A stamp is the start time that the hub agent stored in the export.
/// - Otherwise, if a Go hub agent accepted the present ports, the stamp for earlier ports decides. Without any stamp,
///   the creationTimestamp decides.
/// - The start time is never before the creationTimestamp, because a member can forge the stamp.
fn port_set_since(
    view: Reader<'_>,
    service: &ObjectName,
    cluster: &ClusterId,
    export: &InternalServiceExport,
) -> Option<Timestamp> {
    let of_go = || accepted_by_go(view, service, cluster, export).then_some(export.stamp.as_ref());
    let stamp = current_stamp(export).map(Some).or_else(of_go)?;
    Some(stamp.map_or(export.meta.created, |stamp| stamp.since.max(export.meta.created)))
}

/// True if a Go hub agent accepted the present ports of an export. Then the ServiceImport lists these ports and the
/// cluster, but the export has no stamp (start time of the port set) for these ports. Our hub agent writes the stamp
/// before it accepts an export.
fn accepted_by_go(view: Reader<'_>, service: &ObjectName, cluster: &ClusterId, export: &InternalServiceExport) -> bool {
    let is_false = |condition: &Condition| condition.status == ConditionStatus::False;
    let is_accepted = || export.has_outcome() && conditions::find(&export.conditions, CONFLICT).is_some_and(is_false);
    (export.stamp.is_none() || current_stamp(export).is_none() && is_accepted())
        && view.hub_imports().live(service).is_some_and(|import| {
            import.status.clusters.contains(cluster)
                && names::export_fingerprint(&import.status.ports, import.status.import_type.unwrap_or_default())
                    == fingerprint(export)
        })
}

/// True if an update of the ServiceImport would drop a cluster that a Go hub agent accepted. Until this export has a
/// stamp (start time of its port set), only the ServiceImport shows that it was accepted. Exports without our finalizer
/// do not count: otherwise a member could block every update by removing the finalizer and the stamp.
fn loses_place(view: Reader<'_>, service: &ObjectName, resolution: &Resolution) -> bool {
    exports(view, service)
        .filter(|(_, it)| it.meta.finalizers.ours)
        .any(|(cluster, it)| !resolution.accepted.contains(&cluster) && accepted_by_go(view, service, &cluster, it))
}

/// Adds our finalizer and the stamp (start time of the port set) to exports that are new or have new ports.
fn stamp(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    for (cluster, export) in exports(view, service) {
        if export.meta.finalizers.ours && current_stamp(export).is_some() {
            continue;
        }
        let since = port_set_since(view, service, &cluster, export).unwrap_or(now);
        let stamp = PortSetStamp { since, ports: fingerprint(export) };
        let patch = Patch::InternalServiceExportStamp { finalizers: export.meta.finalizers.with_ours(), stamp };
        plan.push(Write::patch(&export.meta, patch));
    }
    plan
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

/// Deletes the ServiceImport of a Service that no cluster exports any more. An export counts even if it does not take
/// part in conflict resolution yet. It does not count if its cluster is denied the right to export.
fn remove_unless_exported(view: Reader<'_>, import: &ServiceImport) -> Plan {
    let name = &import.meta.name;
    let counts = |(cluster, _): &(ClusterId, _)| rights::of_exporter(view, name, cluster) != Right::Denied;
    if import.meta.deleting || all_exports(view, name).any(|export| counts(&export)) {
        return Plan::default();
    }
    let event =
        about_import(import, Reason::NoExportedService, format!("service {name} is exported by no cluster any more"));
    Plan::one(Write::delete(Kind::ServiceImport, &import.meta).with_events([event]))
}

fn update(view: Reader<'_>, import: &ServiceImport, resolution: &Resolution) -> Plan {
    let status = resolution.status();
    if import.meta.deleting || import.status == status {
        // No write is due. If the ServiceImport is being deleted, this key is requeued when the ServiceImport is gone
        // (B5 in docs/contributors/behaviour.md).
        return Plan::default();
    }
    let event = about_import(import, Reason::SuccessfulUpdateStatus, exporters(&import.meta.name, resolution));
    let write = Write::patch(&import.meta, Patch::ServiceImportStatus(status));
    Plan::one(write.with_events([event]).with_events(outcome::other_winner(view, import, resolution)))
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

/// Removes our finalizer from exports that are being deleted. While the ServiceImport lists the cluster, the finalizer
/// stays, unless the cluster has a new export of the Service.
fn release(view: Reader<'_>, service: &ObjectName) -> Plan {
    let import = view.hub_imports().live(service);
    let mut plan = Plan::default();
    let names = view.internal_exports_of(service);
    for export in names.filter_map(|name| view.internal_exports().get(name)) {
        if !export.meta.deleting || !export.meta.finalizers.ours {
            continue;
        }
        let cluster = names::cluster_of(&export.meta.name.namespace);
        let exported_again = exports(view, service).any(|(other, _)| Some(&other) == cluster.as_ref());
        let named = |import: &ServiceImport| cluster.as_ref().is_some_and(|c| import.status.clusters.contains(c));
        if exported_again || !import.is_some_and(named) {
            plan.push(Write::remove_finalizer(Kind::InternalServiceExport, &export.meta));
        }
    }
    plan
}

fn about_import(import: &ServiceImport, reason: Reason, message: String) -> Event {
    plan::event(IMPORT_COMPONENT, Kind::ServiceImport, &import.meta, reason, message)
}
