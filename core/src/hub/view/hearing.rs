//! What the hub agent heard of each member: when this process saw the last renewal, and if it would see a new one.

use super::View;
use super::value::Value;
use crate::limits::CONTACT_GAP_MICROS;
use crate::model::{MemberAgent, Silence};
use crate::names;
use fleetnet_types::{ClusterId, Text, Timestamp};
use std::collections::BTreeMap;

/// Values of `--silence-soft` and `--silence-hard`, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimits {
    pub soft_micros: i64,
    pub hard_micros: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hearings {
    members: BTreeMap<ClusterId, Hearing>,
    contact: Contact,
}

/// Last renewal of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hearing {
    /// `renewTime`, on the member's clock.
    renewed: Timestamp,
    /// Time at which this process saw the renewal, or the end of the member's slice stream after it.
    at: Timestamp,
    /// Record in the MemberAgent.
    silence: Option<Silence>,
    /// Time of the first look at the overdue member, since the renewal and the record.
    look: Option<Timestamp>,
}

/// Contact of the watch of MemberAgents with the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contact {
    Since(Timestamp),
    Lost { at: Timestamp, before: Timestamp },
}

impl Default for Contact {
    fn default() -> Self {
        Self::Since(Timestamp::EPOCH)
    }
}

/// What a rule knows about the last renewal of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// `renewTime` of the last renewal, on the member's clock.
    pub(crate) renewed: Timestamp,
    /// Time since which the silence of the member counts. `None` while it does not count: the watch has no contact, or a slice stream
    /// of the member is open.
    pub(crate) since: Option<Timestamp>,
    /// True if the member has announced a planned stop.
    pub(crate) has_stopped: bool,
    /// Time of the first look at the overdue member.
    pub(crate) look: Option<Timestamp>,
}

impl Hearings {
    /// Records the newest state of a MemberAgent.
    pub(super) fn seen(&mut self, cluster: &ClusterId, agent: &MemberAgent, at: Timestamp) {
        let Some(renewed) = agent.renewed.filter(|_| !agent.meta.deleting) else { return self.gone(cluster) };
        let (before, silence) = (self.members.get(cluster).copied(), agent.status.silence);
        let at = before.filter(|before| before.renewed == renewed).map_or(at, |before| before.at);
        // fault O16.3: before.silence == silence ~> true
        let is_same = |before: &Hearing| before.renewed == renewed && before.silence == silence;
        let look = before.filter(is_same).and_then(|before| before.look);
        self.members.insert(cluster.clone(), Hearing { renewed, at, silence, look });
    }

    /// Records that a MemberAgent is gone.
    pub(super) fn gone(&mut self, cluster: &ClusterId) {
        self.members.remove(cluster);
    }

    fn counts_since(&self, hearing: Hearing) -> Option<Timestamp> {
        match self.contact {
            // fault O14.3: hearing.at.max(since) ~> { let _ = since; hearing.at }
            Contact::Since(since) => Some(hearing.at.max(since)),
            Contact::Lost { .. } => None,
        }
    }
}

impl View {
    /// Records that the watch of MemberAgents lost contact with the API server. Returns the value that changed.
    pub(in crate::hub) fn members_lost(&mut self, now: Timestamp) -> Option<Value> {
        let Contact::Since(before) = self.hearings.contact else { return None };
        self.hearings.contact = Contact::Lost { at: now, before };
        Some(Value::MembersFollowed)
    }

    /// Records that the watch of MemberAgents has contact again. After a gap, each member has its full time again. Returns the value
    /// that changed.
    pub(in crate::hub) fn members_followed(&mut self, now: Timestamp) -> Option<Value> {
        let Contact::Lost { at, before } = self.hearings.contact else { return None };
        let is_short = now <= at.plus_micros(CONTACT_GAP_MICROS);
        self.hearings.contact = Contact::Since(if is_short { before } else { now });
        Some(Value::MembersFollowed)
    }

    /// Records the time of the first look at an overdue member.
    pub(in crate::hub) fn looked(&mut self, cluster: &ClusterId, look: Timestamp) {
        if let Some(hearing) = self.hearings.members.get_mut(cluster) {
            hearing.look = Some(look);
        }
    }

    /// Records that the slice stream of a member ended: until now it showed that the member lives.
    pub(super) fn stream_heard(&mut self, importer: &Text, now: Timestamp) {
        let hearing = names::cluster_of(importer).and_then(|cluster| self.hearings.members.get_mut(&cluster));
        if let Some(hearing) = hearing {
            (hearing.at, hearing.look) = (hearing.at.max(now), None);
        }
    }

    /// Returns what is known about the last renewal of a member; `None` if it never renewed.
    pub(super) fn heard(&self, cluster: &ClusterId) -> Option<Heard> {
        let hearing = *self.hearings.members.get(cluster)?;
        let agent = self.member_agents.get(&names::member_agent(cluster))?;
        // fault O14.4: self.has_stream(&agent.meta.name.namespace) ~> false
        let streams = self.has_stream(&agent.meta.name.namespace);
        let since = self.hearings.counts_since(hearing).filter(|_| !streams);
        let has_stopped = agent.stopped.is_some();
        Some(Heard { renewed: hearing.renewed, since, has_stopped, look: hearing.look })
    }

    /// Returns the MemberAgent of each member that renewed, with the time since which its silence counts.
    pub(super) fn hearings(&self) -> impl Iterator<Item = (&MemberAgent, Option<Timestamp>)> {
        self.hearings.members.keys().filter_map(|cluster| {
            let agent = self.member_agents.get(&names::member_agent(cluster))?;
            Some((agent, self.heard(cluster)?.since))
        })
    }

    pub(super) fn hearings_clock_set(&mut self, micros: i64) {
        for hearing in self.hearings.members.values_mut() {
            hearing.at = hearing.at.plus_micros(micros);
            hearing.look = hearing.look.map(|look| look.plus_micros(micros));
        }
        self.hearings.contact = match self.hearings.contact {
            Contact::Since(since) => Contact::Since(since.plus_micros(micros)),
            Contact::Lost { at, before } => {
                Contact::Lost { at: at.plus_micros(micros), before: before.plus_micros(micros) }
            }
        };
    }
}
