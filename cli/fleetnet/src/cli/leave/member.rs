//! The member's side of leaving: its exports, its imports and its Secret for the hub.

use super::log::Log;
use super::mcs;
use super::objects::{count, delete};
use crate::cli::contexts::connect::Cluster;
use crate::cli::contexts::failure::Class;
use crate::cli::exit::Stop;
use crate::cli::join::secret;
use crate::cli::objects::{Action, Reference, write_failed};
use crate::limits::POLL;
use fleetnet_api::crd::{MemberAgent, MultiClusterService, ServiceExport, ServiceImport};
use fleetnet_api::names::{MCS_GROUP, labels};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use tokio::time::Instant;

/// Deletes the exports and imports of the member by the fleet's API.
pub(super) async fn withdraw(member: &Cluster, log: &mut Log<'_>) -> Result<(), Stop> {
    delete_all::<ServiceExport>(member, log).await?;
    delete_all::<MultiClusterService>(member, log).await
}

/// Waits until the member's agent has removed what it made for exports and imports.
pub(super) async fn wait_for_agent(
    member: &Cluster,
    agent: Option<&MemberAgent>,
    log: &mut Log<'_>,
    end: Instant,
) -> Result<(), Stop> {
    if log.is_dry_run {
        return Ok(());
    }
    loop {
        let left = left(member).await?;
        if left.is_empty() {
            return Ok(());
        }
        log.progress.step(&format!("{}: waiting for the agent to remove {}", member.context, left.join(", ")));
        let is_of_mcs_api = left.iter().any(|kind| kind.contains(MCS_GROUP));
        if is_of_mcs_api && !agent.is_some_and(mcs::is_on) {
            return Err(Stop::fault(format!(
                "context {}: the agent runs without the standard API, so it does not remove {}: start it with --multicluster-api, and run \
                 the command again",
                member.context,
                left.join(", ")
            )));
        }
        if Instant::now() >= end {
            let all = if is_of_mcs_api {
                ". An agent with --multicluster-api-import=all imports until it is started with labelled"
            } else {
                ""
            };
            return Err(Stop::timeout(format!(
                "context {}: the agent has not removed {}: look at the pods of the member agent in {}, and run the command \
                 again{all}",
                member.context,
                left.join(", "),
                member.agent_namespace
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Deletes all objects of a kind.
async fn delete_all<K>(member: &Cluster, log: &mut Log<'_>) -> Result<(), Stop>
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let all: Api<K> = Api::all(member.client.clone());
    let kind = Reference::new(&K::kind(&()), "", "*");
    let listed =
        member.find(all.list(&ListParams::default())).await.map_err(|failure| write_failed(failure, "list", &kind))?;
    for object in listed.map(|list| list.items).unwrap_or_default() {
        delete(member, &object, "", log).await?;
    }
    Ok(())
}

/// Returns the numbers of objects that the agent still has to remove, such as `2 ServiceImports`.
async fn left(member: &Cluster) -> Result<Vec<String>, Stop> {
    let imported = format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_IMPORT);
    let counts = [
        ("ServiceExports", count::<ServiceExport>(member, None, "").await?),
        ("MultiClusterServices", count::<MultiClusterService>(member, None, "").await?),
        ("ServiceImports", count::<ServiceImport>(member, None, "").await?),
        (
            "derived Services",
            count::<Service>(member, Some(&member.agent_namespace), labels::MULTI_CLUSTER_SERVICE_NAME).await?,
        ),
        ("imported EndpointSlices", count::<EndpointSlice>(member, None, &imported).await?),
    ];
    let counts = counts.into_iter().chain(mcs::left(member).await?);
    Ok(counts.filter(|(_, count)| *count > 0).map(|(kind, count)| format!("{count} {kind}")).collect())
}

/// Deletes the Secret with the credentials for the hub.
pub(super) async fn forget(member: &Cluster, log: &mut Log<'_>) -> Result<(), Stop> {
    let secrets: Api<Secret> = Api::namespaced(member.client.clone(), &member.agent_namespace);
    let object = Reference::new("Secret", &member.agent_namespace, secret::NAME);
    let present = member.find(secrets.get_metadata(secret::NAME)).await;
    let is_present = present.map_err(|failure| write_failed(failure, "read", &object))?.is_some();
    if is_present && !log.is_dry_run {
        let deleted = member.find(secrets.delete(secret::NAME, &DeleteParams::default())).await;
        deleted.map_err(|failure| write_failed(failure, "delete", &object))?;
    }
    log.add(object, &member.context, if is_present { Action::Deleted } else { Action::Absent }, "");
    Ok(())
}

/// True if the member's cluster does not answer, so that only `--force` can go on.
pub(super) fn is_out_of_reach(stop: &Stop) -> bool {
    matches!(stop.class, Some(Class::Dns | Class::Tcp | Class::Tls | Class::Proxy | Class::Timeout))
}
