//! Tests of MemberAgents: heartbeats, the features that member agent and hub agent announce, and the effects of these
//! features.

use crate::support::agent::{self, View as _, removed};
use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildSlice, IntoObject, accepted_export, claim, content,
    distributed_slice, endpoint, finalizers_of, internal_export, member_agent, named, namespace, no_conflict, resolved,
    seconds, service, service_import, slice, slice_export, system_namespace,
};
use crate::support::view::{
    NOW, hub_view, member_view, observe_change, observe_removal, planned, planned_at, undecodable, writes,
};
use crate::support::world::settings;
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::handshake::announce_stop;
use fleetnet_core::hub;
use fleetnet_core::limits::LATENCY_QUIET_MICROS;
use fleetnet_core::member::latency::Import;
use fleetnet_core::member::{self, ClusterSelection, Key, McsApi, Settings, SliceStreamServer, SliceStreamUse};
use fleetnet_core::model::{
    AddressType, Announcement, ClusterProperty, EndpointSlice, HubSlice, ImportStatus, ImportType,
    InternalServiceImport, Kind, LatencyChange, MemberAgent, MemberCounts, MemberStatus, Meta, Node, Object,
    Properties, Renewal, ServiceImport, SessionAffinity, SliceContent, SliceStreamOffer, SliceStreamReport,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Sample, Write};
use fleetnet_types::{ClusterId, ObjectName, Timestamp, WatchState};
use std::slice::from_ref;

const SECOND: i64 = 1_000_000;

fn announcement() -> Announcement {
    Announcement::new("1.2.3", Features::ALL)
}

/// Returns the view of a member that announces features. Its last renewal was four seconds before [`NOW`], the time at
/// which the tests plan. The view received these objects at the same time.
fn speaking(objects: impl IntoIterator<Item = Object>) -> member::Planner {
    speaking_since(NOW.plus_micros(-4 * SECOND), objects)
}

/// Returns the view of a member that announces features. At `seen`, the view received these objects and the member
/// renewed its MemberAgent.
fn speaking_since(seen: Timestamp, objects: impl IntoIterator<Item = Object>) -> member::Planner {
    let mut view = member::Planner::new(Settings { announces: Some(announcement()), ..settings(0) });
    for object in objects.into_iter().chain([system_namespace("uid-kube-system")]) {
        view.applied(object, seen, &mut Vec::new());
    }
    for kind in [Kind::MemberAgent, Kind::EndpointSlice, Kind::SystemNamespace] {
        view.watch_state(kind, WatchState::Complete, seen, &mut Vec::new());
    }
    view.renewal_written(seen, &mut Vec::new());
    view
}

fn current_agent() -> MemberAgent {
    MemberAgent {
        cluster_uid: Some(namespace("kube-system").meta.uid),
        ..member_agent("member-1", Features::ALL, Features::NONE)
    }
}

fn next() -> Renewal {
    Renewal {
        announcement: announcement(),
        cluster_uid: Some(namespace("kube-system").meta.uid),
        leader: "leader of member-1".into(),
        renewed: NOW,
        stopped: None,
        latency: None,
        slice_stream: None,
        properties: None,
    }
}

fn renewal(stored: &MemberAgent) -> Plan {
    Plan::one(Write::patch(&stored.meta, Patch::MemberAgent(next())))
}

/// Rule CS3: A member runs with `--cluster-selection`
/// Then: Its heartbeats announce its properties in the MemberAgent. A heartbeat has only those that differ from the
/// MemberAgent, and removes those that are gone. Without the flag, the first heartbeat removes all. A hub whose CRD is
/// older gets no further heartbeats
#[test]
fn a_heartbeat_announces_the_properties_that_differ() {
    type Pairs = &'static [(&'static str, &'static str)];
    let all =
        |pairs: Pairs| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect::<Properties>();
    const ID: (&str, &str) = ("cluster.clusterset.k8s.io", "member-1");
    type Announced = &'static [(&'static str, Option<&'static str>)];
    let table: [(Option<Pairs>, Pairs, Option<Announced>); 6] = [
        (None, &[], None),
        (None, &[("a", "1")], Some(&[])),
        (Some(&[]), &[], Some(&[(ID.0, Some(ID.1))])),
        (Some(&[(ID.0, "forged")]), &[ID], None),
        (Some(&[("a", "1")]), &[("a", "1"), ID], None),
        (Some(&[("a", "2")]), &[("a", "1"), ("b", "1"), ID], Some(&[("a", Some("2")), ("b", None)])),
    ];
    for (of_flags, present, expected) in table {
        let agent = MemberAgent { properties: all(present), ..current_agent() };
        let mut view = speaking_since(NOW.plus_micros(-10 * SECOND), [agent.clone().object()]);
        for kind in [Kind::ClusterProperty, Kind::Node] {
            view.watch_state(kind, WatchState::Absent, NOW.plus_micros(-10 * SECOND), &mut Vec::new());
        }
        view.settings.cluster_selection =
            of_flags.map(|pairs| ClusterSelection { properties: all(pairs), ..ClusterSelection::default() });
        let changes = |it: &[(&str, Option<&str>)]| {
            it.iter().map(|(name, value)| ((*name).into(), value.map(Into::into))).collect()
        };
        let renewal = Renewal { properties: expected.map(changes), ..next() };
        let expected = Plan::one(Write::patch(&agent.meta, Patch::MemberAgent(renewal)));
        assert_eq!(view.plan(&Key::Heartbeat, NOW), expected, "{of_flags:?} {present:?}");
        view.renewal_written(NOW, &mut Vec::new());
        let early = view.plan(&Key::Heartbeat, NOW.plus_micros(9 * SECOND));
        assert_eq!(early.writes, [], "a hub that drops them gets no more heartbeats");
    }
}

/// Rule CS5: A property of a cluster changes
/// Then: The member agent renews its MemberAgent at once, with one write. A hub that drops the property gets it again
/// only with the next heartbeats. While ClusterProperties or Nodes are not listed, heartbeats leave the properties as
/// they are, so a restart changes nothing
#[test]
fn a_change_of_a_property_costs_one_renewal_and_a_restart_none() {
    let id = ("cluster.clusterset.k8s.io".into(), "member-1".into());
    let agent = MemberAgent { properties: [id.clone()].into(), ..current_agent() };
    let mut view = speaking([agent.clone().object()]);
    view.settings.cluster_selection = Some(ClusterSelection::default());
    let property = |value: &str| {
        let meta = Meta { name: ObjectName::new("", "a.example"), ..agent.meta.clone() };
        Object::ClusterProperty(ClusterProperty { meta, value: value.into() })
    };
    let node = |name: &str, zone: Option<&str>| {
        let meta = Meta { name: ObjectName::new("", name), ..agent.meta.clone() };
        Object::Node(Node { meta, region: None, zone: zone.map(Into::into) })
    };
    let changes = |view: &member::Planner| -> Vec<(String, Option<String>)> {
        let plan = view.plan(&Key::Heartbeat, NOW);
        let Some(write) = plan.writes.first() else { return Vec::new() };
        let Action::Patch { patch: Patch::MemberAgent(renewal), .. } = &write.action else { panic!("{write:?}") };
        let changes = renewal.properties.iter().flatten();
        changes.map(|(name, value)| (name.to_string(), value.as_deref().map(str::to_owned))).collect()
    };
    let set = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    let mut requeue = Vec::new();
    view.applied(property("1"), NOW, &mut requeue);
    assert_eq!((changes(&view), requeue), (Vec::new(), vec![Key::Heartbeat]), "the Nodes are not listed");
    for kind in [Kind::ClusterProperty, Kind::Node] {
        view.watch_state(kind, WatchState::Complete, NOW, &mut Vec::new());
    }
    assert_eq!(changes(&view), [set("a.example", "1")]);
    view.applied(node("one", Some("north-1")), NOW, &mut Vec::new());
    let zone = "topology.kubernetes.io/zone";
    assert_eq!(changes(&view), [set("a.example", "1"), set(zone, "north-1")]);
    let dropped = view.clone();
    let written = [id, ("a.example".into(), "1".into()), (zone.into(), "north-1".into())];
    view.applied(MemberAgent { properties: written.into(), ..agent.clone() }.version(2).object(), NOW, &mut Vec::new());
    view.renewal_written(NOW, &mut Vec::new());
    assert_eq!(changes(&view), []);
    view.applied(node("two", Some("north-2")), NOW, &mut Vec::new());
    assert_eq!(changes(&view), [(zone.to_owned(), None)], "the Nodes do not agree");
    let mut view = dropped;
    view.renewal_written(NOW, &mut Vec::new());
    assert_eq!(changes(&view), [], "a hub of an earlier version");
}

/// Also rule CS4.
#[test]
fn properties_that_are_left_out_are_reported() {
    let mut view = speaking([current_agent().object()]);
    let properties = [("a.example".into(), "x".repeat(257).into())].into();
    view.settings.cluster_selection = Some(ClusterSelection { properties, ..ClusterSelection::default() });
    for kind in [Kind::ClusterProperty, Kind::Node] {
        view.watch_state(kind, WatchState::Absent, NOW, &mut Vec::new());
    }
    let reasons = view.plan(&Key::Heartbeat, NOW).blocking_reasons;
    let [reason] = &reasons[..] else { panic!("one reason, not {reasons:?}") };
    assert_eq!(
        (reason.reason.as_str(), &*reason.message),
        (
            "PropertiesLeftOut",
            "cluster member-1 does not announce 1 of its properties, such as a.example: at most 64 count, with the first \
             names, and values of at most 256 bytes. Remove ClusterProperties of the cluster or flags --cluster-property \
             of its member agent, or shorten the values"
        )
    );
}

/// Rule L10: An importer has latency samples
/// Then: The importer counts the samples of the last six minutes for each exporting member, in the buckets of the
/// histogram. Once a minute, a heartbeat writes the counts to `spec.latency` of the MemberAgent. The counts alone cause
/// no write. First imports and samples whose clocks cannot be right are counted apart. After ten minutes without a
/// sample, a heartbeat removes the counts
#[test]
fn the_latency_summary_goes_with_a_heartbeat_once_a_minute() {
    let mut view = speaking_since(NOW.plus_micros(-10 * SECOND), [current_agent().object()]);
    view.slice_imported(&"member-2".into(), Import::Later, NOW.plus_micros(-12_000), NOW);
    let [write] = &view.plan(&Key::Heartbeat, NOW).writes[..] else { panic!("one write") };
    let Action::Patch { patch: Patch::MemberAgent(renewal), .. } = &write.action else { panic!("{write:?}") };
    let Some(LatencyChange::Report(report)) = &renewal.latency else { panic!("{renewal:?}") };
    let origins: Vec<_> = report.origins.iter().map(|origin| (&*origin.cluster, origin.count())).collect();
    assert_eq!(origins, [("member-2", 1)]);
    assert_eq!(write.sample, Some(Sample::LatencyReported));

    view.renewal_written(NOW, &mut Vec::new());
    view.latency_reported(NOW);
    view.slice_imported(&"member-2".into(), Import::Later, NOW, NOW.plus_micros(SECOND));
    let next = NOW.plus_micros(10 * SECOND);
    assert_eq!(view.plan(&Key::Heartbeat, NOW.plus_micros(SECOND)).again, Some(next), "a sample causes no write");
    let [write] = &view.plan(&Key::Heartbeat, next).writes[..] else { panic!("one write") };
    let Action::Patch { patch: Patch::MemberAgent(renewal), .. } = &write.action else { panic!("{write:?}") };
    assert_eq!((&renewal.latency, &write.sample), (&None, &None));
}

/// Also rule L10.
#[test]
fn the_summary_of_an_agent_that_imports_nothing_is_removed_ten_minutes_after_its_first_heartbeat() {
    for (quiet_micros, expected) in
        [(LATENCY_QUIET_MICROS - 1, None), (LATENCY_QUIET_MICROS, Some(LatencyChange::Remove))]
    {
        let view = speaking_since(NOW.plus_micros(-quiet_micros), [current_agent().object()]);
        let [write] = &view.plan(&Key::Heartbeat, NOW).writes[..] else { panic!("one write") };
        let Action::Patch { patch: Patch::MemberAgent(renewal), .. } = &write.action else { panic!("{write:?}") };
        assert_eq!(renewal.latency, expected, "{quiet_micros}");
    }
}

/// Rule U1: A member agent becomes leader
/// Then: The leader creates the MemberAgent with its cluster id as the name. Heartbeat: the leader renews the
/// MemberAgent when the agent starts, then every 10 s, and at once if the content changes. If an older CRD prunes a
/// field of the MemberAgent, the missing field causes no extra heartbeat
#[test]
fn a_member_announces_itself_and_renews_every_ten_seconds() {
    let nobody = speaking([]);
    let desired = Desired::MemberAgent(next());
    let at = current_agent().meta.name;
    assert_eq!(&*at.to_string(), "fleet-member-member-1/member-1");
    assert_eq!(planned(&nobody, &Key::Heartbeat), Plan::one(Write::create(at, desired)));

    let fresh = current_agent();
    let later = Plan { again: Some(NOW.plus_micros(6 * SECOND)), ..Plan::default() };
    assert_eq!(planned(&speaking([fresh.object()]), &Key::Heartbeat), later);

    for (seen, why) in [(-10, "ten seconds are over"), (1, "its clock was set back")] {
        let view = speaking_since(NOW.plus_micros(seen * SECOND), [current_agent().object()]);
        assert_eq!(planned(&view, &Key::Heartbeat), renewal(&current_agent()), "{why}");
    }
    let due = |change: fn(&mut MemberAgent)| {
        let mut stored = current_agent();
        change(&mut stored);
        stored
    };
    let table = [
        (due(|stored| stored.stopped = stored.renewed), "it had stopped"),
        (due(|stored| stored.member.version = "1.2.2".into()), "it was another version"),
        (due(|stored| stored.member.features.truncate(1)), "it understood less"),
        (due(|stored| stored.member.features.push("Telepathy".into())), "it understood what it does not any more"),
    ];
    for (stored, why) in table {
        assert_eq!(planned(&speaking([stored.clone().object()]), &Key::Heartbeat), renewal(&stored), "{why}");
    }
    let mut overdue = speaking([current_agent().object()]);
    overdue.settings.takeover_after_micros = 6 * SECOND;
    assert_eq!(planned(&overdue, &Key::Heartbeat), renewal(&current_agent()), "another cluster may soon take the id");
    let kept = due(|stored| {
        stored.leader = Some("its predecessor".into());
        stored.renewed = None;
    });
    assert_eq!(planned(&speaking([kept.object()]), &Key::Heartbeat), later, "what a hub may prune causes no write");
}

/// Rule U20: The right to watch a kind of one feature is missing, for example to list all Namespaces for the standard
/// API
/// Then: The member agent still renews its MemberAgent. The UID of `kube-system` has a watch of its own. Only
/// MemberAgents and the EndpointSlices of the cluster stop the heartbeat, and the namespace `kube-system` until its
/// server has answered once. What uses other features goes on ([rights.md](../reference/rights.md))
#[test]
fn no_watch_of_a_feature_stops_the_heartbeat() {
    let kinds = <member::Planner as agent::View>::KINDS.iter().copied().chain([Kind::SystemNamespace]);
    let needed = [Kind::MemberAgent, Kind::EndpointSlice];
    for kind in kinds.filter(|kind| !needed.contains(kind)) {
        for state in [WatchState::Incomplete, WatchState::Absent, WatchState::Unknown] {
            let mut view = speaking([current_agent().object()]);
            view.settings.mcs_api = McsApi::LabelledNamespaces;
            view.watch_state(kind, state, NOW, &mut Vec::new());
            let renewals = view.plan(&Key::Heartbeat, NOW.plus_micros(6 * SECOND)).writes.len();
            // Until the server has answered for the namespace kube-system, it is unknown if another cluster owns the
            // id.
            let is_first_list = kind == Kind::SystemNamespace && state == WatchState::Incomplete;
            assert_eq!(renewals, usize::from(!is_first_list), "{kind:?} {state:?}");
        }
    }
}

/// Rule U2: A member agent has no working watch of the EndpointSlices of its cluster, or runs neither export nor import
/// Then: The member agent does not renew the MemberAgent
#[test]
fn only_an_agent_that_reads_this_clusters_slices_announces_it() {
    let due = MemberAgent { stopped: Some(seconds(1)), ..current_agent() };
    let mut view = speaking([due.clone().object()]);
    let mut requeue = Vec::new();
    view.slices_lost(&mut requeue);
    assert_eq!((requeue, planned(&view, &Key::Heartbeat)), (vec![Key::Heartbeat], Plan::default()));
    view.slices_followed(&mut Vec::new());
    assert_eq!(planned(&view, &Key::Heartbeat), renewal(&due));
    for kind in [Kind::EndpointSlice, Kind::MemberAgent] {
        for state in [WatchState::Incomplete, WatchState::Unknown, WatchState::Absent] {
            let mut view = speaking([due.clone().object()]);
            view.watch_state(kind, state, NOW, &mut Vec::new());
            assert_eq!(planned(&view, &Key::Heartbeat), Plan::default(), "{kind:?} {state:?}");
        }
    }
    let mut view = speaking([]);
    undecodable(&mut view, Kind::MemberAgent, &due.meta.name);
    assert_eq!(planned(&view, &Key::Heartbeat), Plan::default(), "it exists");
    let silent = member_view([due.clone().object()]);
    assert_eq!(planned(&silent, &Key::Heartbeat), Plan::default(), "another process speaks for it");
    let going = speaking([due.deleting().object()]);
    assert_eq!(planned(&going, &Key::Heartbeat), Plan::default(), "its end wakes us");
}

/// Rule U3: A member agent stops as planned, not by a crash
/// Then: The member agent sets `plannedStopTime` in its last write of the MemberAgent
#[test]
fn an_agent_that_stops_gracefully_announces_that_last() {
    let stored = current_agent();
    let last = announce_stop(&speaking([stored.clone().object()]), NOW);
    let renewed = seconds(5);
    let patch = Patch::MemberAgent(Renewal { renewed, stopped: Some(NOW), ..next() });
    assert_eq!(last, Some(Write::patch(&stored.meta, patch)));
    assert_eq!(announce_stop(&speaking([]), NOW), None);
    assert_eq!(announce_stop(&member_view([stored.object()]), NOW), None);
}

// === Features that the hub agent announces ===

/// Returns the view of a hub agent that announces its features. The view contains these objects.
fn speaking_hub(objects: impl IntoIterator<Item = Object>) -> hub::Planner {
    let mut view = hub_view(objects);
    view.announces = announcement();
    view
}

/// Rule U4: A member agent renews its MemberAgent
/// Then: The hub agent counts the Services and slices that the member exports and imports. If these counts or the hub's
/// features have changed, the hub agent writes counts and features to the status of the MemberAgent. Each heartbeat
/// causes at most one write of the hub agent
#[test]
fn the_hub_announces_its_features_and_counts_what_the_member_exports_and_imports() {
    let agent = member_agent("member-1", Features::ALL, Features::NONE);
    let silent = MemberAgent { status: MemberStatus::default(), ..agent };
    let (app, import) = (service("work/app"), service_import("work/app"));
    let theirs = slice_export("member-2", &slice("work/app-1"));
    let objects = [
        internal_export("member-1", &app).object(),
        internal_export("member-2", &app).object(),
        Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-1").endpoints(&["a", "b"]))),
        Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-2").endpoints(&["c"]))),
        Object::EndpointSliceExport(theirs.clone()),
        Object::EndpointSliceImport(distributed_slice("member-1", &theirs)),
        claim("member-1", &import).with_status(resolved(&["member-2"])).object(),
        claim("member-1", &import).called("work-other").object(),
        claim("member-1", &import).called("work-third").object(),
    ];
    let counts = MemberCounts {
        exported_services: 1,
        exported_slices: 2,
        exported_endpoints: 3,
        imported_services: 1,
        imported_slices: 1,
    };
    let status = MemberStatus { announcement: announcement(), counts: Some(counts), ..MemberStatus::default() };
    let answer = Write::patch(&silent.meta, Patch::MemberAgentStatus(status.clone()));
    let key = hub::Key::Member("member-1".into());
    let view = speaking_hub(objects.iter().cloned().chain([silent.clone().object()]));
    assert_eq!(writes(&view, &key), [answer]);
    let answered = MemberAgent { status: status.clone(), ..silent.clone() };
    let view = speaking_hub(objects.iter().cloned().chain([answered.clone().object()]));
    assert_eq!(planned(&view, &key), Plan::default(), "said already");
    let fewer = Some(MemberCounts { exported_slices: 1, ..counts });
    let fewer = MemberAgent { status: MemberStatus { counts: fewer, ..status }, ..answered.clone() };
    let view = speaking_hub(objects.iter().cloned().chain([fewer.object()]));
    assert_eq!(writes(&view, &key).len(), 1, "the counts differ");
    let mut half = speaking_hub([answered.object()]);
    half.watch_state(Kind::EndpointSliceExport, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(planned(&half, &key), Plan::default(), "what is not all known is not counted");
    let mut gone = speaking_hub([silent.clone().object()]);
    gone.watch_state(Kind::MemberAgent, WatchState::Unknown, NOW, &mut Vec::new());
    assert_eq!(writes(&gone, &key), [], "the kind is gone");
    assert_eq!(writes(&speaking_hub([]), &key), [], "who is not there is not answered");
    assert_eq!(writes(&speaking_hub([silent.deleting().object()]), &key), []);
}

/// Rule MC12: The hub has no kind MergedServiceImport, or the hub agent may not read it
/// Then: The hub agent does not announce the feature `MulticlusterApi`, so exports of the standard API show that the
/// hub does not know it (ME5). If the hub loses the kind, also before a restart of the hub agent, the last announcement
/// stays, and members change nothing
#[test]
fn the_hub_announces_the_mcs_api_only_while_it_has_the_kind_for_it() {
    let key = hub::Key::Member("member-1".into());
    let without = Features::ALL.without(Feature::McsApi);
    let table = [
        (WatchState::Complete, Features::NONE, Features::ALL),
        (WatchState::Absent, without, without),
        (WatchState::Absent, Features::ALL, Features::ALL),
        (WatchState::Incomplete, without, without),
        (WatchState::Incomplete, Features::NONE, Features::NONE),
        (WatchState::Unknown, Features::ALL, Features::ALL),
    ];
    for (state, last, expected) in table {
        let mut view = speaking_hub([member_agent("member-1", Features::ALL, last).object()]);
        view.watch_state(Kind::MergedServiceImport, state, NOW, &mut Vec::new());
        let [Write { action: Action::Patch { patch: Patch::MemberAgentStatus(status), .. }, .. }] =
            &writes(&view, &key)[..]
        else {
            panic!("one answer")
        };
        assert_eq!(status.announcement.known_features(), expected, "{state:?}");
    }
}

/// Offer of a slice stream at this port.
#[test]
fn a_renewal_of_a_member_that_announces_nothing_requeues_no_plan_that_reads_its_features() {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let claim = claim("member-2", &import).east_west().marked().with_status(import.status.clone());
    let agent = member_agent("member-2", Features::ALL, Features::ALL);
    let silent = MemberAgent { member: Announcement::default(), ..agent.clone() };
    let mut view = hub_view([import.object(), claim.object(), silent.clone().object()]);
    let renewed = MemberAgent { renewed: Some(NOW), ..silent.version(8) };
    assert_eq!(observe_change(&mut view, renewed.object()), [hub::Key::Member("member-2".into())]);
    let requeued = observe_change(&mut view, agent.version(9).object());
    assert!(requeued.contains(&hub::Key::Service(named("work/app"))), "{requeued:?}");
}

fn offer(port: u16) -> SliceStreamOffer {
    SliceStreamOffer { address: format!("hub.example:{port}").into(), ca_bundle: "PEM".into() }
}

/// Rule J18: The hub agent offers a slice stream (`--slice-stream-advertise-address`), or the authority of its
/// certificate is replaced
/// Then: The hub agent writes address and authorities to the status of each MemberAgent, and announces `SliceStream`.
/// The member agent opens its stream there, unless its flags name another address or `0`. It tries a changed offer at
/// once. If an older CRD drops the offer, the hub agent writes it again only after its restart. While another cluster
/// owns the id of a member, the member opens no stream
#[test]
fn the_hub_offers_its_slice_stream_once_also_where_the_definition_drops_the_offer() {
    let agent = member_agent("member-1", Features::ALL, Features::NONE);
    let counts = Some(MemberCounts::default());
    let status = MemberStatus { announcement: announcement(), counts, ..MemberStatus::default() };
    let silent = MemberAgent { status: status.clone(), ..agent };
    let key = hub::Key::Member("member-1".into());
    let mut view = speaking_hub([silent.clone().object()]);
    assert_eq!(planned(&view, &key), Plan::default(), "there is no stream");
    let offers = |view: &mut hub::Planner, offer| {
        let mut requeue = Vec::new();
        view.offer(offer, NOW, &mut requeue);
        requeue
    };
    let (_, reads) = view.plan_and_reads(&key, NOW);
    view.planned(&key, reads);
    assert_eq!(offers(&mut view, offer(1)), std::slice::from_ref(&key));
    assert_eq!(offers(&mut view, offer(1)), [], "nothing changed");
    let announced =
        Announcement { features: [&announcement().features[..], &["SliceStream".into()]].concat(), ..announcement() };
    let answer = |slice_stream, announcement| {
        let status = MemberStatus { announcement, slice_stream, ..status.clone() };
        Write::patch(&silent.meta, Patch::MemberAgentStatus(status))
    };
    assert_eq!(writes(&view, &key), [answer(Some(offer(1)), announced.clone())]);

    let with = |slice_stream| {
        let status = MemberStatus { announcement: announced.clone(), slice_stream, ..status.clone() };
        MemberAgent { status, ..silent.clone() }
    };
    let (offered, dropped) = (with(Some(offer(1))), with(None));
    observe_change(&mut view, dropped.clone().object());
    assert_eq!(writes(&view, &key).len(), 1, "perhaps an earlier process wrote the announcement");
    view.answered(&"member-1".into(), NOW);
    for present in [&offered, &dropped] {
        observe_change(&mut view, present.clone().object());
        assert_eq!(planned(&view, &key), Plan::default(), "said already");
    }
    offers(&mut view, offer(1));
    assert_eq!(planned(&view, &key), Plan::default(), "the same offer");
    offers(&mut view, offer(2));
    assert_eq!(writes(&view, &key).len(), 1, "a new offer is tried once, too");
    offers(&mut view, offer(1));
    observe_change(&mut view, offered.clone().object());
    offers(&mut view, offer(2));
    assert_eq!(writes(&view, &key), [answer(Some(offer(2)), announced)], "the address has changed");
    let without = speaking_hub([offered.object()]);
    assert_eq!(writes(&without, &key), [answer(None, announcement())], "the next hub agent has no stream");
}

/// Rule J19: A member agent has, lacks or loses a slice stream
/// Then: The next renewal of the MemberAgent reports it in `spec.sliceStream`, with a reason and a message of at most
/// 1,024 characters
#[test]
fn a_renewal_reports_what_came_of_the_offered_slice_stream() {
    let mut offered = member_agent("member-1", Features::ALL, Features::ALL);
    offered.status.slice_stream = Some(offer(1));
    let mut view = speaking_since(NOW.plus_micros(-10 * SECOND), [offered.object()]);
    assert_eq!(view.slice_stream_offer(), Some(&offer(1)));
    assert_eq!(speaking([]).slice_stream_offer(), None);

    let report = SliceStreamReport { connected: false, reason: "Refused".into(), message: "no".into() };
    view.slice_stream.report = Some(report.clone());
    let written = writes(&view, &Key::Heartbeat);
    let [Write { action: Action::Patch { patch: Patch::MemberAgent(renewal), .. }, .. }] = &written[..] else {
        panic!("{written:?}")
    };
    assert_eq!(renewal.slice_stream, Some(report));
}

/// Also rule U4.
#[test]
fn the_hub_answers_when_a_member_renews_and_not_when_what_it_counts_changes() {
    let agent = member_agent("member-1", Features::ALL, Features::ALL);
    let mut view = speaking_hub([agent.clone().object()]);
    let slice = slice_export("member-1", &slice("work/app-1"));
    let requeue = observe_change(&mut view, Object::EndpointSliceExport(slice));
    assert!(!requeue.contains(&hub::Key::Member("member-1".into())), "{requeue:?}");
    let renewed = MemberAgent { renewed: Some(NOW), ..agent };
    assert_eq!(observe_change(&mut view, renewed.object()), [hub::Key::Member("member-1".into())]);
}

// === Slices for peers without some features ===

/// Returns a slice that uses every addition of fleetnet to the Go form, and the same slice in the Go form.
fn rich() -> (EndpointSlice, EndpointSlice) {
    let plain = slice("work/app-1").endpoints(&["10.0.0.1"]);
    let mut rich = plain.clone();
    rich.content.endpoints[0].hostname = Some("db-0".into());
    rich.content.endpoints[0].zone = Some("zone-1".into());
    rich.content.draining = vec![endpoint("10.0.0.2")];
    (rich, plain)
}

/// Returns the writes with which the exporter creates or updates the export of a slice. The hub agent announces the
/// features `hub`; `stored` is the existing export.
fn exported(slice: &EndpointSlice, hub: Option<Features>, stored: Option<&HubSlice>) -> Vec<Write> {
    let mut objects = vec![service("work/app").object(), accepted_export("work/app").object(), slice.clone().object()];
    objects.extend(stored.map(|stored| Object::EndpointSliceExport(stored.clone())));
    objects.extend(hub.map(|hub| member_agent("member-1", Features::ALL, hub).object()));
    writes(&member_view(objects), &Key::SliceExport(named("work/app-1")))
}

/// Returns the contents of the slices in these writes.
fn carried(writes: &[Write]) -> Vec<SliceContent> {
    let content = |write: &Write| match &write.action {
        Action::Create(Desired::EndpointSliceExport(spec) | Desired::EndpointSliceImport(spec))
        | Action::Patch { patch: Patch::EndpointSliceExport(spec) | Patch::EndpointSliceImport(spec), .. } => {
            Some((*spec.content).clone())
        }
        _ => None,
    };
    writes.iter().filter_map(content).collect()
}

/// Rule U5: A hub agent announces a feature, or revokes a feature
/// Then: The member agent writes every affected EndpointSliceExport and InternalServiceExport again, with the fields of
/// the announced feature. After a revocation, the member agent writes these objects again without the fields of the
/// revoked feature
#[test]
fn a_member_writes_what_the_hub_announced_and_removes_the_rest() {
    let (rich, plain) = rich();
    assert_eq!(carried(&exported(&rich, Some(Features::ALL), None)), from_ref(&rich.content));
    for hub in [None, Some(Features::NONE)] {
        assert_eq!(carried(&exported(&rich, hub, None)), from_ref(&plain.content), "{hub:?}");
    }
    let (full, go) = (slice_export("member-1", &rich), slice_export("member-1", &plain));
    assert_eq!(exported(&rich, Some(Features::ALL), Some(&full)), []);
    assert_eq!(exported(&rich, None, Some(&go)), [], "compared in the Go form");
    assert_eq!(carried(&exported(&rich, Some(Features::NONE), Some(&full))), [plain.content], "taken back");
    assert_eq!(carried(&exported(&rich, Some(Features::ALL), Some(&go))), [rich.content], "announced");
}

/// Rule F3: A source slice has IPv6 addresses
/// Then: The agents export and distribute the slice to peers that announce the feature `IPv6`
#[test]
fn ipv6_slices_are_exported_to_a_hub_that_understands_them() {
    let mut six = slice("work/app-1");
    six.content = SliceContent { address_type: AddressType::IPv6, ..content(&["fd00::1"]) };
    assert_eq!(carried(&exported(&six, Some(Features::ALL), None)), [six.content.clone()]);
    let without = Features::ALL.without(Feature::IPv6);
    assert_eq!(exported(&six, Some(without), None), []);
    let stored = slice_export("member-1", &six);
    assert_eq!(exported(&six, Some(without), Some(&stored)), [Write::delete(Kind::EndpointSliceExport, &stored.meta)]);
}

/// Rule U10: A slice changes only in a field that the peer does not support
/// Then: The agent writes nothing for this peer and starts no latency sample
#[test]
fn a_change_of_what_the_hub_does_not_get_is_no_change() {
    let (rich, plain) = rich();
    let export = slice_export("member-1", &plain);
    let mut view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        plain.object(),
        Object::EndpointSliceExport(export),
    ]);
    let later = rich.generation(2);
    observe_change(&mut view, later.clone().object());
    let mut moved = later.generation(3);
    moved.content.endpoints.push(endpoint("10.0.0.9"));
    view.applied(moved.object(), seconds(30), &mut Vec::new());
    let written = writes(&view, &Key::SliceExport(named("work/app-1")));
    let [Write { action: Action::Patch { patch: Patch::EndpointSliceExport(spec), .. }, .. }] = &written[..] else {
        panic!("{written:?}")
    };
    assert_eq!(spec.reference.exported_since, Some(seconds(30)), "its time runs from what the hub is told");
}

/// Returns the hub agent's view of an export of member-1 and its distributed slice for member-2 (`distributed`).
/// Member-2 announces the features `importer`.
fn distributing(export: &HubSlice, importer: Option<Features>, distributed: Option<&HubSlice>) -> hub::Planner {
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let claim = claim("member-2", &service_import("work/app")).marked().with_status(resolved(&["member-1"]));
    let mut objects = vec![Object::EndpointSliceExport(export.clone()), import.object(), claim.object()];
    objects.extend(distributed.map(|distributed| Object::EndpointSliceImport(distributed.clone())));
    objects.extend(importer.map(|member| member_agent("member-2", member, Features::ALL).object()));
    hub_view(objects)
}

fn slice_key(export: &HubSlice) -> hub::Key {
    hub::Key::Slice(export.meta.name.name.clone())
}

/// Rule U6: An importing member announces a feature, or revokes a feature
/// Then: The hub agent writes the member's distributed slices (EndpointSliceImports) and the status of its claims
/// (InternalServiceImports) again, with the fields of the announced feature. After a revocation, the hub agent writes
/// these objects again without the fields of the revoked feature
#[test]
fn the_hub_writes_what_each_importer_announced_and_removes_the_rest() {
    let (rich, plain) = rich();
    let export = slice_export("member-1", &rich).marked();
    let key = slice_key(&export);
    let full = distributed_slice("member-2", &export);
    let go = distributed_slice("member-2", &slice_export("member-1", &plain));
    let table = [
        (Some(Features::ALL), None, vec![rich.content.clone()]),
        (Some(Features::NONE), None, vec![plain.content.clone()]),
        (None, None, vec![plain.content.clone()]),
        (Some(Features::ALL), Some(&full), vec![]),
        (None, Some(&go), vec![]),
        (Some(Features::NONE), Some(&full), vec![plain.content]),
        (Some(Features::ALL), Some(&go), vec![rich.content]),
    ];
    for (importer, distributed, expected) in table {
        assert_eq!(
            carried(&writes(&distributing(&export, importer, distributed), &key)),
            expected,
            "{importer:?} {distributed:?}"
        );
    }
}

/// Also rule F3.
#[test]
fn an_importer_that_does_not_understand_ipv6_has_no_distributed_slice_of_such_a_slice() {
    let mut six = slice("work/app-1");
    six.content = SliceContent { address_type: AddressType::IPv6, ..content(&["fd00::1"]) };
    let export = slice_export("member-1", &six);
    let key = slice_key(&export);
    let without = Some(Features::ALL.without(Feature::IPv6));
    assert_eq!(writes(&distributing(&export, without, None), &key), [], "nor is it marked for nobody");
    let marked = export.marked();
    let distributed = distributed_slice("member-2", &marked);
    let view = distributing(&marked, without, Some(&distributed));
    assert_eq!(writes(&view, &key), [Write::delete(Kind::EndpointSliceImport, &distributed.meta)]);
    assert_eq!(writes(&distributing(&marked, Some(Features::ALL), Some(&distributed)), &key), []);
}

/// Rule U9: A MemberAgent has a name other than the cluster id, or is in another namespace
/// Then: The agents ignore this MemberAgent
#[test]
fn a_member_announces_only_for_itself() {
    let (rich, plain) = rich();
    let export = slice_export("member-1", &rich).marked();
    let mut agent = member_agent("member-2", Features::ALL, Features::ALL);
    for (namespace, name) in [("fleet-member-member-2", "member-3"), ("fleet-member-member-3", "member-2")] {
        (agent.meta.name.namespace, agent.meta.name.name) = (namespace.into(), name.into());
        let mut view = distributing(&export, None, None);
        observe_change(&mut view, agent.clone().object());
        assert_eq!(carried(&writes(&view, &slice_key(&export))), from_ref(&plain.content), "{namespace}/{name}");
    }
    let mut of_another = member_agent("member-1", Features::ALL, Features::ALL);
    of_another.meta.name.name = "member-3".into();
    let mut view = member_view([]);
    observe_change(&mut view, of_another.object());
    assert_eq!(view, member_view([]));
}

/// Rule U7: An announcement disappears without being revoked, because the MemberAgent was deleted
/// Then: For 60 s more, the agents use the last announcement, because the MemberAgent is normally created again within
/// that time
#[test]
fn a_vanished_announcement_applies_for_a_minute_and_a_withdrawn_one_no_longer() {
    let (rich, plain) = rich();
    let export = slice_export("member-1", &rich).marked();
    let (key, distributed) = (slice_key(&export), distributed_slice("member-2", &export));
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let mut view = distributing(&export, Some(Features::ALL), Some(&distributed));
    let requeue = observe_removal(&mut view, &agent); // the deletion is seen at second 20
    assert!(requeue.contains(&key), "{requeue:?}");
    let end = seconds(80);
    let waits = Plan { again: Some(end), ..Plan::default() };
    assert_eq!(planned_at(&view, &key, end.plus_micros(-1)), waits);
    assert_eq!(carried(&planned_at(&view, &key, end).writes), from_ref(&plain.content));
    view.applied(agent, seconds(70), &mut Vec::new());
    assert_eq!(planned_at(&view, &key, end), Plan::default(), "it was made anew in time");
    let silent = member_agent("member-2", Features::NONE, Features::ALL).version(2).object();
    view.applied(silent, seconds(71), &mut Vec::new());
    assert_eq!(carried(&planned_at(&view, &key, seconds(71)).writes), [plain.content]);
}

/// Also rule U7.
#[test]
fn a_vanished_announcement_of_the_hub_applies_for_a_minute() {
    let (rich, plain) = rich();
    let stored = slice_export("member-1", &rich);
    let agent = member_agent("member-1", Features::ALL, Features::ALL);
    let mut view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        rich.object(),
        Object::EndpointSliceExport(stored),
        agent.clone().object(),
    ]);
    let key = Key::SliceExport(named("work/app-1"));
    let silent = MemberAgent { status: MemberStatus::default(), ..agent.version(2) };
    assert!(
        observe_change(&mut view, silent.object()).contains(&key),
        "made anew by the member: the hub has still to answer"
    );
    let end = seconds(80);
    assert_eq!(view.plan(&key, end.plus_micros(-1)), Plan { again: Some(end), ..Plan::default() });
    assert_eq!(carried(&view.plan(&key, end).writes), [plain.content]);
}

/// Also rule U7.
#[test]
fn of_two_announcements_that_vanished_the_one_that_ends_first_is_waited_for() {
    let affinity = SessionAffinity::ClientIp { timeout_seconds: 60 };
    let full = ImportStatus { session_affinity: affinity, ..resolved(&["member-1"]) };
    let mut internal = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    internal.session_affinity = affinity;
    let import = service_import("work/app").showing(full.clone()).claimed_by(&["member-2", "member-3"]);
    let claims = ["member-2", "member-3"]
        .map(|member| claim(member, &service_import("work/app")).east_west().marked().with_status(full.clone()));
    let agents = ["member-2", "member-3"].map(|member| member_agent(member, Features::ALL, Features::ALL));
    let mut objects = vec![internal.port_set_since(seconds(2)).object(), import.object()];
    objects.extend(claims.iter().map(|claim| claim.clone().object()));
    objects.extend(agents.iter().map(|agent| agent.clone().object()));
    let mut view = hub_view(objects);
    for (agent, at) in agents.iter().zip([seconds(30), seconds(20)]) {
        let gone = removed(Kind::MemberAgent, agent.meta.name.clone(), agent.meta.uid.clone());
        view.observe(gone, at, &mut Vec::new());
    }
    let key = hub::Key::Service(named("work/app"));
    assert_eq!(view.plan(&key, seconds(40)), Plan { again: Some(seconds(80)), ..Plan::default() });
    let answer = Write::patch(&claims[1].meta, Patch::InternalServiceImportStatus(resolved(&["member-1"])));
    let plan = Plan { writes: vec![answer], again: Some(seconds(90)), ..Plan::default() };
    assert_eq!(view.plan(&key, seconds(80)), plan);
}

/// Rule U8: An agent has not listed the MemberAgents yet
/// Then: The agent writes nothing for any peer
#[test]
fn nothing_is_written_before_the_features_of_peers_are_known() {
    let (rich, _) = rich();
    let export = slice_export("member-1", &rich);
    let mut view = distributing(&export, None, None);
    view.watch_state(Kind::MemberAgent, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(writes(&view, &slice_key(&export)), []);
    for state in [WatchState::Absent, WatchState::Unknown] {
        let mut without = distributing(&export, None, None);
        without.watch_state(Kind::MemberAgent, state, NOW, &mut Vec::new());
        assert_eq!(writes(&without, &slice_key(&export)).len(), 1, "{state:?}: the Go form is assumed");
    }
}

// === Services for peers without some features ===

/// Also rule U6.
#[test]
fn a_claim_is_answered_in_the_form_that_its_member_announced() {
    let affinity = SessionAffinity::ClientIp { timeout_seconds: 60 };
    let full = ImportStatus { session_affinity: affinity, ..resolved(&["member-1"]) };
    let mut internal = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    internal.session_affinity = affinity;
    let import = service_import("work/app").showing(full.clone()).claimed_by(&["member-2"]);
    let claim = claim("member-2", &service_import("work/app")).marked();
    let table = [(Features::ALL, full), (Features::NONE, resolved(&["member-1"]))];
    for (member, expected) in table {
        let view = hub_view([
            internal.clone().port_set_since(seconds(2)).object(),
            import.clone().object(),
            claim.clone().object(),
            member_agent("member-2", member, Features::ALL).object(),
        ]);
        let answer = Write::patch(&claim.meta, Patch::InternalServiceImportStatus(expected));
        assert_eq!(writes(&view, &hub::Key::Service(named("work/app"))), [answer], "{member:?}");
    }
}

/// Rule F7: A member claims a headless Service
/// Then: The hub agent grants the claim (InternalServiceImport) only if the member announces the feature `Headless`. A
/// member without this feature would create a load balancer for the Service
#[test]
fn a_headless_service_is_for_members_that_understand_it() {
    let headless = ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-1"]) };
    let mut internal = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    internal.headless = true;
    let claim = claim("member-2", &service_import("work/app")).marked();
    let planned = |import: &ServiceImport, claim: &InternalServiceImport, member: Features| {
        let view = hub_view([
            internal.clone().port_set_since(seconds(2)).object(),
            import.clone().object(),
            claim.clone().object(),
            member_agent("member-2", member, Features::ALL).object(),
        ]);
        writes(&view, &hub::Key::Service(named("work/app")))
    };
    let claims = |import: &ServiceImport, clusters: &[&str]| {
        let importers = clusters.iter().map(|it| (names::member_namespace(it), ClusterId::from(*it))).collect();
        let finalizers = finalizers_of(&import.meta, !clusters.is_empty());
        Write::patch(&import.meta, Patch::Claims { importers, load_balancer: None, finalizers })
    };
    let free = service_import("work/app").showing(headless.clone());
    assert_eq!(planned(&free, &claim, Features::ALL), [claims(&free, &["member-2"])]);
    let without = Features::ALL.without(Feature::Headless);
    let unmarked = Write::remove_finalizer(Kind::InternalServiceImport, &claim.meta);
    assert_eq!(planned(&free, &claim, without), [unmarked], "others would make a load balancer of it");
    let claimed = free.claimed_by(&["member-2"]);
    let answered = claim.with_status(headless);
    assert_eq!(planned(&claimed, &answered, Features::ALL), []);
    assert_eq!(planned(&claimed, &answered, without), [claims(&claimed, &[])], "taken back");
}

/// Also rule J18.
#[test]
fn the_stream_is_where_the_flags_or_else_the_hub_agent_say_unless_another_cluster_has_the_id() {
    let server = |chosen, offered: Option<u16>, owner: &str| {
        let mut agent = MemberAgent { cluster_uid: Some(owner.into()), ..current_agent() };
        agent.status.slice_stream = offered.map(offer);
        let mut view = speaking([agent.object()]);
        view.slice_stream.chosen = chosen;
        view.slice_stream_server(NOW)
    };
    let own = &*namespace("kube-system").meta.uid;
    let offered = Some(SliceStreamServer::Offered(offer(1)));
    assert_eq!(server(SliceStreamUse::Offered, Some(1), own), offered);
    assert_eq!(server(SliceStreamUse::Offered, None, own), None);
    assert_eq!(server(SliceStreamUse::Fixed, Some(1), own), Some(SliceStreamServer::Fixed));
    assert_eq!(server(SliceStreamUse::Off, Some(1), own), None);
    for chosen in [SliceStreamUse::Offered, SliceStreamUse::Fixed] {
        assert_eq!(server(chosen, Some(1), "uid-of-another"), None, "another cluster has the stream");
    }
}

/// Rule U21: The watch of the EndpointSlices of the cluster has no contact with the API server
/// Then: The member agent closes its slice stream, and opens none. So an open stream shows the same as a heartbeat, and
/// the hub agent judges the member by rule O14
#[test]
fn a_stream_is_open_only_while_the_agent_reads_this_clusters_slices() {
    let mut view = speaking([current_agent().object()]);
    view.slice_stream.chosen = SliceStreamUse::Fixed;
    let (wanted, mut requeue) = (Some(SliceStreamServer::Fixed), Vec::new());
    assert_eq!(view.slice_stream_to_open(NOW), wanted);
    view.slices_lost(&mut requeue);
    assert_eq!(view.slice_stream_to_open(NOW), None, "its heartbeat has stopped");
    assert_eq!(view.slice_stream_server(NOW), wanted, "the hub agent may still have written what the stream delivered");
    assert_eq!(requeue, [Key::Heartbeat]);
    view.slices_followed(&mut requeue);
    assert_eq!(view.slice_stream_to_open(NOW), wanted);
    for state in [WatchState::Incomplete, WatchState::Unknown] {
        view.watch_state(Kind::EndpointSlice, state, NOW, &mut Vec::new());
        assert_eq!(view.slice_stream_to_open(NOW), None, "{state:?}");
    }
}
