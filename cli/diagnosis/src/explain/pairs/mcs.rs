//! Exporters and importers of a Service by the standard API.

use super::parties::Parties;
use crate::explain::lookup::{in_namespace, is_imported, is_service, member_of, named};
use crate::explain::mcs::objects::{ImportState, import_state, imports_by_mcs_api, is_ours, is_requested};
use crate::explain::service_export::is_by;
use crate::report::Api;
use crate::snapshot::{Listing, Member, Snapshot};
use fleetnet_api::crd::MergedServiceImport;
use fleetnet_api::names::{annotations, labels};
use fleetnet_types::ObjectName;
use kube::ResourceExt as _;
use std::collections::BTreeSet;

/// Returns the exporters and importers of a Service. `is_only_api` is true if the fleet's API does not export or import
/// it.
pub(super) fn parties(snapshot: &Snapshot, service: &ObjectName, is_only_api: bool) -> Parties {
    let exporters = exporters(snapshot, service, is_only_api);
    if exporters.is_empty() && merged_imports(snapshot, service).next().is_none() {
        return Parties::default();
    }
    Parties { exporters, importers: importers(snapshot, service) }
}

/// True if a ServiceExport of a member that uses the API could not be read.
pub(super) fn is_unknown(snapshot: &Snapshot) -> bool {
    let is_unread = |member: &Member| {
        imports_by_mcs_api(snapshot, member)
            && matches!(member.mcs_exports, Listing::Denied(_) | Listing::Unknown(_) | Listing::NotAsked)
    };
    snapshot.members.iter().any(is_unread)
}

/// Returns the clusters that export the Service, or of which slices are still imported. A ServiceExport in a cluster
/// whose agent does not use the API may be for another implementation. It counts if nothing else exports the Service:
/// then its user needs an explanation.
fn exporters(snapshot: &Snapshot, service: &ObjectName, is_only_api: bool) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for member in &snapshot.members {
        let exports = member.mcs_exports.known().unwrap_or_default();
        let has_export = named(exports, &service.namespace, &service.name).is_some();
        if has_export && (is_only_api || imports_by_mcs_api(snapshot, member)) {
            found.insert(member.id.clone());
        }
        let imported = member.slices.objects().filter(|slice| {
            is_imported(slice)
                && in_namespace(*slice, &service.namespace)
                && slice.labels().get(labels::MCS_SERVICE_NAME).is_some_and(|name| **name == *service.name)
        });
        found.extend(imported.filter_map(|slice| slice.labels().get(labels::SOURCE_CLUSTER)).cloned());
    }
    for export in snapshot.hub.internal_exports.objects().filter(|export| is_by(export, Api::Mcs)) {
        let reference = &export.spec.service_reference;
        if is_service(service, &reference.namespace, &reference.name) {
            found.extend(member_of(export.namespace()));
        }
    }
    found.extend(merged_imports(snapshot, service).flat_map(|it| &it.spec.clusters).map(|it| it.cluster.clone()));
    found
}

/// Returns the clusters that import the Service, or whose namespace imports Services.
fn importers(snapshot: &Snapshot, service: &ObjectName) -> BTreeSet<String> {
    let requested = merged_imports(snapshot, service).filter(|merged| is_requested(merged));
    let requested = requested.filter_map(|merged| member_of(merged.namespace()));
    let others = snapshot.members.iter().filter(|member| imports(snapshot, member, service));
    requested.chain(others.map(|member| member.id.clone())).collect()
}

/// True if a member has imported the Service, or its namespace imports Services. If that could not be read, the steps
/// of the pair say so.
fn imports(snapshot: &Snapshot, member: &Member, service: &ObjectName) -> bool {
    let imports = member.mcs_imports.known().unwrap_or_default();
    if named(imports, &service.namespace, &service.name).is_some_and(is_ours) {
        return true;
    }
    match import_state(member, service) {
        Ok(ImportState::Labelled(_)) => true,
        // Nobody has requested this import.
        Ok(ImportState::AllImport(_)) => is_allowed(snapshot, member, service),
        Ok(ImportState::Never(_) | ImportState::NotLabelled(_) | ImportState::Ends(_) | ImportState::Missing) => false,
        Err(_) => {
            let is_unread = matches!(member.namespaces, Listing::Denied(_) | Listing::Unknown(_));
            is_unread && imports_by_mcs_api(snapshot, member)
        }
    }
}

/// True unless the namespace of the Service in the hub denies the import. True also if the namespaces were not read.
fn is_allowed(snapshot: &Snapshot, member: &Member, service: &ObjectName) -> bool {
    let Some(namespaces) = snapshot.hub.namespaces.known() else { return true };
    let namespace = namespaces.iter().find(|namespace| *namespace.name_any() == *service.namespace);
    crate::explain::rights::is_allowed(snapshot, namespace, annotations::IMPORTERS, &member.id)
}

/// Returns the MergedServiceImports of a Service.
fn merged_imports<'a>(
    snapshot: &'a Snapshot,
    service: &'a ObjectName,
) -> impl Iterator<Item = &'a MergedServiceImport> {
    snapshot.hub.merged_imports.objects().filter(|merged| {
        let reference = &merged.spec.service_reference;
        is_service(service, &reference.namespace, &reference.name)
    })
}
