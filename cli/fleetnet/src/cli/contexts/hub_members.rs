//! Members as a hub and the Deployments of their agents name them.

use super::connect::Cluster;
use super::failure::Failure;
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::names::{cluster_of, member_of_agent};
use fleetnet_types::ObjectName;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// Variable with the member's id in the Deployment of a member agent, of fleetnet or in Go.
const ID_VARIABLE: &str = "MEMBER_CLUSTER_NAME";

/// Knowledge of a hub about its members. The default is a hub that did not answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct HubMembers {
    /// True if the hub answered.
    pub(super) is_complete: bool,
    /// Context of the hub.
    pub(super) hub_context: String,
    /// Cluster ids, from the namespaces of the hub.
    pub(crate) ids: BTreeSet<String>,
    /// UIDs of the clusters by cluster id, from MemberAgents. A member writes the UID itself, so two members may have
    /// the same one.
    uids: BTreeMap<String, String>,
}

impl HubMembers {
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
            let id = member_of_agent(&ObjectName::new(agent.namespace()?, agent.name_any()))?;
            Some((id.to_string(), agent.spec.cluster_uid.clone()?))
        };
        let uids = agents.iter().filter_map(uid).collect();
        Ok(Self { is_complete: true, hub_context: hub.context.clone(), ids: ids.collect(), uids })
    }

    /// Returns the members; `None` if the hub did not answer.
    pub(crate) fn members(&self) -> Option<&BTreeSet<String>> {
        self.is_complete.then_some(&self.ids)
    }

    /// Returns the UID of a member's cluster, as its MemberAgent says.
    pub(crate) fn uid_of(&self, id: &str) -> Option<&str> {
        self.uids.get(id).map(String::as_str)
    }

    /// Returns the members whose MemberAgent has this UID.
    pub(crate) fn claimants(&self, uid: &str) -> BTreeSet<String> {
        self.uids.iter().filter(|(_, of)| *of == uid).map(|(id, _)| id.clone()).collect()
    }

    /// Returns what a hub knows if its members are those with a UID.
    #[cfg(test)]
    pub(crate) fn with_uids(uids: &[(&str, &str)]) -> Self {
        let uids: BTreeMap<_, _> = uids.iter().map(|(id, uid)| ((*id).to_owned(), (*uid).to_owned())).collect();
        Self { is_complete: true, hub_context: String::new(), ids: uids.keys().cloned().collect(), uids }
    }
}

/// Returns the ids in the Deployments of the agents of a cluster, of fleetnet or in Go.
///
/// # Errors
/// If the cluster does not answer, or this user may not list Deployments.
pub(crate) async fn deployed(cluster: &Cluster) -> Result<BTreeSet<String>, Failure> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &cluster.agent_namespace);
    let list = cluster.find(deployments.list(&ListParams::default())).await?;
    Ok(list.iter().flat_map(|list| list.items.iter().filter_map(id_in)).collect())
}

/// Returns the member's id in the Deployment of its agent.
pub(super) fn id_in(deployment: &Deployment) -> Option<String> {
    let containers = &deployment.spec.template.spec.as_ref()?.containers;
    let variables = containers.iter().flat_map(|container| container.env.iter().flatten());
    variables.into_iter().find(|variable| variable.name == ID_VARIABLE)?.value.clone()
}
