//! MemberAgents: heartbeat, announcement and status of each member.
//!
//! The member agent writes `spec` of this object, and the hub agent writes `status`. Each agent announces the features
//! that it supports in addition to the Go form ([`crate::features`]). The member agent renews `spec` only while its
//! watch of this cluster's EndpointSlices works, so the object is a heartbeat too. `kubectl get memberagents -A` shows
//! the heartbeats.

use crate::features::Feature;
use crate::hub::rights;
use crate::hub::silence::{self, Judgement};
use crate::hub::view::reader::{PropertiesUnknown, Reader as HubReader};
use crate::limits::RENEW_MICROS;
use crate::member::identity::Ownership;
use crate::member::view::{Reader as MemberReader, View};
use crate::model::{Announcement, Kind, MemberAgent, MemberStatus, Renewal};
use crate::names;
use crate::plan::{BlockingReason, Desired, Patch, Plan, Sample, Write};
use crate::ranges::SourceRanges;
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, MemberNamespace, Timestamp, WatchState};

/// Plans the MemberAgent of this member: creates the object, and renews it while the watch of this cluster's
/// EndpointSlices works.
pub(crate) fn plan_heartbeat(view: MemberReader<'_>, now: Timestamp) -> Plan {
    let Some(announcement) = &view.settings().announces else { return Plan::default() };
    let ownership = view.ownership(now);
    let plan = Plan::default().blocked_by(view.identity_blocking_reasons(&ownership, now));
    let name = view.own_member_agent();
    let is_known = view.complete(&[Kind::MemberAgent]) && view.follows_slices();
    if !is_known || view.is_undecodable(Kind::MemberAgent, &name) {
        return plan; // this key is requeued when the state of a watch changes or the MemberAgent is decodable
    }
    match ownership {
        Ownership::Unknown => return plan,
        Ownership::Foreign { until, .. } => return Plan { again: Some(until), ..plan },
        Ownership::Own | Ownership::Overdue | Ownership::Vacant => {}
    }
    let renewal = || view.renewal(announcement, now);
    match view.member_agents().get(&name) {
        None => {
            // A new MemberAgent has no summary. The first renewal adds it.
            let create = Write::create(name, Desired::MemberAgent(Renewal { latency: None, ..renewal() }));
            Plan { writes: vec![create], ..plan }
        }
        Some(present) if present.meta.deleting => plan, // this key is requeued when the MemberAgent is gone
        Some(present) => match next_renewal(view, present, announcement, now).filter(|_| ownership == Ownership::Own) {
            Some(later) => Plan { again: Some(later), ..plan },
            None => {
                let renewal = renewal();
                let sample = renewal.latency.is_some().then_some(Sample::LatencyReported);
                let patch = Write::patch(&present.meta, Patch::MemberAgent(renewal)).measured(sample);
                Plan { writes: vec![patch], ..plan }
            }
        },
    }
}

/// Returns the time of the next renewal; `None` if a renewal is due now. Only fields that every version of the
/// MemberAgent CRD has are compared. A newer field may be pruned by the hub, so it would always differ.
fn next_renewal(
    view: MemberReader<'_>,
    present: &MemberAgent,
    announcement: &Announcement,
    now: Timestamp,
) -> Option<Timestamp> {
    // If the time of the last renewal is in the future, the wall clock was set back after this renewal. Then a renewal
    // is due now.
    let last = view.last_renewal().filter(|last| *last <= now)?;
    let next = last.plus_micros(RENEW_MICROS);
    let is_current = present.member == *announcement && present.stopped.is_none() && !view.has_new_properties();
    (is_current && now < next).then_some(next)
}

/// Returns the last write of a member agent before a planned stop. The write announces the stop in the MemberAgent.
/// Another cluster with the same id may take over the id 30 s after this announcement.
pub fn announce_stop(view: &View, now: Timestamp) -> Option<Write> {
    let announcement = view.settings.announces.as_ref()?;
    let present = view.member_agents.live(&view.own_member_agent())?;
    if view.ownership(now) != Ownership::Own {
        return None; // this cluster does not own its id at present, so it must not write
    }
    let renewed = present.renewed.unwrap_or(now);
    let renewal = Renewal { renewed, stopped: Some(now), ..view.renewal(announcement, now) };
    Some(Write::patch(&present.meta, Patch::MemberAgent(renewal)))
}

/// Returns the blocking reason about the source ranges that the operator of the hub declares for a member.
fn malformed_ranges(view: HubReader<'_>, member: &MemberNamespace) -> Option<BlockingReason> {
    let Some(SourceRanges::Malformed(why)) = rights::source_ranges(view, member) else { return None };
    let message = format!(
        "the source ranges of namespace {member} in the hub are malformed: {why}. Importers get no new addresses of its \
         member. Correct the annotation"
    );
    Some(BlockingReason { reason: Reason::AddressRefused, message })
}

/// Returns the blocking reason if the properties of a member are unknown, because the operator's are malformed.
fn unknown_properties(view: HubReader<'_>, member: &MemberNamespace) -> Option<BlockingReason> {
    let Err(PropertiesUnknown::Broken(message)) = view.properties_of(member) else { return None };
    Some(BlockingReason { reason: Reason::PropertiesUnknown, message })
}

/// Returns the announcement of the hub agent to one member. Without the kind MergedServiceImport, the hub agent merges
/// no exports of the standard API. If the hub loses the kind, members keep their exports, because the last announcement
/// has the feature.
fn announced(view: HubReader<'_>, of_agent: &Announcement, last: &Announcement) -> Announcement {
    let had_api = last.known_features().has(Feature::McsApi);
    match view.watch_of(Kind::MergedServiceImport) {
        // One write, when it is known, carries the version and the features.
        WatchState::Incomplete => last.clone(),
        WatchState::Complete => of_agent.clone(),
        WatchState::Absent | WatchState::Unknown if had_api => of_agent.clone(),
        WatchState::Absent | WatchState::Unknown => of_agent.without(Feature::McsApi),
    }
}

/// Returns the announcement without cluster selection for a member that does not use it, so that an upgrade of the hub
/// agent costs no write.
fn to_member(agent: &MemberAgent, announcement: Announcement) -> Announcement {
    let selects = agent.member.known_features().has(Feature::ClusterSelection);
    if selects { announcement } else { announcement.without(Feature::ClusterSelection) }
}

const COUNTED: [Kind; 4] =
    [Kind::InternalServiceExport, Kind::InternalServiceImport, Kind::EndpointSliceExport, Kind::EndpointSliceImport];

/// Plans the status that the hub agent writes to a MemberAgent. Each renewal by the member requeues this plan, but a
/// change of the counted objects does not. So the counts cost at most one write for each renewal.
pub fn plan_member(view: HubReader<'_>, cluster: &ClusterId, now: Timestamp) -> Plan {
    plan_status(view, cluster, now).blocked_by(exceeded(view, cluster))
}

/// Returns the limits that a member exceeds, with messages.
fn exceeded(view: HubReader<'_>, cluster: &ClusterId) -> impl Iterator<Item = BlockingReason> + use<> {
    let namespace = names::member_namespace(cluster);
    let refused = view.budgets().refused(&namespace);
    let too_large = (refused > 0).then(|| {
        format!(
            "objects of cluster {cluster} exceed the memory that the hub agent keeps for a member, so it uses their last known state, and \
             not yet those that are new. Remove exports or endpoints in cluster {cluster}, or raise --member-memory of the hub agent"
        )
    });
    let limited = view.budgets().is_fan_out_full(&namespace).then(|| {
        format!(
            "the exports of cluster {cluster} cause as many objects in the namespaces of other members as they may, so no further \
             cluster imports them. Remove exports in cluster {cluster}, or raise --member-fan-out of the hub agent"
        )
    });
    let too_large = too_large.map(|message| BlockingReason { reason: Reason::MemberTooLarge, message });
    let limited = limited.map(|message| BlockingReason { reason: Reason::DistributionLimited, message });
    too_large.into_iter().chain(limited)
}

fn plan_status(view: HubReader<'_>, cluster: &ClusterId, now: Timestamp) -> Plan {
    let namespace = names::member_namespace(cluster);
    if !view.complete(&[Kind::MemberAgent]) {
        return Plan::default(); // the MemberAgents are not listed yet, or the hub does not have this kind
    }
    let Some(present) = view.member_agents().live(&names::member_agent(cluster)) else { return Plan::default() };
    let (announcement, offer) = view.announces();
    if announcement.version.is_empty() {
        return Plan::default();
    }
    let Judgement { silence, again, check, event } = silence::judge(view, cluster, present, now);
    let plan = Plan { again, check, ..Plan::default() }
        .blocked_by(malformed_ranges(view, &namespace).into_iter().chain(unknown_properties(view, &namespace)));
    let knows_silence = present.member.known_features().has(Feature::SilentMembers);
    let desired = MemberStatus {
        announcement: to_member(present, announced(view, announcement, &present.status.announcement)),
        slice_stream: offer.cloned(),
        counts: view.complete(&COUNTED).then(|| view.counts_now(&namespace)).or(present.status.counts),
        silence,
        silent_members: if knows_silence { silence::members_for(view, cluster, present) } else { Vec::new() },
    };
    // A CRD that is older than the offer of the slice stream drops it. So each process of the hub agent writes it once.
    let is_dropped = present.status.slice_stream.is_none() && view.has_offered(cluster);
    let slice_stream = desired.slice_stream.clone().filter(|_| !is_dropped);
    if present.status == (MemberStatus { slice_stream, ..desired.clone() }) {
        return plan;
    }
    let write = Write::patch(&present.meta, Patch::MemberAgentStatus(desired)).with_events(event);
    Plan { writes: vec![write], ..plan }
}
