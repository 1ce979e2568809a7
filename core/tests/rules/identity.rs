//! Tests of two clusters with the same cluster id: only the cluster that owns the id writes to the hub. The agent of
//! the other cluster also deletes nothing in its own cluster.

use crate::support::agent::{self, View as _, applied, removed};
use crate::support::build::{
    Build, BuildImport, BuildInternalExport, BuildRequest, BuildSlice, IntoObject, accepted_export, derived_service,
    distributed_slice, imported_slice, in_hub_of, in_system, internal_export, member_agent, named, no_conflict,
    request, seconds, service, service_export, service_import, slice, slice_export, system_namespace,
};
use crate::support::view::blocking_reasons;
use crate::support::world::settings;
use fastrand::Rng;
use fleetnet_core::features::Features;
use fleetnet_core::handshake::announce_stop;
use fleetnet_core::member::identity::{ClusterUid, Owner, Ownership, Record, ownership};
use fleetnet_core::member::{Key, Planner, Settings};
use fleetnet_core::model::{Announcement, Kind, MemberAgent, Object};
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_types::{Timestamp, Uid, WatchState};
use std::collections::VecDeque;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
/// Default of the flag `--member-takeover-after`, in microseconds.
const TAKEOVER: i64 = 30 * MINUTE;
/// UID of the cluster in which the tested agent runs. The UID of a cluster is the UID of its namespace `kube-system`.
const OWN: &str = "uid-kube-system";

/// Rule O1: Another cluster owns the cluster id, or the MemberAgent or the owner's UID is not known yet
/// Then: The member agent writes nothing in the hub, and deletes nothing in its own cluster. The member agent still
/// makes the EndpointSlices of its cluster's own Services
#[test]
fn the_owner_of_an_id_is_read_from_the_newest_renewal() {
    let own = || ClusterUid::Known("own".into());
    let owner = |cluster: &str, seen: i64, stopped: bool| {
        let owner = Owner { cluster: cluster.into(), seen: seconds(seen), stopped };
        Some(Record { owner: Some(owner), renewable: true })
    };
    let nobody = |renewable| Some(Record { owner: None, renewable });
    let kept = |record: Option<Record>| record.map(|record| Record { renewable: false, ..record });
    let foreign = |until: i64| Ownership::Foreign { cluster: "other".into(), until: seconds(until) };
    let now = 10_000;
    let table = [
        (own(), None, Ownership::Unknown, "the MemberAgents are not listed"),
        (ClusterUid::NotRead, nobody(true), Ownership::Unknown, "its own UID is not read"),
        (ClusterUid::NotReadable, owner("other", now, false), Ownership::Own, "no right to read it: the check is off"),
        (ClusterUid::NotReadable, None, Ownership::Unknown, "also then the hub is listed first"),
        (own(), nobody(true), Ownership::Vacant, "nobody has written a UID"),
        (own(), nobody(false), Ownership::Own, "nobody can write one"),
        (own(), owner("own", now, false), Ownership::Own, "renewed now"),
        (own(), owner("own", now, true), Ownership::Own, "its predecessor stopped"),
        (own(), owner("own", now - 899, false), Ownership::Own, "just under half of the time"),
        (own(), owner("own", now - 900, false), Ownership::Overdue, "half of the time"),
        (own(), kept(owner("own", 0, false)), Ownership::Own, "nobody can take over"),
        (own(), owner("other", now, false), foreign(now + 1_800), "the other renewed now"),
        (own(), owner("other", now - 1_799, false), foreign(now + 1), "just under the whole time"),
        (own(), owner("other", now - 1_800, false), Ownership::Vacant, "the whole time"),
        (own(), owner("other", now, true), foreign(now + 30), "the other stopped, perhaps for a restart"),
        (own(), owner("other", now - 29, true), foreign(now + 1), "just under the time of a restart"),
        (own(), owner("other", now - 30, true), Ownership::Vacant, "the other stopped"),
        (own(), kept(owner("other", now, false)), foreign(now + 1_800), "the other owned it last"),
    ];
    for (own, record, expected, why) in table {
        assert_eq!(ownership(&own, record.as_ref(), seconds(now), TAKEOVER), expected, "{why}");
    }
}

// === A cluster that does not own its id ===

fn announcement() -> Announcement {
    Announcement::new("1.2.3", Features::ALL)
}

/// Returns the view of member-1 in the cluster with UID [`OWN`]. The view received these objects at second `seen`.
fn seeing(seen: i64, objects: impl IntoIterator<Item = Object>) -> Planner {
    let mut view = Planner::new(Settings { announces: Some(announcement()), ..settings(0) });
    for object in objects.into_iter().chain([system_namespace("uid-kube-system")]) {
        view.applied(object, seconds(seen), &mut Vec::new());
    }
    for kind in <Planner as agent::View>::KINDS.iter().copied().chain([Kind::SystemNamespace]) {
        view.watch_state(kind, WatchState::Complete, seconds(seen), &mut Vec::new());
    }
    view.every_key().iter().for_each(|key| drop(view.decide_and_record(key, seconds(seen))));
    view
}

/// Returns the MemberAgent of member-1, last renewed by the cluster with this UID.
fn owned_by(uid: &str) -> MemberAgent {
    let agent = member_agent("member-1", Features::ALL, Features::ALL);
    MemberAgent { cluster_uid: Some(uid.into()), leader: Some(format!("leader in {uid}").into()), ..agent }
}

/// Returns the objects of an exported Service and of a Service whose imported slice is being withdrawn, and the keys of
/// both.
fn both_directions() -> (Vec<Object>, Vec<Key>) {
    let (exported, source) = (service("work/app"), slice("work/app-1").endpoints(&["10.0.0.1"]));
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/db-1"))).marked().deleting();
    let wanted = request("work/db").deriving("work-db");
    let imported = imported_slice(&distributed.meta.name.name, "work-db");
    let distributed_name = distributed.meta.name.name.clone();
    let objects = vec![
        internal_export("member-1", &exported).judged(no_conflict("work/app")).object(),
        exported.object(),
        accepted_export("work/app").object(),
        source.object(),
        service_import("work/db").controlled_by(&wanted).marked().object(),
        wanted.object(),
        derived_service("work-db", "work/db").object(),
        imported.object(),
        Object::EndpointSliceImport(distributed),
        service("work/new").object(),
        service_export("work/new").object(),
    ];
    let keys = vec![
        Key::Export(named("work/app")),
        Key::SliceExport(named("work/app-1")),
        Key::Export(named("work/new")),
        Key::Import(named("work/db")),
        Key::SliceImport(in_system(&distributed_name)),
    ];
    (objects, keys)
}

fn line(write: &Write) -> String {
    let verb = match write.action {
        Action::Create(_) => "create",
        Action::Patch { .. } => "patch",
        Action::Delete { .. } => "delete",
    };
    format!("{verb} {:?}", write.kind())
}

fn writes(view: &Planner, keys: &[Key], now: i64) -> Vec<String> {
    keys.iter().flat_map(|key| view.plan(key, seconds(now)).writes).map(|write| line(&write)).collect()
}

/// Also rule O1.
#[test]
fn an_agent_that_does_not_own_the_id_writes_nothing_in_the_hub_and_deletes_nothing_here() {
    let (objects, keys) = both_directions();
    let of = |agent: MemberAgent| seeing(100, objects.iter().cloned().chain([agent.object()]));
    let everything =
        ["create EndpointSliceExport", "patch ServiceExport", "create InternalServiceImport", "delete EndpointSlice"];
    assert_eq!(writes(&of(owned_by(OWN)), &keys, 101), everything);
    let foreign = of(owned_by("uid-other"));
    assert_eq!(writes(&foreign, &keys, 101), ["patch ServiceExport"], "its users are told as ever");
    let plan = foreign.plan(&Key::Heartbeat, seconds(101));
    assert_eq!((plan.writes, plan.again), (Vec::new(), Some(seconds(1_900))));
    assert_eq!(announce_stop(&foreign, seconds(101)), None, "it would announce the other's stop");

    let half = |kind, state| {
        let mut view = of(owned_by(OWN));
        view.watch_state(kind, state, seconds(101), &mut Vec::new());
        writes(&view, &keys, 101)
    };
    for kind in [Kind::MemberAgent, Kind::SystemNamespace] {
        assert_eq!(half(kind, WatchState::Incomplete), ["patch ServiceExport"], "{kind:?} is not listed");
    }
    assert_eq!(half(Kind::SystemNamespace, WatchState::Absent), everything, "no right to read its UID");
}

/// Rule O2: Another cluster owns the cluster id (as in rule O1)
/// Then: The member agent is not ready. The log and the Event `ClusterIdInUse` contain both UIDs and the command that
/// changes the owner. `/readyz` contains no UID, because anybody who reaches the agent can read it
#[test]
fn an_agent_that_may_not_act_reports_both_clusters_and_the_remedy() {
    let view = seeing(100, [owned_by("uid-other").object()]);
    let reasons = view.plan(&Key::Heartbeat, seconds(101)).blocking_reasons;
    let [blocking_reason] = &reasons[..] else { panic!("{reasons:?}") };
    assert_eq!(blocking_reason.reason.as_str(), "ClusterIdInUse");
    assert_eq!(
        blocking_reason.message,
        "cluster id member-1 belongs to the cluster with UID uid-other, and this cluster has UID uid-kube-system: \
         this cluster exports and imports nothing. Give one of the two another id. Or let this cluster take over, in \
         the hub: kubectl -n fleet-member-member-1 patch memberagent member-1 --type=merge -p \
         '{\"spec\":{\"clusterUid\":\"uid-kube-system\"}}'"
    );
    assert_eq!(
        view.plan(&Key::Heartbeat, seconds(500)).blocking_reasons,
        reasons,
        "said once: the same words as before"
    );
    assert_eq!(seeing(100, [owned_by(OWN).object()]).plan(&Key::Heartbeat, seconds(101)).blocking_reasons, []);
}

/// Rule O3: An operator writes another UID to the MemberAgent. Or the owner has announced its stop and has not renewed
/// the MemberAgent for 30 s. Or the owner has not renewed the MemberAgent for the time in `--member-takeover-after`
/// Then: The second cluster takes over the cluster id. The second cluster writes in the hub as soon as the MemberAgent
/// shows the UID of the second cluster. The former owner then stops writing in the hub
#[test]
fn an_id_is_taken_over_by_command_after_a_stop_and_after_a_long_silence() {
    let (objects, keys) = both_directions();
    let mut view = seeing(100, objects.into_iter().chain([owned_by("uid-other").object()]));
    let renewed = MemberAgent { renewed: Some(seconds(900)), ..owned_by("uid-other") };
    let apply = |view: &mut Planner, agent: &MemberAgent, at: i64| {
        let mut requeue = Vec::new();
        view.applied(agent.clone().object(), seconds(at), &mut requeue);
        requeue
    };
    assert_eq!(apply(&mut view, &renewed, 900), [Key::Heartbeat], "a renewal concerns nothing else");
    let mut counted = renewed.clone();
    counted.status.counts = Some(Default::default());
    apply(&mut view, &counted, 1_500);
    assert_eq!(
        view.plan(&Key::Heartbeat, seconds(2_699)).again,
        Some(seconds(2_700)),
        "the hub's status renews nothing"
    );
    let takeover = view.plan(&Key::Heartbeat, seconds(2_700));
    assert_eq!(takeover.writes, [renewal(&counted, 2_700)], "with the version seen as precondition");
    assert_eq!(writes(&view, &keys, 2_700), ["patch ServiceExport"], "not before its UID is seen");

    let stopped = MemberAgent { stopped: Some(seconds(950)), ..renewed };
    apply(&mut view, &stopped, 950);
    let plan = view.plan(&Key::Heartbeat, seconds(979));
    assert_eq!((plan.writes, plan.again), (Vec::new(), Some(seconds(980))), "it may be a restart");
    assert_eq!(view.plan(&Key::Heartbeat, seconds(980)).writes, [renewal(&stopped, 980)]);

    let commanded = MemberAgent { cluster_uid: Some(OWN.into()), ..owned_by("uid-other") };
    let requeue = apply(&mut view, &commanded, 985);
    assert!(keys.iter().all(|key| requeue.contains(key)), "{requeue:?}");
    assert_eq!(writes(&view, &keys, 985).len(), 4);
    let requeue = apply(&mut view, &owned_by("uid-other"), 990);
    assert!(keys.iter().all(|key| requeue.contains(key)), "and back: {requeue:?}");
}

fn renewal(stored: &MemberAgent, now: i64) -> Write {
    let renewal = fleetnet_core::model::Renewal {
        announcement: announcement(),
        cluster_uid: Some(OWN.into()),
        leader: "leader of member-1".into(),
        renewed: seconds(now),
        stopped: None,
        latency: None,
        slice_stream: None,
        properties: None,
    };
    Write::patch(&stored.meta, Patch::MemberAgent(renewal))
}

/// Rule O4: The owner of a cluster id could not renew its MemberAgent for half of the time in `--member-takeover-after`
/// Then: The owner makes no other write in the hub until a renewal of its MemberAgent succeeds. So the owner stops
/// writing in the hub before another cluster may take over
#[test]
fn an_owner_that_could_not_renew_for_long_renews_before_it_acts() {
    let (objects, keys) = both_directions();
    let mut view = seeing(100, objects.into_iter().chain([owned_by(OWN).object()]));
    assert_eq!(writes(&view, &keys, 999).len(), 4);
    assert_eq!(writes(&view, &keys, 1_000), ["patch ServiceExport"], "half of 30 minutes");
    assert_eq!(view.plan(&Key::Heartbeat, seconds(1_000)).writes, [renewal(&owned_by(OWN), 1_000)]);
    let sent =
        MemberAgent { leader: Some("leader of member-1".into()), renewed: Some(seconds(1_000)), ..owned_by(OWN) };
    let mut requeue = Vec::new();
    view.applied(sent.object(), seconds(1_010), &mut requeue);
    assert!(keys.iter().all(|key| requeue.contains(key)), "{requeue:?}");
    assert_eq!(writes(&view, &keys, 1_899).len(), 4);
    assert_eq!(writes(&view, &keys, 1_900).len(), 1, "it counts from when the renewal was sent");
    // It cannot renew a MemberAgent that it cannot read.
    let undecodable = fleetnet_types::Change::Undecodable { name: owned_by(OWN).meta.name };
    view.apply(Kind::MemberAgent, undecodable, seconds(1_900), &mut Vec::new());
    assert_eq!(view.ownership(seconds(1_900)), Ownership::Own);
}

/// Also rule O3.
#[test]
fn a_clock_that_is_set_makes_no_takeover_earlier_or_later() {
    const HOUR: i64 = 3_600;
    for by in [-HOUR, HOUR] {
        let mut foreign = seeing(10_000, [owned_by("uid-other").object()]);
        foreign.clock_set(by * SECOND);
        assert_eq!(foreign.plan(&Key::Heartbeat, seconds(10_001 + by)).again, Some(seconds(11_800 + by)));
        let mut own = seeing(10_000, [owned_by(OWN).object()]);
        own.renewal_written(seconds(10_000), &mut Vec::new());
        own.clock_set(by * SECOND);
        assert_eq!(own.ownership(seconds(10_899 + by)), Ownership::Own);
        assert_eq!(own.ownership(seconds(10_900 + by)), Ownership::Overdue);
        assert_eq!(own.plan(&Key::Heartbeat, seconds(10_001 + by)).again, Some(seconds(10_010 + by)), "its heartbeat");
    }
}

/// Rule O6: The MemberAgent is deleted, or the CRD of MemberAgent is deleted
/// Then: The first cluster that creates the MemberAgent again owns the cluster id. While the CRD is missing, the last
/// owner keeps the cluster id
#[test]
fn a_member_agent_that_is_deleted_is_anybodys_and_one_whose_definition_vanished_its_last_owners() {
    let (objects, keys) = both_directions();
    for uid in [OWN, "uid-other"] {
        let agent = owned_by(uid);
        let mut view = seeing(100, objects.iter().cloned().chain([agent.clone().object()]));
        let gone = removed(Kind::MemberAgent, agent.meta.name, agent.meta.uid);
        view.observe(gone, seconds(110), &mut Vec::new());
        assert_eq!(writes(&view, &keys, 110).len(), 1, "{uid}: who writes first owns it");
        let recreated = view.plan(&Key::Heartbeat, seconds(110)).writes;
        let [Write { action: Action::Create(Desired::MemberAgent(made)), .. }] = &recreated[..] else {
            panic!("{recreated:?}")
        };
        assert_eq!(made.cluster_uid.as_deref(), Some(OWN));
        for state in [WatchState::Unknown, WatchState::Absent] {
            view.watch_state(Kind::MemberAgent, state, seconds(120), &mut Vec::new());
            assert_eq!(view.ownership(seconds(1_800)) == Ownership::Own, uid == OWN, "{uid} {state:?}");
        }
    }
    let mut without = seeing(100, objects);
    without.watch_state(Kind::MemberAgent, WatchState::Absent, seconds(120), &mut Vec::new());
    assert_eq!(writes(&without, &keys, 120).len(), 4, "a hub that never had the definition protects nobody");
}

/// Rule O7: The hub has no CRD of MemberAgent, prunes the UID from the MemberAgent, or rejects every heartbeat
/// Then: The member agent writes in the hub without a check of who owns the cluster id. If the hub prunes the UID, the
/// member agent reports `ClusterIdNotChecked`
#[test]
fn a_hub_that_takes_no_renewal_or_prunes_the_uid_switches_the_check_off() {
    let (objects, keys) = both_directions();
    let mut requeue = Vec::new();
    let mut denied = seeing(100, objects.clone());
    assert_eq!(writes(&denied, &keys, 110).len(), 1);
    denied.renewal_denied(seconds(110), &mut requeue);
    assert!(keys.iter().all(|key| requeue.contains(key)), "{requeue:?}");
    assert_eq!(writes(&denied, &keys, 9_000).len(), 4);
    let mut foreign = seeing(100, objects.iter().cloned().chain([owned_by("uid-other").object()]));
    foreign.renewal_denied(seconds(110), &mut Vec::new());
    assert_eq!(writes(&foreign, &keys, 110).len(), 1, "another cluster owns it nevertheless");

    let old = MemberAgent { cluster_uid: None, leader: None, ..owned_by(OWN) };
    let mut pruned = seeing(100, objects.into_iter().chain([old.clone().object()]));
    assert_eq!(
        pruned.plan(&Key::Heartbeat, seconds(100)).writes,
        [renewal(&old, 100)],
        "no cluster has written its UID"
    );
    let answer = MemberAgent { renewed: Some(seconds(100)), ..old };
    pruned.applied(answer.clone().object(), seconds(100), &mut Vec::new());
    requeue.clear();
    pruned.renewal_written(seconds(100), &mut requeue);
    assert!(keys.iter().all(|key| requeue.contains(key)), "{requeue:?}");
    assert_eq!(writes(&pruned, &keys, 9_000).len(), 4);
    let plan = pruned.plan(&Key::Heartbeat, seconds(100));
    assert_eq!((&plan.writes[..], plan.again), (&[][..], Some(seconds(110))), "what is pruned causes no write");
    assert_eq!(
        blocking_reasons(&plan),
        [(
            "ClusterIdNotChecked",
            "the agent cannot detect a second cluster with the id member-1: the hub's CRD of MemberAgent has no \
             clusterUid. Apply deploy/crds in the hub"
        )]
    );
    let now_known = MemberAgent { cluster_uid: Some(OWN.into()), renewed: Some(seconds(110)), ..answer };
    pruned.applied(now_known.object(), seconds(110), &mut Vec::new());
    assert_eq!(pruned.plan(&Key::Heartbeat, seconds(110)).blocking_reasons, [], "the definition was upgraded");
}

/// Rule O8: The member agent may not read the namespace `kube-system` of its cluster
/// Then: The member agent writes in the hub without a check of who owns the cluster id, and logs `ClusterIdNotChecked`.
/// The member agent does not change a UID that another process wrote to the MemberAgent
#[test]
fn without_the_right_to_read_its_uid_an_agent_reports_that_and_keeps_the_uid_of_others() {
    let mut view = seeing(100, [owned_by(OWN).object()]);
    view.watch_state(Kind::SystemNamespace, WatchState::Absent, seconds(100), &mut Vec::new());
    let plan = view.plan(&Key::Heartbeat, seconds(110));
    let [Write { action: Action::Patch { patch: Patch::MemberAgent(renewal), .. }, .. }] = &plan.writes[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(renewal.cluster_uid, None);
    assert_eq!(
        blocking_reasons(&plan),
        [(
            "ClusterIdNotChecked",
            "the agent cannot detect a second cluster with the id member-1: it may not read its namespace \
             kube-system. Apply the ClusterRole of deploy/member-agent.yaml"
        )]
    );
    view.watch_state(Kind::MemberAgent, WatchState::Absent, seconds(110), &mut Vec::new());
    assert_eq!(view.plan(&Key::Heartbeat, seconds(110)).blocking_reasons, [], "the hub has no id to check");
}

/// Rule O9: The leader of a cluster and the leader of a clone of this cluster renew the MemberAgent alternately, with
/// the same cluster UID
/// Then: Both clusters write in the hub. The member agent logs `ClusterIdShared`, and emits an Event with this reason
#[test]
fn clones_of_a_cluster_are_reported_and_not_stopped() {
    let (objects, keys) = both_directions();
    let mut view = seeing(100, objects);
    let mut second = 100;
    let mut renewed_by = |view: &mut Planner, leader: &str| {
        second += 10;
        let renewed = Some(seconds(second));
        let agent = MemberAgent { leader: Some(leader.into()), renewed, ..owned_by(OWN) };
        view.applied(agent.object(), seconds(second), &mut Vec::new());
        let reasons = view.plan(&Key::Heartbeat, seconds(second)).blocking_reasons;
        reasons.iter().map(|it| it.reason.as_str()).collect::<Vec<_>>()
    };
    let (own, other) = ("leader of member-1", "its clone");
    for leader in ["its predecessor", "its predecessor", own, own, other, other, own] {
        assert_eq!(renewed_by(&mut view, leader), [""; 0], "{leader}: leaders follow one another");
    }
    assert_eq!(renewed_by(&mut view, other), ["ClusterIdShared"]);
    assert_eq!(renewed_by(&mut view, own), ["ClusterIdShared"]);
    assert_eq!(writes(&view, &keys, 200).len(), 4, "both have the right to act");
    assert_eq!(
        blocking_reasons(&view.plan(&Key::Heartbeat, seconds(200))),
        [(
            "ClusterIdShared",
            "two agents take turns to renew MemberAgent fleet-member-member-1/member-1, leader of member-1 and its \
             clone, and both have the UID of one cluster: one of them runs in a clone of this cluster, or without \
             leader election. Stop it, or give it another cluster id"
        )]
    );
    for _ in 0..4 {
        assert_eq!(renewed_by(&mut view, own), ["ClusterIdShared"]);
    }
    assert_eq!(renewed_by(&mut view, own), [""; 0], "a minute later it is over");
}

/// Also rule O9.
#[test]
fn replicas_of_one_cluster_that_lead_by_turns_are_no_clones() {
    let mut view = seeing(100, []);
    for (second, leader) in
        [(110, "leader of member-1"), (120, "its replica"), (130, "leader of member-1"), (140, "its replica")]
    {
        if leader == "its replica" {
            view.follows();
        }
        let renewed = Some(seconds(second));
        let agent = MemberAgent { leader: Some(leader.into()), renewed, ..owned_by(OWN) };
        view.applied(agent.object(), seconds(second), &mut Vec::new());
        assert_eq!(blocking_reasons(&view.plan(&Key::Heartbeat, seconds(second))), [("", ""); 0], "{leader}");
    }
}

/// Also rules O2, O9.
#[test]
fn only_agents_of_clusters_with_one_uid_are_clones_and_those_without_a_uid_perhaps() {
    for (uid, expected) in [(Some("uid-other"), 0), (None, 1), (Some(OWN), 1)] {
        let mut view = seeing(100, []);
        for (second, leader) in [(110, "its rival"), (120, "leader of member-1"), (130, "its rival")] {
            let cluster_uid = if leader == "its rival" { uid } else { Some(OWN) };
            let (cluster_uid, leader) = (cluster_uid.map(Into::into), Some(leader.into()));
            let agent = MemberAgent { cluster_uid, leader, renewed: Some(seconds(second)), ..owned_by(OWN) };
            view.applied(agent.object(), seconds(second), &mut Vec::new());
        }
        let reasons = view.plan(&Key::Heartbeat, seconds(130)).blocking_reasons;
        let shared = reasons.iter().filter(|it| it.reason.as_str() == "ClusterIdShared");
        assert_eq!(shared.count(), expected, "{uid:?}: {reasons:?}");
    }
}

/// Also rules O2, O8.
#[test]
fn an_agent_that_learns_its_uid_late_checks_the_owner_from_then_on() {
    let not_readable = |agent: &MemberAgent| {
        let mut view = Planner::new(Settings { announces: Some(announcement()), ..settings(0) });
        view.applied(agent.clone().object(), seconds(100), &mut Vec::new());
        for kind in <Planner as agent::View>::KINDS.iter().copied().chain([Kind::SystemNamespace]) {
            view.watch_state(kind, WatchState::Complete, seconds(100), &mut Vec::new());
        }
        view.decide_and_record(&Key::Heartbeat, seconds(100));
        view
    };
    let mut view = not_readable(&owned_by("uid-other"));
    assert_eq!((view.ownership(seconds(100)), view.own_cluster_uid()), (Ownership::Own, None));
    let mut requeue = Vec::new();
    view.applied(system_namespace(OWN), seconds(110), &mut requeue);
    assert_eq!(requeue, [Key::Heartbeat]);
    assert!(matches!(view.ownership(seconds(110)), Ownership::Foreign { .. }));
    assert_eq!(view.own_cluster_uid(), Some(&OWN.into()));

    // What it wrote without its UID does not show that the hub prunes UIDs.
    let mut view = not_readable(&MemberAgent { cluster_uid: None, ..owned_by(OWN) });
    view.renewal_written(seconds(105), &mut Vec::new());
    view.applied(system_namespace(OWN), seconds(110), &mut Vec::new());
    assert_eq!(view.ownership(seconds(110)), Ownership::Vacant);
}

// === Random histories of two clusters with the same id ===

/// Cluster with one agent process. The model has only the state that decides which cluster owns the cluster id.
struct Side {
    uid: Uid,
    /// Difference between the cluster's wall clock and the real time, in microseconds.
    skew: i64,
    /// Number of agent processes that have started in the cluster.
    starts: u32,
    view: Option<Planner>,
    /// Versions of the MemberAgent that the cluster's watch has not delivered yet. `None`: the MemberAgent was deleted.
    inbox: VecDeque<Option<MemberAgent>>,
    connected: bool,
}

/// Two clusters with the same id, and the MemberAgent that they compete for.
struct Pair {
    now: i64,
    version: u64,
    agent: Option<MemberAgent>,
    sides: [Side; 2],
    random: Rng,
    upheaval: Upheaval,
    seen: Coverage,
}

/// Number of times that each situation of this struct occurred in all histories.
#[derive(Clone, Copy, Debug, Default)]
struct Coverage {
    expiries: u32,
    after_stops: u32,
    commands: u32,
    conflicts: u32,
    lost_answers: u32,
    overdue: u32,
}

/// Additional events of a history. `Any` means crashes, stops, and edits and deletions of the MemberAgent.
#[derive(Clone, Copy, PartialEq)]
enum Upheaval {
    None,
    Any,
}

const SHORT: i64 = 120 * SECOND;

impl Pair {
    fn new(seed: u64, upheaval: Upheaval) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut side = |uid: &str| Side {
            uid: uid.into(),
            skew: random.i64(-3_600..3_600) * SECOND,
            starts: 0,
            view: None,
            inbox: VecDeque::new(),
            connected: true,
        };
        let sides = [side("uid-one"), side("uid-two")];
        let seen = Coverage::default();
        let mut pair = Self { now: 100_000 * SECOND, version: 1, agent: None, sides, random, upheaval, seen };
        pair.start(0);
        pair.start(1);
        pair
    }

    fn clock(&self, index: usize) -> Timestamp {
        Timestamp(self.now + self.sides[index].skew)
    }

    /// Starts a new agent process in a cluster. The process lists the objects.
    fn start(&mut self, index: usize) {
        let at = self.clock(index);
        let side = &mut self.sides[index];
        side.starts += 1;
        let leader = format!("process {} in {}", side.starts, side.uid).into();
        let announces = Some(announcement());
        let settings = Settings { announces, leader, takeover_after_micros: SHORT, ..settings(0) };
        let mut view = Planner::new(settings);
        let listed = self.agent.iter().cloned().map(Object::MemberAgent);
        for object in listed.chain([system_namespace(&side.uid)]) {
            view.applied(object, at, &mut Vec::new());
        }
        for kind in [Kind::MemberAgent, Kind::EndpointSlice, Kind::SystemNamespace] {
            view.watch_state(kind, WatchState::Complete, at, &mut Vec::new());
        }
        side.inbox.clear();
        side.view = Some(view);
    }

    fn acts(&self, index: usize) -> bool {
        let side = &self.sides[index];
        side.view.as_ref().is_some_and(|view| view.ownership(self.clock(index)) == Ownership::Own)
    }

    fn owner(&self) -> Option<&Uid> {
        self.agent.as_ref()?.cluster_uid.as_ref()
    }

    fn publish(&mut self) {
        for side in self.sides.iter_mut().filter(|side| side.view.is_some()) {
            side.inbox.push_back(self.agent.clone());
        }
    }

    fn deliver(&mut self, index: usize) {
        let at = self.clock(index);
        let side = &mut self.sides[index];
        let Some(view) = side.view.as_mut().filter(|_| side.connected) else { return };
        let Some(event) = side.inbox.pop_front() else { return };
        let change = match event {
            Some(agent) => applied(agent.object()),
            None => {
                let name = in_hub_of("member-1", "member-1");
                let Some(stored) = view.member_agents.get(&name) else { return };
                removed(Kind::MemberAgent, name, stored.meta.uid.clone())
            }
        };
        view.observe(change, at, &mut Vec::new());
    }

    /// Plans and executes the heartbeat of a cluster. The server's answer may be lost; then the cluster sees its write
    /// later, through its watch.
    fn renew(&mut self, index: usize) {
        let now = self.clock(index);
        let Some(view) = self.sides[index].view.as_ref().filter(|_| self.sides[index].connected) else { return };
        self.seen.overdue += u32::from(view.ownership(now) == Ownership::Overdue);
        let Plan { writes, .. } = view.plan(&Key::Heartbeat, now);
        let Some(write) = writes.first() else { return };
        if !self.execute(index, write) {
            self.seen.conflicts += 1;
            return;
        }
        if self.random.usize(..4) == 0 {
            self.seen.lost_answers += 1;
            return;
        }
        // The server's answer is newer than all versions that the watch has not delivered yet. So the watch skips these
        // versions.
        let answer = self.agent.clone().expect("it was written");
        let side = &mut self.sides[index];
        side.inbox.clear();
        let view = side.view.as_mut().expect("it runs");
        view.applied(answer.object(), now, &mut Vec::new());
        view.renewal_written(now, &mut Vec::new());
    }

    /// Executes a write of a cluster. Returns true if the precondition of the write was met. Asserts that a cluster
    /// takes the cluster id only from an owner that does not act any more.
    fn execute(&mut self, index: usize, write: &Write) -> bool {
        let (renewal, made) = match &write.action {
            Action::Create(Desired::MemberAgent(renewal)) if self.agent.is_none() => {
                (renewal, member_agent("member-1", Features::ALL, Features::ALL))
            }
            Action::Patch { resource_version, patch: Patch::MemberAgent(renewal) } => match &self.agent {
                Some(agent) if agent.meta.resource_version == *resource_version => (renewal, agent.clone()),
                _ => return false,
            },
            _ => return false,
        };
        if made.cluster_uid.as_ref().is_some_and(|owner| Some(owner) != renewal.cluster_uid.as_ref()) {
            let is_after_stop = made.stopped.is_some();
            *(if is_after_stop { &mut self.seen.after_stops } else { &mut self.seen.expiries }) += 1;
            let other = 1 - index;
            let owns = made.cluster_uid.as_ref() == Some(&self.sides[other].uid);
            let is_free = is_after_stop || owns && !self.acts(other);
            assert!(is_free || self.upheaval == Upheaval::Any, "an id is taken from an owner that acts");
        }
        self.version += 1;
        let mut written = MemberAgent {
            member: renewal.announcement.clone(),
            cluster_uid: renewal.cluster_uid.clone(),
            leader: Some(renewal.leader.clone()),
            renewed: Some(renewal.renewed),
            stopped: renewal.stopped,
            ..made
        };
        written.meta.resource_version = self.version;
        self.agent = Some(written);
        self.publish();
        true
    }

    fn step(&mut self) {
        let index = self.random.usize(..2);
        match self.random.usize(..if self.upheaval == Upheaval::None { 12 } else { 16 }) {
            0..=3 => self.renew(index),
            4..=7 => self.deliver(index),
            8..=9 => self.now += self.random.i64(0..12) * SECOND,
            10 => self.sides[index].connected = self.random.usize(..3) > 0,
            11 => self.now += self.random.i64(0..90) * SECOND,
            12 => self.start(index), // the agent starts again after a crash
            13 => {
                let now = self.clock(index);
                let last = self.sides[index].view.as_ref().and_then(|view| announce_stop(view, now));
                if let Some(write) = last.filter(|_| self.sides[index].connected) {
                    self.execute(index, &write);
                }
                self.sides[index].view = None;
            }
            14 if self.agent.is_some() => {
                self.seen.commands += 1;
                self.version += 1;
                let uid = self.sides[index].uid.clone();
                let agent = self.agent.as_mut().expect("it is there");
                (agent.cluster_uid, agent.meta.resource_version) = (Some(uid), self.version);
                self.publish();
            }
            _ if self.random.usize(..3) == 0 => {
                self.agent = None;
                self.publish();
            }
            _ if self.sides[index].view.is_none() => self.start(index),
            _ => {}
        }
    }

    /// Runs both clusters for 200 s, with working connections and regular heartbeats and without other events.
    fn settle(&mut self) {
        for index in [0, 1] {
            self.sides[index].connected = true;
            if self.sides[index].view.is_none() {
                self.start(index);
            }
        }
        for _ in 0..40 {
            for index in [0, 1] {
                while !self.sides[index].inbox.is_empty() {
                    self.deliver(index);
                }
                self.renew(index);
            }
            self.now += 5 * SECOND;
        }
        for index in [0, 1] {
            while !self.sides[index].inbox.is_empty() {
                self.deliver(index);
            }
        }
    }
}

impl std::ops::AddAssign for Coverage {
    fn add_assign(&mut self, other: Self) {
        self.expiries += other.expiries;
        self.after_stops += other.after_stops;
        self.commands += other.commands;
        self.conflicts += other.conflicts;
        self.lost_answers += other.lost_answers;
        self.overdue += other.overdue;
    }
}

/// Also rule O4.
#[test]
fn an_id_that_changes_hands_for_silence_alone_never_has_two_clusters_that_act() {
    let mut seen = Coverage::default();
    for seed in 0..1_500 {
        let mut pair = Pair::new(seed, Upheaval::None);
        for step in 0..300 {
            pair.step();
            assert!(!(pair.acts(0) && pair.acts(1)), "seed {seed}: both act after step {step}");
        }
        pair.settle();
        assert_eq!([0, 1].into_iter().filter(|index| pair.acts(*index)).count(), 1, "seed {seed}: one acts in the end");
        seen += pair.seen;
    }
    let Coverage { expiries, conflicts, lost_answers, overdue, .. } = seen;
    assert!(expiries > 200 && conflicts > 1_000 && lost_answers > 1_000 && overdue > 200, "{seen:?}");
}

/// Rule O5: Two clusters with one cluster id restart, operators change the owner by command, and objects are deleted,
/// in any order
/// Then: A cluster writes in the hub only while it has not seen another cluster's UID in the MemberAgent. In the end,
/// exactly one cluster writes in the hub
#[test]
fn whatever_happens_a_cluster_acts_only_while_it_has_not_seen_that_another_owns_its_id() {
    let mut seen = Coverage::default();
    for seed in 0..1_500 {
        let mut pair = Pair::new(seed, Upheaval::Any);
        for step in 0..300 {
            pair.step();
            for index in [0, 1] {
                let side = &pair.sides[index];
                let is_owner = pair.owner() == Some(&side.uid);
                let knows_all = side.inbox.is_empty();
                assert!(
                    !pair.acts(index) || is_owner || !knows_all,
                    "seed {seed}: {} acts after step {step}",
                    side.uid
                );
            }
        }
        pair.settle();
        assert_eq!([0, 1].into_iter().filter(|index| pair.acts(*index)).count(), 1, "seed {seed}: one acts in the end");
        seen += pair.seen;
    }
    assert!(seen.commands > 1_000 && seen.after_stops > 100 && seen.expiries > 20, "{seen:?}");
}
