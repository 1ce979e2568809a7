//! Tests of the membership in a fleet with a manager (InternalMemberCluster).

use crate::support::build::{
    Build, BuildInternalExport, BuildSlice, IntoObject, condition, distributed_slice, imported_slice, internal_export,
    internal_member_cluster, mcs_export, mcs_part, member_agent, named, namespace, request, seconds, service,
    service_export, slice, slice_export,
};
use crate::support::mcs;
use crate::support::view::{
    NOW, SEEN, events_of, member_view, observe_change, observe_removal, planned, undecodable, writes,
};
use fleetnet_core::features::Features;
use fleetnet_core::limits::FOUND_LEAVE_MICROS;
use fleetnet_core::member::{Key, McsApi, Membership, OnLeave, Planner};
use fleetnet_core::model::{
    AgentStatus, Condition, EndpointSlice, InternalMemberCluster, Kind, McsLabels, McsServiceExport, McsServiceImport,
    MembershipAgent, MembershipState, Object, Service,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, BlockingReason, Patch, Plan, Write};
use fleetnet_types::{Change, ConditionStatus, ObjectName, Removal, Timestamp, WatchState};
use std::collections::BTreeSet;

/// Returns a member that does the work of both agents, with its InternalMemberCluster and these objects. It has seen
/// the state `Join` before.
fn member(membership: &InternalMemberCluster, objects: impl IntoIterator<Item = Object>) -> Planner {
    let mut joined = InternalMemberCluster { state: MembershipState::Join, ..membership.clone() };
    joined.meta.resource_version = 0;
    started(&joined, [joined.clone().object()].into_iter().chain(objects).chain([membership.clone().object()]))
}

/// Returns a member that has seen nothing but these objects since its start.
fn started(membership: &InternalMemberCluster, objects: impl IntoIterator<Item = Object>) -> Planner {
    let mut view = member_view(objects);
    view.settings.membership.agents = MembershipAgent::ALL.to_vec();
    assert!(view.memberships.get(&membership.meta.name).is_some());
    view
}

fn plan(view: &mut Planner, second: i64) -> Plan {
    let (plan, reads) = view.plan_and_reads(&Key::Membership, seconds(second));
    view.planned(&Key::Membership, reads);
    plan
}

fn joined(is_joined: bool, generation: i64, since: i64) -> Condition {
    let (status, reason) = if is_joined { ("True", "AgentJoined") } else { ("False", "AgentLeft") };
    Condition { last_transition: seconds(since), ..condition("Joined", status, reason, "", generation) }
}

fn agent(agent: MembershipAgent, joined: Condition, heartbeat: Option<i64>) -> AgentStatus {
    AgentStatus::Known { agent, joined: Some(joined), heartbeat: heartbeat.map(seconds) }
}

fn both(joined: &Condition, heartbeat: i64) -> Vec<AgentStatus> {
    MembershipAgent::ALL.into_iter().map(|one| agent(one, joined.clone(), Some(heartbeat))).collect()
}

fn report(membership: &InternalMemberCluster, agents: Vec<AgentStatus>) -> Write {
    Write::patch(&membership.meta, Patch::InternalMemberClusterStatus(agents))
}

/// Returns the object after a write.
fn written(membership: &InternalMemberCluster, plan: &Plan) -> InternalMemberCluster {
    let [Write { action: Action::Patch { patch: Patch::InternalMemberClusterStatus(agents), .. }, .. }] =
        &plan.writes[..]
    else {
        panic!("{plan:?}")
    };
    let mut written = InternalMemberCluster { agents: agents.clone(), ..membership.clone() };
    written.meta.resource_version += 1;
    written
}

/// Rule O10: The InternalMemberCluster of a member has the state `Join`
/// Then: The member agent sets the condition `Joined` True (`AgentJoined`) in its entries of `status.agentStatus`:
/// `ServiceExportImportAgent` and `MultiClusterServiceAgent`, by the parts that are on. It sends a heartbeat for both
/// with one write, at the period in `spec.heartbeatPeriodSeconds` with a jitter of 5%, and not before the next whole
/// second. Entries of other agents stay as they are
#[test]
fn a_member_that_joins_says_so_and_sends_heartbeats_at_the_period() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Join);
    let mut view = member(&membership, []);
    let first = plan(&mut view, 10);
    assert_eq!(first.writes, [report(&membership, both(&joined(true, 3, 10), 10))]);
    let (mut last, mut periods) = (10, BTreeSet::new());
    for _ in 0..20 {
        membership = written(&membership, &plan(&mut view, last));
        let requeue = observe_change(&mut view, membership.clone().object());
        assert_eq!(requeue, [Key::Membership]);
        let waits = plan(&mut view, last);
        let next = waits.again.expect("the next heartbeat");
        assert_eq!(waits, Plan { again: Some(next), ..Plan::default() });
        let after = next.since(seconds(last)).as_secs_f64();
        assert!((57.0..=63.0).contains(&after), "{after} s");
        periods.insert(next.since(seconds(last)));
        assert_eq!(view.plan(&Key::Membership, next).writes.len(), 1, "due at this time");
        let beat = plan(&mut view, 0).writes;
        assert_eq!(beat.len(), 1, "a clock that was set back delays no heartbeat");
        last = next.0 / 1_000_000 + 1;
        assert_eq!(plan(&mut view, last).writes, [report(&membership, both(&joined(true, 3, 10), last))]);
    }
    assert!(periods.len() > 5, "the members do not write at the same time: {periods:?}");
}

/// Also rule O10.
#[test]
fn nothing_is_reported_while_the_state_is_not_known() {
    for state in [MembershipState::Join, MembershipState::Leave] {
        let membership = internal_member_cluster("member-1", state);
        let mut view = member(&membership, []);
        assert_eq!(plan(&mut view, 10).writes.len(), 1);
        view.watch_state(Kind::InternalMemberCluster, WatchState::Incomplete, NOW, &mut Vec::new());
        assert_eq!(plan(&mut view, 10), Plan::default());
        let mut view = member(&membership, []);
        undecodable(&mut view, Kind::InternalMemberCluster, &membership.meta.name);
        assert_eq!(plan(&mut view, 10), Plan::default());
    }
}

/// Also rule O10.
#[test]
fn an_agent_without_a_valid_answer_answers_at_once() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Join);
    for (status, reason) in [("True", "AgentLeft"), ("False", "AgentJoined"), ("Unknown", "")] {
        membership.agents = both(&condition("Joined", status, reason, "", 3), 10);
        assert_eq!(plan(&mut member(&membership, []), 11).writes.len(), 1, "{status} {reason}");
    }
    // One of the agents has joined.
    let [first, second] = MembershipAgent::ALL;
    membership.agents = vec![agent(first, joined(true, 3, 10), Some(10))];
    let expected = vec![agent(first, joined(true, 3, 10), Some(11)), agent(second, joined(true, 3, 11), Some(11))];
    assert_eq!(plan(&mut member(&membership, []), 11).writes, [report(&membership, expected)]);
}

/// Also rule O10.
#[test]
fn a_heartbeat_is_never_due_in_the_second_of_the_last_one() {
    for last in 10..60 {
        let mut membership = internal_member_cluster("member-1", MembershipState::Join);
        membership.heartbeat_micros = 1_000_000;
        membership.agents = both(&joined(true, 3, 10), last);
        let waits = plan(&mut member(&membership, []), last);
        let next = waits.again.expect("the next heartbeat");
        assert!(next >= seconds(last + 1), "at {last} s: it would be stored as the same second");
    }
}

/// Also rule O10.
#[test]
fn entries_of_other_agents_and_the_order_stay() {
    let other = AgentStatus::Other(r#"{"type":"MemberAgent","properties":{"x":1}}"#.into());
    let left = agent(MembershipAgent::MultiClusterService, joined(false, 2, 5), None);
    let mut membership = internal_member_cluster("member-1", MembershipState::Join);
    membership.agents = vec![left, other.clone()];
    let expected = vec![
        agent(MembershipAgent::MultiClusterService, joined(true, 3, 10), Some(10)),
        other.clone(),
        agent(MembershipAgent::ServiceExportImport, joined(true, 3, 10), Some(10)),
    ];
    let mut view = member(&membership, []);
    assert_eq!(plan(&mut view, 10).writes, [report(&membership, expected)]);

    // A process with one of the parts answers for it alone.
    view.settings.membership.agents = vec![MembershipAgent::MultiClusterService];
    let expected = vec![agent(MembershipAgent::MultiClusterService, joined(true, 3, 10), Some(10)), other];
    assert_eq!(plan(&mut view, 10).writes, [report(&membership, expected)]);
    view.settings.membership = Membership::default();
    assert_eq!(plan(&mut view, 10), Plan::default());
}

/// Also rule O10.
#[test]
fn a_new_generation_is_answered_at_once() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Join);
    membership.agents = both(&joined(true, 2, 5), 10);
    let expected = report(&membership, both(&joined(true, 3, 5), 11));
    assert_eq!(plan(&mut member(&membership, []), 11).writes, [expected], "the condition is true since the same time");
}

/// Rule O11: The InternalMemberCluster has the state `Leave`
/// Then: The member agent deletes all ServiceExports and MultiClusterServices of its cluster, which ends its exports
/// and imports. Once they are gone, it sets `Joined` False (`AgentLeft`), and sends no more heartbeats. What users
/// create after that stays until the InternalMemberCluster changes. While a ServiceExport or MultiClusterService is
/// undecodable or not listed, it does not say that it has left. With `--enable-networking-features=false` it deletes
/// nothing, and says at once that it has left
#[test]
fn a_member_that_leaves_deletes_its_exports_and_imports_and_then_says_that_it_has_left() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Leave);
    membership.agents = both(&joined(true, 2, 5), 10);
    let (export, import) = (service_export("work/app"), request("work/app"));
    let objects = [service("work/app").object(), export.clone().object(), import.clone().object()];
    let mut view = member(&membership, objects);
    let deletes =
        [Write::delete(Kind::ServiceExport, &export.meta), Write::delete(Kind::MultiClusterService, &import.meta)];
    assert_eq!(plan(&mut view, 20).writes, deletes);

    // Nothing is reported while they are being deleted.
    let mut going = export;
    going.meta.deleting = true;
    assert!(observe_change(&mut view, going.clone().object()).contains(&Key::Membership));
    assert_eq!(plan(&mut view, 20).writes, deletes[1..]);
    let mut removed = |kind, meta: &fleetnet_core::model::Meta| {
        let mut requeue = Vec::new();
        let (name, uid) = (meta.name.clone(), meta.uid.clone());
        let how = fleetnet_types::Removal::Deleted;
        view.apply(kind, Change::Removed { name, uid, how }, seconds(21), &mut requeue);
        assert!(requeue.contains(&Key::Membership), "{requeue:?}");
        plan(&mut view, 21)
    };
    assert_eq!(removed(Kind::ServiceExport, &going.meta).writes, deletes[1..]);
    let left = removed(Kind::MultiClusterService, &import.meta);
    assert_eq!(left, Plan::one(report(&membership, both(&joined(false, 3, 21), 10))));
    observe_change(&mut view, written(&membership, &left).object());
    assert_eq!(plan(&mut view, 1_000), Plan::default(), "there are no heartbeats any more");
}

/// Also rule O11.
#[test]
fn a_member_does_not_say_that_it_has_left_before_it_knows_all_objects() {
    let membership = internal_member_cluster("member-1", MembershipState::Leave);
    for kind in [Kind::ServiceExport, Kind::MultiClusterService] {
        let mut view = member(&membership, []);
        view.watch_state(kind, WatchState::Incomplete, SEEN, &mut Vec::new());
        assert_eq!(plan(&mut view, 20), Plan::default(), "{kind:?}");
    }
    let mut view = member(&membership, []);
    let undecodable = Change::Undecodable { name: service_export("work/app").meta.name };
    let mut requeue = Vec::new();
    view.apply(Kind::ServiceExport, undecodable, Timestamp::EPOCH, &mut requeue);
    assert_eq!(plan(&mut view, 20), Plan::default());
    // An undecodable object of another kind does not matter.
    let other = Change::Undecodable { name: service_export("work/other").meta.name };
    view.apply(Kind::Service, other, Timestamp::EPOCH, &mut Vec::new());
    let (name, uid) = (service_export("work/app").meta.name, service_export("work/app").meta.uid);
    requeue.clear();
    view.apply(Kind::ServiceExport, Change::Removed { name, uid, how: Removal::Deleted }, seconds(21), &mut requeue);
    assert!(requeue.contains(&Key::Membership), "{requeue:?}");
    assert_eq!(plan(&mut view, 21).writes.len(), 1);
}

/// Also rule O11.
#[test]
fn an_agent_deletes_only_the_objects_of_its_part() {
    let membership = internal_member_cluster("member-1", MembershipState::Leave);
    let mut view = member(&membership, [service_export("work/app").object(), request("work/app").object()]);
    for (agent, kind) in [
        (MembershipAgent::ServiceExportImport, Kind::ServiceExport),
        (MembershipAgent::MultiClusterService, Kind::MultiClusterService),
    ] {
        view.settings.membership.agents = vec![agent];
        let deleted: Vec<Kind> = plan(&mut view, 20).writes.iter().map(Write::kind).collect();
        assert_eq!(deleted, [kind]);
    }
}

/// Rule O24: The InternalMemberCluster has the state `Leave`, and the member agent has not seen the change to it: the
/// agent has just started, or the hub was restored from a backup
/// Then: For 10 minutes, the member agent deletes nothing, changes nothing of the standard API, and reports
/// `LeavePostponed`. A manager or operator who writes `Join` in this time ends the request
#[test]
fn an_old_request_to_leave_waits_and_ends_when_the_manager_lets_the_member_join() {
    let export = service_export("work/app");
    let delete = [Write::delete(Kind::ServiceExport, &export.meta)];
    let mut leave = internal_member_cluster("member-1", MembershipState::Leave);
    leave.meta.resource_version = 7;
    // A restored object has an older version, or another UID.
    let mut joined = internal_member_cluster("member-1", MembershipState::Join);
    joined.meta.resource_version = 8;
    let mut another = joined.clone();
    (another.meta.resource_version, another.meta.uid) = (6, "another".into());
    let same = joined.clone().version(7); // versions of the time after the backup are used again
    let found = [started(&leave, [export.clone().object(), leave.clone().object()])];
    let restored = [&joined, &another, &same].map(|before| {
        let mut view = started(before, [export.clone().object(), before.clone().object()]);
        view.hub_restored(SEEN);
        view.applied(leave.clone().object(), SEEN, &mut Vec::new());
        view
    });
    for mut view in found.into_iter().chain(restored) {
        let until = SEEN.plus_micros(FOUND_LEAVE_MICROS);
        let waits = plan(&mut view, 20);
        assert_eq!((waits.writes, waits.again), (Vec::new(), Some(until)));
        let [BlockingReason { reason, message }] = &waits.blocking_reasons[..] else { panic!("it says why") };
        assert_eq!(reason.as_str(), "LeavePostponed");
        assert!(message.contains("fleet-member-member-1/member-1") && message.contains("Set spec.state to Join"));
        assert_eq!(view.plan(&Key::Membership, until).writes, delete, "nobody has said anything else");
        let mut later = view.clone();
        later.clock_set(60_000_000);
        assert_eq!(later.plan(&Key::Membership, until).writes, [], "a step of the clock shortens no wait");

        joined.meta.resource_version = 9;
        view.applied(joined.clone().object(), SEEN, &mut Vec::new());
        assert_eq!(plan(&mut view, 700).writes, [report(&joined, both(&self::joined(true, 3, 700), 700))]);
        let mut again = leave.clone();
        again.meta.resource_version = 10;
        view.applied(again.object(), SEEN, &mut Vec::new());
        assert_eq!(plan(&mut view, 20).writes, delete, "this one is new");
    }
}

/// Returns a member that uses both APIs and was asked to leave. It exports and imports `work/app` by the standard API.
fn leaving_by_mcs_api() -> (Planner, McsServiceExport) {
    let export = mcs_export("work/app");
    let outcome = condition("multicluster.x-k8s.io/Conflict", "False", "NoConflict", "no conflict", 1);
    let source = slice("work/app-1").endpoints(&["10.0.0.1"]);
    let internal = internal_export("member-1", &service("work/app")).mcs(mcs_part()).judged(outcome);
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-9"))).marked();
    let mut view = mcs::view([
        member_agent("member-1", Features::ALL, Features::ALL).object(),
        mcs::importing().object(),
        mcs::merged(mcs::import()).object(),
    ]);
    view.settings.membership.agents = MembershipAgent::ALL.to_vec();
    let mut joined = internal_member_cluster("member-1", MembershipState::Join);
    joined.meta.resource_version = 0;
    observe_change(&mut view, joined.object());
    mcs::settle(&mut view, &Key::McsImport(named("work/app")));
    observe_change(&mut view, Object::EndpointSliceImport(distributed.clone()));
    mcs::settle(&mut view, &Key::SliceImport(ObjectName::new("work", distributed.meta.name.name)));
    let slice_export = slice_export("member-1", &source);
    let exported =
        [service("work/app").object(), export.clone().object(), internal.object(), source.object()].into_iter();
    for object in exported.chain([Object::EndpointSliceExport(slice_export)]) {
        observe_change(&mut view, object);
    }
    for key in keys() {
        mcs::settle(&mut view, &key);
    }
    (view, export)
}

fn keys() -> [Key; 4] {
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-9")));
    [
        Key::Export(named("work/app")),
        Key::SliceExport(named("work/app-1")),
        Key::McsImport(named("work/app")),
        Key::SliceImport(ObjectName::new("work", distributed.meta.name.name)),
    ]
}

/// Rule O25: A member that uses the standard API leaves
/// Then: Its ServiceExports of the standard API stay, but request nothing: `Ready=False`, with an Event `MemberLeaves`.
/// The member agent removes its exports from the hub, and its ServiceImports, derived Services and imported slices at
/// once. Only then it reports `AgentLeft`. It does not use the standard API again before the state is `Join`, also when
/// the InternalMemberCluster is gone. Until the InternalMemberClusters are listed, exports and imports stay as they are
#[test]
fn a_member_that_leaves_ends_the_mcs_api_before_it_says_so_and_keeps_what_users_made() {
    let (mut view, export) = leaving_by_mcs_api();
    assert_eq!(keys().map(|key| writes(&view, &key).len()), [0; 4], "it exports and imports");
    let leave = internal_member_cluster("member-1", MembershipState::Leave);
    let requeue = observe_change(&mut view, leave.clone().object());
    assert!(keys().iter().all(|key| requeue.contains(key)), "{requeue:?}");
    let of_export = planned(&view, &keys()[0]);
    let expected = "the fleet manager has asked cluster member-1 to leave, so it exports nothing. Delete this \
                    ServiceExport, or let the cluster join again";
    assert_eq!(events_of(&of_export), [("MemberLeaves", expected)]);
    let expected: [&[&str]; 4] = [
        &["delete InternalServiceExport", "patch McsServiceExport"],
        &["delete EndpointSliceExport"],
        &["delete McsServiceImport", "delete Service", "patch MergedServiceImport"],
        &["delete EndpointSlice"],
    ];
    for (key, expected) in keys().iter().zip(expected) {
        assert_eq!(plan(&mut view, 20), Plan::default(), "{key:?} is not removed yet");
        assert_eq!(mcs::settle(&mut view, key), expected);
    }
    let new = mcs_export("work/new");
    observe_change(&mut view, service("work/new").object());
    observe_change(&mut view, new.clone().object());
    assert_eq!(mcs::settle(&mut view, &Key::Export(named("work/new"))), ["patch McsServiceExport"]);
    let expected = [
        ("Valid", ConditionStatus::True, "Valid"),
        ("Ready", ConditionStatus::False, "Failed"),
        ("Conflict", ConditionStatus::Unknown, "ServicePendingConflictResolution"),
    ];
    for (export, expected) in [(&export, &expected[..]), (&new, &expected[..2])] {
        let present = view.mcs_exports.get(&export.meta.name).expect("what users made stays");
        let conditions: Vec<_> =
            present.conditions.iter().map(|it| (&*it.condition_type, it.status, &*it.reason)).collect();
        assert_eq!(conditions, expected);
    }
    let left = plan(&mut view, 30);
    assert_eq!(left.writes.len(), 1, "{left:?}");
    let left = written(&leave, &left);
    observe_change(&mut view, left.clone().object());
    let nothing = |view: &Planner| keys().map(|key| writes(view, &key).len());
    assert_eq!(nothing(&view), [0; 4], "it stays so");
    observe_removal(&mut view, &left.object());
    assert_eq!(nothing(&view), [0; 4], "also when the manager has removed the member");

    let mut joins = internal_member_cluster("member-1", MembershipState::Join);
    joins.meta.resource_version = 90;
    observe_change(&mut view, joins.object());
    let created = keys().map(|key| mcs::settle(&mut view, &key));
    assert!(created[0].contains(&"create InternalServiceExport".to_owned()), "{created:?}");
    assert!(created[2].contains(&"create McsServiceImport".to_owned()), "{created:?}");
}

/// Also rule O25.
#[test]
fn a_member_that_leaves_keeps_no_derived_service_for_exports_that_come_back() {
    let (mut view, _) = leaving_by_mcs_api();
    let key = Key::McsImport(named("work/app"));
    observe_removal(&mut view, &mcs::merged(mcs::import()).object());
    assert_eq!(mcs::settle(&mut view, &key), ["delete McsServiceImport"]);
    observe_change(&mut view, internal_member_cluster("member-1", MembershipState::Leave).object());
    assert_eq!(mcs::settle(&mut view, &key), ["delete Service"]);
}

/// Also rule O25.
#[test]
fn a_member_does_not_say_that_it_has_left_before_it_knows_the_objects_of_the_mcs_api() {
    let leave = internal_member_cluster("member-1", MembershipState::Leave);
    let left = |prepare: &dyn Fn(&mut Planner)| {
        let mut view = member(&leave, []);
        view.settings.mcs_api = McsApi::LabelledNamespaces;
        prepare(&mut view);
        plan(&mut view, 20).writes.len()
    };
    assert_eq!(left(&|_| {}), 1);
    let state = |kind, state| left(&|view| view.watch_state(kind, state, SEEN, &mut Vec::new()));
    for kind in [Kind::InternalServiceExport, Kind::Service, Kind::EndpointSlice, Kind::McsServiceImport] {
        for unknown in [WatchState::Incomplete, WatchState::Unknown] {
            assert_eq!(state(kind, unknown), 0, "{kind:?} {unknown:?}");
        }
    }
    assert_eq!(state(Kind::McsServiceImport, WatchState::Absent), 1, "the cluster lacks the definitions");
    let undecodable = |view: &mut Planner| undecodable(view, Kind::McsServiceImport, &named("work/app"));
    assert_eq!(left(&undecodable), 0);
    let without_api = |view: &mut Planner| {
        view.settings.mcs_api = McsApi::Off;
        view.watch_state(Kind::McsServiceImport, WatchState::Incomplete, SEEN, &mut Vec::new());
    };
    assert_eq!(left(&without_api), 1, "the member does not use the standard API");
}

/// Also rule O25.
#[test]
fn a_member_has_left_when_nothing_is_left_that_the_agents_made_for_the_mcs_api() {
    let labels = McsLabels { service: "app".into(), cluster: "member-3".into(), headless: false };
    let labelled = |slice: EndpointSlice| EndpointSlice { mcs: Some(Box::new(labels.clone())), ..slice }.object();
    let internal = internal_export("member-1", &service("work/app"));
    let mcs = internal.clone().mcs(mcs_part());
    let (imported, _) = leaving_by_mcs_api();
    let import = imported.mcs_imports.iter().next().expect("it is imported").clone();
    let derived = Service { imports: Some("app".into()), ..service("work/derived") };
    let service_name = Some(names::mcs_derived(&named("work/app")).name);
    let routing = EndpointSlice { service: service_name, observed_generation: Some(1), ..slice("work/a-routing") };
    let table = [
        ("an export", mcs.clone().object(), false),
        ("an export that is being deleted", mcs.deleting().object(), true),
        ("an export by the fleet's API", internal.object(), true),
        ("an imported slice", labelled(imported_slice("one", "app")), false),
        ("an imported slice of the fleet's API", imported_slice("one", "work-app").object(), true),
        ("a slice of another implementation", labelled(slice("work/app-1")), true),
        ("a routing slice", EndpointSlice { imported: true, ..routing.clone() }.object(), false),
        ("perhaps a routing slice", routing.object(), true),
        ("a ServiceImport", import.clone().object(), false),
        ("a ServiceImport of another writer", McsServiceImport { is_ours: false, ..import }.object(), true),
        ("a derived Service", derived.object(), false),
        ("a Service", service("work/app").object(), true),
    ];
    for (what, object, has_left) in table {
        let leave = internal_member_cluster("member-1", MembershipState::Leave);
        let mut view = member(&leave, [object.clone()]);
        view.settings.mcs_api = McsApi::LabelledNamespaces;
        assert_eq!(plan(&mut view, 20).writes.len(), usize::from(has_left), "{what}");
        let requeue = observe_removal(&mut view, &object);
        assert_eq!(requeue.contains(&Key::Membership), !has_left, "{what}: {requeue:?}");
        assert_eq!(plan(&mut view, 20).writes.len(), 1, "{what} is gone");
    }
}

/// Also rules O12, O25.
#[test]
fn a_member_without_a_manager_or_with_its_parts_off_uses_the_mcs_api_as_usual() {
    let prepare: [fn(&mut Planner); 2] = [
        |view| {
            view.settings.membership.agents.clear();
            view.watch_state(Kind::InternalMemberCluster, WatchState::Incomplete, SEEN, &mut Vec::new());
        },
        |view| {
            view.settings.membership.on_leave = OnLeave::Keep;
            observe_change(view, internal_member_cluster("member-1", MembershipState::Leave).object());
        },
    ];
    for (number, prepare) in prepare.into_iter().enumerate() {
        let (mut view, export) = leaving_by_mcs_api();
        prepare(&mut view);
        assert!(keys().iter().all(|key| writes(&view, key).is_empty()), "{number}");
        observe_removal(&mut view, &export.object());
        observe_change(&mut view, namespace("work").version(2).object());
        assert!(keys().iter().all(|key| !writes(&view, key).is_empty()), "{number}: users end both");
    }
}

/// Also rules O24, O25.
#[test]
fn the_mcs_api_waits_until_it_is_known_if_the_member_leaves() {
    let leave = internal_member_cluster("member-1", MembershipState::Leave);
    for is_listed in [false, true] {
        let (mut view, export) = leaving_by_mcs_api();
        observe_removal(&mut view, &internal_member_cluster("member-1", MembershipState::Join).object());
        if is_listed {
            view.applied(leave.clone().object(), NOW, &mut Vec::new());
        } else {
            view.watch_state(Kind::InternalMemberCluster, WatchState::Incomplete, NOW, &mut Vec::new());
        }
        observe_removal(&mut view, &export.object());
        observe_change(&mut view, namespace("work").version(2).object());
        let plans = keys().map(|key| planned(&view, &key));
        assert_eq!(plans.each_ref().map(|plan| plan.writes.len()), [0; 4], "{plans:?}");
        if is_listed {
            let until = Some(NOW.plus_micros(FOUND_LEAVE_MICROS));
            assert_eq!(plans.each_ref().map(|plan| plan.again), [until; 4]);
        }
        view.watch_state(Kind::InternalMemberCluster, WatchState::Absent, NOW, &mut Vec::new());
        if !is_listed {
            assert!(keys().iter().all(|key| !writes(&view, key).is_empty()), "there is no manager");
        }
    }
}

/// Also rule O11.
#[test]
fn an_agent_whose_parts_are_off_deletes_nothing_and_says_at_once_that_it_has_left() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Leave);
    membership.agents = both(&joined(true, 2, 5), 10);
    let mut view = member(&membership, [service_export("work/app").object(), request("work/app").object()]);
    view.settings.membership.on_leave = OnLeave::Keep;
    let left = plan(&mut view, 20);
    assert_eq!(left, Plan::one(report(&membership, both(&joined(false, 3, 20), 10))));
    observe_change(&mut view, written(&membership, &left).object());
    assert_eq!(plan(&mut view, 1_000), Plan::default());
}

/// Also rule O11.
#[test]
fn what_users_create_after_the_agents_have_left_stays() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Leave);
    membership.agents = both(&joined(false, 3, 5), 10);
    let view = member(&membership, [service_export("work/app").object(), request("work/app").object()]);
    assert_eq!(planned(&view, &Key::Membership), Plan::default());
}

/// Rule O12: The state is another one, or the object is of another member
/// Then: The member agent does nothing
#[test]
fn an_unknown_state_and_the_membership_of_another_member_change_nothing() {
    let unknown = internal_member_cluster("member-1", MembershipState::Other);
    assert_eq!(planned(&member(&unknown, []), &Key::Membership), Plan::default());
    let mut other = internal_member_cluster("member-1", MembershipState::Leave);
    other.meta.name.name = "member-2".into();
    assert_eq!(writes(&member(&other, [service_export("work/app").object()]), &Key::Membership), []);
    let (mut view, _) = leaving_by_mcs_api();
    let before = keys().map(|key| planned(&view, &key));
    observe_change(&mut view, other.object());
    assert_eq!(keys().map(|key| planned(&view, &key)), before);
}
