//! Tests of silence: when the hub agent judges that a member is silent, and what importers then do with its endpoints.

mod fleet;

use crate::support::build::{IntoObject, member_agent, seconds, slice, slice_export};
use crate::support::view::planned_at;
use fleet::Fleet;
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub::{Key, SilenceLimits};
use fleetnet_core::model::{Announcement, Kind, MemberAgent, Object, SilencePhase, SilentMember, Treatment};
use fleetnet_types::{Change, MemberNamespace, Removal, WatchState};
use property::{cases, for_any};
use proptest::prelude::prop;
use std::collections::BTreeMap;

/// Rule O14: A member does not renew its MemberAgent for `--silence-soft`
/// Then: The hub agent checks twice, 5 s before this limit and at the limit. Then it sets `status.silence` to
/// `Draining`, and lists the member in the MemberAgent of each importer. The time counts on the hub agent's clock,
/// while its watch has contact and no slice stream of the member is open. After the end of a stream, it counts from the
/// last message of the member. It begins again after a restart, a gap of more than 5 s, or a first check that is older
/// than 15 s. A member that never renewed is never judged
///
/// Rule O15: The member is still silent at `--silence-hard`, or announced a planned stop
/// Then: The phase becomes `Withdrawn`, as long after the process saw the first phase as the limits differ. For a
/// member that announced a stop, both limits are 10 minutes longer
#[test]
fn a_member_is_silent_after_the_soft_limit_and_withdrawn_after_the_hard_limit() {
    let mut fleet = Fleet::of(3);
    fleet.until(100);
    fleet.dies("a");
    fleet.until(1_000);
    assert_eq!(fleet.phases(), ["160 a Draining", "700 a Withdrawn"]);
    for importer in ["b", "c"] {
        assert_eq!(fleet.treatment(importer, "a"), Some(Treatment::Withdrawn));
    }
    assert!(fleet.agent("a").status.silent_members.is_empty(), "a member never lists itself");
    fleet.returns("a");
    assert_eq!(fleet.phases(), ["1000 a Returned"], "at once");
    assert_eq!(fleet.treatment("b", "a"), None);
    fleet.until(3_000);
    assert_eq!(fleet.phases(), ["2800 a -"], "30 minutes later, nothing is left of it");
}

/// Rule O22: The phase of a member changes
/// Then: The hub agent emits an Event on the MemberAgent, and the leading hub agent shows the state in
/// `fleetnet_member_silent{member}`
#[test]
fn an_event_about_each_phase_says_what_it_means_and_what_to_check() {
    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    fleet.until(700);
    fleet.returns("a");
    fleet.until(720);
    fleet.dies("a");
    fleet.until(800);
    fleet.returns("a");
    fleet.until(830);
    ["a", "b", "c"].iter().for_each(|member| fleet.dies(member));
    fleet.until(930);
    let check = "Check the member agent of cluster a and its connection to the hub";
    let silent = format!(
        "MemberSilent: cluster a has not renewed its MemberAgent for 60 s, so importers use its endpoints only while no other cluster has \
         ready endpoints of the Service. {check}"
    );
    let many = |cluster: &str| {
        format!(
            "ManyMembersSilent: cluster {cluster} and most other members have not renewed their MemberAgents for 60 s, so their endpoints \
             stay as they are. Check the API server of the hub and the network"
        )
    };
    let expected = [
        silent.clone(),
        format!(
            "MemberSilent: cluster a has not renewed its MemberAgent for 600 s, so importers withdraw its endpoints, unless no other \
             cluster has ready endpoints of the Service. {check}"
        ),
        "MemberReturned: cluster a renews its MemberAgent again, so importers use its endpoints".to_owned(),
        silent,
        "MemberReturning: cluster a renews its MemberAgent again, after 2 silences in a row. Importers use its endpoints as usual once it \
         has renewed for a while"
            .to_owned(),
        "MemberReturned: cluster a renews its MemberAgent again, so importers use its endpoints".to_owned(),
        many("a"),
        many("b"),
        many("c"),
    ];
    assert_eq!(fleet.events, expected);
}

/// Rule O19: A member is silent
/// Then: One write for each importer carries the judgement. Importers use the list while the hub agent announces the
/// feature `SilentMembers`, with the same grace of 60 s as for other features. They keep the last list while their
/// MemberAgent is created again. If the silent member's MemberAgent is deleted, it stays silent until the last of its
/// exported slices is gone
#[test]
fn one_write_for_each_importer_carries_a_judgement() {
    let mut fleet = Fleet::of(11);
    fleet.until(100);
    fleet.dies("a");
    fleet.writes = 0;
    fleet.until(200);
    assert_eq!(fleet.phases(), ["160 a Draining"]);
    assert_eq!(fleet.writes, 1 + 10, "the record, and a list for each of the others");
}

/// Also rule O14.
#[test]
fn a_member_that_never_renewed_is_never_judged() {
    let mut fleet = Fleet::of(2);
    let agent = MemberAgent { renewed: None, ..member_agent("g", Features::NONE, Features::ALL) };
    fleet.apply(agent);
    fleet.until(2_000);
    assert_eq!(fleet.phases(), [""; 0]);
}

/// Also rule O14.
#[test]
fn with_the_soft_limit_off_nothing_is_judged_and_earlier_records_go() {
    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    fleet.until(200);
    assert_eq!(fleet.phases().len(), 1);
    fleet.view.silence_limits = None;
    fleet.until(220);
    fleet.renew("a");
    assert_eq!(fleet.phases(), ["220 a -"]);
    assert_eq!(fleet.treatment("b", "a"), None);
}

/// Also rule O15.
#[test]
fn a_planned_stop_gives_ten_more_minutes() {
    let mut fleet = Fleet::of(3);
    fleet.until(100);
    fleet.dies("a");
    let mut agent = fleet.agent("a").clone();
    agent.stopped = Some(seconds(100));
    fleet.apply(agent);
    fleet.until(1_500);
    assert_eq!(fleet.phases(), ["760 a Draining", "1300 a Withdrawn"]);
}

/// Rule O17: A silent member renews again
/// Then: The phase becomes `Returned` at once, and the record goes 30 minutes later. From the second silence within 30
/// minutes on, the phase is `Returning` first, for 10 s in which the member renews at least once more. This time
/// doubles with each further silence, up to 5 minutes
#[test]
fn a_member_that_falls_silent_again_and_again_must_renew_for_longer_and_longer() {
    let mut fleet = Fleet::of(3);
    let mut holds = Vec::new();
    for round in 0..9 {
        fleet.dies("a");
        let start = fleet.now;
        fleet.until(start + 100);
        fleet.returns("a");
        let returned = fleet.now;
        assert_eq!(fleet.treatment("b", "a").is_some(), round > 0, "only the first return is trusted at once");
        fleet.until(returned + 400);
        let phases = fleet.phases();
        let last = phases.last().expect("a return");
        let (second, name) = last.split_once(' ').expect("a phase");
        assert_eq!(name, "a Returned", "{phases:?}");
        holds.push(second.parse::<i64>().expect("a second") - returned);
    }
    assert_eq!(holds, [0, 10, 20, 40, 80, 160, 300, 300, 300]);
    fleet.until(fleet.now + 1_800);
    assert_eq!(fleet.phases().len(), 1, "the record goes");
    fleet.dies("a");
    fleet.until(fleet.now + 100);
    fleet.returns("a");
    assert_eq!(fleet.treatment("b", "a"), None, "it was stable for half an hour");
}

/// Also rules O17, O21.
#[test]
fn a_member_that_falls_silent_while_it_must_prove_itself_starts_again() {
    let mut fleet = Fleet::of(3);
    fleet.flaps("a", &[15, 15, 1]);
    // Importers that lose its endpoints in steps do not get them back in between.
    let since = fleet.agent("a").status.silence.map(|it| it.since);
    // It must renew for 20 s now, and dies after a second.
    assert_eq!(fleet.agent("a").status.silence.map(|it| (it.phase, it.count)), Some((SilencePhase::Returning, 3)));
    fleet.phases();
    let start = fleet.now;
    fleet.dies("a");
    fleet.until(start + 200);
    let phases = fleet.phases();
    assert!(phases.iter().all(|phase| phase.ends_with("Draining")), "it is trusted only while it renews: {phases:?}");
    let after = fleet.agent("a").status.silence.expect("it is silent");
    assert_eq!((after.phase, after.count, Some(after.since)), (SilencePhase::Draining, 4, since));
    assert!(after.since < seconds(start), "steps count from the first phase");
}

/// Also rule O17.
#[test]
fn a_member_that_dies_again_while_it_must_prove_itself_is_not_trusted() {
    let mut fleet = Fleet::of(3);
    fleet.flaps("a", &[15, 15, 25, 12]);
    // It must renew for 40 s now. It renewed once more, and dies.
    fleet.phases();
    fleet.dies("a");
    fleet.until(fleet.now + 45);
    assert_eq!(fleet.phases(), [""; 0]);
}

/// Also rule O17.
#[test]
fn one_renewal_is_not_enough_to_be_trusted_again_after_a_second_silence() {
    let mut fleet = Fleet::of(3);
    fleet.flaps("a", &[15, 1]);
    fleet.phases();
    fleet.dies("a");
    fleet.until(fleet.now + 50);
    assert_eq!(fleet.phases(), [""; 0], "it must renew for 10 s");
    assert_eq!(fleet.treatment("b", "a"), Some(Treatment::Draining));
}

/// Rule O16: More than half of the members, and at least two, have not renewed for half of the soft limit
/// Then: A member that passes the soft limit gets the phase `Postponed`, and nothing changes. When fewer are silent,
/// the phase ends, and the member has its full time again. At the hard limit, it becomes `Draining`. Members that were
/// judged before or announced a stop do not count. Members with an open slice stream count: if they do not renew
/// either, the hub agent does not hear anybody
#[test]
fn if_most_members_fall_silent_at_once_none_is_judged_before_the_hard_limit() {
    let mut fleet = Fleet::of(5);
    fleet.until(100);
    ["a", "b", "c"].iter().for_each(|member| fleet.dies(member));
    fleet.until(500);
    assert_eq!(fleet.phases(), ["160 a Postponed", "160 b Postponed", "160 c Postponed"]);
    assert_eq!(fleet.treatment("e", "a"), None);
    fleet.returns("a");
    assert_eq!(fleet.phases(), ["500 a -"]);
    // Of the five members, two are silent now. They have their full time again.
    fleet.until(600);
    assert_eq!(fleet.phases(), ["505 b -", "505 c -", "565 b Draining", "565 c Draining"]);

    let mut fleet = Fleet::of(5);
    fleet.until(100);
    ["a", "b", "c"].iter().for_each(|member| fleet.dies(member));
    fleet.until(2_000);
    let phases = fleet.phases();
    let of_a: Vec<&String> = phases.iter().filter(|it| it.contains(" a ")).collect();
    assert_eq!(of_a, ["160 a Postponed", "700 a Draining", "1240 a Withdrawn"]);
}

/// Also rule O16.
#[test]
fn members_that_return_one_after_the_other_after_a_mass_silence_are_not_judged() {
    let mut fleet = Fleet::of(6);
    fleet.until(100);
    let away = ["a", "b", "c", "d"];
    away.iter().for_each(|member| fleet.dies(member));
    fleet.until(400);
    assert_eq!(fleet.phases().len(), 4);
    // Heartbeats wait for up to 40 s between two tries.
    for member in away {
        fleet.returns(member);
        fleet.until(fleet.now + 15);
    }
    assert!(fleet.phases().iter().all(|phase| phase.ends_with('-')));
}

/// Also rule O14.
#[test]
fn a_judgement_that_could_not_be_written_is_planned_again_at_once() {
    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    fleet.until(59);
    let key = Key::Member("a".into());
    for _ in 0..3 {
        let plan = planned_at(&fleet.view, &key, seconds(60));
        assert_eq!(plan.writes.len(), 1);
        fleet.view.checked(&key, plan.check.expect("a judgement"), seconds(60));
    }
}

/// Also rule O16.
#[test]
fn silence_before_a_stop_is_no_part_of_a_mass_silence() {
    let mut fleet = Fleet::of(4);
    fleet.until(100);
    for member in ["a", "b"] {
        fleet.dies(member);
        let mut agent = fleet.agent(member).clone();
        agent.stopped = Some(seconds(100));
        fleet.apply(agent);
    }
    fleet.dies("c");
    fleet.until(170);
    assert_eq!(fleet.phases(), ["160 c Draining"], "two of the four have stopped as planned");

    let mut fleet = Fleet::of(2);
    let mut agent = fleet.agent("b").clone();
    agent.stopped = Some(seconds(0));
    fleet.apply(agent);
    ["a", "b"].iter().for_each(|member| fleet.dies(member));
    fleet.until(100);
    assert_eq!(fleet.phases(), ["60 a Draining"], "one member is never most members");
}

/// Also rule O16.
#[test]
fn if_members_with_slice_streams_seem_silent_too_the_watch_is_deaf_and_nobody_is_judged() {
    let with_streams = || {
        let mut fleet = Fleet::of(6);
        for member in ["a", "b", "c", "d", "e"] {
            fleet.view.stream_began(&format!("fleet-member-{member}").into(), seconds(1), &mut Vec::new());
        }
        fleet
    };
    let mut fleet = with_streams();
    fleet.dies("f");
    fleet.until(100);
    assert_eq!(fleet.phases(), ["60 f Draining"], "the others renew");
    let mut fleet = with_streams();
    ["a", "b", "c", "d", "e", "f"].iter().for_each(|member| fleet.dies(member));
    fleet.until(100);
    assert_eq!(fleet.phases(), ["60 f Postponed"]);
}

/// Also rule O19.
#[test]
fn an_importer_without_the_feature_gets_no_list() {
    let mut fleet = Fleet::of(3);
    let mut agent = fleet.agent("c").clone();
    agent.member = Announcement::new("1.2.3", Features::ALL.without(Feature::SilentMembers));
    fleet.apply(agent);
    fleet.dies("a");
    fleet.until(100);
    assert_eq!(fleet.treatment("b", "a"), Some(Treatment::Draining));
    assert_eq!(fleet.treatment("c", "a"), None);
}

/// Also rule O16.
#[test]
fn with_a_short_soft_limit_a_heartbeat_that_is_nearly_due_is_no_silence() {
    let mut fleet = Fleet::of(3);
    fleet.view.silence_limits = Some(SilenceLimits { soft_micros: 15_000_000, hard_micros: 600_000_000 });
    fleet.until(23);
    fleet.renew("a");
    fleet.dies("a");
    // The second check is 8 s after the heartbeats of the others.
    fleet.until(39);
    assert_eq!(fleet.phases(), ["38 a Draining"]);
}

/// Also rule O16.
#[test]
fn one_of_two_members_is_judged_and_both_at_once_are_not() {
    let mut fleet = Fleet::of(2);
    fleet.dies("a");
    fleet.until(100);
    assert_eq!(fleet.phases(), ["60 a Draining"]);
    let mut fleet = Fleet::of(2);
    fleet.dies("a");
    fleet.dies("b");
    fleet.until(100);
    assert_eq!(fleet.phases(), ["60 a Postponed", "60 b Postponed"]);
    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    fleet.until(300);
    fleet.dies("b");
    fleet.until(400);
    assert_eq!(fleet.phases(), ["60 a Draining", "360 b Draining"], "one after the other is no mass silence");
}

/// Also rule O14.
#[test]
fn time_without_contact_to_the_hubs_api_server_does_not_count() {
    let mut fleet = Fleet::of(3);
    fleet.until(100);
    fleet.dies("a");
    fleet.until(150);
    let mut requeue = Vec::new();
    fleet.view.members_lost(seconds(150), &mut requeue);
    assert_eq!(requeue.len(), 3);
    for _ in 0..600 {
        fleet.now += 1;
        fleet.run_due();
    }
    assert_eq!(fleet.phases(), [""; 0]);
    let mut requeue = Vec::new();
    fleet.view.members_followed(seconds(fleet.now), &mut requeue);
    assert_eq!(requeue.len(), 3);
    fleet.plan(requeue);
    fleet.until(1_000);
    assert_eq!(fleet.phases(), ["810 a Draining"], "each member has its full time again");

    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    fleet.until(50);
    fleet.view.members_lost(seconds(50), &mut Vec::new());
    fleet.view.members_followed(seconds(54), &mut Vec::new());
    fleet.until(100);
    assert_eq!(fleet.phases(), ["60 a Draining"], "a short gap does not matter");

    // A gap between the two checks: the renewals that wait arrive before the next two checks.
    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    fleet.until(57);
    fleet.view.members_lost(seconds(57), &mut Vec::new());
    let mut requeue = Vec::new();
    fleet.view.members_followed(seconds(57), &mut requeue);
    fleet.plan(requeue);
    fleet.until(100);
    assert_eq!(fleet.phases(), ["62 a Draining"]);
}

/// Also rule O14.
#[test]
fn a_pause_of_the_process_makes_nobody_silent() {
    let mut fleet = Fleet::of(3);
    fleet.until(100);
    // The process is paused. Its timers run before it gets the renewals that wait.
    for pause in [70, 300, 3_600] {
        fleet.now += pause;
        fleet.run_due();
        fleet.now += 1;
        fleet.run_due();
        ["a", "b", "c"].iter().for_each(|member| fleet.renew(member));
        fleet.until(fleet.now + 30);
        assert_eq!(fleet.phases(), [""; 0], "{pause}");
    }
    // A pause between the two checks.
    fleet.dies("a");
    fleet.until(fleet.now / 10 * 10 + 57); // the last renewal was 57 s ago
    fleet.now += 200;
    fleet.run_due();
    assert_eq!(fleet.phases(), [""; 0]);
    ["a", "b", "c"].iter().for_each(|member| fleet.renew(member));
    fleet.until(fleet.now + 30);
    assert_eq!(fleet.phases(), [""; 0]);
}

/// Also rule O14.
#[test]
fn an_open_slice_stream_is_a_sign_of_life() {
    let mut fleet = Fleet::of(3);
    let stream: MemberNamespace = "fleet-member-a".into();
    fleet.view.stream_began(&stream, seconds(1), &mut Vec::new());
    fleet.dies("a");
    fleet.until(500);
    assert_eq!(fleet.phases(), [""; 0]);
    let mut requeue = Vec::new();
    fleet.view.stream_ended(&stream, seconds(500), &mut requeue);
    assert!(requeue.contains(&Key::Member("a".into())), "{requeue:?}");
    fleet.plan(requeue);
    fleet.until(600);
    assert_eq!(fleet.phases(), ["560 a Draining"]);
}

/// Also rule O14.
#[test]
fn a_clock_that_is_set_makes_nobody_silent_and_delays_no_judgement() {
    for hours in [-1, 1] {
        let mut fleet = Fleet::of(3);
        fleet.until(4_000);
        fleet.dies("a");
        fleet.until(4_030);
        fleet.view.clock_set(hours * 3_600_000_000);
        fleet.now += hours * 3_600;
        let start = fleet.now;
        for member in ["a", "b", "c"] {
            fleet.plan(vec![Key::Member(member.into())]);
        }
        fleet.until(start + 60);
        assert_eq!(fleet.phases(), [format!("{} a Draining", start + 30)], "{hours}");
    }
}

/// Also rules O15, O19.
#[test]
fn a_judgement_survives_a_restart_of_the_hub_agent_and_the_deletion_of_the_memberagent() {
    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    fleet.until(100);
    fleet.phases();
    let agents: Vec<MemberAgent> = ["a", "b", "c"].map(|member| fleet.agent(member).clone()).into();
    let mut restarted = Fleet::of(0);
    restarted.now = 100;
    restarted.members = fleet.members.clone();
    for agent in agents {
        restarted.apply(agent);
    }
    assert_eq!(restarted.treatment("b", "a"), Some(Treatment::Draining));
    restarted.until(1_000);
    assert_eq!(restarted.phases(), ["640 a Withdrawn"], "540 s after the start");

    let exported = Object::EndpointSliceExport(slice_export("a", &slice("work/app-1")));
    fleet.view.applied(exported.clone(), seconds(100), &mut Vec::new());
    let removed = |object: &Object| {
        let (name, uid) = (object.meta().name.clone(), object.meta().uid.clone());
        (object.kind(), Change::Removed { name, uid, how: Removal::Deleted })
    };
    let mut requeue = Vec::new();
    let (kind, change) = removed(&fleet.agent("a").clone().object());
    fleet.view.apply(kind, change, seconds(100), &mut requeue);
    fleet.members.remove("a");
    fleet.due.remove("a");
    fleet.plan(requeue);
    fleet.until(130);
    assert_eq!(fleet.treatment("b", "a"), Some(Treatment::Draining), "its slices are still there");
    let (kind, change) = removed(&exported);
    fleet.view.apply(kind, change, seconds(130), &mut Vec::new());
    fleet.until(150);
    assert_eq!(fleet.treatment("b", "a"), None);
    // Another cluster uses the id, with Go agents.
    fleet.view.applied(exported, seconds(150), &mut Vec::new());
    fleet.until(170);
    assert_eq!(fleet.treatment("b", "a"), None, "the silence of the first cluster has ended");
}

/// Also rule O19.
#[test]
fn a_silent_member_without_memberagent_stays_in_the_lists_until_the_exported_slices_are_listed() {
    let mut fleet = Fleet::of(2);
    let mut agent = fleet.agent("b").clone();
    agent.status.silent_members = vec![SilentMember { cluster: "gone".into(), treatment: Treatment::Draining }];
    fleet.view.watch_state(Kind::EndpointSliceExport, WatchState::Incomplete, seconds(1), &mut Vec::new());
    fleet.apply(agent);
    fleet.until(30);
    assert_eq!(fleet.treatment("b", "gone"), Some(Treatment::Draining));
    let mut requeue = Vec::new();
    fleet.view.watch_state(Kind::EndpointSliceExport, WatchState::Complete, seconds(30), &mut requeue);
    fleet.plan(requeue);
    assert_eq!(fleet.treatment("b", "gone"), None);
}

/// Rule O18: The hub's CRD of MemberAgent is older than `status.silence`
/// Then: The hub agent tries to write the record once a minute, with an Event the first time, and no importer changes
/// anything
#[test]
fn a_definition_that_drops_the_record_causes_a_try_a_minute() {
    let mut fleet = Fleet::of(3);
    fleet.dies("a");
    let mut tries = Vec::new();
    for second in 1..400 {
        fleet.now = second;
        for member in ["b", "c"] {
            if second % 10 == 0 {
                fleet.renew(member);
            }
        }
        let due = fleet.due.get("a").is_some_and(|at| *at <= seconds(second));
        if due {
            let key = Key::Member("a".into());
            let plan = fleet.view.plan(&key, seconds(second));
            if let Some(check) = plan.check {
                fleet.view.checked(&key, check, seconds(second));
            }
            if let [write] = &plan.writes[..] {
                tries.push((second, write.events.len()));
                fleet.view.answered(&"a".into(), seconds(second));
            }
            // After its writes, a key is planned again.
            let again = fleet.view.plan(&key, seconds(second)).again;
            fleet.due.insert("a".into(), again.expect("a check"));
        }
    }
    assert_eq!(tries, [(60, 1), (120, 0), (180, 0), (240, 0), (300, 0), (360, 0)], "with one Event");
}

/// Also rule O14.
#[test]
fn any_history_judges_only_members_that_did_not_renew_and_all_of_those() {
    let step = (0..4_usize, 1..150_i64, prop::bool::ANY);
    let history = prop::collection::vec(step, 1..25);
    for_any(cases(300), 20, &history, |history| {
        let mut fleet = Fleet::of(4);
        let mut silent_since: BTreeMap<String, i64> = BTreeMap::new();
        let (mut judged, mut withdrawn) = (false, false);
        for (member, pause, dies) in history {
            let member = ["a", "b", "c", "d"][member];
            let was_live = fleet.members[member];
            if dies && was_live {
                fleet.dies(member);
                silent_since.insert(member.into(), fleet.now / 10 * 10);
            } else if !dies && !was_live {
                silent_since.remove(member);
                fleet.returns(member);
            }
            fleet.until(fleet.now + pause);
            for (second, member, phase) in std::mem::take(&mut fleet.phases) {
                let treated = phase.and_then(SilencePhase::treatment);
                if phase != Some(SilencePhase::Returning) && treated.is_some() {
                    let since = silent_since.get(&member).copied();
                    assert!(since.is_some_and(|since| second >= since + 60), "{second} {member} {phase:?}");
                }
                judged |= phase == Some(SilencePhase::Draining);
                withdrawn |= phase == Some(SilencePhase::Withdrawn);
            }
        }
        let end = fleet.now;
        fleet.until(end + 1_300);
        for (member, lives) in fleet.members.clone() {
            let listed: Vec<bool> = fleet
                .members
                .keys()
                .filter(|it| **it != member)
                .map(|it| fleet.treatment(it, &member).is_some())
                .collect();
            assert_eq!(listed, [!lives; 3], "{member}");
        }
        let all = fleet.members.values().all(|lives| !lives);
        [(judged, "judged"), (withdrawn, "withdrawn"), (silent_since.is_empty(), "all return"), (!all, "some live")]
    });
}
