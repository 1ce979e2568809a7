//! Pairs of exporters and importers of a Service, by each API.

mod mcs;
mod parties;

use super::lookup::{exporters, imports, in_namespace, is_service, member_of, named};
use super::service_export::is_by;
use super::walk::Ends;
use crate::report::Api;
use crate::snapshot::{Listing, Member, Reached, Snapshot, why};
use fleetnet_api::names::annotations;
use fleetnet_types::ObjectName;
use kube::ResourceExt as _;
use parties::Parties;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Filter of pairs by cluster ids.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Cluster id of the exporter; `None` for all.
    pub from: Option<String>,
    /// Cluster id of the importer; `None` for all.
    pub to: Option<String>,
}

/// Annotation `service-in-use-by` of the hub's ServiceImport.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct InUseBy {
    /// Cluster ids of the importers, by member namespace.
    pub(crate) member_clusters: BTreeMap<String, String>,
    /// Member namespace of the importer with the exclusive claim.
    pub(crate) load_balancer: Option<String>,
}

/// Returns the pairs of a Service by each API that it uses. A Service that uses none has pairs of the fleet's API.
pub(crate) fn of<'a>(snapshot: &'a Snapshot, service: &ObjectName, filter: &Filter) -> Vec<Ends<'a>> {
    let fleet = Parties { exporters: exporters_of(snapshot, service), importers: importers_of(snapshot, service) };
    let mcs = mcs::parties(snapshot, service, fleet.is_empty());
    let mut apis = vec![(Api::Fleet, fleet), (Api::Mcs, mcs)];
    apis.retain(|(_, parties)| !parties.is_empty());
    if apis.is_empty() {
        let api = if mcs::is_unknown(snapshot) { Api::Mcs } else { Api::Fleet };
        apis.push((api, Parties::default()));
    }
    // A cluster that takes part by one of two APIs is not missing in the other one.
    retain_if_any(&mut apis, |parties| filter.from.as_ref().is_some_and(|id| parties.exporters.contains(id)));
    retain_if_any(&mut apis, |parties| filter.to.as_ref().is_some_and(|id| parties.importers.contains(id)));
    apis.into_iter().flat_map(|(api, parties)| by(api, parties, snapshot, service, filter)).collect()
}

/// Returns a text for each member that is in no pair, if nobody can read whether it exports or imports the Service.
pub(super) fn not_known(snapshot: &Snapshot, pairs: &[Ends<'_>], filter: &Filter) -> Vec<String> {
    let is_end =
        |ends: &Ends<'_>, id: &str| [&ends.exporter, &ends.importer].into_iter().flatten().any(|it| it.id == id);
    let others = snapshot.members.iter().filter(|member| !pairs.iter().any(|ends| is_end(ends, &member.id)));
    others.filter_map(|member| Some(format!("{}: {}", member.id, why_unread(member, filter)?))).collect()
}

/// Returns the reason why nobody can read whether a member exports or imports a Service. Without a context, the hub
/// shows it.
fn why_unread(member: &Member, filter: &Filter) -> Option<String> {
    let exports = [
        ("serviceexports", unread(&member.service_exports)),
        ("serviceexports.multicluster.x-k8s.io", unread(&member.mcs_exports)),
    ];
    let imports = [
        ("multiclusterservices", unread(&member.multi_cluster_services)),
        ("serviceimports.multicluster.x-k8s.io", unread(&member.mcs_imports)),
    ];
    let exports = exports.into_iter().filter(|_| filter.from.is_none());
    let mut kinds = exports.chain(imports.into_iter().filter(|_| filter.to.is_none())).peekable();
    kinds.peek()?;
    match &member.connection.reached {
        Reached::Yes => kinds.find_map(|(kind, why)| Some(format!("{kind}: {}", why?))),
        Reached::No(failure) => Some(format!("not reached ({}): {}", failure.class, failure.detail)),
        Reached::NotAsked | Reached::NotNamed | Reached::NotFound => None,
    }
}

/// Returns the reason why a listing is not known. A server without the kind has no objects of it.
fn unread<K>(listing: &Listing<K>) -> Option<String> {
    why(listing).filter(|_| !matches!(listing, Listing::NotDefined))
}

/// Keeps the APIs that meet a condition, if there are any.
fn retain_if_any(apis: &mut Vec<(Api, Parties)>, condition: impl Fn(&Parties) -> bool) {
    if apis.iter().any(|(_, parties)| condition(parties)) {
        apis.retain(|(_, parties)| condition(parties));
    }
}

/// Returns the pairs by one API. Without exporters or importers, one pair shows what is missing.
fn by<'a>(api: Api, parties: Parties, snapshot: &'a Snapshot, service: &ObjectName, filter: &Filter) -> Vec<Ends<'a>> {
    let nobody_exports = parties.exporters.is_empty();
    let mut from: Vec<Option<String>> = match &filter.from {
        Some(id) => vec![Some(id.clone())],
        None if nobody_exports && !parties.importers.is_empty() => candidates(snapshot, service).map(Some).collect(),
        None => parties.exporters.into_iter().map(Some).collect(),
    };
    let mut to: Vec<Option<String>> = match &filter.to {
        Some(id) => vec![Some(id.clone())],
        None => parties.importers.into_iter().map(Some).collect(),
    };
    for ends in [&mut from, &mut to] {
        if ends.is_empty() {
            ends.push(None);
        }
    }
    let pair = |exporter: &Option<String>, importer: &Option<String>| Ends {
        api,
        exporter: exporter.as_deref().map(|id| member(snapshot, id)),
        importer: importer.as_deref().map(|id| member(snapshot, id)),
        exporter_is_wanted: filter.from.is_some() || nobody_exports,
        importer_is_wanted: filter.to.is_some(),
    };
    from.iter().flat_map(|exporter| to.iter().map(move |importer| pair(exporter, importer))).collect()
}

/// Returns the member with this cluster id. A cluster that is no member has no objects.
fn member<'a>(snapshot: &'a Snapshot, id: &str) -> Cow<'a, Member> {
    let unknown = || Cow::Owned(Member { id: id.to_owned(), ..Member::default() });
    snapshot.member(id).map_or_else(unknown, Cow::Borrowed)
}

/// Returns the clusters that export the Service by the fleet's API, or of which endpoints are still distributed.
fn exporters_of(snapshot: &Snapshot, service: &ObjectName) -> BTreeSet<String> {
    let hub = &snapshot.hub;
    let mut found: BTreeSet<String> = BTreeSet::new();
    for member in &snapshot.members {
        let exports = member.service_exports.known().unwrap_or_default();
        if named(exports, &service.namespace, &service.name).is_some() {
            found.insert(member.id.clone());
        }
    }
    let mut by_mcs_only: BTreeSet<String> = BTreeSet::new();
    for export in hub.internal_exports.objects() {
        let reference = &export.spec.service_reference;
        if is_service(service, &reference.namespace, &reference.name) {
            let exporters = if is_by(export, Api::Fleet) { &mut found } else { &mut by_mcs_only };
            exporters.extend(member_of(export.namespace()));
        }
    }
    let hub_imports = hub.service_imports.known().unwrap_or_default();
    if let Some(import) = named(hub_imports, &service.namespace, &service.name) {
        found.extend(exporters(import).map(str::to_owned));
    }
    for distributed in hub.distributed_slices.objects() {
        let slice = &distributed.spec.slice;
        let exporter = &slice.endpoint_slice_reference.cluster_id;
        let owner = &slice.owner_service_reference;
        if is_service(service, &owner.namespace, &owner.name) && !by_mcs_only.contains(exporter) {
            found.insert(exporter.clone());
        }
    }
    found
}

/// Returns the clusters that import the Service by the fleet's API.
fn importers_of(snapshot: &Snapshot, service: &ObjectName) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for member in &snapshot.members {
        if member.multi_cluster_services.objects().any(|request| imports(request, service)) {
            found.insert(member.id.clone());
        }
    }
    for claim in snapshot.hub.claims.objects() {
        let reference = &claim.spec.service_import_reference;
        if is_service(service, &reference.namespace, &reference.name) {
            found.extend(member_of(claim.namespace()));
        }
    }
    let hub_imports = snapshot.hub.service_imports.known().unwrap_or_default();
    if let Some(import) = named(hub_imports, &service.namespace, &service.name) {
        found.extend(in_use_by(import).member_clusters.into_values());
    }
    found
}

/// Returns the members that have a Service of this name and could export it.
fn candidates(snapshot: &Snapshot, service: &ObjectName) -> impl Iterator<Item = String> {
    let has_it = |member: &&Member| {
        let services = member.services.known().unwrap_or_default();
        named(services, &service.namespace, &service.name).is_some()
    };
    snapshot.members.iter().filter(has_it).map(|member| member.id.clone())
}

/// Returns the importers that a ServiceImport in the hub records. A malformed annotation counts as empty.
pub(crate) fn in_use_by(import: &fleetnet_api::crd::ServiceImport) -> InUseBy {
    let text = import.annotations().get(annotations::SERVICE_IN_USE_BY);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns the member namespace with the exclusive claim (type LoadBalancer) on the Service; `None` if nobody has it.
pub(crate) fn exclusive_holder(snapshot: &Snapshot, import: &fleetnet_api::crd::ServiceImport) -> Option<String> {
    let in_use_by = in_use_by(import);
    if in_use_by.load_balancer.is_some() {
        return in_use_by.load_balancer;
    }
    let [namespace] = in_use_by.member_clusters.into_keys().collect::<Vec<_>>().try_into().ok()?;
    let is_exclusive = snapshot.hub.claims.objects().any(|claim| {
        let reference = &claim.spec.service_import_reference;
        in_namespace(claim, &namespace)
            && Some(reference.name.as_str()) == import.metadata.name.as_deref()
            && Some(reference.namespace.as_str()) == import.metadata.namespace.as_deref()
            && claim.annotations().get(annotations::SERVICE_TYPE).is_none_or(|type_| type_ == "LoadBalancer")
    });
    is_exclusive.then_some(namespace)
}
