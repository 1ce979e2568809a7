//! Status of the fleet: one row for each member, from the hub, and from the members that were read.

pub use crate::limits::LEASE_SECONDS;

use crate::agents::Agent;
use crate::explain::{
    Site, age, clock_offset, created, has_objects, holder, is_held_by_member_agent, is_of_go_agents, is_requested,
    is_terminating, member_agent_of, member_of, renewed, slice_maker,
};
use crate::limits::SILENT_SECONDS;
use crate::report::{API_VERSION, HubStatus, MemberState, MemberStatus, Status, Verdict};
use crate::snapshot::{Hub, Listing, Member, Reached, Snapshot, why};
use fleetnet_core::names::member_namespace;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;

/// Returns the state of each member and of the hub agent.
#[must_use]
pub fn status(snapshot: &Snapshot) -> Status {
    let members: Vec<MemberStatus> = snapshot.members.iter().map(|member| row(snapshot, member)).collect();
    let hub = hub(&snapshot.hub);
    let not_known: Vec<String> = not_known(snapshot).into_iter().chain(without_agent(snapshot)).collect();
    let is_fault = |state: MemberState| match state {
        MemberState::Silent | MemberState::NeverHeard | MemberState::NoNamespace | MemberState::Leaving => true,
        MemberState::Ready | MemberState::Stopped | MemberState::GoAgent | MemberState::Unknown => false,
    };
    let is_broken = matches!(hub.replicas, Some((0, _)));
    let verdict = match () {
        () if is_broken || members.iter().any(|member| is_fault(member.state)) => Verdict::Fault,
        () if !not_known.is_empty() => Verdict::NotKnown,
        () => Verdict::Healthy,
    };
    Status { api_version: API_VERSION, kind: "Status", members, hub, verdict, not_known }
}

fn row(snapshot: &Snapshot, member: &Member) -> MemberStatus {
    let agent = member_agent_of(snapshot, member);
    let heard = agent.map(renewed);
    let heard_seconds = heard.and_then(|heard| Some(snapshot.now()?.duration_since(heard).as_secs().max(0)));
    let offset = agent.and_then(clock_offset).and_then(|offset| i64::try_from(offset.as_millis()).ok());
    let counts = agent.and_then(|agent| agent.status.as_ref());
    let (exports, counted_exports) = (exports(snapshot, member), counts.and_then(|it| it.exported_services));
    // The hub agent counts at each renewal. In the first seconds, its zeros are older than the exports.
    let is_outdated = exports.is_some() && exports != counted_exports;
    let is_stopped = agent.is_some_and(|agent| agent.spec.planned_stop_time.is_some());
    let state = match agent {
        _ if is_terminating(snapshot, member) => MemberState::Leaving,
        None if snapshot.hub.member_agents.known().is_none() => MemberState::Unknown,
        None if is_missing(snapshot, member) => MemberState::NoNamespace,
        None if is_new(snapshot, member) || is_led_by_fleetnet(member) => MemberState::NeverHeard,
        None if has_objects(snapshot, member) => MemberState::GoAgent,
        None => MemberState::NeverHeard,
        Some(_) if is_stopped => MemberState::Stopped,
        Some(_) if heard_seconds.is_none() => MemberState::Unknown,
        Some(_) if heard_seconds > Some(SILENT_SECONDS) => MemberState::Silent,
        Some(_) => MemberState::Ready,
    };
    MemberStatus {
        member: member.id.clone(),
        state,
        version: agent.map(|agent| agent.spec.version.clone()),
        heard_seconds,
        clock_milliseconds: offset,
        exports: exports.or(counted_exports),
        endpoints: counts.and_then(|counts| counts.exported_endpoints).filter(|it| *it > 0 || !is_outdated),
        imports: counts
            .and_then(|counts| counts.imported_services)
            .map(|by_fleet_api| by_fleet_api + imports_by_mcs_api(snapshot, member))
            .filter(|it| *it > 0 || !is_outdated),
        exported_slices: counts.and_then(|counts| counts.exported_slices).filter(|it| *it > 0 || !is_outdated),
        imported_slices: counts.and_then(|counts| counts.imported_slices).filter(|it| *it > 0 || !is_outdated),
        slice_stream: agent.and_then(|agent| Some(agent.spec.slice_stream.as_ref()?.reason.clone())),
        slices_made_by: slice_maker(snapshot, member),
        cluster_uid: agent.and_then(|agent| agent.spec.cluster_uid.clone()),
    }
}

/// Returns the number of Services that a member imports by the standard API. Its MemberAgent counts those of the
/// fleet's API.
fn imports_by_mcs_api(snapshot: &Snapshot, member: &Member) -> i64 {
    let namespace = member_namespace(&member.id);
    let of_member = snapshot.hub.merged_imports.objects().filter(|it| it.namespace().as_deref() == Some(&*namespace));
    i64::try_from(of_member.filter(|it| is_requested(it)).count()).unwrap_or(i64::MAX)
}

/// Returns the number of exports of a member; `None` if they were not read.
fn exports(snapshot: &Snapshot, member: &Member) -> Option<i64> {
    let exports = snapshot.hub.internal_exports.known()?;
    let of_member = exports.iter().filter(|export| member_of(export.namespace()).as_ref() == Some(&member.id));
    i64::try_from(of_member.count()).ok()
}

/// Returns the namespace of a member in the hub.
fn namespace<'a>(snapshot: &'a Snapshot, member: &Member) -> Option<&'a Namespace> {
    let is_of_member = |namespace: &&Namespace| member_of(namespace.metadata.name.clone()).as_ref() == Some(&member.id);
    snapshot.hub.namespaces.objects().find(is_of_member)
}

/// True if the hub has no namespace for a member.
pub(crate) fn is_missing(snapshot: &Snapshot, member: &Member) -> bool {
    snapshot.hub.namespaces.known().is_some() && namespace(snapshot, member).is_none()
}

/// True if the namespace of a member is so new that its agent may not have been heard yet.
fn is_new(snapshot: &Snapshot, member: &Member) -> bool {
    let created = namespace(snapshot, member).and_then(created);
    age(Site::Hub(&snapshot.hub), created).is_some_and(|age| age <= SILENT_SECONDS)
}

/// True if a member agent of fleetnet holds a Lease in the cluster of a member. False if that was not read.
fn is_led_by_fleetnet(member: &Member) -> bool {
    member.agent.leases.objects().any(|lease| holder(lease).is_some_and(|holder| holder.starts_with("member-agent_")))
}

/// True if the hub agent uses a Lease, of fleetnet or in Go.
#[must_use]
pub fn is_lease_of_hub_agent(lease: &Lease) -> bool {
    lease.name_any().starts_with("2bf2b407.hub.") && !is_held_by_member_agent(lease)
}

/// True if a member agent uses a Lease, of fleetnet or in Go.
#[must_use]
pub fn is_lease_of_member_agent(lease: &Lease) -> bool {
    is_of_go_agents(lease) && is_held_by_member_agent(lease)
}

fn hub(hub: &Hub) -> HubStatus {
    let agents = hub.member_agents.objects();
    let versions = agents.filter_map(|agent| agent.status.as_ref()?.version.clone());
    let lease = lease(hub);
    let deployment = hub.agent.deployment(Agent::Hub);
    let replicas = deployment.map(|deployment| {
        let wanted = deployment.spec.replicas.unwrap_or(1);
        (crate::explain::ready_replicas(deployment), wanted)
    });
    HubStatus {
        server: hub.connection.server_url.clone(),
        reached: hub.connection.reached == Reached::Yes,
        version: versions.max(),
        leader: lease.and_then(|lease| lease.spec.as_ref()?.holder_identity.clone()),
        replicas,
    }
}

/// Returns the Lease of the hub agent.
fn lease(hub: &Hub) -> Option<&Lease> {
    hub.agent.leases.objects().find(|lease| is_lease_of_hub_agent(lease))
}

/// True if the namespace of the hub agent shows that the cluster has one, of fleetnet or in Go. `None` if that was not
/// read.
fn has_agent(hub: &Hub) -> Option<bool> {
    // A server without Deployments, such as one in memory, has no Deployment of a hub agent.
    let has_deployments = hub.agent.deployments.known().is_some() || hub.agent.deployments == Listing::NotDefined;
    let is_read = hub.agent.leases.known().is_some() && has_deployments;
    let is_agent = |it: &Deployment| Agent::Hub.owns(&it.metadata) || Agent::Hub.is_go(&it.name_any());
    is_read.then(|| lease(hub).is_some() || hub.agent.deployments.objects().any(is_agent))
}

/// Returns a text for each listing of the hub that is needed and not known.
pub(crate) fn not_known(snapshot: &Snapshot) -> Vec<String> {
    let hub = &snapshot.hub;
    not_known_of(snapshot, &[("Namespaces", why(&hub.namespaces)), ("MemberAgents", why(&hub.member_agents))])
}

/// Returns a text if the members have a hub agent, and it is in another namespace than the user says, or does not run.
fn without_agent(snapshot: &Snapshot) -> Option<String> {
    let hub = &snapshot.hub;
    (has_agent(hub) == Some(false) && !snapshot.members.is_empty()).then(|| {
        format!(
            "hub: the namespace {} has no hub agent: if it runs in another namespace, name this with --agent-namespace or \
             --hub-agent-namespace",
            hub.agent.namespace
        )
    })
}

/// Returns a text for each of these kinds that is not known, or the reason why nothing is.
pub(crate) fn not_known_of(snapshot: &Snapshot, kinds: &[(&str, Option<String>)]) -> Vec<String> {
    match &snapshot.hub.connection.reached {
        Reached::Yes => {}
        Reached::No(failure) => return vec![format!("hub: not reached ({}): {}", failure.class, failure.detail)],
        reached => return vec![format!("hub: {}", reached.without_context().unwrap_or_default())],
    }
    let of_kinds = kinds.iter().filter_map(|(kind, why)| Some(format!("hub: {kind}: {}", why.as_deref()?)));
    of_kinds.chain(doubt(snapshot)).collect()
}

/// Returns a text if nothing shows that the cluster is a hub: a wrong context must not look like a healthy fleet.
fn doubt(snapshot: &Snapshot) -> Option<String> {
    let hub = &snapshot.hub;
    let is_no_hub = has_agent(hub) == Some(false) && hub.namespaces.known().is_some() && snapshot.members.is_empty();
    let context = hub.connection.context.as_deref().unwrap_or_default();
    is_no_hub.then(|| {
        format!(
            "hub: context {context} leads to a cluster without hub agent and members: name the hub with --hub-context, or the \
             namespace of its agent with --agent-namespace"
        )
    })
}

#[cfg(test)]
mod tests;
