//! Clusters of members whose namespace in the hub is missing. Their agents run, so the hub must not keep quiet about
//! them.
//!
//! ```text
//! context: id in the Deployment of its agent, or a Lease of a member agent ──┐
//! context: a ServiceExport or a MultiClusterService ─────────────────────────┤
//! hub:     no namespace and no MemberAgent with this id ─────────────────────┴──> a lost member
//! ```
//!
//! `leave` deletes the ServiceExports and MultiClusterServices, so a member that has left is not lost.

use super::connect::Cluster;
use super::hub::AT_ONCE;
use super::hub_members::{HubMembers, deployed};
use super::{Contexts, hub};
use diagnosis::status::{LEASE_SECONDS, is_lease_of_member_agent};
use fleetnet_api::crd::{MultiClusterService, ServiceExport, mcs};
use fleetnet_core::names::is_cluster_id;
use fleetnet_runtime::clock::{Clock, to_jiff};
use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// Returns those of these clusters that have a member agent whose id the hub does not know, each with the id. A cluster
/// that the user did not name may belong to another fleet: it counts only if no other context leads to a hub.
pub(super) async fn among(
    contexts: &Contexts,
    known: &HubMembers,
    clusters: Vec<Cluster>,
    is_explicit: bool,
) -> Vec<(String, Cluster)> {
    let asked = clusters.into_iter().map(|cluster| async move {
        let id = Box::pin(id_of(contexts, known, &cluster)).await?;
        Some((id, cluster))
    });
    let found: Vec<(String, Cluster)> =
        stream::iter(asked).buffered(AT_ONCE).filter_map(std::future::ready).collect().await;
    let Some((_, first)) = found.first() else { return found };
    let limit = first.request_timeout;
    if is_explicit || hub::others(contexts, &known.hub_context, limit).await.is_empty() { found } else { Vec::new() }
}

async fn id_of(contexts: &Contexts, known: &HubMembers, cluster: &Cluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), &cluster.agent_namespace);
    let all = ListParams::default();
    let (own, leases) = tokio::join!(deployed(cluster), cluster.find(leases.list(&all)));
    let leases = leases.ok().flatten().map(|list| list.items).unwrap_or_default();
    let has_agent = leases.iter().any(|lease| is_lease_of_member_agent(lease) && is_renewed(lease));
    let name = contexts.cluster_of(&cluster.context);
    let id = chosen(&known.ids, &own.unwrap_or_default(), has_agent, name.as_deref())?;
    Box::pin(wants_something(cluster)).await.then_some(id)
}

/// True if the holder of a Lease has renewed it in the last minute, by the clock of this machine.
fn is_renewed(lease: &Lease) -> bool {
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    let now = to_jiff(Clock::system().now());
    renewed.is_some_and(|renewed| now.duration_since(renewed.0).as_secs() < LEASE_SECONDS)
}

/// True if a user exports or imports a Service in a cluster.
async fn wants_something(cluster: &Cluster) -> bool {
    let (exports, imports, mcs) = tokio::join!(
        has::<ServiceExport>(cluster),
        has::<MultiClusterService>(cluster),
        has::<mcs::ServiceExport>(cluster)
    );
    exports || imports || mcs
}

async fn has<K>(cluster: &Cluster) -> bool
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let objects: Api<K> = Api::all(cluster.client.clone());
    let found = cluster.find(objects.list(&ListParams::default().limit(1))).await;
    found.is_ok_and(|list| list.is_some_and(|list| !list.items.is_empty()))
}

/// Returns the id of a member that the hub does not know: that of its Deployment. Without a Deployment, the name of the
/// cluster in the kubeconfig is the best guess.
fn chosen(known: &BTreeSet<String>, own: &BTreeSet<String>, has_agent: bool, cluster: Option<&str>) -> Option<String> {
    if let Some(id) = own.first() {
        return own.is_disjoint(known).then(|| id.clone());
    }
    let id = cluster.filter(|name| has_agent && is_cluster_id(name) && !known.contains(*name))?;
    Some(id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_that_of_the_deployment_or_the_name_of_the_cluster() {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<String>>();
        let known = set(&["east", "west"]);
        let found = |own: &[&str], has_agent, cluster| chosen(&known, &set(own), has_agent, cluster);
        let north = Some("north".to_owned());
        assert_eq!(found(&["north"], false, None), north);
        assert_eq!(found(&[], true, Some("north")), north);
        assert_eq!(found(&["west"], true, Some("north")), None, "a member of another fleet has the same id");
        assert_eq!(found(&[], false, Some("north")), None, "the cluster has no agent");
        assert_eq!(found(&[], true, Some("east")), None, "the hub knows another cluster of this name");
        assert_eq!(found(&[], true, Some("arn:aws:eks:x")), None);
        assert_eq!(found(&[], true, None), None);
    }
}
