//! Silence: members that the hub agent does not hear from any more.
//!
//! A member renews its MemberAgent every 10 s. After `--silence-soft` without a renewal, importers treat its endpoints
//! as draining, and after `--silence-hard` they withdraw them. Importers never do this to the last endpoints of a
//! Service.
//!
//! ```text
//!                 soft limit               hard limit
//!  (no record) ───────────────► Draining ─────────────► Withdrawn
//!      │  ▲                        │ ▲                      │
//!      │  │                renewal │ │ soft limit           │ renewal
//!      │  │ 30 min                 ▼ │                      ▼
//!      │  └──────────────────── Returned ◄──── hold ──── Returning   (from the second silence in 30 min)
//!      └─► Postponed (most members are silent): a renewal ends it, the hard limit leads to Draining.
//!          When most members renew again, the others have their full time again.
//! ```
//!
//! The time counts on the hub agent's clock, from the moment in which it saw a renewal. It counts only while the watch
//! of MemberAgents has contact, and no slice stream of the member is open. A member is judged only after two checks,
//! [`CHECK_MICROS`] before the limit and at the limit: after a pause of the process, the renewals that wait arrive in
//! between.

use crate::hub::view::last_renewal::{RenewalState, SilenceLimits};
use crate::hub::view::reader::Reader;
use crate::limits::{
    CHECK_MICROS, CHECK_VALID_MICROS, FLAP_HOLD_MAX_MICROS, FLAP_HOLD_MICROS, FLAP_MICROS, PLANNED_STOP_MICROS,
    RENEW_MICROS, SILENT_MEMBERS_MAX,
};
use crate::model::{Kind, MemberAgent, Silence, SilencePhase, SilentMember};
use crate::names;
use crate::plan::{self, Check, Event};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, Timestamp};
use std::collections::BTreeMap;

const COMPONENT: &str = "hub-agent";

/// Result of a check of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// Record for the MemberAgent.
    pub(crate) silence: Option<Silence>,
    /// Time of the next check.
    pub(crate) again: Option<Timestamp>,
    pub(crate) check: Option<Check>,
    /// Event about a new phase.
    pub(crate) event: Option<Event>,
}

/// Judges if a member is silent.
pub(crate) fn judge(view: Reader<'_>, cluster: &ClusterId, agent: &MemberAgent, now: Timestamp) -> Judgement {
    let Some(limits) = view.silence_limits() else { return Judgement::default() };
    let record = agent.status.silence;
    // A member that never renewed, such as one with Go agents, is never judged.
    let Some(renewal) = view.renewal_state(cluster) else {
        return Judgement { silence: record, ..Judgement::default() };
    };
    let is_mass = || is_mass_silence(view, limits, now);
    let mut judgement = next(record, renewal, limits, is_mass, now);
    if judgement.silence.map(|it| it.phase) != record.map(|it| it.phase) && renewal.hold.is_none() {
        judgement.event = event(cluster, agent, judgement.silence, limits);
    }
    judgement
}

/// Returns the silent members for the MemberAgent of an importer. A silent member whose MemberAgent was deleted stays
/// silent while it has exported slices.
pub(crate) fn members_for(view: Reader<'_>, importer: &ClusterId, agent: &MemberAgent) -> Vec<SilentMember> {
    if view.silence_limits().is_none() {
        return Vec::new();
    }
    let has_agent = |cluster: &ClusterId| view.member_agents().live(&names::member_agent(cluster)).is_some();
    let are_exports_unknown = !view.complete(&[Kind::EndpointSliceExport]);
    let may_export = |cluster: &ClusterId| are_exports_unknown || view.has_slice_exports(cluster);
    let judged = view.silent_members().filter(|member| member.cluster != *importer);
    let mut members: BTreeMap<ClusterId, SilentMember> =
        judged.map(|member| (member.cluster.clone(), member)).collect();
    let kept = agent.status.silent_members.iter();
    for member in kept.filter(|member| !has_agent(&member.cluster) && may_export(&member.cluster)) {
        members.entry(member.cluster.clone()).or_insert_with(|| member.clone());
    }
    members.into_values().take(SILENT_MEMBERS_MAX).collect()
}

/// True if most members fell silent at the same time. Then the cause is probably in the hub or in the network. Members
/// that were judged before, or announced a stop, do not count. Members with a slice stream count too: if they seem
/// silent although they live, the watch of MemberAgents is deaf.
fn is_mass_silence(view: Reader<'_>, limits: SilenceLimits, now: Timestamp) -> bool {
    // A heartbeat that is nearly due is no silence.
    let quiet = (limits.soft_micros / 2).max(RENEW_MICROS * 3 / 2);
    let (mut members, mut silent) = (0_usize, 0_usize);
    for (agent, since) in view.last_renewals() {
        let is_judged = agent.status.silence.is_some_and(|it| it.phase.treatment().is_some());
        let Some(since) = since else { continue };
        let silent_micros = now.0.saturating_sub(since.0);
        if is_judged || agent.stopped.is_some() || silent_micros >= limits.hard_micros {
            continue;
        }
        members += 1;
        silent += usize::from(silent_micros > quiet);
    }
    silent >= 2 && 2 * silent > members
}

impl Judgement {
    fn keep(silence: Option<Silence>, again: Option<Timestamp>) -> Self {
        Self { silence, again, ..Self::default() }
    }

    /// Returns the judgement after a signal. A phase that stays keeps the record.
    fn after(signal: Signal, record: Option<Silence>, renewal: RenewalState, now: Timestamp) -> Self {
        let (phase, count) = (record.map(|record| record.phase), record.map_or(0, |record| record.count));
        match next_phase(phase, signal, count) {
            next if next == phase => Self::keep(record, None),
            None => Self::default(),
            Some(next) => {
                let silences = u32::from(next == SilencePhase::Draining);
                Self::begin(next, count.saturating_add(silences), record, renewal, now)
            }
        }
    }

    /// Returns a judgement with a new phase after `record`. While importers treat the member as silent, the time of the
    /// first phase stays, from which the steps of a withdrawal count.
    fn begin(phase: SilencePhase, count: u32, record: Option<Silence>, renewal: RenewalState, now: Timestamp) -> Self {
        let treated = record.filter(|record| record.phase.treatment().is_some() && phase.treatment().is_some());
        let since = treated.map_or(now, |record| record.since);
        let silence = Silence { phase, since, renewed: renewal.renewed, count };
        Self { silence: Some(silence), ..Self::default() }
    }
}

/// Observation that can change the phase of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// The member has renewed since the record was written.
    Renewal,
    /// The phase has lasted its time.
    Expiry,
    /// The member is silent for longer than the soft limit.
    SoftLimit,
    /// The same, and most other members are silent too.
    MassSilence,
    /// The member is silent for longer than the hard limit.
    HardLimit,
}

/// Returns the phase of a member after a signal, by the diagram above. `count` is the number of its silences in a row.
/// A signal without a row changes nothing.
fn next_phase(phase: Option<SilencePhase>, signal: Signal, count: u32) -> Option<SilencePhase> {
    use Signal::{Expiry, HardLimit, MassSilence, Renewal, SoftLimit};
    use SilencePhase::{Draining, Postponed, Returned, Returning, Withdrawn};
    match (phase, signal) {
        (None | Some(Returned), SoftLimit | HardLimit) => Some(Draining),
        (None | Some(Returned), MassSilence) => Some(Postponed),
        (Some(Postponed), Renewal | SoftLimit) => (count > 0).then_some(Returned),
        (Some(Postponed), HardLimit) => Some(Draining),
        (Some(Draining), SoftLimit | HardLimit) => Some(Withdrawn),
        (Some(Draining | Withdrawn), Renewal) => Some(if count > 1 { Returning } else { Returned }),
        (Some(Returning), SoftLimit | HardLimit) => Some(Draining),
        (Some(Returning), Expiry) => Some(Returned),
        (Some(Returned), Expiry) => None,
        _ => phase,
    }
}

/// Returns the judgement about a member with this record.
fn next(
    record: Option<Silence>,
    renewal: RenewalState,
    limits: SilenceLimits,
    is_mass: impl Fn() -> bool,
    now: Timestamp,
) -> Judgement {
    use SilencePhase::{Draining, Postponed, Returning};
    if let Some(signal) = signal_of_record(record, renewal, now) {
        return Judgement::after(signal, record, renewal, now);
    }
    let limit = match limit(record, renewal, limits, now) {
        Ok(limit) => limit,
        Err(Wait { again, check }) => return Judgement { check, ..Judgement::keep(record, again) },
    };
    let phase = record.map(|record| record.phase);
    // The silence of others holds back only a first judgement.
    let is_first = !matches!(phase, Some(Draining | Returning));
    let signal = if limit == Signal::SoftLimit && is_first && is_mass() { Signal::MassSilence } else { limit };
    let (check, again) = match (phase, signal) {
        (Some(Postponed), Signal::MassSilence) => (Check::First, Some(now.plus_micros(CHECK_MICROS))),
        (Some(Postponed), Signal::SoftLimit) => (Check::Forgiven, Some(now.plus_micros(limits.soft_micros))),
        _ => (Check::Judged, None),
    };
    Judgement { check: Some(check), again, ..Judgement::after(signal, record, renewal, now) }
}

/// Returns the signal that needs no check: the end of a silence, or of a phase by itself.
fn signal_of_record(record: Option<Silence>, renewal: RenewalState, now: Timestamp) -> Option<Signal> {
    let record = record?;
    let is_over = || record.ends(renewal.silence_at) <= Some(now);
    match record.phase {
        SilencePhase::Postponed | SilencePhase::Draining | SilencePhase::Withdrawn => {
            (record.renewed != renewal.renewed).then_some(Signal::Renewal)
        }
        SilencePhase::Returning => {
            (is_over() && renewal.is_renewing(now) && renewal.has_renewed_since_record()).then_some(Signal::Expiry)
        }
        SilencePhase::Returned => is_over().then_some(Signal::Expiry),
    }
}

/// Time of the next check of a member, and the result of this one.
struct Wait {
    again: Option<Timestamp>,
    check: Option<Check>,
}

impl Wait {
    fn until(again: Option<Timestamp>) -> Self {
        Self { again, check: None }
    }
}

/// Returns the limit that the silence of a member has reached.
///
/// # Errors
/// If the limit is not reached, or was not checked twice.
fn limit(
    record: Option<Silence>,
    renewal: RenewalState,
    limits: SilenceLimits,
    now: Timestamp,
) -> Result<Signal, Wait> {
    let phase = record.map(|record| record.phase);
    if phase == Some(SilencePhase::Withdrawn) {
        return Err(Wait::until(None));
    }
    let later = record.and_then(|record| record.ends(renewal.silence_at)).filter(|end| now < *end);
    let since = renewal.since.ok_or_else(|| Wait::until(later))?;
    let grace = if renewal.has_stopped { PLANNED_STOP_MICROS } else { 0 };
    let soft = since.plus_micros(limits.soft_micros.saturating_add(grace));
    let hard = since.plus_micros(limits.hard_micros.saturating_add(grace));
    let withdrawn = renewal.silence_at.plus_micros(limits.hard_micros - limits.soft_micros);
    let due = if phase == Some(SilencePhase::Draining) { soft.max(withdrawn) } else { soft };
    let due = renewal.hold.map_or(due, |hold| due.max(hold));
    // The second check is at the limit.
    let first_check = Timestamp(due.0.saturating_sub(CHECK_MICROS));
    if now < first_check {
        return Err(Wait::until(later.into_iter().chain([first_check]).min()));
    }
    let Some(check) = renewal.check.filter(|check| now < check.plus_micros(CHECK_VALID_MICROS)) else {
        return Err(Wait { again: Some(now.plus_micros(CHECK_MICROS)), check: Some(Check::First) });
    };
    let second_check = check.plus_micros(CHECK_MICROS);
    if now < second_check {
        return Err(Wait::until(Some(second_check)));
    }
    Ok(if now < hard { Signal::SoftLimit } else { Signal::HardLimit })
}

impl RenewalState {
    /// True if the member renews at present.
    fn is_renewing(self, now: Timestamp) -> bool {
        self.has_stream || self.since.is_some_and(|since| now < since.plus_micros(RENEW_MICROS * 3 / 2))
    }

    /// True if the member renewed after the renewal with which its return began, or has a slice stream.
    fn has_renewed_since_record(self) -> bool {
        self.has_stream || self.since.is_some_and(|since| since > self.silence_at)
    }
}

impl Silence {
    /// Returns the time at which a phase that began at `since` ends by itself.
    fn ends(self, since: Timestamp) -> Option<Timestamp> {
        match self.phase {
            SilencePhase::Returning => {
                let doublings = self.count.saturating_sub(2).min(16);
                let hold = (FLAP_HOLD_MICROS << doublings).min(FLAP_HOLD_MAX_MICROS);
                Some(since.plus_micros(hold))
            }
            SilencePhase::Returned => Some(since.plus_micros(FLAP_MICROS)),
            SilencePhase::Postponed | SilencePhase::Draining | SilencePhase::Withdrawn => None,
        }
    }
}

/// Returns the Event about a new phase of a member.
fn event(cluster: &ClusterId, agent: &MemberAgent, silence: Option<Silence>, limits: SilenceLimits) -> Option<Event> {
    let silence = silence?;
    let reason = match silence.phase {
        SilencePhase::Postponed => Reason::ManyMembersSilent,
        SilencePhase::Draining | SilencePhase::Withdrawn => Reason::MemberSilent,
        SilencePhase::Returning => Reason::MemberReturning,
        SilencePhase::Returned => Reason::MemberReturned,
    };
    let message = format!("cluster {cluster} {}", message(cluster, silence, limits));
    Some(plan::event(COMPONENT, Kind::MemberAgent, &agent.meta, reason, message))
}

/// Returns the message of the Event, after the name of the cluster.
fn message(cluster: &ClusterId, silence: Silence, limits: SilenceLimits) -> String {
    let (soft, hard) = (limits.soft_micros / 1_000_000, limits.hard_micros / 1_000_000);
    let check = format!("Check the member agent of cluster {cluster} and its connection to the hub");
    match silence.phase {
        SilencePhase::Postponed => format!(
            "and most other members have not renewed their MemberAgents for {soft} s, so their endpoints stay as \
             they are. Check the API server of the hub and the network"
        ),
        SilencePhase::Draining => format!(
            "has not renewed its MemberAgent for {soft} s, so importers use its endpoints only while no other \
             cluster has ready endpoints of the Service. {check}"
        ),
        SilencePhase::Withdrawn => format!(
            "has not renewed its MemberAgent for {hard} s, so importers withdraw its endpoints, unless no other \
             cluster has ready endpoints of the Service. {check}"
        ),
        SilencePhase::Returning => format!(
            "renews its MemberAgent again, after {} silences in a row. Importers use its endpoints as usual \
             once it has renewed for a while",
            silence.count
        ),
        SilencePhase::Returned => "renews its MemberAgent again, so importers use its endpoints".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::hub::{Key, Planner};
    use crate::model::Treatment;
    use crate::reads::Reads;
    use crate::support::build::{IntoObject, member_agent, seconds, slice, slice_export};
    use crate::support::view::hub_view;
    use SilencePhase::{Draining, Postponed, Returned, Returning, Withdrawn};

    const LIMITS: SilenceLimits = SilenceLimits { soft_micros: 60_000_000, hard_micros: 600_000_000 };

    fn record(phase: SilencePhase, count: u32) -> Silence {
        Silence { phase, since: seconds(1), renewed: seconds(1), count }
    }

    /// Returns what is known about a member that has been silent since second 1,000, with a valid check at this second.
    fn renewal(check: Option<i64>) -> RenewalState {
        RenewalState {
            renewed: seconds(1),
            since: Some(seconds(1_000)),
            has_stream: false,
            silence_at: seconds(500),
            has_stopped: false,
            check: check.map(seconds),
            hold: None,
        }
    }

    /// Also rule O14.
    #[test]
    fn the_next_phase_follows_from_the_record_and_the_time() {
        let now_and_mass = |now, is_mass| (seconds(now), is_mass);
        let silent = |phase, count, check| (Some(record(phase, count)), renewal(Some(check)));
        let new = |check| (None, renewal(Some(check)));
        let table = [
            (new(1_055), now_and_mass(1_060, false), Some((Draining, 1)), Some(Check::Judged)),
            (new(1_055), now_and_mass(1_060, true), Some((Postponed, 0)), Some(Check::Judged)),
            (new(1_590), now_and_mass(1_599, true), Some((Postponed, 0)), Some(Check::Judged)),
            (new(1_590), now_and_mass(1_600, true), Some((Draining, 1)), Some(Check::Judged)), // the hard limit
            (new(1_595), now_and_mass(1_610, false), None, Some(Check::First)),                // the check is 15 s old
            (new(1_596), now_and_mass(1_610, false), Some((Draining, 1)), Some(Check::Judged)),
            (silent(Postponed, 0, 1_590), now_and_mass(1_599, true), Some((Postponed, 0)), Some(Check::First)),
            (silent(Postponed, 0, 1_590), now_and_mass(1_600, true), Some((Draining, 1)), Some(Check::Judged)),
            (silent(Postponed, 0, 1_590), now_and_mass(1_599, false), None, Some(Check::Forgiven)),
            (silent(Postponed, 2, 1_590), now_and_mass(1_599, false), Some((Returned, 2)), Some(Check::Forgiven)),
            (silent(Postponed, 2, 1_590), now_and_mass(1_600, false), Some((Draining, 3)), Some(Check::Judged)),
            (silent(Draining, 1, 1_590), now_and_mass(1_600, true), Some((Withdrawn, 1)), Some(Check::Judged)),
            (silent(Draining, 1, 1_060), now_and_mass(1_070, true), Some((Withdrawn, 1)), Some(Check::Judged)),
            (silent(Returning, 2, 1_060), now_and_mass(1_070, true), Some((Draining, 3)), Some(Check::Judged)),
            (silent(Withdrawn, 1, 1_590), now_and_mass(1_600, true), Some((Withdrawn, 1)), None), // only a renewal counts
        ];
        for ((record, renewal), (now, is_mass), expected, check) in table {
            let judgement = next(record, renewal, LIMITS, || is_mass, now);
            let found = judgement.silence.map(|it| (it.phase, it.count));
            assert_eq!((found, judgement.check), (expected, check), "{record:?} at {now:?}, mass {is_mass}");
        }
    }

    #[test]
    fn each_signal_leads_to_the_next_phase_of_the_diagram() {
        use Signal::{Expiry, HardLimit, MassSilence, Renewal, SoftLimit};
        let table = [
            (None, 0, [None, None, Some(Draining), Some(Postponed), Some(Draining)]),
            (Some(Returned), 1, [Some(Returned), None, Some(Draining), Some(Postponed), Some(Draining)]),
            (Some(Postponed), 0, [None, Some(Postponed), None, Some(Postponed), Some(Draining)]),
            (Some(Postponed), 1, [Some(Returned), Some(Postponed), Some(Returned), Some(Postponed), Some(Draining)]),
            (Some(Draining), 1, [Some(Returned), Some(Draining), Some(Withdrawn), Some(Draining), Some(Withdrawn)]),
            (Some(Draining), 2, [Some(Returning), Some(Draining), Some(Withdrawn), Some(Draining), Some(Withdrawn)]),
            (Some(Withdrawn), 1, [Some(Returned), Some(Withdrawn), Some(Withdrawn), Some(Withdrawn), Some(Withdrawn)]),
            (Some(Withdrawn), 2, [Some(Returning), Some(Withdrawn), Some(Withdrawn), Some(Withdrawn), Some(Withdrawn)]),
            (Some(Returning), 2, [Some(Returning), Some(Returned), Some(Draining), Some(Returning), Some(Draining)]),
        ];
        for (phase, count, expected) in table {
            let next = [Renewal, Expiry, SoftLimit, MassSilence, HardLimit].map(|it| next_phase(phase, it, count));
            assert_eq!(next, expected, "{phase:?} {count}");
        }
    }

    /// Also rule O17.
    #[test]
    fn a_member_has_returned_after_the_hold_if_it_renews_then() {
        let returning = record(Returning, 5);
        let hold = returning.ends(seconds(500)).expect("it ends");
        let since = |micros: i64| Some(hold.plus_micros(-micros));
        let deaf = RenewalState { since: None, ..renewal(None) };
        let table = [
            (RenewalState { since: since(RENEW_MICROS), ..renewal(None) }, hold, Returned),
            (RenewalState { has_stream: true, ..deaf }, hold, Returned),
            (deaf, hold, Returning),
            (deaf, hold.plus_micros(-1), Returning),
            (RenewalState { since: since(RENEW_MICROS * 3 / 2), ..renewal(None) }, hold, Returning),
        ];
        for (renewal, now, phase) in table {
            let judgement = next(Some(returning), renewal, LIMITS, || false, now);
            assert_eq!(judgement.silence.map(|it| it.phase), Some(phase), "{renewal:?} at {now:?}");
        }
        let again = |renewal, now| next(Some(returning), renewal, LIMITS, || false, now).again;
        assert_eq!(again(deaf, hold.plus_micros(-1)), Some(hold));
        assert_eq!(again(deaf, hold), None, "it waits for a renewal");
    }

    #[test]
    fn the_time_of_the_first_phase_stays_while_importers_treat_the_member_as_silent() {
        for (before, after, stays) in [
            (Draining, Withdrawn, true),
            (Returning, Draining, true),
            (Draining, Returned, false),
            (Postponed, Draining, false),
            (Postponed, Returned, false),
        ] {
            let judgement = Judgement::begin(after, 1, Some(record(before, 1)), renewal(None), seconds(9));
            let expected = if stays { seconds(1) } else { seconds(9) };
            assert_eq!(judgement.silence.map(|it| it.since), Some(expected), "{before:?} {after:?}");
        }
    }

    /// Returns a hub that saw a renewal of members at these seconds.
    fn hub(renewals: &[i64]) -> Planner {
        let mut view = Planner::from(crate::hub::View::default());
        view.silence_limits = Some(LIMITS);
        for (number, second) in renewals.iter().enumerate() {
            let agent = member_agent(&format!("member-{number}"), Features::ALL, Features::ALL);
            view.applied(agent.object(), seconds(*second), &mut Vec::new());
        }
        view
    }

    /// Also rule O16.
    #[test]
    fn a_silence_of_most_members_is_one_of_more_than_half_of_those_that_renewed_before_the_hard_limit() {
        let table: [(&[i64], bool); 8] = [
            (&[1_000, 1_000, 1_040], true),
            (&[1_000, 1_000], true),
            (&[1_000], false),
            (&[1_000, 1_000, 1_040, 1_040], false), // exactly half of them
            (&[1_020, 1_020, 1_050], false),        // exactly as long as a heartbeat may take
            (&[450, 450, 1_050], false),            // exactly the hard limit
            (&[400, 400, 1_050], false),
            (&[451, 451, 1_050], true),
        ];
        for (renewals, expected) in table {
            let (view, reads) = (hub(renewals), Reads::default());
            let is_mass = is_mass_silence(Reader::new(&view, &reads), LIMITS, seconds(1_050));
            assert_eq!(is_mass, expected, "{renewals:?}");
        }
    }

    #[test]
    fn a_phase_that_stays_gives_no_event() {
        let mut agent = member_agent("member-1", Features::ALL, Features::ALL);
        for (phase, expected) in [(None, Some(Reason::MemberSilent)), (Some(Withdrawn), None)] {
            agent.status.silence = phase.map(|phase| Silence { renewed: seconds(5), ..record(phase, 1) });
            let mut view = hub(&[]);
            view.applied(agent.clone().object(), seconds(10), &mut Vec::new());
            view.checked(&Key::Member("member-1".into()), Check::First, seconds(65));
            let reads = Reads::default();
            let judgement = judge(Reader::new(&view, &reads), &"member-1".into(), &agent, seconds(70));
            assert_eq!(judgement.event.map(|it| it.reason), expected, "{phase:?}");
        }
    }

    /// Also rule O19.
    #[test]
    fn an_importer_has_the_members_that_are_silent_or_may_still_export() {
        let listed = |cluster: &str| SilentMember { cluster: cluster.into(), treatment: Treatment::Draining };
        let mut silent = member_agent("member-1", Features::ALL, Features::ALL);
        silent.status.silence = Some(record(Draining, 1));
        let mut importer = member_agent("member-2", Features::ALL, Features::ALL);
        importer.status.silent_members = ["member-1", "member-3", "member-4"].map(listed).into();
        let export = crate::model::Object::EndpointSliceExport(slice_export("member-3", &slice("work/app-1")));
        let members = |view: &Planner| {
            let reads = Reads::default();
            let members = members_for(Reader::new(view, &reads), &"member-2".into(), &importer);
            members.iter().map(|it| it.cluster.to_string()).collect::<Vec<_>>()
        };
        let mut view = hub_view([silent.clone().object(), importer.clone().object(), export]);
        assert_eq!(members(&view), [""; 0], "without limits");
        view.silence_limits = Some(LIMITS);
        assert_eq!(members(&view), ["member-1", "member-3"], "member-4 exports nothing and has no MemberAgent");
        // A member with a MemberAgent is silent only by its record.
        let again = member_agent("member-3", Features::ALL, Features::ALL);
        view.applied(again.object(), seconds(20), &mut Vec::new());
        assert_eq!(members(&view), ["member-1"]);
        let mut unlisted = hub(&[]);
        unlisted.applied(silent.object(), seconds(10), &mut Vec::new());
        assert_eq!(members(&unlisted), ["member-1", "member-3", "member-4"], "exports are not listed");
    }

    #[test]
    fn a_member_is_silent_in_the_phases_that_importers_treat() {
        for phase in [Postponed, Draining, Withdrawn, Returning, Returned] {
            let mut agent = member_agent("member-1", Features::ALL, Features::ALL);
            agent.status.silence = Some(record(phase, 1));
            let (view, reads) = (hub_view([agent.object()]), Reads::default());
            let found = Reader::new(&view, &reads).silence_of(&"member-1".into()).map(|it| it.phase);
            assert_eq!(found, phase.treatment().map(|_| phase), "{phase:?}");
        }
    }
}
