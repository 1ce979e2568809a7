//! Tests of the membership in a fleet with a manager (InternalMemberCluster).

use crate::support::build::{IntoObject, condition, internal_member_cluster, mcs, seconds, service, service_export};
use crate::support::view::{member_view, observe_change, planned, writes};
use fleetnet_core::member::{Key, Membership, OnLeave, Planner};
use fleetnet_core::model::{
    AgentStatus, Condition, InternalMemberCluster, Kind, MembershipAgent, MembershipState, Object,
};
use fleetnet_core::plan::{Action, Patch, Plan, Write};
use fleetnet_types::{Change, Removal, Timestamp};

/// Returns a member that does the work of both agents, with its InternalMemberCluster and these objects.
fn member(membership: &InternalMemberCluster, objects: impl IntoIterator<Item = Object>) -> Planner {
    let mut view = member_view(objects.into_iter().chain([membership.clone().object()]));
    view.settings.membership.agents = MembershipAgent::ALL.to_vec();
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

#[test]
fn a_member_that_joins_says_so_and_sends_heartbeats_at_the_period() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Join);
    let mut view = member(&membership, []);
    let first = plan(&mut view, 10);
    assert_eq!(first.writes, [report(&membership, both(&joined(true, 3, 10), 10))]);
    let mut last = 10;
    for _ in 0..20 {
        membership = written(&membership, &plan(&mut view, last));
        let requeue = observe_change(&mut view, membership.clone().object());
        assert_eq!(requeue, [Key::Membership]);
        let waits = plan(&mut view, last);
        let next = waits.again.expect("the next heartbeat");
        assert_eq!(waits, Plan { again: Some(next), ..Plan::default() });
        let after = next.since(seconds(last)).as_secs_f64();
        assert!((57.0..=63.0).contains(&after), "{after} s");
        let beat = plan(&mut view, 0).writes;
        assert_eq!(beat.len(), 1, "a clock that was set back delays no heartbeat");
        last = next.0 / 1_000_000 + 1;
        assert_eq!(plan(&mut view, last).writes, [report(&membership, both(&joined(true, 3, 10), last))]);
    }
}

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

#[test]
fn a_new_generation_is_answered_at_once() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Join);
    membership.agents = both(&joined(true, 2, 5), 10);
    let expected = report(&membership, both(&joined(true, 3, 5), 11));
    assert_eq!(plan(&mut member(&membership, []), 11).writes, [expected], "the condition is true since the same time");
}

#[test]
fn a_member_that_leaves_deletes_its_exports_and_imports_and_then_says_that_it_has_left() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Leave);
    membership.agents = both(&joined(true, 2, 5), 10);
    let (export, import) = (service_export("work/app"), mcs("work/app"));
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

#[test]
fn a_member_does_not_say_that_it_has_left_before_it_knows_all_objects() {
    let membership = internal_member_cluster("member-1", MembershipState::Leave);
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

#[test]
fn an_agent_whose_parts_are_off_deletes_nothing_and_says_at_once_that_it_has_left() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Leave);
    membership.agents = both(&joined(true, 2, 5), 10);
    let mut view = member(&membership, [service_export("work/app").object(), mcs("work/app").object()]);
    view.settings.membership.on_leave = OnLeave::Keep;
    let left = plan(&mut view, 20);
    assert_eq!(left, Plan::one(report(&membership, both(&joined(false, 3, 20), 10))));
    observe_change(&mut view, written(&membership, &left).object());
    assert_eq!(plan(&mut view, 1_000), Plan::default());
}

#[test]
fn what_users_create_after_the_agents_have_left_stays() {
    let mut membership = internal_member_cluster("member-1", MembershipState::Leave);
    membership.agents = both(&joined(false, 3, 5), 10);
    let view = member(&membership, [service_export("work/app").object(), mcs("work/app").object()]);
    assert_eq!(planned(&view, &Key::Membership), Plan::default());
}

#[test]
fn an_unknown_state_and_the_membership_of_another_member_change_nothing() {
    let unknown = internal_member_cluster("member-1", MembershipState::Other);
    assert_eq!(planned(&member(&unknown, []), &Key::Membership), Plan::default());
    let mut other = internal_member_cluster("member-1", MembershipState::Leave);
    other.meta.name.name = "member-2".into();
    assert_eq!(writes(&member(&other, [service_export("work/app").object()]), &Key::Membership), []);
}
