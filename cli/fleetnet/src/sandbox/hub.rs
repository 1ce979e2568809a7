//! Comparison of the hub with the expected state. The sandbox does not watch the hub, because this would cost more than
//! the watches of all members. Instead, the sandbox lists the objects of the hub when it needs a verdict.

use super::describe::{self, FoundObject, Key, NAMESPACE};
use super::observe::Expected;
use crate::args::Api as SandboxApi;
use fleetnet_api::crd::{
    EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport, MergedServiceImport,
    ServiceImport, shared::ServiceImportStatus,
};
use fleetnet_core::names::{member_namespace, merged_import_name};
use fleetnet_types::ObjectName;
use kube::api::{ListParams, ResourceExt as _};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;

const SLICE_EXPORT: &str = "EndpointSliceExport";
const SLICE_IMPORT: &str = "EndpointSliceImport";
const SERVICE_EXPORT: &str = "InternalServiceExport";
const SERVICE_IMPORT: &str = "InternalServiceImport";
const RESOLVED: &str = "ServiceImport";
const MERGED: &str = "MergedServiceImport";

/// Returns the hub's differences from the expected state as sentences. `members` are the names of the members.
pub(crate) async fn differences(
    client: &Client,
    expected: &Expected,
    members: &[String],
) -> anyhow::Result<Vec<String>> {
    Ok(describe::compare("the hub", wanted(expected, members), found(client).await?))
}

/// Lists all objects of the fleet's kinds in all namespaces of the hub.
async fn found(client: &Client) -> anyhow::Result<Vec<FoundObject>> {
    let mut found = Vec::new();
    for export in list::<EndpointSliceExport>(client).await? {
        found.push(of_slice(SLICE_EXPORT, &export, describe::hub_slice(&export, &export.spec)));
    }
    for import in list::<EndpointSliceImport>(client).await? {
        found.push(of_slice(SLICE_IMPORT, &import, describe::hub_slice(&import, &import.spec.slice)));
    }
    for export in list::<InternalServiceExport>(client).await? {
        let (of, ports) = (&export.spec.service_reference, describe::hub_ports(&export.spec.ports));
        found.push(of_service(
            SERVICE_EXPORT,
            &export,
            format!("{} in {}: {ports}", of.namespaced_name, of.cluster_id),
        ));
    }
    for import in list::<InternalServiceImport>(client).await? {
        let (of, outcome) = (&import.spec.service_import_reference, resolved(import.status.as_ref()));
        found.push(of_service(
            SERVICE_IMPORT,
            &import,
            format!("{} in {}: {outcome}", of.namespaced_name, of.cluster_id),
        ));
    }
    for import in list::<ServiceImport>(client).await? {
        found.push(of_service(RESOLVED, &import, resolved(import.status.as_ref().map(|status| &status.import))));
    }
    for import in list::<MergedServiceImport>(client).await? {
        found.push(of_service(MERGED, &import, merged(&import)));
    }
    Ok(found)
}

async fn list<K>(client: &Client) -> anyhow::Result<Vec<K>>
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = ()>,
{
    Ok(Api::<K>::all(client.clone()).list(&ListParams::default()).await?.items)
}

fn of_slice<K: Resource>(kind: &'static str, object: &K, description: String) -> FoundObject {
    let name = full_name(object);
    FoundObject { key: (kind, describe::source(&name).to_owned()), name, description }
}

fn of_service<K: Resource>(kind: &'static str, object: &K, description: String) -> FoundObject {
    let name = full_name(object);
    FoundObject { key: (kind, name.clone()), name, description: describe::alive(object, description) }
}

fn full_name<K: Resource>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// Describes the outcome of conflict resolution in a ServiceImport. The description does not depend on the order of the
/// accepted clusters.
fn resolved(status: Option<&ServiceImportStatus>) -> String {
    let status = status.cloned().unwrap_or_default();
    let mut clusters: Vec<String> = status.clusters.into_iter().flatten().map(|it| it.cluster).collect();
    clusters.sort_unstable();
    resolved_to(clusters.into_iter(), &describe::hub_ports(status.ports.as_deref().unwrap_or_default()))
}

/// Describes a MergedServiceImport. The description does not depend on the order of the clusters.
fn merged(import: &MergedServiceImport) -> String {
    let mut clusters: Vec<String> = import.spec.clusters.iter().map(|it| it.cluster.clone()).collect();
    clusters.sort_unstable();
    resolved_to(clusters.into_iter(), &describe::hub_ports(import.spec.ports.as_deref().unwrap_or_default()))
}

fn resolved_to(clusters: impl Iterator<Item = String>, ports: &str) -> String {
    format!("{ports} of {}", describe::list(clusters))
}

/// Returns all objects that the hub should have.
fn wanted(expected: &Expected, members: &[String]) -> BTreeMap<Key, String> {
    let mut wanted = BTreeMap::new();
    for (member, service) in expected.accepted_exports() {
        let (cluster, port) = (&members[member], expected.port(member, service));
        let at = format!("{}/{NAMESPACE}-{service}", member_namespace(cluster));
        let description = format!("{NAMESPACE}/{service} in {cluster}: {}", describe::sandbox_port(port));
        wanted.insert((SERVICE_EXPORT, at), description);
        if expected.api == SandboxApi::Fleet {
            wanted.insert((RESOLVED, format!("{NAMESPACE}/{service}")), resolution(expected, service, members));
        }
        for (slice, addresses) in expected.slices(member, service) {
            let (name, description) =
                (format!("{cluster}-{NAMESPACE}-{slice}"), describe::hub_slice_of(cluster, service, slice, addresses));
            wanted.insert((SLICE_EXPORT, format!("{}/{name}", member_namespace(cluster))), description.clone());
            for importer in expected.importers(service) {
                wanted.insert(
                    (SLICE_IMPORT, format!("{}/{name}", member_namespace(&members[importer]))),
                    description.clone(),
                );
            }
        }
    }
    for (importer, service) in &expected.imports {
        let (cluster, outcome) = (&members[*importer], resolution(expected, service, members));
        let namespace = member_namespace(cluster);
        match expected.api {
            SandboxApi::Fleet => {
                let at = format!("{namespace}/{NAMESPACE}-{service}");
                wanted.insert((SERVICE_IMPORT, at), format!("{NAMESPACE}/{service} in {cluster}: {outcome}"));
            }
            SandboxApi::Mcs => {
                let name = merged_import_name(&ObjectName::new(NAMESPACE, service.as_str()));
                wanted.insert((MERGED, format!("{namespace}/{name}")), outcome);
            }
        }
    }
    wanted
}

fn resolution(expected: &Expected, service: &str, members: &[String]) -> String {
    let exporters = expected.accepted_exports().filter(|(_, exported)| *exported == service);
    let mut clusters: Vec<String> = exporters.map(|(member, _)| members[member].clone()).collect();
    clusters.sort_unstable();
    resolved_to(clusters.into_iter(), &describe::list(expected.imported_port(service).into_iter()))
}
