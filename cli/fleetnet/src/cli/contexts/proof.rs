//! Proof that a context leads to the cluster of a member, for commands that change objects there.
//!
//! ```text
//! hub:     UID of the cluster in each MemberAgent ─────────────────┐
//! context: UID of kube-system; ids in its Secret and Deployments ──┴──> one member, or a refusal
//! ```
//!
//! A member writes the UID in its MemberAgent itself, so it can name the cluster of another member. The UID alone
//! proves nothing.

use super::connect::Cluster;
use super::hub_members::{HubMembers, deployed};
use super::members::uid;
use super::{ClusterFlags, Contexts};
use crate::cli::exit::Stop;
use crate::cli::join::secret;
use crate::cli::objects::{Reference, write_failed};
use diagnosis::agents::Agent;
use fleetnet_core::names::cluster_of;
use fleetnet_runtime::io::token::claims::Claims;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use std::collections::BTreeSet;

/// Cluster that is proven to be a member.
#[derive(Debug)]
pub(crate) struct Proven {
    pub(crate) cluster: Cluster,
    /// Other members of the same cluster, as the hub or the cluster says.
    pub(crate) others: BTreeSet<String>,
    /// Member whose token the Secret of the cluster has.
    pub(crate) holder: Option<String>,
    /// True if the namespace of the agent has a Secret or a Deployment of the member.
    pub(crate) has_agent: bool,
}

/// Way in which a context was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The user named the context.
    ByUser,
    /// The command found the context by the UID in the MemberAgent.
    ByUid,
}

impl Choice {
    pub(crate) fn of(flags: &ClusterFlags) -> Self {
        if flags.context.is_empty() { Self::ByUid } else { Self::ByUser }
    }
}

/// Finds the context of a member, and proves that it leads there. It is the context that the user names, or the one
/// whose cluster has the UID in the MemberAgent. `otherwise` says what the user can do without a context.
///
/// # Errors
/// If no context leads to the member, the cluster does not answer, or the proof fails.
pub(crate) async fn find(
    contexts: &Contexts,
    flags: &ClusterFlags,
    known: &HubMembers,
    id: &str,
    otherwise: &str,
) -> Result<Proven, Stop> {
    if let Some(context) = flags.context.first() {
        let cluster = Cluster::connect(contexts, context, Agent::Member, flags.request_timeout).await?;
        return check(cluster, known, id, Choice::ByUser, otherwise).await;
    }
    let missing =
        |why: &str| Stop::usage(format!("{why}: name the context of the member {id} with --context, or {otherwise}"));
    let owner = known.uid_of(id).ok_or_else(|| missing("the hub does not know the UID of the member's cluster"))?;
    let names = contexts.names();
    let candidates = names.iter().map(|context| async move {
        let cluster = Cluster::connect(contexts, context, Agent::Member, flags.request_timeout).await.ok()?;
        let uid = uid(&cluster).await.ok()?;
        Some((cluster, uid))
    });
    let found = join_all(candidates).await.into_iter().flatten().find(|(_, uid)| uid == owner);
    let (cluster, _) = found.ok_or_else(|| missing("no context leads to the member's cluster"))?;
    check(cluster, known, id, Choice::ByUid, otherwise).await
}

/// Proves that a cluster is a member.
///
/// # Errors
/// As [`find`].
pub(crate) async fn check(
    cluster: Cluster,
    known: &HubMembers,
    id: &str,
    choice: Choice,
    otherwise: &str,
) -> Result<Proven, Stop> {
    let uid = uid(&cluster).await?;
    let own = Box::pin(statement(&cluster)).await?;
    match verdict(known, id, &uid, &own, choice, &cluster.agent_namespace) {
        Ok(others) => Ok(Proven { cluster, others, has_agent: own.ids.contains(id), holder: own.holder }),
        Err(why) => Err(Stop::usage(format!("context {} {why}, or {otherwise}", cluster.context))),
    }
}

/// Answer of a cluster to the question which member it is.
#[derive(Clone, Debug, Default)]
struct Statement {
    /// Members in the Deployments of its agents, and in its Secret for the hub.
    ids: BTreeSet<String>,
    /// Member whose token the Secret has.
    holder: Option<String>,
}

async fn statement(cluster: &Cluster) -> Result<Statement, Stop> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.agent_namespace);
    let (secret, deployed) = tokio::join!(cluster.find(secrets.get(secret::NAME)), deployed(cluster));
    let reference = |kind: &str, name: &str| Reference::new(kind, &cluster.agent_namespace, name);
    let secret = secret.map_err(|failure| write_failed(failure, "read", &reference("Secret", secret::NAME)))?;
    let mut ids = deployed.map_err(|failure| write_failed(failure, "list", &reference("Deployment", "*")))?;
    let holder = secret.as_ref().and_then(member_in);
    ids.extend(holder.clone());
    Ok(Statement { ids, holder })
}

/// Returns the member whose token a Secret has.
fn member_in(secret: &Secret) -> Option<String> {
    let token = secret.data.as_ref()?.get(secret::TOKEN)?;
    let claims = Claims::of(std::str::from_utf8(&token.0).ok()?)?;
    let (namespace, _) = claims.service_account()?;
    Some(cluster_of(namespace)?.to_string())
}

/// Returns the other members of a cluster that is proven to be a member; else why it is not, as the rest of a sentence
/// about the context.
fn verdict(
    known: &HubMembers,
    id: &str,
    uid: &str,
    own: &Statement,
    choice: Choice,
    agents: &str,
) -> Result<BTreeSet<String>, String> {
    if let Some(owner) = known.uid_of(id).filter(|owner| *owner != uid) {
        let hint = if own.ids.contains(id) { ". The member itself writes this UID" } else { "" };
        return Err(format!(
            "is not the cluster of the member {id}: its UID is {uid}, and the hub knows {owner}{hint}: name the right --context"
        ));
    }
    let mut others = known.claimants(uid);
    if !own.ids.is_empty() && !own.ids.contains(id) {
        return Err(format!(
            "leads to the member {}, as its Secret {} or its Deployment says, and not to {id}: name the right --context",
            list(&own.ids),
            secret::NAME
        ));
    }
    others.extend(own.ids.iter().cloned());
    others.remove(id);
    match choice {
        Choice::ByUid if !others.is_empty() => Err(format!(
            "has the UID {uid}, which the hub knows for {id} and for {}: name the context of {id} with --context",
            list(&others)
        )),
        Choice::ByUid if own.ids.is_empty() => Err(format!(
            "has the UID that the hub knows for {id}, but neither the Secret {} nor a Deployment in {agents} says that it is {id}: \
             name the context of {id} with --context, or the namespace of its agent with --agent-namespace",
            secret::NAME
        )),
        Choice::ByUser if own.ids.is_empty() && known.uid_of(id).is_none() && !others.is_empty() => {
            Err(format!("leads to the member {}, and not to {id}: name the right --context", list(&others)))
        }
        _ => Ok(others),
    }
}

/// Returns ids for a message.
pub(crate) fn list(ids: &BTreeSet<String>) -> String {
    ids.iter().cloned().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    const UID: &str = "uid-of-east";

    fn said(ids: &[&str]) -> Statement {
        Statement { ids: ids.iter().map(|id| (*id).to_owned()).collect(), holder: None }
    }

    /// Also rule O26.
    #[test]
    fn a_context_is_a_member_if_hub_and_cluster_agree_and_nobody_else_names_the_cluster() {
        let (user, found) = (Choice::ByUser, Choice::ByUid);
        // UIDs in the hub, what the cluster with UID says, the member, how it was chosen; the other members, or the
        // refusal.
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str, Choice, Result<&'a [&'a str], &'a str>);
        let table: &[Case<'_>] = &[
            (&[("east", UID)], &["east"], "east", found, Ok(&[])),
            (&[("east", UID)], &["east"], "east", user, Ok(&[])),
            (&[("east", UID)], &[], "east", user, Ok(&[])),
            (&[], &["east"], "east", user, Ok(&[])),
            (&[], &[], "east", user, Ok(&[])),
            (&[("east", UID)], &[], "east", found, Err("says that it is east")),
            // West forges the UID of east.
            (&[("west", UID)], &["east"], "west", found, Err("leads to the member east")),
            (&[("west", UID)], &["east"], "west", user, Err("leads to the member east")),
            (&[("west", UID), ("east", UID)], &["east"], "west", found, Err("leads to the member east")),
            (&[("west", UID), ("east", UID)], &["east"], "east", found, Err("for east and for west")),
            (&[("west", UID), ("east", UID)], &["east"], "east", user, Ok(&["west"])),
            (&[("west", UID), ("east", UID)], &[], "east", user, Ok(&["west"])),
            (&[("west", "other")], &["west"], "west", user, Err("The member itself writes this UID")),
            (&[("west", "other")], &["east"], "west", user, Err("its UID is uid-of-east, and the hub knows other")),
            // One cluster with two ids.
            (&[("east", UID)], &["east", "old"], "east", found, Err("for east and for old")),
            (&[("east", UID)], &["east", "old"], "east", user, Ok(&["old"])),
            (&[("old", UID), ("east", UID)], &["east"], "old", user, Err("leads to the member east")),
            (&[("east", UID)], &[], "old", user, Err("leads to the member east, and not to old")),
        ];
        for (number, (uids, own, id, choice, expected)) in table.iter().enumerate() {
            let known = HubMembers::with_uids(uids);
            match (verdict(&known, id, UID, &said(own), *choice, "fleet-system"), expected) {
                (Ok(others), Ok(expected)) => assert_eq!(others, said(expected).ids, "case {number}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "case {number}: {why}"),
                (found, _) => panic!("case {number}: {found:?}"),
            }
        }
    }

    #[test]
    fn the_token_in_a_secret_names_its_member() {
        let claims = |subject: &str| {
            use base64::Engine as _;
            use base64::engine::general_purpose::URL_SAFE_NO_PAD;
            format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(serde_json::json!({"sub": subject}).to_string()))
        };
        for (token, expected) in [
            (claims("system:serviceaccount:fleet-member-west:member-agent"), Some("west")),
            (claims("system:serviceaccount:kube-system:member-agent"), None),
            (claims("west"), None),
            ("west".to_owned(), None),
        ] {
            let data = [(secret::TOKEN.to_owned(), ByteString(token.clone().into_bytes()))].into();
            let secret = Secret { data: Some(data), ..Secret::default() };
            assert_eq!(member_in(&secret).as_deref(), expected, "{token}");
        }
    }
}
