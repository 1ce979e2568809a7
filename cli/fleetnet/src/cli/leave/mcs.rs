//! The standard API of a member that leaves: its exports, and the namespaces that import.

use super::log::Log;
use super::objects::{count, delete};
use crate::cli::contexts::connect::Cluster;
use crate::cli::exit::Stop;
use crate::cli::objects::{Action, Reference, write_failed};
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use fleetnet_api::crd::{InternalServiceExport, MemberAgent};
use fleetnet_api::names::{MCS_GROUP, labels};
use fleetnet_core::features::Feature;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

/// Deletes the exports that the member agent has written to the hub, also if another implementation of the API serves
/// them. Removes the label with which namespaces import.
pub(super) async fn withdraw(
    hub: &Cluster,
    hub_namespace: &str,
    member: &Cluster,
    log: &mut Log<'_>,
) -> Result<(), Stop> {
    for export in exports(hub, hub_namespace).await? {
        let service = &export.spec.service_reference;
        let exports: Api<ServiceExport> = Api::namespaced(member.client.clone(), &service.namespace);
        let reference = Reference::new("ServiceExport", &service.namespace, &service.name);
        let present = member.find(exports.get(&service.name)).await;
        if let Some(present) = present.map_err(|failure| write_failed(failure, "read", &reference))? {
            delete(member, &present, MCS_GROUP, log).await?;
        }
    }
    remove_labels(member, log).await
}

/// Returns the member's exports by the standard API.
async fn exports(hub: &Cluster, namespace: &str) -> Result<Vec<InternalServiceExport>, Stop> {
    let exports: Api<InternalServiceExport> = Api::namespaced(hub.client.clone(), namespace);
    let kind = Reference::new("InternalServiceExport", namespace, "*");
    let listed = hub.find(exports.list(&ListParams::default())).await;
    let listed = listed.map_err(|failure| write_failed(failure, "list", &kind))?;
    let exports = listed.map(|list| list.items).unwrap_or_default();
    Ok(exports.into_iter().filter(|export| export.spec.multicluster.is_some()).collect())
}

/// Removes the label of importing namespaces. It has no other meaning.
async fn remove_labels(member: &Cluster, log: &mut Log<'_>) -> Result<(), Stop> {
    let namespaces: Api<Namespace> = Api::all(member.client.clone());
    let labelled = ListParams::default().labels(labels::IMPORT);
    let kind = Reference::new("Namespace", "", "*");
    let listed = member.find(namespaces.list_metadata(&labelled)).await;
    let listed = listed.map_err(|failure| write_failed(failure, "list", &kind))?;
    for namespace in listed.map(|list| list.items).unwrap_or_default() {
        let name = namespace.name_any();
        let reference = Reference::new("Namespace", "", &name);
        if !log.is_dry_run {
            let patch = Patch::Merge(json!({"metadata": {"labels": {labels::IMPORT: null}}}));
            let patched = member.find(namespaces.patch_metadata(&name, &PatchParams::default(), &patch)).await;
            patched.map_err(|failure| write_failed(failure, "patch", &reference))?;
        }
        log.add(reference, &member.context, Action::Updated, &format!("without the label {}", labels::IMPORT));
    }
    Ok(())
}

/// True if the member agent imports by the standard API.
pub(super) fn is_on(agent: &MemberAgent) -> bool {
    agent.spec.features.iter().flatten().any(|feature| feature.0 == Feature::McsApi.name())
}

/// Returns the numbers of objects that the agent still has to remove.
pub(super) async fn left(member: &Cluster) -> Result<[(&'static str, usize); 2], Stop> {
    let ours = format!("{}={}", labels::WRITER, labels::WRITER_MEMBER_AGENT);
    let derived = format!("{ours},{}", labels::MCS_SERVICE_NAME);
    Ok([
        ("ServiceImports of multicluster.x-k8s.io", count::<ServiceImport>(member, None, &ours).await?),
        ("derived Services of multicluster.x-k8s.io", count::<Service>(member, None, &derived).await?),
    ])
}
