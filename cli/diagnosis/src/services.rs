//! Services of the fleet: one row for each exported or imported Service and API. The hub knows exports and imports.
//! Members, as far as they were read, show what arrives and the names to call.

mod arrival;

use crate::call::names_to_call;
use crate::explain::{
    Site, age, changed, created, elsewhere, exporters, in_use_by, is_by, is_elsewhere, is_requested, member_of, outcome,
};
use crate::limits::ANSWERED_SECONDS;
use crate::order::{distinct, sorted};
use crate::report::{API_VERSION, Api, Arrival, ServiceRow, ServiceState, Services, Verdict};
use crate::snapshot::{Listing, Member, Reached, Snapshot, why};
use crate::status::{is_missing, not_known_of};
use arrival::Exported;
use fleetnet_api::crd::ServiceImportType;
use fleetnet_core::names::member_namespace;
use fleetnet_types::ObjectName;
use jiff::Timestamp;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};

/// Filter of the rows. The verdict is about these rows, and members that the hub does not know.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Only Services of this namespace; `None` for all.
    pub namespace: Option<String>,
    /// Only Services of this name; `None` for all.
    pub name: Option<String>,
    /// Only Services with conflicts.
    pub conflicts: bool,
}

/// Namespace, name and API of a row.
type Name = (String, String, Api);

/// Knowledge of the hub about one Service.
#[derive(Default)]
struct ServiceInHub {
    type_: Option<ServiceImportType>,
    exporters: BTreeSet<String>,
    accepted: BTreeSet<String>,
    /// Exporters whose Service has ports.
    with_ports: BTreeSet<String>,
    importers: BTreeSet<String>,
    granted: BTreeSet<String>,
    conflicts: BTreeSet<String>,
    /// Time since when each importer requests the slices.
    imported_since: BTreeMap<String, Option<Timestamp>>,
    /// Slices of the accepted exporters.
    slices: Vec<Exported>,
    /// Time of the newest export.
    exported_since: Option<Timestamp>,
    /// Time of each change that the hub has not answered. These are exports without an outcome, claims that are not
    /// granted, and a ServiceImport that still lists an exporter, or none yet.
    open_since: Vec<Option<Timestamp>>,
}

/// Returns the Services that a member exports or imports.
#[must_use]
pub fn services(snapshot: &Snapshot, rows: &Rows) -> Services {
    let known = known(snapshot);
    let mut not_known = not_known(snapshot);
    let is_wanted = |wanted: &Option<String>, name: &String| wanted.as_ref().is_none_or(|wanted| wanted == name);
    let services: Vec<ServiceRow> = known
        .into_iter()
        .filter(|((namespace, name, _), _)| is_wanted(&rows.namespace, namespace) && is_wanted(&rows.name, name))
        .map(|(name, known)| row(snapshot, name, known))
        .filter(|row| !rows.conflicts || !row.conflicts.is_empty())
        .collect();
    let importers = distinct(services.iter().flat_map(|row| row.importers.iter().cloned()));
    let mut unread: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for importer in importers {
        if let Some(reason) = why_unread(snapshot, &importer) {
            unread.entry(reason).or_default().push(importer);
        } else if let Some(member) = snapshot.member(&importer).filter(|member| is_elsewhere(snapshot, member))
            && services.iter().any(|row| row.api == Api::Fleet && row.importers.contains(&importer))
        {
            not_known.push(elsewhere(member));
        }
    }
    not_known.extend(unread.into_iter().map(|(reason, importers)| format!("{}: {reason}", importers.join(", "))));
    // The hub knows nothing of what such a member exports and imports.
    let lost: Vec<&Member> = snapshot.members.iter().filter(|member| is_missing(snapshot, member)).collect();
    not_known
        .extend(lost.iter().map(|it| format!("{}: {} is missing in the hub (FN201)", it.id, member_namespace(&it.id))));
    let verdict = match () {
        () if !lost.is_empty() || services.iter().any(|row| row.state == ServiceState::NotReady) => Verdict::Fault,
        () if !not_known.is_empty() => Verdict::NotKnown,
        () => Verdict::Healthy,
    };
    Services { api_version: API_VERSION, kind: "ServiceList", services, verdict, not_known }
}

/// Returns the reason why the slices of an importer were not read, so that nobody knows which endpoints it has.
fn why_unread(snapshot: &Snapshot, importer: &str) -> Option<String> {
    let Some(member) = snapshot.member(importer) else {
        return Reached::NotAsked.without_context().map(str::to_owned);
    };
    match &member.connection.reached {
        Reached::Yes => Some(format!("EndpointSlices: {}", why(&member.slices)?)),
        Reached::No(failure) => Some(format!("not reached ({}): {}", failure.class, failure.detail)),
        reached => reached.without_context().map(str::to_owned),
    }
}

fn known(snapshot: &Snapshot) -> BTreeMap<Name, ServiceInHub> {
    let mut known: BTreeMap<Name, ServiceInHub> = BTreeMap::new();
    add_exports(snapshot, &mut known);
    add_imports(snapshot, &mut known);
    add_merged_imports(snapshot, &mut known);
    for slice in snapshot.hub.slice_exports.objects() {
        let Some(exporter) = member_of(slice.namespace()) else { continue };
        let owner = &slice.spec.owner_service_reference;
        for api in Api::ALL {
            let row = known.get_mut(&(owner.namespace.clone(), owner.name.clone(), api));
            if let Some(row) = row.filter(|row| row.accepted.contains(&exporter)) {
                let has_ports = slice.spec.ports.as_ref().is_some_and(|ports| !ports.is_empty());
                // No container has the target ports, so clients reach no endpoint.
                let is_useless = !has_ports && row.with_ports.contains(&exporter);
                row.slices.push(Exported {
                    exporter: exporter.clone(),
                    name: slice.name_any(),
                    endpoints: if is_useless { 0 } else { slice.spec.endpoints.len() },
                    has_ports: has_ports || is_useless,
                    changed: changed(slice),
                });
            }
        }
    }
    known
}

/// Adds the exports, each to the row of each API by which it exports its Service.
fn add_exports(snapshot: &Snapshot, known: &mut BTreeMap<Name, ServiceInHub>) {
    for export in snapshot.hub.internal_exports.objects() {
        let Some(exporter) = member_of(export.namespace()) else { continue };
        let reference = &export.spec.service_reference;
        for api in Api::ALL.into_iter().filter(|api| is_by(export, *api)) {
            let row = known.entry((reference.namespace.clone(), reference.name.clone(), api)).or_default();
            let conflict = outcome(export, api);
            let is_merged = |status: &str| api == Api::Mcs && status != "Unknown";
            match conflict.map(|conflict| conflict.status.as_str()) {
                Some("True") => _ = row.conflicts.insert(exporter.clone()),
                Some("False") => {}
                _ => {
                    let since = conflict.map_or_else(|| created(export), |it| Some(it.last_transition_time.0));
                    row.open_since.push(since);
                }
            }
            if conflict.is_some_and(|conflict| conflict.status == "False" || is_merged(&conflict.status)) {
                row.accepted.insert(exporter.clone());
            }
            row.exporters.insert(exporter.clone());
            // DNS gives clients of a headless Service the addresses, also without ports.
            if !export.spec.ports.is_empty() && export.spec.headless != Some(true) {
                row.with_ports.insert(exporter.clone());
            }
            row.exported_since = row.exported_since.max(created(export));
        }
    }
}

/// Adds ServiceImports and claims of the fleet's API.
fn add_imports(snapshot: &Snapshot, known: &mut BTreeMap<Name, ServiceInHub>) {
    let hub = &snapshot.hub;
    for import in hub.service_imports.objects() {
        let name = (import.namespace().unwrap_or_default(), import.name_any(), Api::Fleet);
        let row = known.entry(name).or_default();
        row.type_ = import.status.as_ref().and_then(|status| status.import.type_);
        row.granted.extend(in_use_by(import).member_clusters.into_values());
        let has_left = exporters(import).any(|exporter| !row.exporters.contains(exporter));
        if has_left || row.exporters.is_empty() {
            row.open_since.push(changed(import));
        }
        row.exporters.extend(exporters(import).map(str::to_owned));
    }
    for claim in hub.claims.objects() {
        let Some(importer) = member_of(claim.namespace()) else { continue };
        let reference = &claim.spec.service_import_reference;
        let row = known.entry((reference.namespace.clone(), reference.name.clone(), Api::Fleet)).or_default();
        if !row.granted.contains(&importer) {
            row.open_since.push(created(claim));
        }
        row.imported_since.insert(importer.clone(), created(claim));
        row.importers.insert(importer);
    }
}

/// Adds MergedServiceImports. A member imports the Service if its agent requests the slices.
fn add_merged_imports(snapshot: &Snapshot, known: &mut BTreeMap<Name, ServiceInHub>) {
    for merged in snapshot.hub.merged_imports.objects() {
        let Some(importer) = member_of(merged.namespace()) else { continue };
        let reference = &merged.spec.service_reference;
        let row = known.entry((reference.namespace.clone(), reference.name.clone(), Api::Mcs)).or_default();
        row.type_ = Some(merged.spec.type_);
        if is_requested(merged) {
            row.imported_since.insert(importer.clone(), changed(merged));
            row.importers.insert(importer.clone());
            row.granted.insert(importer);
        }
        let has_left = merged.spec.clusters.iter().any(|part| !row.exporters.contains(&part.cluster));
        if has_left {
            row.open_since.push(changed(merged));
        }
        row.exporters.extend(merged.spec.clusters.iter().map(|part| part.cluster.clone()));
    }
}

/// Returns the state of a Service. Without its exports, slices, claims and ServiceImport, only a conflict is known.
fn state(snapshot: &Snapshot, api: Api, known: &ServiceInHub, arrived: &[Arrival]) -> ServiceState {
    let hub = &snapshot.hub;
    let are_imports_read = match api {
        Api::Fleet => hub.claims.known().is_some() && hub.service_imports.known().is_some(),
        Api::Mcs => hub.merged_imports.known().is_some(),
    };
    let is_read = hub.internal_exports.known().is_some() && hub.slice_exports.known().is_some() && are_imports_read;
    let is_granted = !known.exporters.is_empty()
        && known.exporters.is_subset(&known.accepted)
        && known.importers.is_subset(&known.granted);
    let has_endpoints = known.slices.iter().any(|slice| slice.endpoints > 0);
    let missing = arrived.iter().flat_map(|arrival| arrival.missing_exporters.iter().map(move |it| (arrival, it)));
    let missing_since: Vec<Option<Timestamp>> = missing
        .map(|(arrival, exporter)| {
            let imported_since = known.imported_since.get(&arrival.importer).copied().flatten();
            changed_by(known, exporter).max(imported_since)
        })
        .collect();
    let mut open_since = known.open_since.clone();
    open_since.extend(missing_since.iter().copied());
    if is_granted && !has_endpoints {
        open_since.push(known.exported_since);
    }
    let is_recent = |since: &Option<Timestamp>| age(Site::Hub(hub), *since).is_some_and(|it| it < ANSWERED_SECONDS);
    let is_waiting = !open_since.is_empty() && open_since.iter().all(is_recent);
    match () {
        () if api == Api::Fleet && !known.conflicts.is_empty() => ServiceState::NotReady,
        () if !is_read => ServiceState::Unknown,
        () if is_granted && has_endpoints && missing_since.is_empty() => ServiceState::Ready,
        () if is_waiting => ServiceState::Waiting,
        () => ServiceState::NotReady,
    }
}

/// Returns the time of the last change of an exporter's slices.
fn changed_by(known: &ServiceInHub, exporter: &str) -> Option<Timestamp> {
    known.slices.iter().filter(|slice| slice.exporter == *exporter).map(|slice| slice.changed).max().flatten()
}

fn row(snapshot: &Snapshot, (namespace, name, api): Name, known: ServiceInHub) -> ServiceRow {
    let service = ObjectName::new(namespace.as_str(), name.as_str());
    let importers = sorted(known.importers.iter().cloned());
    let arrived = arrival::arrived(snapshot, &service, api, &importers, &known.slices);
    let calls = importers.iter().flat_map(|importer| names_to_call(snapshot, &service, importer));
    ServiceRow {
        state: state(snapshot, api, &known, &arrived),
        namespace,
        name,
        api,
        type_: known.type_.map(|type_| {
            match type_ {
                ServiceImportType::ClusterSetIP => "ClusterSetIP",
                ServiceImportType::Headless => "Headless",
            }
            .to_owned()
        }),
        names_to_call: calls.filter(|call| call.api == api).collect(),
        importers,
        exporters: sorted(known.exporters),
        endpoints: known.slices.iter().map(|slice| slice.endpoints).sum(),
        conflicts: sorted(known.conflicts),
        arrived,
    }
}

fn not_known(snapshot: &Snapshot) -> Vec<String> {
    let hub = &snapshot.hub;
    // A fleet can do without the kind, unless a Service is exported by the standard API.
    let is_needed = hub.internal_exports.objects().any(|export| is_by(export, Api::Mcs));
    let merged_imports = why(&hub.merged_imports).filter(|_| is_needed || hub.merged_imports != Listing::NotDefined);
    not_known_of(
        snapshot,
        &[
            ("InternalServiceExports", why(&hub.internal_exports)),
            ("InternalServiceImports", why(&hub.claims)),
            ("ServiceImports", why(&hub.service_imports)),
            ("MergedServiceImports", merged_imports),
            ("EndpointSliceExports", why(&hub.slice_exports)),
        ],
    )
}

#[cfg(test)]
mod tests;
