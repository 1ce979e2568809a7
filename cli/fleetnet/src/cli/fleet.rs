//! The fleet of a hub as the diagnosis sees it: which clusters to read, and a snapshot of them.

use super::contexts::connect::Cluster;
use super::contexts::failure::{Class, Failure};
use super::contexts::hub_members::HubMembers;
use super::contexts::members::{self, Members};
use super::contexts::proof::{self, Choice};
use super::contexts::{ClusterFlags, Contexts, hub};
use super::exit::Stop;
use super::join::pem;
use super::output::progress::Progress;
use crate::limits::REACHABLE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diagnosis::Snapshot;
use diagnosis::agents::{Agent, AgentNamespaces};
use diagnosis::order::distinct;
use diagnosis::read::{Limits, Scope, Target, read};
use diagnosis::snapshot::{Failure as Unreached, Reached};
use std::collections::BTreeMap;
use std::time::Duration;

/// Which members to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// Only those that the user names with `--context`. The hub knows enough of the others.
    Named,
    /// Members that the user names with `--context`. Without one, all that answer within 2 s. Also clusters with a
    /// running agent that the hub does not know.
    Reachable,
    /// All that a context leads to.
    All,
    /// Members of `All`. Nothing is installed yet, so the hub need not look like one.
    BeforeInstallation,
}

/// Clusters of a fleet.
pub(crate) struct Fleet {
    hub: Cluster,
    members: BTreeMap<String, Target>,
    /// Members that answered, by cluster id.
    reached: BTreeMap<String, Cluster>,
    /// Members that the hub knows.
    known: HubMembers,
    agents: AgentNamespaces,
    limits: Limits,
    /// Reason why a member without a context was not reached.
    pub(crate) without_context: Reached,
    /// Contexts of the user that do not lead to a member.
    pub(crate) not_members: Vec<Failure>,
}

impl Fleet {
    /// Finds the hub and the members. `whole` limits each later reading. A hub that does not answer is no error here:
    /// the snapshot shows it.
    ///
    /// # Errors
    /// If a kubeconfig or the hub's context is wrong.
    pub(crate) async fn find(
        flags: &ClusterFlags,
        breadth: Breadth,
        whole: Duration,
        progress: &Progress,
    ) -> Result<Self, Stop> {
        let contexts = Contexts::read(flags)?;
        contexts.warnings.iter().for_each(|warning| progress.note(warning));
        let hub = Cluster::open(&contexts, &contexts.hub(flags)?, Agent::Hub, flags.request_timeout).await?;
        if breadth != Breadth::BeforeInstallation {
            hub::require(&contexts, &hub).await?;
        }
        let limits = Limits { request: flags.request_timeout, whole };
        let (members, reached) = (BTreeMap::new(), BTreeMap::new());
        let (known, agents, not_members) = (HubMembers::default(), flags.agents(), Vec::new());
        let without_context = Reached::NotAsked;
        let mut fleet = Self { hub, members, reached, known, agents, limits, without_context, not_members };
        if breadth == Breadth::Named && flags.context.is_empty() {
            return Ok(fleet);
        }
        progress.step(&format!("{}: looking for members", fleet.hub.context));
        fleet.known = HubMembers::of(&fleet.hub).await.unwrap_or_default();
        let found = found(&contexts, flags, &fleet.known, breadth).await;
        found.silent.iter().for_each(|failure| progress.detail(&failure.to_string()));
        fleet.members = found.reached.iter().map(|(id, cluster)| (id.clone(), target(cluster))).collect();
        fleet.without_context = found.without_context(!flags.context.is_empty());
        fleet.reached = found.reached;
        for failure in found.failed.into_iter().chain(found.silent) {
            // A context with the name of a member most likely leads to it. Then the diagnosis says what is wrong with
            // it.
            let is_lost = |id: &&String| **id == failure.context && !fleet.members.contains_key(*id);
            let id = fleet.known.ids.iter().find(is_lost);
            match id {
                Some(id) if matches!(breadth, Breadth::All | Breadth::BeforeInstallation) => {
                    fleet.members.insert(id.clone(), unreached(&failure));
                    if flags.context.contains(&failure.context) && failure.class != Class::NoContext {
                        fleet.not_members.push(failure);
                    }
                }
                _ if flags.context.contains(&failure.context) => fleet.not_members.push(failure),
                _ => {}
            }
        }
        if let Some(wrong) = fleet.not_members.iter().find(|failure| failure.class == Class::NoContext) {
            return Err(wrong.clone().into());
        }
        Ok(fleet)
    }

    /// Reads the objects for a question. What does not answer within the time limits is unknown.
    pub(crate) async fn snapshot(&self, scope: &Scope, progress: &Progress) -> Snapshot {
        let members = self.members.values().filter_map(|target| target.context.as_deref());
        let contexts = std::iter::once(self.hub.context.as_str()).chain(members);
        progress.step(&format!("reading {}", contexts.collect::<Vec<_>>().join(", ")));
        let mut snapshot = read(Some(&target(&self.hub)), &self.members, &self.agents, scope, self.limits).await;
        let connections = snapshot.members.iter_mut().map(|member| &mut member.connection);
        for connection in connections.filter(|connection| connection.reached == Reached::NotAsked) {
            connection.reached = self.without_context.clone();
        }
        snapshot
    }

    /// Returns the members in their natural order, also those that the hub should know; `None` if the hub did not
    /// answer.
    pub(crate) fn ids(&self) -> Option<Vec<String>> {
        Some(distinct(self.known.members()?.iter().chain(self.members.keys()).cloned()))
    }

    /// Drops the contexts of all members but this one, so that no other is read.
    pub(crate) fn only(&mut self, id: Option<&str>) {
        self.members.retain(|member, _| Some(member.as_str()) == id);
    }

    /// Returns a client for the hub, and one for each member with its cluster id. A context that failed has none.
    pub(crate) fn clients(&self) -> (&kube::Client, impl Iterator<Item = (&str, &kube::Client)>) {
        let members = self.members.iter();
        (&self.hub.client, members.filter_map(|(id, target)| Some((id.as_str(), target.client.as_ref().ok()?))))
    }

    pub(crate) fn hub(&self) -> &Cluster {
        &self.hub
    }

    /// Returns a member that answered.
    pub(crate) fn member(&self, id: &str) -> Option<&Cluster> {
        self.reached.get(id)
    }

    /// Proves that the context of a member leads to the member, before a command changes objects there.
    ///
    /// # Errors
    /// If the proof fails, or the cluster is also another member.
    pub(crate) async fn prove(&self, id: &str, flags: &ClusterFlags) -> Result<(), Stop> {
        let Some(cluster) = self.reached.get(id) else { return Ok(()) };
        let otherwise = "check what `fleetnet status` shows";
        let proven = proof::check(cluster.clone(), &self.known, id, Choice::of(flags), otherwise).await?;
        if proven.others.is_empty() {
            return Ok(());
        }
        Err(Stop::fault(format!(
            "the cluster of context {} is also the member {}: take one of the members out first",
            cluster.context,
            proof::list(&proven.others)
        )))
    }

    /// Returns what the user asked for and what is not in a snapshot.
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.not_members.iter().map(ToString::to_string).collect()
    }
}

/// Finds the contexts to read. `status` waits for 2 s at most: the hub knows enough of members that do not answer.
async fn found(contexts: &Contexts, flags: &ClusterFlags, known: &HubMembers, breadth: Breadth) -> Members {
    if breadth != Breadth::Reachable || !flags.context.is_empty() {
        return members::find(contexts, flags, known).await;
    }
    let flags = ClusterFlags { request_timeout: flags.request_timeout.min(REACHABLE), ..flags.clone() };
    members::find(contexts, &flags, known).await
}

/// Returns the error about a hub without members. Probably the context is that of another cluster.
pub(crate) fn no_members(hub: &Cluster) -> Stop {
    Stop::fault(format!(
        "context {} leads to a cluster without members: if it is not the hub, use --hub-context",
        hub.context
    ))
}

fn target(cluster: &Cluster) -> Target {
    let certificates = cluster.config.root_cert.as_deref().filter(|certificates| !certificates.is_empty());
    Target {
        context: Some(cluster.context.clone()),
        server_url: cluster.url().to_string().trim_end_matches('/').to_owned(),
        authority: certificates.map(|certificates| STANDARD.encode(pem(certificates))),
        proxy: cluster.config.proxy_url.as_ref().map(ToString::to_string),
        client: Ok(cluster.client.clone()),
    }
}

/// Returns the target of a context that failed.
fn unreached(failure: &Failure) -> Target {
    let class = failure.class.of_diagnosis(failure.status);
    let port = (failure.port > 0).then_some(failure.port);
    let detail = failure.detail.clone();
    Target {
        context: Some(failure.context.clone()),
        server_url: failure.url.clone(),
        authority: None,
        proxy: None,
        client: Err(Unreached { class, host: failure.host.clone(), port, detail }),
    }
}
