//! Heartbeats of the members as metrics: the age of each member's last renewal, and the difference of its clock.
//!
//! The age counts from the moment in which this agent saw the renewal, on its own clock. So a member with a wrong clock
//! has the right age. Two renewals are different if their `renewTime` differs.
//!
//! A renewal in a list, or after a lost connection, may be old when it arrives. It counts from its `renewTime`, because
//! a member that is silent must not look fresh after a restart of the hub agent. A wrong clock of the member then
//! matters until its next renewal, within these bounds: the renewal is not in the future, and not older than the last
//! renewal that this agent saw or the creation of the MemberAgent.

use crate::limits::REPLAY;
use crate::metrics::{CLOCK_OFFSET, RENEWAL_AGE};
use fleetnet_core::model::MemberAgent;
use fleetnet_core::names;
use fleetnet_runtime::metrics::Ages;
use fleetnet_types::{ClusterId, ObjectName, Timestamp};
use prometheus::{GaugeVec, Registry};
use std::collections::BTreeMap;

/// Last renewal of each member, and the metrics that show it.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    members: BTreeMap<ClusterId, LastRenewal>,
    /// Time from which a renewal arrives right after the member's write. `None` during a list, and while the connection
    /// is lost.
    live_from: Option<Timestamp>,
    /// True if this replica leads. Only the leader exports the metrics, so that each member has one series.
    leads: bool,
    ages: Ages,
    offsets: GaugeVec,
}

/// Last renewal of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastRenewal {
    /// `renewTime`, on the member's clock.
    renewed: Timestamp,
    /// Time of the renewal on this agent's clock.
    at: Timestamp,
    /// Member's clock minus this agent's clock in microseconds. `None` until a renewal arrives live.
    offset: Option<i64>,
}

impl LastRenewal {
    /// Returns the state after a renewal that arrived at `at`. `None` if `agent` has no renewal other than `before`.
    fn next(agent: &MemberAgent, before: Option<Self>, is_live: IsLive, at: Timestamp) -> Option<Self> {
        let renewed = agent.renewed.filter(|renewed| before.is_none_or(|before| before.renewed != *renewed))?;
        match is_live {
            IsLive::Yes => Some(Self { renewed, at, offset: Some(renewed.0.saturating_sub(at.0)) }),
            IsLive::No => {
                let earliest = before.map_or(agent.meta.created, |before| before.at);
                let offset = before.and_then(|before| before.offset);
                Some(Self { renewed, at: renewed.max(earliest).min(at), offset })
            }
        }
    }
}

/// Tells if a renewal arrived right after the member's write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsLive {
    Yes,
    No,
}

impl Heartbeats {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            members: BTreeMap::new(),
            live_from: None,
            leads: false,
            ages: RENEWAL_AGE.ages(registry)?,
            offsets: CLOCK_OFFSET.float_gauges(registry)?,
        })
    }

    /// Handles the newest state of a MemberAgent, which arrived at the time `at`.
    pub(crate) fn seen(&mut self, agent: &MemberAgent, at: Timestamp) {
        let Some(member) = names::member_of_agent(&agent.meta.name) else { return };
        if agent.meta.deleting || agent.stopped.is_some() || agent.renewed.is_none() {
            return self.forget(&member);
        }
        let is_live = if self.live_from.is_some_and(|from| from <= at) { IsLive::Yes } else { IsLive::No };
        let before = self.members.get(&member).copied();
        if let Some(last) = LastRenewal::next(agent, before, is_live, at) {
            if self.leads {
                self.show(&member, last, at);
            }
            self.members.insert(member, last);
        }
    }

    /// Handles the removal of a MemberAgent.
    pub(crate) fn gone(&mut self, name: &ObjectName) {
        if let Some(member) = names::member_of_agent(name) {
            self.forget(&member);
        }
    }

    /// Handles the start or the end of a list of MemberAgents.
    pub(crate) fn listing(&mut self, is_listing: bool, at: Timestamp) {
        self.live_from = (!is_listing).then_some(at);
    }

    /// Handles the loss or the return of the connection of the watch.
    pub(crate) fn connected(&mut self, is_connected: bool, at: Timestamp) {
        self.live_from = is_connected.then(|| at + REPLAY);
    }

    /// Starts to export the metrics, when this replica starts to lead.
    pub(crate) fn lead(&mut self, at: Timestamp) {
        self.leads = true;
        for (member, last) in &self.members {
            self.show(member, *last, at);
        }
    }

    /// Ends the metrics, when this replica does not lead any more.
    pub(crate) fn follow(&mut self) {
        self.leads = false;
        self.members.keys().for_each(|member| self.hide(member));
    }

    /// Moves all times on this agent's clock after a step of the clock.
    pub(crate) fn clock_set(&mut self, microseconds: i64) {
        self.members.values_mut().for_each(|last| last.at = last.at.plus_micros(microseconds));
        self.live_from = self.live_from.map(|from| from.plus_micros(microseconds));
    }

    fn show(&self, member: &ClusterId, last: LastRenewal, at: Timestamp) {
        self.ages.set(&[member], at.since(last.at));
        if let Some(offset) = last.offset {
            #[allow(clippy::cast_precision_loss, reason = "a metric is a float, and people read it")]
            self.offsets.with_label_values(&[&**member]).set(offset as f64 / 1e6);
        }
    }

    fn forget(&mut self, member: &ClusterId) {
        if self.members.remove(member).is_some() {
            self.hide(member);
        }
    }

    fn hide(&self, member: &ClusterId) {
        self.ages.forget(&[member]);
        // Fails if no renewal arrived live, so that there is no series.
        let _ = self.offsets.remove_label_values(&[&**member]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_core::model::{Announcement, Finalizers, MemberStatus, Meta};
    use prometheus::TextEncoder;
    use std::time::Duration;

    /// Time of the hub agent's clock, in seconds of the test.
    fn seconds(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(1_800_000_000 + seconds)
    }

    /// MemberAgent that was created at second 0.
    fn renewed(member: &str, at: Timestamp) -> MemberAgent {
        let meta = Meta {
            name: ObjectName::new(format!("fleet-member-{member}"), member),
            uid: "uid".into(),
            resource_version: 1,
            generation: 1,
            created: seconds(0),
            deleting: false,
            finalizers: Finalizers::default(),
        };
        MemberAgent {
            meta,
            member: Announcement::default(),
            cluster_uid: None,
            leader: None,
            renewed: Some(at),
            stopped: None,
            properties: BTreeMap::new(),
            status: MemberStatus::default(),
        }
    }

    /// Leading hub agent that has listed no MemberAgents.
    fn listed(registry: &Registry, at: Timestamp) -> Heartbeats {
        let mut heartbeats = Heartbeats::new(registry).expect("a new registry");
        heartbeats.lead(at);
        heartbeats.listing(true, at);
        heartbeats.listing(false, at);
        heartbeats
    }

    /// Returns the samples of a metric as `member value`.
    fn samples(registry: &Registry, metric: &str) -> Vec<String> {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).expect("metrics are text");
        let sample = |line: &str| {
            let line = line.strip_prefix(metric)?.strip_prefix("{member=\"")?;
            Some(line.replace("\"}", ""))
        };
        text.lines().filter_map(sample).collect()
    }

    fn ages(registry: &Registry) -> Vec<String> {
        samples(registry, "fleetnet_member_last_renewal_age_seconds")
    }

    fn offsets(registry: &Registry) -> Vec<String> {
        samples(registry, "fleetnet_member_clock_offset_seconds")
    }

    /// Rule G6: A member renews its MemberAgent, stops or leaves
    /// Then: The leading hub agent shows in `fleetnet_member_last_renewal_age_seconds{member}` how long ago it saw the
    /// last renewal, on its own clock. A renewal in a list counts from its `renewTime`, so a silent member does not
    /// look fresh after a restart of the hub agent. `fleetnet_member_clock_offset_seconds{member}` shows how far the
    /// member's clock is ahead. A member that announced a stop or left has no series
    #[tokio::test(start_paused = true)]
    async fn the_age_counts_from_the_arrival_whatever_the_clock_of_the_member() {
        for (clock, offset) in [(0, "a 0"), (3_600, "a 3600"), (-3_600, "a -3600")] {
            let registry = Registry::new();
            let mut heartbeats = listed(&registry, seconds(0));
            heartbeats.seen(&renewed("a", seconds(10 + clock)), seconds(10));
            tokio::time::advance(Duration::from_secs(7)).await;
            assert_eq!(ages(&registry), ["a 7"], "{clock}");
            assert_eq!(offsets(&registry), [offset], "{clock}");
            // A write without a new renewTime, such as the hub agent's own status, is no renewal.
            heartbeats.seen(&renewed("a", seconds(10 + clock)), seconds(17));
            assert_eq!(ages(&registry), ["a 7"], "{clock}");
            heartbeats.seen(&renewed("a", seconds(18 + clock)), seconds(18));
            assert_eq!(ages(&registry), ["a 0"], "{clock}");
        }
    }

    /// Also rule G6.
    #[test]
    fn a_renewal_that_may_be_old_counts_from_its_renew_time_within_bounds_and_shows_no_clock() {
        let now = seconds(1_000);
        let seen = |renewed, at| LastRenewal { renewed, at, offset: Some(5) };
        // Before, renewTime, expected time of the renewal. The MemberAgent was created at second 0.
        let table = [
            (None, seconds(900), seconds(900)),
            (None, seconds(5_000), now),
            (None, seconds(-5_000), seconds(0)),
            (Some(seen(seconds(700), seconds(700))), seconds(900), seconds(900)),
            (Some(seen(seconds(-2_900), seconds(700))), seconds(-2_700), seconds(700)),
            (Some(seen(seconds(4_000), seconds(700))), seconds(4_200), now),
        ];
        for (before, renew_time, expected) in table {
            let last = LastRenewal::next(&renewed("a", renew_time), before, IsLive::No, now).expect("a new renewal");
            assert_eq!(last.at, expected, "{before:?} {renew_time:?}");
            assert_eq!(last.offset, before.and_then(|before| before.offset), "{before:?} {renew_time:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_that_was_silent_before_the_first_list_is_not_fresh() {
        let registry = Registry::new();
        let mut heartbeats = Heartbeats::new(&registry).expect("a new registry");
        heartbeats.lead(seconds(300));
        heartbeats.listing(true, seconds(300));
        heartbeats.seen(&renewed("a", seconds(180)), seconds(300));
        heartbeats.listing(false, seconds(300));
        assert_eq!(ages(&registry), ["a 120"]);
        assert_eq!(offsets(&registry), [""; 0]);
        heartbeats.seen(&renewed("a", seconds(303)), seconds(303));
        assert_eq!(ages(&registry), ["a 0"]);
        assert_eq!(offsets(&registry), ["a 0"]);
    }

    #[tokio::test(start_paused = true)]
    async fn renewals_that_arrive_late_after_a_lost_connection_show_no_clock() {
        let registry = Registry::new();
        let mut heartbeats = listed(&registry, seconds(0));
        heartbeats.seen(&renewed("a", seconds(10)), seconds(10));
        heartbeats.connected(false, seconds(15));
        heartbeats.connected(true, seconds(80));
        heartbeats.seen(&renewed("a", seconds(20)), seconds(80));
        assert_eq!((ages(&registry), offsets(&registry)), (vec!["a 60".to_owned()], vec!["a 0".to_owned()]));
        heartbeats.seen(&renewed("a", seconds(87)), seconds(86));
        assert_eq!((ages(&registry), offsets(&registry)), (vec!["a 0".to_owned()], vec!["a 1".to_owned()]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_that_leaves_or_announces_a_stop_has_no_series() {
        let leaving: [fn(&mut MemberAgent); 3] = [
            |agent| agent.stopped = Some(seconds(11)),
            |agent| agent.meta.deleting = true,
            |agent| agent.renewed = None,
        ];
        for leave in leaving {
            let registry = Registry::new();
            let mut heartbeats = listed(&registry, seconds(0));
            let mut agent = renewed("a", seconds(10));
            heartbeats.seen(&agent, seconds(10));
            heartbeats.seen(&renewed("b", seconds(10)), seconds(10));
            leave(&mut agent);
            heartbeats.seen(&agent, seconds(11));
            assert_eq!((ages(&registry), offsets(&registry)), (vec!["b 0".to_owned()], vec!["b 0".to_owned()]));
            heartbeats.gone(&ObjectName::new("fleet-member-b", "b"));
            assert_eq!((ages(&registry), offsets(&registry)), (vec![], vec![]));
            // The member comes back.
            heartbeats.seen(&renewed("a", seconds(20)), seconds(20));
            assert_eq!(ages(&registry), ["a 0"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_leader_has_series_and_a_new_leader_knows_the_ages() {
        let registry = Registry::new();
        let mut heartbeats = Heartbeats::new(&registry).expect("a new registry");
        heartbeats.listing(true, seconds(0));
        heartbeats.listing(false, seconds(0));
        heartbeats.seen(&renewed("a", seconds(12)), seconds(10));
        assert_eq!((ages(&registry), offsets(&registry)), (vec![], vec![]));
        // The clock of the hub agent is set forward by an hour, which changes no age.
        heartbeats.clock_set(3_600_000_000);
        heartbeats.lead(seconds(3_650));
        assert_eq!((ages(&registry), offsets(&registry)), (vec!["a 40".to_owned()], vec!["a 2".to_owned()]));
    }

    #[test]
    fn a_member_agent_with_another_name_than_its_namespace_is_no_heartbeat() {
        for (namespace, name) in [("fleet-member-a", "b"), ("work", "a"), ("fleet-member-", "")] {
            assert_eq!(names::member_of_agent(&ObjectName::new(namespace, name)), None, "{namespace}/{name}");
        }
        assert_eq!(names::member_of_agent(&ObjectName::new("fleet-member-a", "a")), Some("a".into()));
    }
}
