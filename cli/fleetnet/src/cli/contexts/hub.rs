//! Recognition of a hub. A wrong context must not look like a healthy fleet.

use super::connect::Cluster;
use super::failure::Failure;
use super::{Contexts, list};
use crate::cli::exit::Stop;
use diagnosis::agents::Agent;
use diagnosis::status::is_lease_of_hub_agent;
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::names::cluster_of;
use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};
use std::time::Duration;

/// Number of contexts that are asked at the same time.
// no limit: a kubeconfig has some dozens of contexts
pub(super) const AT_ONCE: usize = 16;

/// Fails if a cluster answers and nothing in it shows that it is a hub. A hub that does not answer, or that denies this
/// user a part of the answer, is not judged.
///
/// # Errors
/// If the cluster is not a hub. The error names the contexts that lead to one.
pub(crate) async fn require(contexts: &Contexts, hub: &Cluster) -> Result<(), Stop> {
    if Box::pin(is_hub(hub)).await.unwrap_or(true) {
        return Ok(());
    }
    let others = others(contexts, &hub.context, hub.request_timeout).await;
    Err(Stop::usage(not_a_hub(&hub.context, &hub.url().to_string(), &hub.agent_namespace, &others)))
}

/// Returns the contexts that lead to a hub, without this one.
pub(crate) async fn others(contexts: &Contexts, but: &str, limit: Duration) -> Vec<String> {
    let names = contexts.names().into_iter().filter(|name| name != but);
    let asked = names.map(|context| async move {
        let cluster = Cluster::open(contexts, &context, Agent::Hub, limit).await.ok()?;
        Box::pin(is_hub(&cluster)).await.ok()?.then_some(context)
    });
    stream::iter(asked).buffered(AT_ONCE).filter_map(std::future::ready).collect().await
}

fn not_a_hub(context: &str, url: &str, agents: &str, others: &[String]) -> String {
    let remedy = match others {
        [] => "no other context leads to a hub, so add the kubeconfig of the hub with --kubeconfig".to_owned(),
        others => format!("contexts that lead to a hub: {}; name one with --hub-context", list(others)),
    };
    format!(
        "context {context} does not look like a hub: {url} has no MemberAgent, no namespace of a member, and no hub agent in {agents} \
         (--agent-namespace names another namespace); {remedy}"
    )
}

/// True if a cluster has a MemberAgent, the namespace of a member, or a hub agent.
///
/// # Errors
/// If nothing shows a hub, and a request failed.
async fn is_hub(cluster: &Cluster) -> Result<bool, Failure> {
    let agents: Api<MemberAgent> = Api::all(cluster.client.clone());
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), &cluster.agent_namespace);
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &cluster.agent_namespace);
    let (all, one) = (ListParams::default(), ListParams::default().limit(1));
    let agents = cluster.find(agents.list(&one)).await.map(|list| list.is_some_and(|list| !list.items.is_empty()));
    // The fleets of most users have members, so one request is enough.
    if matches!(agents, Ok(true)) {
        return Ok(true);
    }
    let (namespaces, leases, deployments) = tokio::join!(
        cluster.find(namespaces.list_metadata(&all)),
        cluster.find(leases.list(&all)),
        cluster.find(deployments.list_metadata(&all)),
    );
    let is_hub_agent =
        |it: &PartialObjectMeta<Deployment>| Agent::Hub.owns(&it.metadata) || Agent::Hub.is_go(&it.name_any());
    let found = [
        agents,
        namespaces.map(|list| list.iter().flat_map(|list| &list.items).any(|it| cluster_of(&it.name_any()).is_some())),
        leases.map(|list| list.iter().flat_map(|list| &list.items).any(is_lease_of_hub_agent)),
        deployments.map(|list| list.iter().flat_map(|list| &list.items).any(is_hub_agent)),
    ];
    judged(found)
}

/// Returns true if anything shows a hub. Otherwise, a failed request leaves it open.
fn judged<E>(found: impl IntoIterator<Item = Result<bool, E>>) -> Result<bool, E> {
    let mut failed = None;
    for it in found {
        match it {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(false), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_shows_a_hub_and_a_failed_request_leaves_it_open() {
        assert_eq!(judged([Ok(false), Err("denied"), Ok(true)]), Ok(true));
        assert_eq!(judged([Ok(false), Err("denied"), Err("late")]), Err("denied"));
        assert_eq!(judged::<&str>([Ok(false), Ok(false)]), Ok(false));
    }

    #[test]
    fn the_error_names_the_contexts_that_lead_to_a_hub() {
        let text = not_a_hub("west", "https://west/", "fabric", &["a".to_owned(), "b".to_owned()]);
        assert!(text.contains("no hub agent in fabric (--agent-namespace"), "{text}");
        assert!(text.starts_with("context west does not look like a hub: https://west/ has no MemberAgent"), "{text}");
        assert!(text.ends_with("contexts that lead to a hub: a, b; name one with --hub-context"), "{text}");
        assert!(not_a_hub("west", "", "fabric", &[]).ends_with("with --kubeconfig"));
    }
}
