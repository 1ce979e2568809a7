//! Membership in a fleet with a manager: the InternalMemberCluster of this member says if the member joins or leaves.
//! The agents answer in its status, and send heartbeats there at the period in its spec.
//!
//! A member that leaves deletes its ServiceExports and MultiClusterServices. Their rules then remove what the agents
//! created for them, in the member and in the hub. ServiceExports of the standard API stay, but request nothing. Once
//! nothing is left, the agents report that they have left, and send no more heartbeats. An agent whose parts are off
//! (`--enable-networking-features=false`) deletes nothing, and reports at once that it has left.

use super::view::{Leaving, McsApi, Membership, OnLeave, Reader};
use crate::conditions::JOINED;
use crate::limits::{HEARTBEAT_JITTER_PERCENT, HEARTBEAT_MIN_MICROS};
use crate::model::{AgentStatus, Condition, InternalMemberCluster, Kind, MembershipAgent, MembershipState, Meta};
use crate::names;
use crate::plan::{Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, Text, Timestamp, WatchState};

/// Plans the InternalMemberCluster of this member.
pub(crate) fn plan(view: Reader<'_>, now: Timestamp) -> Plan {
    let name = view.own_membership();
    let agents = &view.settings().membership.agents;
    let is_known = view.complete(&[Kind::InternalMemberCluster]);
    if agents.is_empty() || !is_known || view.is_undecodable(Kind::InternalMemberCluster, &name) {
        return Plan::default();
    }
    let Some(present) = view.memberships().get(&name) else { return Plan::default() };
    match present.state {
        MembershipState::Join => join(view, present, now),
        MembershipState::Leave => leave(view, present, now),
        MembershipState::Other => Plan::default(),
    }
}

/// Reports that the agents have joined, and sends their heartbeats. Both agents have one heartbeat, so it costs one
/// write.
fn join(view: Reader<'_>, present: &InternalMemberCluster, now: Timestamp) -> Plan {
    let next = view.settings().membership.agents.iter().map(|agent| next_heartbeat(view, present, *agent, now));
    match next.min().flatten().filter(|later| *later > now) {
        Some(later) => Plan { again: Some(later), ..Plan::default() },
        None => Plan::one(report(view, present, Outcome::Joined, now)),
    }
}

/// Returns the time of an agent's next heartbeat; `None` if it is due now, because the agent has not joined or has no
/// heartbeat.
fn next_heartbeat(
    view: Reader<'_>,
    present: &InternalMemberCluster,
    agent: MembershipAgent,
    now: Timestamp,
) -> Option<Timestamp> {
    let (joined, heartbeat) = entry(present, agent)?;
    let is_current = joined.as_ref().is_some_and(|joined| is(joined, Outcome::Joined, &present.meta));
    // A time in the future shows that the clock of this process was set back.
    let last = (*heartbeat).filter(|last| is_current && *last <= now)?;
    let period = jittered(present.heartbeat_micros, &view.settings().cluster, last);
    Some(last.plus_micros(period.max(HEARTBEAT_MIN_MICROS)))
}

/// Kinds that a member deletes when it leaves.
static DELETED: [Kind; 2] = [Kind::ServiceExport, Kind::MultiClusterService];

/// Deletes the ServiceExports and MultiClusterServices of this cluster. Once they are gone, reports that the agents
/// have left.
fn leave(view: Reader<'_>, present: &InternalMemberCluster, now: Timestamp) -> Plan {
    let Membership { agents, on_leave } = &view.settings().membership;
    let has_left = |agent: &MembershipAgent| {
        let joined = entry(present, *agent).and_then(|(joined, _)| joined.as_ref());
        joined.is_some_and(|joined| is(joined, Outcome::Left, &present.meta))
    };
    // What users create after the agents have left stays.
    if agents.iter().all(has_left) {
        return Plan::default();
    }
    if *on_leave == OnLeave::Keep {
        return Plan::one(report(view, present, Outcome::Left, now));
    }
    if let Leaving::Unknown(again) = view.leaving(now) {
        return Plan { again, ..postponed(present) };
    }
    let mut plan = Plan::default();
    let mut is_empty = view.complete(&DELETED) && !DELETED.iter().any(|kind| view.has_undecodable_of(*kind));
    let mut delete = |kind: Kind, meta: &Meta| {
        is_empty = false;
        if !meta.deleting {
            plan.push(Write::delete(kind, meta));
        }
    };
    if agents.contains(&MembershipAgent::ServiceExportImport) {
        view.all_exports().for_each(|export| delete(Kind::ServiceExport, export));
    }
    if agents.contains(&MembershipAgent::MultiClusterService) {
        view.all_multi_cluster_services().for_each(|request| delete(Kind::MultiClusterService, request));
    }
    if is_empty && has_ended_mcs_api(view) {
        plan.push(report(view, present, Outcome::Left, now));
    }
    plan
}

/// Returns the plan of a member that was perhaps asked to leave before, and not now.
fn postponed(present: &InternalMemberCluster) -> Plan {
    let message = format!(
        "InternalMemberCluster {} has had the state Leave since before this agent first saw it, or a restore of the hub \
         brought it back. The agent waits 10 minutes before it deletes exports and imports. Set spec.state to Join if \
         this cluster stays in the fleet",
        present.meta.name
    );
    Plan::blocked(Reason::LeavePostponed, message)
}

/// Kinds of what the agents make for the standard API.
static OF_MCS_API: [Kind; 3] = [Kind::InternalServiceExport, Kind::Service, Kind::EndpointSlice];

/// True if no export and no import of the standard API is left.
fn has_ended_mcs_api(view: Reader<'_>) -> bool {
    if view.settings().mcs_api == McsApi::Off {
        return true;
    }
    let is_import_known = match view.watch_of(Kind::McsServiceImport) {
        WatchState::Complete | WatchState::Absent => !view.has_undecodable_of(Kind::McsServiceImport),
        WatchState::Incomplete | WatchState::Unknown => false,
    };
    is_import_known && view.complete(&OF_MCS_API) && !view.has_made_for_mcs_api()
}

/// Answer of an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Joined,
    Left,
}

impl Outcome {
    fn status_and_reason(self) -> (ConditionStatus, Reason) {
        match self {
            Self::Joined => (ConditionStatus::True, Reason::AgentJoined),
            Self::Left => (ConditionStatus::False, Reason::AgentLeft),
        }
    }
}

/// True if a condition gives this answer to the present specification.
fn is(joined: &Condition, outcome: Outcome, meta: &Meta) -> bool {
    let (status, reason) = outcome.status_and_reason();
    joined.status == status && *joined.reason == *reason.as_str() && joined.observed_generation == meta.generation
}

/// Returns the condition and the last heartbeat of an agent.
fn entry(present: &InternalMemberCluster, agent: MembershipAgent) -> Option<(&Option<Condition>, &Option<Timestamp>)> {
    present.agents.iter().find_map(|status| match status {
        AgentStatus::Known { agent: known, joined, heartbeat } if *known == agent => Some((joined, heartbeat)),
        AgentStatus::Known { .. } | AgentStatus::Other(_) => None,
    })
}

/// Returns the write of the answer of all agents of this process. Entries of other agents stay as they are.
fn report(view: Reader<'_>, present: &InternalMemberCluster, outcome: Outcome, now: Timestamp) -> Write {
    let ours = &view.settings().membership.agents;
    let mut agents: Vec<AgentStatus> = present.agents.clone();
    for agent in ours {
        let answer = answer(present, *agent, outcome, now);
        let is_it = |status: &AgentStatus| matches!(status, AgentStatus::Known { agent: known, .. } if known == agent);
        match agents.iter().position(is_it) {
            Some(index) => agents[index] = answer,
            None => agents.push(answer),
        }
    }
    Write::patch(&present.meta, Patch::InternalMemberClusterStatus(agents))
}

fn answer(present: &InternalMemberCluster, agent: MembershipAgent, outcome: Outcome, now: Timestamp) -> AgentStatus {
    let (status, reason) = outcome.status_and_reason();
    let (before, heartbeat) = entry(present, agent).map_or((None, None), |(joined, last)| (joined.clone(), *last));
    let since = before.filter(|before| before.status == status).map(|before| before.last_transition);
    let joined = Condition {
        condition_type: JOINED.into(),
        status,
        reason: reason.as_str().into(),
        message: Text::default(),
        observed_generation: present.meta.generation,
        last_transition: since.unwrap_or(now),
    };
    let heartbeat = if outcome == Outcome::Joined { Some(now) } else { heartbeat };
    AgentStatus::Known { agent, joined: Some(joined), heartbeat }
}

/// Returns the period with a jitter of 5%, so that the members do not write at the same time.
fn jittered(micros: i64, cluster: &str, last: Timestamp) -> i64 {
    let parts = [cluster.as_bytes(), &last.0.to_be_bytes()];
    let percent = 100 - HEARTBEAT_JITTER_PERCENT + names::spread(&parts, 2 * HEARTBEAT_JITTER_PERCENT + 1);
    micros.saturating_mul(percent) / 100
}
