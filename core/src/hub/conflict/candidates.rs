//! Exports of a Service, and the outcome of conflict resolution between them.

use crate::conditions::{self, CONFLICT};
use crate::hub::rights::{self, Right};
use crate::hub::view::reader::{Reader, live};
use crate::model::{
    Condition, ImportStatus, ImportType, InternalServiceExport, Kind, PortSetStamp, ServiceImport, ServicePort,
    SessionAffinity,
};
use crate::names;
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName, Text, Timestamp};

pub(in crate::hub) const EXPORT_COMPONENT: &str = "internalserviceexport-controller";

/// Outcome of conflict resolution for a Service: ports, type and session affinity of the winning export, and the
/// accepted clusters.
pub(super) struct Resolution {
    /// Ports of the winning export, in its order.
    pub(super) ports: Vec<ServicePort>,
    /// Type of the winning export's Service.
    pub(super) import_type: ImportType,
    /// Fingerprint of the ports and the type.
    pub(super) fingerprint: Text,
    /// Session affinity of the winning export.
    pub(super) session_affinity: SessionAffinity,
    /// Clusters of the accepted exports, which all have the winner's ports. The winner comes first.
    pub(super) accepted: Vec<ClusterId>,
}

impl Resolution {
    /// Returns the outcome as the status of the ServiceImport.
    pub(super) fn status(&self) -> ImportStatus {
        ImportStatus {
            import_type: Some(self.import_type),
            ports: self.ports.clone(),
            session_affinity: self.session_affinity,
            clusters: self.accepted.clone(),
        }
    }
}

/// Export of a Service that is not being deleted.
pub(super) struct Export<'a> {
    /// Cluster of the member namespace, because a member can forge the reference in the object.
    pub(super) cluster: ClusterId,
    /// Right of the cluster to export the Service.
    pub(super) right: Right,
    pub(super) object: &'a InternalServiceExport,
    /// Fingerprint of the ports and the type (headless or not). All accepted exports of a Service have the same.
    pub(super) fingerprint: Text,
    /// True if the member namespace has no earlier export of the Service, by name. Only the first one counts.
    pub(super) is_first: bool,
}

impl Export<'_> {
    /// True if the export takes part in conflict resolution, once it has a stamp.
    pub(super) fn is_marked(&self) -> bool {
        self.object.meta.finalizers.ours
    }

    /// Returns the stamp of the export: the start time of its port set, with a fingerprint of these ports. `None` if
    /// there is no stamp, or if the stamp has other ports than the export has now.
    pub(super) fn stamp(&self) -> Option<&PortSetStamp> {
        self.object.stamp.as_ref().filter(|stamp| stamp.ports == self.fingerprint)
    }
}

/// Exports of a Service, as one plan reads them.
pub(super) struct Candidates<'a> {
    pub(super) view: Reader<'a>,
    pub(super) service: &'a ObjectName,
    /// The ServiceImport, unless it is being deleted.
    pub(super) import: Option<&'a ServiceImport>,
    pub(super) exports: Vec<Export<'a>>,
}

/// Returns the fingerprint of the ports and the type in a ServiceImport.
pub(super) fn import_fingerprint(import: &ServiceImport) -> Text {
    names::export_fingerprint(&import.status.ports, import.status.import_type.unwrap_or_default())
}

impl<'a> Candidates<'a> {
    pub(super) fn of(view: Reader<'a>, service: &'a ObjectName) -> Self {
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
    pub(super) fn of_fleet_api(&self) -> impl Iterator<Item = &Export<'a>> {
        self.exports.iter().filter(|export| export.is_first && export.object.is_of_fleet_api())
    }

    /// Returns the exports by the fleet's API whose cluster has this right to export.
    pub(super) fn with_right(&self, right: Right) -> impl Iterator<Item = &Export<'a>> {
        self.of_fleet_api().filter(move |export| export.right == right)
    }

    /// Returns the exports that take part in conflict resolution, or will do so with our finalizer and a stamp.
    pub(super) fn granted(&self) -> impl Iterator<Item = &Export<'a>> {
        self.with_right(Right::Granted)
    }

    /// Resolves conflicts between the exports that have our finalizer. `None` if there is no such export.
    pub(super) fn resolution(&self) -> Option<Resolution> {
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
                && view.internal_exports_of(service).all(|export| export.namespace != *namespace.as_text())
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
    pub(super) fn port_set_since(&self, export: &Export<'_>) -> Option<Timestamp> {
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
    pub(super) fn loses_place(&self, resolution: &Resolution) -> bool {
        let mut others = self.granted().filter(|it| it.is_marked() && !resolution.accepted.contains(&it.cluster));
        others.any(|export| self.accepted_by_go(export))
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
