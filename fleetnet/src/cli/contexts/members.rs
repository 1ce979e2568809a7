//! Members of a hub, and the contexts that lead to their clusters.

use super::connect::Cluster;
use super::failure::{Class, Failure};
use super::{ClusterFlags, Contexts};
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::names::FLEET_SYSTEM_NAMESPACE;
use fleetnet_core::names::cluster_of;
use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// Variable with the member's id in the Deployment of a member agent, of fleetnet or in Go.
const ID_VARIABLE: &str = "MEMBER_CLUSTER_NAME";
/// Namespace whose UID identifies a cluster.
const IDENTITY: &str = "kube-system";
/// Number of contexts that are asked at the same time.
// no limit: a kubeconfig has some dozens of contexts
const AT_ONCE: usize = 16;

/// What a hub knows about its members. The default is a hub that did not answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// True if the hub answered.
    is_complete: bool,
    /// Cluster ids, from the namespaces of the hub.
    pub(crate) ids: BTreeSet<String>,
    /// Cluster ids by the UID of the cluster, from MemberAgents.
    by_uid: BTreeMap<String, String>,
}

impl Known {
    /// Asks a hub for its members.
    ///
    /// # Errors
    /// If the hub does not answer or refuses.
    pub(crate) async fn of(hub: &Cluster) -> Result<Self, Failure> {
        let namespaces: Api<Namespace> = Api::all(hub.client.clone());
        let namespaces = hub.ask(namespaces.list_metadata(&ListParams::default())).await?;
        let ids = namespaces.items.iter().filter_map(|namespace| Some(cluster_of(&namespace.name_any())?.to_string()));
        let agents: Api<MemberAgent> = Api::all(hub.client.clone());
        let agents = hub.find(agents.list(&ListParams::default())).await?.map(|list| list.items).unwrap_or_default();
        let uid = |agent: &MemberAgent| {
            let id = cluster_of(&agent.namespace()?)?;
            Some((agent.spec.cluster_uid.clone()?, id.to_string()))
        };
        Ok(Self { is_complete: true, ids: ids.collect(), by_uid: agents.iter().filter_map(uid).collect() })
    }
}

/// Contexts of the members of a hub.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// Clusters by their id.
    pub(crate) reached: BTreeMap<String, Cluster>,
    /// Contexts that the user named and that do not lead to a member, each with the reason.
    pub(crate) failed: Vec<Failure>,
    /// Other contexts that do not answer. They may or may not be members.
    pub(crate) silent: Vec<Failure>,
}

/// Finds the contexts of members: those that the user names, or all whose cluster the hub knows as a member.
pub(crate) async fn find(contexts: &Contexts, flags: &ClusterFlags, known: &Known) -> Members {
    let is_explicit = !flags.context.is_empty();
    let names = if is_explicit { flags.context.clone() } else { contexts.names() };
    let asked = names.into_iter().map(|context| async move {
        let cluster = Cluster::connect(contexts, &context, flags.request_timeout).await?;
        let id = id_of(&cluster, known).await?;
        Ok((id, cluster))
    });
    let answers: Vec<Result<_, Failure>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let mut members = Members::default();
    for answer in answers {
        match answer {
            Ok((Some(id), cluster)) => {
                // Two contexts may lead to one cluster. The first one counts.
                members.reached.entry(id).or_insert(cluster);
            }
            // Nobody can say if this is a member, so the user's word counts.
            Ok((None, cluster)) if is_explicit && !known.is_complete => {
                members.reached.insert(cluster.context.clone(), cluster);
            }
            Ok((None, cluster)) if is_explicit => {
                let why = format!("it is not a member of this hub: the members are {}", list(&known.ids));
                members.failed.push(Failure::new(Class::NoContext, &why).at(&cluster.context, Some(cluster.url())));
            }
            Ok((None, _)) => {}
            Err(failure) if is_explicit => members.failed.push(failure),
            Err(failure) => members.silent.push(failure),
        }
    }
    members
}

/// Returns the UID of a cluster: that of its namespace kube-system.
///
/// # Errors
/// If the cluster does not answer, or this user may not read the namespace.
pub(crate) async fn uid(cluster: &Cluster) -> Result<String, Failure> {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    Ok(cluster.ask(namespaces.get(IDENTITY)).await?.uid().unwrap_or_default())
}

fn list(ids: &BTreeSet<String>) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.iter().cloned().collect::<Vec<_>>().join(", ") }
}

/// Returns the id of a cluster in the fleet; `None` if it is no member. The UID decides, because an agent with the id may not
/// own the id. A cluster that the hub has never heard of is recognized by the Deployment of its agent.
async fn id_of(cluster: &Cluster, known: &Known) -> Result<Option<String>, Failure> {
    let uid = uid(cluster).await;
    if let Ok(uid) = &uid
        && let Some(id) = known.by_uid.get(uid)
    {
        return Ok(Some(id.clone()));
    }
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), FLEET_SYSTEM_NAMESPACE);
    let deployments = cluster.find(deployments.list(&ListParams::default())).await;
    match (deployments, &uid) {
        (Ok(deployments), _) => {
            let id = deployments.and_then(|list| list.items.iter().find_map(id_in));
            // The hub knows the UID of this member's cluster: this one has the same id in another fleet.
            let is_of_another = |id: &String| known.by_uid.values().any(|other| other == id);
            Ok(id.filter(|id| !known.is_complete || known.ids.contains(id) && !(uid.is_ok() && is_of_another(id))))
        }
        // Without rights for Deployments, the UID is enough to know that this is no member.
        (Err(_), Ok(_)) => Ok(None),
        (Err(failure), Err(_)) => Err(failure),
    }
}

/// Returns the member's id in the Deployment of its agent.
fn id_in(deployment: &Deployment) -> Option<String> {
    let containers = &deployment.spec.template.spec.as_ref()?.containers;
    let variables = containers.iter().flat_map(|container| container.env.iter().flatten());
    variables.into_iter().find(|variable| variable.name == ID_VARIABLE)?.value.clone()
}

#[cfg(test)]
mod tests {
    use super::id_in;
    use k8s_openapi::api::apps::v1::Deployment;

    #[test]
    fn the_id_is_in_the_deployment_of_the_manifest() {
        let manifest = include_str!("../../../../deploy/member-agent.yaml");
        let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(manifest).unwrap();
        let deployment = objects.into_iter().find(|object| object["kind"] == "Deployment").unwrap();
        let deployment: Deployment = serde_json::from_value(deployment).unwrap();
        assert_eq!(id_in(&deployment).as_deref(), Some("member-1"));
        assert_eq!(id_in(&Deployment::default()), None);
    }
}
