//! Heartbeats and features of the members' agents, as their MemberAgents show them.

use super::age::age;
use super::lookup::{decodable, in_namespace, need};
use super::step_result::{Site, Stop};
use crate::limits::SILENT_SECONDS;
use crate::snapshot::{Member, Snapshot};
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::features::Feature;
use fleetnet_core::names::member_namespace;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

/// Returns the member's MemberAgent in the hub.
pub(crate) fn member_agent<'a>(snapshot: &'a Snapshot, member: &Member) -> Result<Option<&'a MemberAgent>, Stop> {
    let listing = &snapshot.hub.member_agents;
    let agents = need(listing, "MemberAgents", Site::Hub(&snapshot.hub))?;
    let namespace = member_namespace(&member.id);
    let of_member: Vec<&MemberAgent> = agents.iter().filter(|agent| in_namespace(*agent, &namespace)).collect();
    let own = of_member.iter().find(|agent| agent.name_any() == member.id).or(of_member.first());
    decodable(own.copied(), listing, &namespace)
}

/// Returns the member's MemberAgent in the hub, if it could be read.
pub(crate) fn member_agent_of<'a>(snapshot: &'a Snapshot, member: &Member) -> Option<&'a MemberAgent> {
    member_agent(snapshot, member).ok().flatten()
}

/// Returns the difference between the clock of a member and the clock of the hub, if it is known.
pub(crate) fn clock_of(snapshot: &Snapshot, member: &str) -> Option<SignedDuration> {
    clock_offset(member_agent_of(snapshot, snapshot.member(member)?)?)
}

/// True if the hub has a heartbeat of the member from the last 60 s, and the member did not stop since.
pub(crate) fn is_heard(snapshot: &Snapshot, member: &Member) -> bool {
    let Ok(Some(agent)) = member_agent(snapshot, member) else { return false };
    let age = age(Site::Hub(&snapshot.hub), Some(renewed(agent)));
    agent.spec.planned_stop_time.is_none() && age.is_some_and(|age| age <= SILENT_SECONDS)
}

/// True if another cluster owns the cluster id of this member.
pub(crate) fn has_foreign_owner(snapshot: &Snapshot, member: &Member) -> bool {
    let Ok(Some(agent)) = member_agent(snapshot, member) else { return false };
    matches!((&agent.spec.cluster_uid, &member.cluster_uid), (Some(owner), Some(own)) if owner != own)
}

/// Returns the time of the last heartbeat: the time at which the API server of the hub received it, otherwise the time
/// that the member wrote.
pub(crate) fn renewed(agent: &MemberAgent) -> Timestamp {
    received(agent).unwrap_or(agent.spec.renew_time.0)
}

/// Returns the difference between the clock of the member and the clock of the hub; `None` if the object does not show
/// it.
pub(crate) fn clock_offset(agent: &MemberAgent) -> Option<SignedDuration> {
    let offset = agent.spec.renew_time.0.duration_since(received(agent)?);
    // The API server writes whole seconds, so the true time of the write is up to a second later.
    Some(if offset > SignedDuration::ZERO {
        (offset - SignedDuration::from_secs(1)).max(SignedDuration::ZERO)
    } else {
        offset
    })
}

/// Returns the time at which the API server of the hub received the last heartbeat, from managedFields.
pub(super) fn received(agent: &MemberAgent) -> Option<Timestamp> {
    let entries = agent.metadata.managed_fields.iter().flatten();
    let of_renewal = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|fields| !fields["f:spec"]["f:renewTime"].is_null())
    });
    of_renewal.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

/// True if an agent that announces these features supports this feature.
pub(super) fn has(features: Option<&Vec<fleetnet_api::crd::Name>>, feature: Feature) -> bool {
    features.is_some_and(|features| features.iter().any(|name| name.0 == feature.name()))
}
