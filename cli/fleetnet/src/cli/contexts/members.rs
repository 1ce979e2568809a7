//! Members of a hub, and the contexts that lead to their clusters.

use super::connect::Cluster;
use super::failure::{Class, Failure};
use super::hub_members::{HubMembers, deployed};
use super::{ClusterFlags, Contexts, lost};
use diagnosis::agents::Agent;
use diagnosis::snapshot::Reached;
use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// Namespace whose UID identifies a cluster.
const IDENTITY: &str = "kube-system";
/// Number of contexts that are asked at the same time.
// no limit: a kubeconfig has some dozens of contexts
const AT_ONCE: usize = 16;

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

impl Members {
    /// Returns the reason why a member was not reached that none of the contexts leads to. `is_explicit`: the user
    /// named the contexts.
    pub(crate) fn without_context(&self, is_explicit: bool) -> Reached {
        match () {
            () if is_explicit => Reached::NotNamed,
            () if !self.silent.is_empty() => Reached::NotFound,
            () => Reached::NotAsked,
        }
    }
}

/// Finds the contexts of members: those that the user names, or all whose cluster the hub knows as a member. Also finds
/// clusters with a member agent that the hub should know and does not.
pub(crate) async fn find(contexts: &Contexts, flags: &ClusterFlags, known: &HubMembers) -> Members {
    let is_explicit = !flags.context.is_empty();
    let names = if is_explicit { flags.context.clone() } else { contexts.names() };
    let asked = names.into_iter().map(|context| async move {
        let cluster = Cluster::connect(contexts, &context, Agent::Member, flags.request_timeout).await?;
        let id = id_of(&cluster, known).await?;
        Ok((id, cluster))
    });
    let answers: Vec<Result<_, Failure>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let (mut members, mut strangers) = (Members::default(), Vec::new());
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
            Ok((None, cluster)) => strangers.push(cluster),
            Err(failure) if is_explicit => members.failed.push(failure),
            Err(failure) => members.silent.push(failure),
        }
    }
    if known.is_complete {
        add_lost(contexts, known, strangers, is_explicit, &mut members).await;
    }
    members
}

/// Adds the clusters of members that the hub does not know. A context that the user named, and that leads to no member,
/// has failed.
async fn add_lost(
    contexts: &Contexts,
    known: &HubMembers,
    strangers: Vec<Cluster>,
    is_explicit: bool,
    members: &mut Members,
) {
    let named = if is_explicit { strangers.clone() } else { Vec::new() };
    for (id, cluster) in lost::among(contexts, known, strangers, is_explicit).await {
        members.reached.entry(id).or_insert(cluster);
    }
    let is_found = |cluster: &Cluster| members.reached.values().any(|found| found.context == cluster.context);
    for cluster in named.iter().filter(|cluster| !is_found(cluster)) {
        let why = format!("it is not a member of this hub: the members are {}", list(&known.ids));
        members.failed.push(Failure::new(Class::NoContext, &why).at(&cluster.context, Some(cluster.url())));
    }
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

/// Returns the id of a cluster in the fleet; `None` if it is no member.
async fn id_of(cluster: &Cluster, known: &HubMembers) -> Result<Option<String>, Failure> {
    let (uid, own) = tokio::join!(uid(cluster), deployed(cluster));
    match (uid, own) {
        (Err(failure), Err(_)) => Err(failure),
        // Without rights for Deployments, the UID is enough.
        (uid, own) => recognized(known, uid.ok().as_deref(), &own.unwrap_or_default())
            .map_err(|why| Failure::new(Class::Other, &why).at(&cluster.context, Some(cluster.url()))),
    }
}

/// Returns the member that a cluster is, by its UID and by the ids in the Deployments of its agents. Where both agree,
/// they decide. Otherwise the UID decides, because an agent with an id may not own the id.
///
/// # Errors
/// If several members name this cluster, and the cluster does not say which one it is.
fn recognized(known: &HubMembers, uid: Option<&str>, own: &BTreeSet<String>) -> Result<Option<String>, String> {
    let claimants = uid.map(|uid| known.claimants(uid)).unwrap_or_default();
    // The hub does not know the UID of this member's cluster. Otherwise, this cluster has the same id in another fleet.
    let is_unheard =
        |id: &&String| !known.is_complete || known.ids.contains(*id) && (uid.is_none() || known.uid_of(id).is_none());
    let own = own.iter().find(|id| claimants.contains(*id)).or_else(|| own.iter().find(is_unheard));
    match (own, claimants.len()) {
        (Some(id), _) => Ok(Some(id.clone())),
        (None, 0 | 1) => Ok(claimants.into_iter().next()),
        (None, _) => {
            Err(format!("the members {} have its UID in the hub, and no Deployment says which it is", list(&claimants)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Failure, HubMembers, Members, Reached, recognized};
    use crate::cli::contexts::hub_members::id_in;
    use k8s_openapi::api::apps::v1::Deployment;
    use std::collections::BTreeSet;

    #[test]
    fn a_member_that_names_the_cluster_of_another_is_not_taken_for_it() {
        let east = BTreeSet::from(["east".to_owned()]);
        let none = BTreeSet::new();
        let forged = HubMembers::with_uids(&[("east", "uid"), ("zz", "uid")]);
        let found = |known: &HubMembers, uid: Option<&str>, own: &BTreeSet<String>| recognized(known, uid, own);
        assert_eq!(found(&forged, Some("uid"), &east), Ok(Some("east".to_owned())));
        assert!(found(&forged, Some("uid"), &none).unwrap_err().contains("east, zz"));
        // East has no MemberAgent, such as a member with Go agents.
        let mut go = HubMembers::with_uids(&[("zz", "uid")]);
        go.ids.insert("east".to_owned());
        assert_eq!(found(&go, Some("uid"), &east), Ok(Some("east".to_owned())));
        assert_eq!(found(&go, Some("uid"), &none), Ok(Some("zz".to_owned())));
        assert_eq!(found(&go, Some("other"), &none), Ok(None));
        // A cluster with the id of a member whose cluster has another UID is of another fleet.
        assert_eq!(found(&HubMembers::with_uids(&[("east", "other")]), Some("uid"), &east), Ok(None));
        assert_eq!(found(&HubMembers::with_uids(&[("east", "other")]), None, &east), Ok(Some("east".to_owned())));
        assert_eq!(found(&HubMembers::default(), Some("uid"), &east), Ok(Some("east".to_owned())));
    }

    #[test]
    fn a_member_that_was_not_asked_is_not_one_without_a_context() {
        let silent = || Members { silent: vec![Failure::new(Class::Timeout, "no answer")], ..Members::default() };
        assert_eq!(Members::default().without_context(true), Reached::NotNamed);
        assert_eq!(silent().without_context(true), Reached::NotNamed);
        assert_eq!(silent().without_context(false), Reached::NotFound, "a silent context may lead to the member");
        assert_eq!(Members::default().without_context(false), Reached::NotAsked);
    }

    #[test]
    fn the_id_is_in_the_deployment_of_the_manifest() {
        let manifest = include_str!("../../../../../deploy/member-agent.yaml");
        let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(manifest).unwrap();
        let deployment = objects.into_iter().find(|object| object["kind"] == "Deployment").unwrap();
        let deployment: Deployment = serde_json::from_value(deployment).unwrap();
        assert_eq!(id_in(&deployment).as_deref(), Some("member-1"));
        assert_eq!(id_in(&Deployment::default()), None);
    }
}
