//! Last renewal of each member, as this process saw it, and if it would see a new one.

use super::previews::Previews;
use super::value::Value;
use crate::limits::{CONTACT_GAP_MICROS, DROPPED_JUDGEMENT_MICROS};
use crate::model::{MemberAgent, Silence};
use crate::names;
use crate::plan::Check;
use fleetnet_types::{ClusterId, MemberNamespace, Timestamp};
use std::collections::BTreeMap;

/// Values of `--silence-soft` and `--silence-hard`, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimits {
    pub soft_micros: i64,
    pub hard_micros: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::hub) struct LastRenewals {
    members: BTreeMap<ClusterId, LastRenewal>,
    contact: Contact,
}

/// Last renewal of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastRenewal {
    /// `renewTime`, on the member's clock.
    renewed: Timestamp,
    /// Time at which this process saw the renewal, or the end of the member's slice stream after it.
    at: Timestamp,
    /// Record in the MemberAgent, and the time at which this process saw it.
    silence: Option<Silence>,
    silence_at: Timestamp,
    /// Time of the first check of the overdue member.
    check: Option<Timestamp>,
    /// True if a judgement was planned, and is not written yet.
    is_judged: bool,
    /// Time before which the hub agent does not judge again, because the hub's CRD dropped the last judgement.
    hold: Option<Timestamp>,
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

/// Last renewal of a member, for the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RenewalState {
    /// `renewTime` of the last renewal, on the member's clock.
    pub(crate) renewed: Timestamp,
    /// Time since which the silence of the member counts. `None` while it does not count: the watch has no contact, or
    /// a slice stream of the member is open.
    pub(crate) since: Option<Timestamp>,
    /// True while a slice stream of the member is open.
    pub(crate) has_stream: bool,
    /// Time at which this process saw the present record.
    pub(crate) silence_at: Timestamp,
    /// True if the member has announced a planned stop.
    pub(crate) has_stopped: bool,
    /// Time of the first check of the overdue member.
    pub(crate) check: Option<Timestamp>,
    /// Time before which there is no further judgement, because the hub's CRD dropped the last one.
    pub(crate) hold: Option<Timestamp>,
}

impl LastRenewals {
    /// Records the newest state of a MemberAgent that is not being deleted.
    pub(super) fn seen(&mut self, cluster: &ClusterId, agent: &MemberAgent, at: Timestamp) {
        let Some(renewed) = agent.renewed else { return self.gone(cluster) };
        let (before, silence) = (self.members.get(cluster).copied(), agent.status.silence);
        let of_renewal = before.filter(|before| before.renewed == renewed);
        let of_record = before.filter(|before| before.silence == silence);
        let unchanged = of_renewal.filter(|_| of_record.is_some());
        let last = LastRenewal {
            renewed,
            at: of_renewal.map_or(at, |before| before.at),
            silence,
            silence_at: of_record.map_or(at, |before| before.silence_at),
            check: unchanged.and_then(|before| before.check),
            is_judged: unchanged.is_some_and(|before| before.is_judged),
            hold: unchanged.and_then(|before| before.hold),
        };
        self.members.insert(cluster.clone(), last);
    }

    /// Records that a MemberAgent is gone.
    pub(super) fn gone(&mut self, cluster: &ClusterId) {
        self.members.remove(cluster);
    }

    fn counts_since(&self, last: LastRenewal) -> Option<Timestamp> {
        match self.contact {
            Contact::Since(since) => Some(last.at.max(since)),
            Contact::Lost { .. } => None,
        }
    }

    /// Records that the watch of MemberAgents lost contact with the API server. Returns the value that changed.
    pub(in crate::hub) fn contact_lost(&mut self, now: Timestamp) -> Option<Value> {
        let Contact::Since(before) = self.contact else { return None };
        self.contact = Contact::Lost { at: now, before };
        Some(Value::MembersFollowed)
    }

    /// Records that the watch of MemberAgents has contact again. After a gap, each member has its full time again.
    /// Returns the value that changed.
    pub(in crate::hub) fn contact_began(&mut self, now: Timestamp) -> Option<Value> {
        let Contact::Lost { at, before } = self.contact else { return None };
        let is_short = now <= at.plus_micros(CONTACT_GAP_MICROS);
        self.contact = Contact::Since(if is_short { before } else { now });
        // The renewals that wait arrive before the next two checks.
        self.members.values_mut().for_each(|last| last.check = None);
        Some(Value::MembersFollowed)
    }

    /// Records what a plan has seen of an overdue member.
    pub(in crate::hub) fn checked(&mut self, cluster: &ClusterId, check: Check, now: Timestamp) {
        let Some(last) = self.members.get_mut(cluster) else { return };
        match check {
            Check::First => last.check = Some(now),
            Check::Judged => last.is_judged = true,
            Check::Forgiven => last.at = now,
        }
    }

    /// The status of a member's MemberAgent was written. If it does not have the judgement, the hub's CRD is too old
    /// for it.
    pub(super) fn judgement_written(&mut self, cluster: &ClusterId, now: Timestamp) {
        let Some(last) = self.members.get_mut(cluster) else { return };
        if std::mem::take(&mut last.is_judged) {
            last.hold = Some(now.plus_micros(DROPPED_JUDGEMENT_MICROS));
        }
    }

    /// Records the last message of a slice stream that has ended: until then it showed that the member lives.
    pub(in crate::hub) fn stream_ended(&mut self, importer: &MemberNamespace, last_message: Timestamp) {
        let last = names::cluster_of(importer).and_then(|cluster| self.members.get_mut(&cluster));
        if let Some(last) = last {
            (last.at, last.check) = (last.at.max(last_message), None);
        }
    }

    /// Returns what is known about the last renewal of a member; `None` if it never renewed.
    pub(super) fn of(&self, cluster: &ClusterId, agent: &MemberAgent, previews: &Previews) -> Option<RenewalState> {
        let last = *self.members.get(cluster)?;
        let has_stream = previews.has_stream(&agent.meta.name.member_namespace());
        let since = self.counts_since(last).filter(|_| !has_stream);
        let LastRenewal { renewed, silence_at, check, hold, .. } = last;
        Some(RenewalState { renewed, since, has_stream, silence_at, has_stopped: agent.stopped.is_some(), check, hold })
    }

    /// Returns the members that renewed, with the time since which each has not renewed. `None` while the watch has no
    /// contact.
    pub(super) fn all(&self) -> impl Iterator<Item = (&ClusterId, Option<Timestamp>)> {
        self.members.iter().map(|(cluster, last)| (cluster, self.counts_since(*last)))
    }

    pub(super) fn clock_set(&mut self, micros: i64) {
        for last in self.members.values_mut() {
            last.at = last.at.plus_micros(micros);
            last.silence_at = last.silence_at.plus_micros(micros);
            last.check = last.check.map(|check| check.plus_micros(micros));
            last.hold = last.hold.map(|hold| hold.plus_micros(micros));
        }
        self.contact = match self.contact {
            Contact::Since(since) => Contact::Since(since.plus_micros(micros)),
            Contact::Lost { at, before } => {
                Contact::Lost { at: at.plus_micros(micros), before: before.plus_micros(micros) }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::hub::{Key, Planner};
    use crate::support::build::{Build, IntoObject, member_agent, seconds};

    fn agent() -> MemberAgent {
        member_agent("member-1", Features::ALL, Features::ALL)
    }

    fn see(view: &mut Planner, agent: MemberAgent, second: i64) {
        view.applied(agent.object(), seconds(second), &mut Vec::new());
    }

    fn renewal_state(view: &Planner) -> Option<RenewalState> {
        view.renewal_state(&"member-1".into())
    }

    fn check(view: &mut Planner, check: Check, second: i64) {
        view.checked(&Key::Member("member-1".into()), check, seconds(second));
    }

    #[test]
    fn a_check_and_a_judgement_hold_until_the_member_renews() {
        let mut view = Planner::default();
        see(&mut view, agent(), 10);
        check(&mut view, Check::First, 60);
        see(&mut view, MemberAgent { leader: Some("another".into()), ..agent() }, 61);
        assert_eq!(renewal_state(&view).and_then(|it| it.check), Some(seconds(60)));
        view.answered(&"member-1".into(), seconds(62));
        assert_eq!(renewal_state(&view).and_then(|it| it.hold), None, "nothing was judged");
        check(&mut view, Check::Judged, 65);
        see(&mut view, agent(), 66);
        view.answered(&"member-1".into(), seconds(67));
        assert_eq!(
            renewal_state(&view).and_then(|it| it.hold),
            Some(seconds(67).plus_micros(DROPPED_JUDGEMENT_MICROS))
        );
        see(&mut view, MemberAgent { renewed: Some(seconds(70)), ..agent() }, 70);
        let present = renewal_state(&view).expect("it renewed");
        assert_eq!((present.since, present.check, present.hold), (Some(seconds(70)), None, None));
        see(&mut view, MemberAgent { renewed: Some(seconds(80)), ..agent().deleting() }, 80);
        assert_eq!(renewal_state(&view), None, "its MemberAgent goes");
    }

    #[test]
    fn all_times_move_with_the_clock() {
        let mut view = Planner::default();
        see(&mut view, agent(), 10);
        check(&mut view, Check::Judged, 20);
        view.answered(&"member-1".into(), seconds(20));
        check(&mut view, Check::First, 20);
        let before = renewal_state(&view).expect("it renewed");
        view.clock_set(1_000_000);
        let moved = |at: Option<Timestamp>| at.map(|at| at.plus_micros(1_000_000));
        let expected = RenewalState {
            since: moved(before.since),
            silence_at: before.silence_at.plus_micros(1_000_000),
            check: moved(before.check),
            hold: moved(before.hold),
            ..before
        };
        assert_eq!(renewal_state(&view), Some(expected));
        assert!(expected.check.is_some() && expected.hold.is_some());
    }

    #[test]
    fn only_the_end_of_a_stream_that_began_shows_that_the_member_lives() {
        let (mut view, importer) = (Planner::default(), names::member_namespace("member-1"));
        see(&mut view, agent(), 10);
        for (begins, since) in [(false, 10), (true, 30)] {
            if begins {
                view.stream_began(&importer, seconds(20), &mut Vec::new());
            }
            view.stream_ended(&importer, seconds(30), &mut Vec::new());
            assert_eq!(renewal_state(&view).and_then(|it| it.since), Some(seconds(since)), "{begins}");
        }
    }

    #[test]
    fn a_gap_of_contact_counts_if_it_is_longer_than_the_limit() {
        for (micros, is_short) in [(CONTACT_GAP_MICROS, true), (CONTACT_GAP_MICROS + 1, false)] {
            let mut view = Planner::default();
            see(&mut view, agent(), 10);
            view.members_lost(seconds(100), &mut Vec::new());
            assert_eq!(renewal_state(&view).and_then(|it| it.since), None);
            view.clock_set(2_000_000);
            let end = seconds(102).plus_micros(micros);
            view.members_followed(end, &mut Vec::new());
            let expected = if is_short { seconds(12) } else { end };
            assert_eq!(renewal_state(&view).and_then(|it| it.since), Some(expected));
            view.clock_set(1_000_000);
            assert_eq!(renewal_state(&view).and_then(|it| it.since), Some(expected.plus_micros(1_000_000)));
        }
    }
}
