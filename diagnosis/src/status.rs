//! Status of the fleet: one row for each member, from the hub alone.

use crate::explain::{clock_offset, has_objects, is_held_by_member_agent, is_terminating, member_agent_of, renewed};
use crate::limits::SILENT_SECONDS;
use crate::report::{API_VERSION, HubStatus, MemberState, MemberStatus, Status, Verdict};
use crate::snapshot::{Hub, Listing, Member, Reached, Snapshot};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

/// Returns the state of each member and of the hub agent.
#[must_use]
pub fn status(snapshot: &Snapshot) -> Status {
    let members: Vec<MemberStatus> = snapshot.members.iter().map(|member| row(snapshot, member)).collect();
    let hub = hub(&snapshot.hub);
    let not_known = not_known(snapshot);
    let is_fault = |state: MemberState| matches!(state, MemberState::Silent | MemberState::NeverHeard);
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
    let is_stopped = agent.is_some_and(|agent| agent.spec.planned_stop_time.is_some());
    let state = match agent {
        _ if is_terminating(snapshot, member) => MemberState::Leaving,
        None if snapshot.hub.member_agents.known().is_none() => MemberState::Unknown,
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
        exports: counts.and_then(|counts| counts.exported_services),
        endpoints: counts.and_then(|counts| counts.exported_endpoints),
        imports: counts.and_then(|counts| counts.imported_services),
    }
}

fn hub(hub: &Hub) -> HubStatus {
    let agents = hub.member_agents.objects();
    let versions = agents.filter_map(|agent| agent.status.as_ref()?.version.clone());
    let lease = lease(hub);
    let deployment = deployment(hub);
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
    let is_hub_agents =
        |lease: &&Lease| lease.name_any().starts_with("2bf2b407.hub.") && !is_held_by_member_agent(lease);
    hub.agent.leases.objects().find(is_hub_agents)
}

fn deployment(hub: &Hub) -> Option<&Deployment> {
    hub.agent.deployments.objects().find(|deployment| deployment.name_any() == "hub-agent")
}

/// Returns a text for each listing of the hub that is needed and not known.
pub(crate) fn not_known(snapshot: &Snapshot) -> Vec<String> {
    let hub = &snapshot.hub;
    not_known_of(snapshot, &[("Namespaces", why(&hub.namespaces)), ("MemberAgents", why(&hub.member_agents))])
}

/// Returns a text for each of these kinds that is not known, or the reason why nothing is.
pub(crate) fn not_known_of(snapshot: &Snapshot, kinds: &[(&str, Option<String>)]) -> Vec<String> {
    match &snapshot.hub.connection.reached {
        Reached::Yes => {}
        Reached::No(failure) => return vec![format!("hub: not reached ({}): {}", failure.class, failure.detail)],
        Reached::NotAsked => return vec!["hub: no kubeconfig context leads to the hub".to_owned()],
    }
    let of_kinds = kinds.iter().filter_map(|(kind, why)| Some(format!("hub: {kind}: {}", why.as_deref()?)));
    of_kinds.chain(doubt(snapshot)).collect()
}

/// Returns a text if nothing shows that the cluster is a hub: a wrong context must not look like a healthy fleet.
fn doubt(snapshot: &Snapshot) -> Option<String> {
    let hub = &snapshot.hub;
    let is_read = hub.namespaces.known().is_some()
        && hub.agent.leases.known().is_some()
        && hub.agent.deployments.known().is_some();
    let is_hub = !snapshot.members.is_empty() || lease(hub).is_some() || deployment(hub).is_some();
    let context = hub.connection.context.as_deref().unwrap_or_default();
    (is_read && !is_hub).then(|| {
        format!(
            "hub: context {context} leads to a cluster without hub agent and members: name the hub with --hub-context"
        )
    })
}

/// Returns the reason why a listing is not known.
pub(crate) fn why<K>(listing: &Listing<K>) -> Option<String> {
    match listing {
        Listing::Known { .. } => None,
        Listing::Denied(message) => Some(format!("denied: {message}")),
        Listing::NotDefined => Some("the server does not have the kind".to_owned()),
        Listing::Unknown(why) => Some(why.clone()),
        Listing::NotAsked => Some("not read".to_owned()),
    }
}

#[cfg(test)]
mod tests;
