//! Services of the fleet: one row for each exported or imported Service, from the hub alone.

use crate::explain::{conflict_of, exporters, in_use_by};
use crate::report::{API_VERSION, ServiceRow, Services, Verdict};
use crate::snapshot::{Reached, Snapshot};
use crate::status::why;
use fleetnet_api::crd::ServiceImportType;
use fleetnet_core::names::cluster_of;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};

/// Knowledge of the hub about one Service.
#[derive(Default)]
struct Known {
    type_: Option<ServiceImportType>,
    exporters: BTreeSet<String>,
    accepted: BTreeSet<String>,
    importers: BTreeSet<String>,
    granted: BTreeSet<String>,
    conflicts: BTreeSet<String>,
    endpoints: usize,
}

/// Returns all Services that a member exports or imports. A namespace limits the rows to its Services.
#[must_use]
pub fn services(snapshot: &Snapshot, namespace: Option<&str>) -> Services {
    let mut known: BTreeMap<(String, String), Known> = BTreeMap::new();
    let hub = &snapshot.hub;
    let member = |namespace: Option<String>| namespace.and_then(|it| cluster_of(&it)).map(|id| id.to_string());
    for export in hub.internal_exports.objects() {
        let Some(exporter) = member(export.namespace()) else { continue };
        let reference = &export.spec.service_reference;
        let row = known.entry((reference.namespace.clone(), reference.name.clone())).or_default();
        match conflict_of(export).map(|conflict| conflict.status.as_str()) {
            Some("False") => _ = row.accepted.insert(exporter.clone()),
            Some("True") => _ = row.conflicts.insert(exporter.clone()),
            _ => {}
        }
        row.exporters.insert(exporter);
    }
    for claim in hub.claims.objects() {
        let Some(importer) = member(claim.namespace()) else { continue };
        let reference = &claim.spec.service_import_reference;
        let row = known.entry((reference.namespace.clone(), reference.name.clone())).or_default();
        row.importers.insert(importer);
    }
    for import in hub.service_imports.objects() {
        let row = known.entry((import.namespace().unwrap_or_default(), import.name_any())).or_default();
        row.type_ = import.status.as_ref().and_then(|status| status.type_);
        row.granted.extend(in_use_by(import).member_clusters.into_values());
        row.exporters.extend(exporters(import).map(str::to_owned));
    }
    for slice in hub.slice_exports.objects() {
        let owner = &slice.spec.owner_service_reference;
        let Some(row) = known.get_mut(&(owner.namespace.clone(), owner.name.clone())) else { continue };
        if member(slice.namespace()).is_some_and(|exporter| row.accepted.contains(&exporter)) {
            row.endpoints += slice.spec.endpoints.len();
        }
    }
    let not_known = not_known(snapshot);
    let rows = known.into_iter().filter(|((of, _), _)| namespace.is_none_or(|namespace| of == namespace));
    let services: Vec<ServiceRow> = rows.map(|(name, known)| row(name, known)).collect();
    let verdict = match () {
        () if services.iter().any(|row| !row.conflicts.is_empty()) => Verdict::Fault,
        () if !not_known.is_empty() => Verdict::NotKnown,
        () => Verdict::Healthy,
    };
    Services { api_version: API_VERSION, kind: "ServiceList", services, verdict, not_known }
}

fn row((namespace, name): (String, String), known: Known) -> ServiceRow {
    let ready = !known.exporters.is_empty()
        && known.exporters.is_subset(&known.accepted)
        && known.importers.is_subset(&known.granted);
    ServiceRow {
        namespace,
        name,
        type_: known.type_.map(|type_| {
            match type_ {
                ServiceImportType::ClusterSetIP => "ClusterSetIP",
                ServiceImportType::Headless => "Headless",
            }
            .to_owned()
        }),
        exporters: known.exporters.into_iter().collect(),
        importers: known.importers.into_iter().collect(),
        endpoints: known.endpoints,
        conflicts: known.conflicts.into_iter().collect(),
        ready,
    }
}

fn not_known(snapshot: &Snapshot) -> Vec<String> {
    let hub = &snapshot.hub;
    match &hub.connection.reached {
        Reached::Yes => {}
        Reached::No(failure) => return vec![format!("hub: not reached ({}): {}", failure.class, failure.detail)],
        Reached::NotAsked => return vec!["hub: no kubeconfig context leads to the hub".to_owned()],
    }
    [
        ("InternalServiceExports", why(&hub.internal_exports)),
        ("InternalServiceImports", why(&hub.claims)),
        ("ServiceImports", why(&hub.service_imports)),
        ("EndpointSliceExports", why(&hub.slice_exports)),
    ]
    .into_iter()
    .filter_map(|(kind, why)| Some(format!("hub: {kind}: {}", why?)))
    .collect()
}

#[cfg(test)]
mod tests;
