//! Agent of a cluster, as it is installed: its namespace, Deployment, pods and Leases.

use super::age::age;
use super::heartbeat::{clock_offset, is_heard, member_agent};
use super::lookup::{in_namespace, is_imported, optional};
use super::step_result::{Site, Stop};
use crate::agents::Agent;
use crate::limits::LEASE_SECONDS;
use crate::snapshot::{AgentObjects, Listing, Member, Snapshot};
use fleetnet_api::names::labels;
use fleetnet_core::names::{AGENT_LEASE_PREFIX, routed_slice};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;

pub(crate) fn agent(site: Site<'_>) -> &AgentObjects {
    match site {
        Site::Hub(hub) => &hub.agent,
        Site::Member(member) => &member.agent,
    }
}

/// Returns which agent runs in a cluster.
pub(super) fn role(site: Site<'_>) -> Agent {
    match site {
        Site::Hub(_) => Agent::Hub,
        Site::Member(_) => Agent::Member,
    }
}

/// Returns the Deployment of the agent.
pub(crate) fn deployment(site: Site<'_>) -> Result<Option<&Deployment>, Stop> {
    optional(&agent(site).deployments, "Deployments")?;
    Ok(agent(site).deployment(role(site)))
}

/// Returns the arguments of an agent.
pub(crate) fn arguments(deployment: &Deployment) -> impl Iterator<Item = &str> {
    let containers = deployment.spec.template.spec.iter().flat_map(|pod| &pod.containers);
    containers.flat_map(|it| it.command.iter().chain(&it.args).flatten()).map(String::as_str)
}

/// Returns the value of a flag of the agent. A later value replaces an earlier one. `None` also if the Deployment is
/// not known.
pub(crate) fn flag_value<'a>(site: Site<'a>, name: &str) -> Option<&'a str> {
    let arguments = arguments(deployment(site).ok()??);
    let words: Vec<&str> = arguments.flat_map(|argument| argument.splitn(2, '=')).collect();
    words.windows(2).rev().find(|pair| pair[0].trim_start_matches('-') == name).map(|pair| pair[1])
}

/// Returns the pods that a Deployment selects.
pub(super) fn pods<'a>(site: Site<'a>, deployment: &'a Deployment) -> impl Iterator<Item = &'a Pod> {
    let selector = deployment.spec.selector.match_labels.as_ref();
    let selects = move |pod: &&Pod| {
        selector.is_some_and(|labels| labels.iter().all(|(label, value)| pod.labels().get(label) == Some(value)))
    };
    agent(site).pods.objects().filter(selects)
}

pub(crate) fn ready(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
}

/// Returns a pod of the agent whose container runs.
pub(super) fn running_pod<'a>(site: Site<'a>, deployment: &'a Deployment) -> Option<&'a Pod> {
    pods(site, deployment).find(|pod| {
        let mut containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        containers.any(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()))
    })
}

pub(super) fn waiting_reason(pod: &Pod) -> Option<String> {
    let mut containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.find_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.clone())
}

/// True if the agent of a member announced a planned stop, which FN207 reports.
pub(super) fn is_planned(snapshot: &Snapshot, site: Site<'_>) -> bool {
    let Site::Member(member) = site else { return false };
    let agent = member_agent(snapshot, member).ok().flatten();
    agent.is_some_and(|agent| agent.spec.planned_stop_time.is_some())
}

/// True if the agent of a cluster acts, although it has no Deployment. Leases of a member agent do not make a cluster
/// the hub.
pub(super) fn is_alive(snapshot: &Snapshot, site: Site<'_>) -> bool {
    let renewed = |lease: &Lease| age(site, renewed_by_server(snapshot, site, lease));
    let is_fresh = |lease: &Lease| renewed(lease).is_some_and(|age| age <= LEASE_SECONDS);
    let is_own = |lease: &Lease| matches!(site, Site::Member(_)) || !is_held_by_member_agent(lease);
    let leads = agent(site).leases.objects().any(|lease| is_own(lease) && is_fresh(lease));
    leads || matches!(site, Site::Member(member) if is_heard(snapshot, member))
}

/// True if an agent of a member, of fleetnet or in Go, holds a Lease.
pub(crate) fn is_held_by_member_agent(lease: &Lease) -> bool {
    let agent = Agent::Member;
    holder(lease).is_some_and(|holder| holder.starts_with(agent.name()) || agent.is_go(holder))
}

/// True if nobody has renewed a Lease for 60 s. False if that is not known.
pub(crate) fn is_expired(snapshot: &Snapshot, site: Site<'_>, lease: &Lease) -> bool {
    age(site, renewed_by_server(snapshot, site, lease)).is_some_and(|age| age > LEASE_SECONDS)
}

/// Returns the time of the last write of a Lease, by the clock of the API server. `None` for a server that does not
/// keep it.
pub(super) fn written(lease: &Lease) -> Option<Timestamp> {
    let fields = lease.metadata.managed_fields.iter().flatten();
    fields.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

/// Returns the time of the last renewal of a Lease by the clock of the API server, as far as it is known. `renewTime`
/// is by the clock of the agent.
pub(super) fn renewed_by_server(snapshot: &Snapshot, site: Site<'_>, lease: &Lease) -> Option<Timestamp> {
    if let Some(newest) = written(lease) {
        return Some(newest);
    }
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?.0;
    let offset = match site {
        Site::Hub(_) => None,
        Site::Member(member) => member_agent(snapshot, member).ok().flatten().and_then(clock_offset),
    };
    renewed.checked_sub(offset.unwrap_or_default()).ok()
}

/// True if the hub hears the agent of a member, and nothing of it is in the namespace in which the user expects the
/// agents. Then the derived Services and imported slices of the fleet's API are not known.
pub(crate) fn is_elsewhere(snapshot: &Snapshot, member: &Member) -> bool {
    let namespace = &*member.agent.namespace;
    let is_by_mcs_api = |it: &EndpointSlice| {
        it.labels().contains_key(labels::MCS_SERVICE_NAME) || routed_slice(&it.name_any()).is_some()
    };
    let is_of_fleet = |it: &&EndpointSlice| is_imported(it) && !is_by_mcs_api(it);
    let mut derived =
        member.services.objects().filter(|it| it.labels().contains_key(labels::MULTI_CLUSTER_SERVICE_NAME));
    let (here, there): (Vec<_>, Vec<_>) =
        member.slices.objects().filter(is_of_fleet).partition(|it| in_namespace(*it, namespace));
    if !here.is_empty() || derived.any(|service| in_namespace(service, namespace)) {
        return false;
    }
    let AgentObjects { deployments, leases, .. } = &member.agent;
    let Some(leases) = leases.known() else { return !there.is_empty() };
    // A server without Deployments, such as one in memory, has agents all the same.
    let has_no_deployment = match deployments.known() {
        Some(_) => member.agent.deployment(Agent::Member).is_none(),
        None => *deployments == Listing::NotDefined,
    };
    let has_no_secret = member.hub_secret.objects().next().is_none();
    has_no_deployment && has_no_secret && !leases.iter().any(is_of_go_agents) && is_heard(snapshot, member)
}

/// Returns the message about a member whose agent is in another namespace.
pub(crate) fn elsewhere(member: &Member) -> String {
    let Member { id, agent, .. } = member;
    format!(
        "{id}: the namespace {} has no member agent: name the namespace of the agents with --agent-namespace",
        agent.namespace
    )
}

/// True if the Go agents use this Lease too.
pub(crate) fn is_of_go_agents(lease: &Lease) -> bool {
    lease.name_any().starts_with(AGENT_LEASE_PREFIX)
}

pub(crate) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}
