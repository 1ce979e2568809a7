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

/// Outcome of conflict resolution for a Service: ports, type and session affinity of the winning export, and the
/// accepted clusters.
struct Resolution {
    /// Ports of the winning export, in its order.
    ports: Vec<ServicePort>,
    /// Type of the winning export's Service.
    import_type: ImportType,
    /// Fingerprint of the ports and the type.
    fingerprint: Text,
    /// Session affinity of the winning export.
    session_affinity: SessionAffinity,
    /// Clusters of the accepted exports, which all have the winner's ports. The winner comes first.
    accepted: Vec<ClusterId>,
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

/// Export of a Service that is not being deleted.
struct Export<'a> {
    /// Cluster of the member namespace, because a member can forge the reference in the object.
    cluster: ClusterId,
    /// Right of the cluster to export the Service.
    right: Right,
    object: &'a InternalServiceExport,
    /// Fingerprint of the ports and the type (headless or not). All accepted exports of a Service have the same.
    fingerprint: Text,
    /// True if the member namespace has no earlier export of the Service, by name. Only the first one counts.
    is_first: bool,
}

impl Export<'_> {
    /// True if the export takes part in conflict resolution, once it has a stamp.
    fn is_marked(&self) -> bool {
        self.object.meta.finalizers.ours
    }

    /// Returns the stamp of the export: the start time of its port set, with a fingerprint of these ports. `None` if
    /// there is no stamp, or if the stamp has other ports than the export has now.
    fn stamp(&self) -> Option<&PortSetStamp> {
        self.object.stamp.as_ref().filter(|stamp| stamp.ports == self.fingerprint)
    }
}

/// Exports of a Service, as one plan reads them.
struct Candidates<'a> {
    view: Reader<'a>,
    service: &'a ObjectName,
    /// The ServiceImport, unless it is being deleted.
    import: Option<&'a ServiceImport>,
    exports: Vec<Export<'a>>,
}

/// Returns the fingerprint of the ports and the type in a ServiceImport.
fn import_fingerprint(import: &ServiceImport) -> Text {
    names::export_fingerprint(&import.status.ports, import.status.import_type.unwrap_or_default())
}

impl<'a> Candidates<'a> {
    fn of(view: Reader<'a>, service: &'a ObjectName) -> Self {
        let mut exports: Vec<Export<'a>> = Vec::new();
        for object in live(view.internal_exports(), view.internal_exports_of(service)) {
            let Some(cluster) = names::cluster_of(&object.meta.name.namespace) else { continue };
            let right = rights::of_exporter(view, service, &cluster);
            let fingerprint = names::export_fingerprint(&object.ports, object.import_type());
            let is_first = exports.last().is_none_or(|last| last.cluster != cluster);
            exports.push(Export { cluster, right, object, fingerprint, is_first });
        }
        Self { view, service, import: view.hub_imports().live(service), exports }
    }

    /// Returns the exports by the fleet's API.
    fn of_fleet_api(&self) -> impl Iterator<Item = &Export<'a>> {
        self.exports.iter().filter(|export| export.is_first && export.object.is_of_fleet_api())
    }

    /// Returns the exports by the fleet's API whose cluster has this right to export.
    fn with_right(&self, right: Right) -> impl Iterator<Item = &Export<'a>> {
        self.of_fleet_api().filter(move |export| export.right == right)
    }

    /// Returns the exports that take part in conflict resolution, or will do so with our finalizer and a stamp.
    fn granted(&self) -> impl Iterator<Item = &Export<'a>> {
        self.with_right(Right::Granted)
    }

    /// Resolves conflicts between the exports that have our finalizer. `None` if there is no such export.
    fn resolution(&self) -> Option<Resolution> {
        let marked = self.granted().filter(|export| export.is_marked());
        let mut candidates: Vec<_> = marked.filter_map(|it| Some((self.port_set_since(it)?, it))).collect();
        candidates.sort_by_key(|(since, export)| (*since, &export.cluster));
        let ordered: Vec<&Export<'_>> = candidates.into_iter().map(|(_, export)| export).collect();
        let undecodable = self.accepted_undecodable();
        if !undecodable.is_empty() {
            return self.import.map(|import| resolution_beside(import, &undecodable, &ordered));
        }
        let winner = ordered.first()?;
        let accepted = ordered.iter().filter(|export| export.fingerprint == winner.fingerprint);
        Some(Resolution {
            ports: winner.object.ports.clone(),
            import_type: winner.object.import_type(),
            fingerprint: winner.fingerprint.clone(),
            session_affinity: winner.object.session_affinity,
            accepted: accepted.map(|export| export.cluster.clone()).collect(),
        })
    }

    /// Returns the accepted clusters whose export may be undecodable: the cluster has an undecodable export, and has no
    /// decodable export of this Service.
    fn accepted_undecodable(&self) -> Vec<ClusterId> {
        let (view, service) = (self.view, self.service);
        let accepted = self.import.into_iter().flat_map(|import| &import.status.clusters);
        let undecodable = |cluster: &&ClusterId| {
            let namespace = names::member_namespace(cluster);
            view.has_undecodable(Kind::InternalServiceExport, &namespace)
                && rights::of_exporter(view, service, cluster) != Right::Denied
                && view.internal_exports_of(service).all(|export| export.namespace != namespace)
        };
        accepted.filter(undecodable).cloned().collect()
    }

    /// Returns the start time of an export's present port set, which is its priority in a conflict. `None` if a stamp
    /// must be written first.
    ///
    /// - A stamp for the present ports decides. A stamp is the start time that the hub agent stored in the export.
    /// - Otherwise, if a Go hub agent accepted the present ports, the stamp for earlier ports decides. Without any
    ///   stamp, the creationTimestamp decides.
    /// - The start time is never before the creationTimestamp, because a member can forge the stamp.
    fn port_set_since(&self, export: &Export<'_>) -> Option<Timestamp> {
        let of_go = || self.accepted_by_go(export).then_some(export.object.stamp.as_ref());
        let stamp = export.stamp().map(Some).or_else(of_go)?;
        let created = export.object.meta.created;
        Some(stamp.map_or(created, |stamp| stamp.since.max(created)))
    }

    /// True if a Go hub agent accepted the present ports of an export. Then the ServiceImport lists these ports and the
    /// cluster, but the export has no stamp (start time of the port set) for these ports. Our hub agent writes the
    /// stamp before it accepts an export.
    fn accepted_by_go(&self, export: &Export<'_>) -> bool {
        let object = export.object;
        let is_false = |condition: &Condition| condition.status == ConditionStatus::False;
        let is_accepted =
            || object.has_outcome() && conditions::find(&object.conditions, CONFLICT).is_some_and(is_false);
        let is_listed = |import: &ServiceImport| {
            import.status.clusters.contains(&export.cluster) && import_fingerprint(import) == export.fingerprint
        };
        (object.stamp.is_none() || export.stamp().is_none() && is_accepted()) && self.import.is_some_and(is_listed)
    }

    /// True if an update of the ServiceImport would drop a cluster that a Go hub agent accepted. Until this export has
    /// a stamp (start time of its port set), only the ServiceImport shows that it was accepted. Exports without our
    /// finalizer do not count: otherwise a member could block every update by removing the finalizer and the stamp.
    fn loses_place(&self, resolution: &Resolution) -> bool {
        let mut others = self.granted().filter(|it| it.is_marked() && !resolution.accepted.contains(&it.cluster));
        others.any(|export| self.accepted_by_go(export))
    }

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

/// Returns the outcome while exports of some accepted clusters are undecodable: these clusters keep their positions in
/// the list of accepted clusters, and the ServiceImport keeps its present ports. `candidates` is in the order of
/// priority.
fn resolution_beside(import: &ServiceImport, undecodable: &[ClusterId], candidates: &[&Export<'_>]) -> Resolution {
    let (status, fingerprint) = (&import.status, import_fingerprint(import));
    let matching = || candidates.iter().filter(|export| export.fingerprint == fingerprint);
    let find_matching = |cluster: &ClusterId| matching().find(|export| export.cluster == *cluster);
    let named = &status.clusters;
    let stay = named.iter().filter(|cluster| undecodable.contains(cluster) || find_matching(cluster).is_some());
    let join = matching().map(|export| &export.cluster).filter(|cluster| !named.contains(cluster));
    let accepted: Vec<ClusterId> = stay.chain(join).cloned().collect();
    let winner = accepted.first().and_then(find_matching).map(|export| export.object);
    Resolution {
        ports: winner.map_or(&status.ports, |winner| &winner.ports).clone(),
        import_type: status.import_type.unwrap_or_default(),
        session_affinity: winner.map_or(status.session_affinity, |winner| winner.session_affinity),
        accepted,
        fingerprint,
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
