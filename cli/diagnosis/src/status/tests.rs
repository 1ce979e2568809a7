//! Tests of the status of members.

use super::*;
use crate::fixture::{NOW, at, built_in, controller_manager, healthy, lease, meta, set};
use crate::report::SliceMaker;
use crate::snapshot::{Failure, FailureClass, MissingRight};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde_json::json;

/// Index of the member `west` in the status.
const WEST: usize = 1;

fn west(alter: impl FnOnce(&mut Snapshot)) -> MemberStatus {
    let mut snapshot = healthy();
    alter(&mut snapshot);
    status(&snapshot).members.swap_remove(WEST)
}

#[test]
fn a_healthy_member_is_ready_and_its_heartbeat_and_clock_come_from_the_hub() {
    let found = status(&healthy());
    assert_eq!(found.verdict, Verdict::Healthy);
    assert_eq!(found.hub.version.as_deref(), Some("0.1.0"));
    assert_eq!(found.hub.replicas, Some((2, 1)));
    let west = &found.members[WEST];
    assert_eq!((west.member.as_str(), west.state), ("west", MemberState::Ready));
    assert_eq!((west.heard_seconds, west.clock_milliseconds), (Some(5), Some(0)), "400 ms are within the accuracy");
    assert_eq!((west.exports, west.endpoints, west.imports), (Some(1), Some(1), Some(0)));
}

#[test]
fn a_clock_that_is_ahead_or_behind_is_shown_and_does_not_change_the_heartbeat() {
    for (renewed, clock) in [("2027-01-15T12:10:00.400000Z", 4_400), ("2027-01-15T12:09:50.400000Z", -4_600)] {
        let west = west(|it| {
            let agents = it.hub.member_agents.objects_mut().expect("they are known");
            agents[WEST].spec.renew_time = MicroTime(at(renewed));
        });
        assert_eq!((west.heard_seconds, west.clock_milliseconds), (Some(5), Some(clock)), "{renewed}");
        assert_eq!(west.state, MemberState::Ready);
    }
}

#[test]
fn without_managed_fields_the_members_own_time_counts_and_the_clock_is_not_known() {
    let west = west(|it| {
        it.hub.member_agents.objects_mut().expect("they are known")[WEST].metadata.managed_fields = None;
    });
    assert_eq!((west.heard_seconds, west.clock_milliseconds), (Some(4), None));
}

/// Removes the MemberAgent of `west`.
fn take_agent(snapshot: &mut Snapshot) {
    snapshot.hub.member_agents.objects_mut().expect("they are known").remove(WEST);
}

/// State, and a change of the healthy fleet that leads to it.
type Case = (MemberState, fn(&mut Snapshot));

#[test]
fn each_state_has_its_evidence() {
    let cases: [Case; 9] = [
        (MemberState::NoNamespace, |it| {
            take_agent(it);
            it.hub.namespaces.objects_mut().expect("they are known").remove(1);
        }),
        (MemberState::NeverHeard, |it| {
            take_agent(it);
            let namespaces = it.hub.namespaces.objects_mut().expect("they are known");
            namespaces[1].metadata.creation_timestamp = Some(Time(at("2027-01-15T12:09:00Z")));
        }),
        (MemberState::NeverHeard, |it| {
            take_agent(it);
            it.members[WEST].agent.leases = crate::fixture::lease("2bf2b407.member.x", "member-agent_a", NOW);
        }),
        (MemberState::Stopped, |it| {
            let agent = &mut it.hub.member_agents.objects_mut().expect("they are known")[WEST];
            agent.spec.planned_stop_time = Some(MicroTime(at("2027-01-15T12:00:00Z")));
        }),
        (MemberState::Silent, |it| it.hub.connection.now = Some(at("2027-01-15T12:10:56Z"))),
        (MemberState::GoAgent, take_agent),
        (MemberState::NeverHeard, |it| {
            take_agent(it);
            it.hub.internal_exports = Listing::of(Vec::new());
            it.hub.slice_exports = Listing::of(Vec::new());
        }),
        (MemberState::Leaving, |it| {
            let namespaces = it.hub.namespaces.objects_mut().expect("they are known");
            namespaces[1].metadata.deletion_timestamp = Some(Time(at("2027-01-15T12:00:00Z")));
        }),
        (MemberState::Unknown, |it| it.hub.member_agents = Listing::Unknown("no answer".to_owned())),
    ];
    for (state, alter) in cases {
        assert_eq!(west(alter).state, state);
    }
}

#[test]
fn a_member_is_silent_only_after_60_s() {
    let west = west(|it| it.hub.connection.now = Some(at("2027-01-15T12:10:55Z")));
    assert_eq!((west.heard_seconds, west.state), (Some(60), MemberState::Ready));
}

#[test]
fn the_verdict_is_a_fault_for_a_silent_member_and_not_known_for_a_silent_hub() {
    let mut snapshot = healthy();
    snapshot.hub.connection.now = Some(at("2027-01-15T12:30:00Z"));
    assert_eq!(status(&snapshot).verdict, Verdict::Fault);

    let mut snapshot = healthy();
    let failure =
        Failure { class: FailureClass::Timeout, host: "hub".to_owned(), port: None, detail: "late".to_owned() };
    snapshot.hub = Hub::default();
    snapshot.hub.connection.reached = Reached::No(failure);
    let found = status(&snapshot);
    assert_eq!(found.verdict, Verdict::NotKnown);
    assert_eq!(found.not_known, ["hub: not reached (timeout): late"]);
    assert!(found.members.iter().all(|member| member.state == MemberState::Unknown));
}

#[test]
fn the_leader_is_the_holder_of_the_hub_agents_lease() {
    let mut snapshot = healthy();
    let lease = built_in(json!({
        "metadata": meta("fleet-system", "2bf2b407.hub.networking.fleet.azure.com"),
        "spec": {"holderIdentity": "hub-agent_a_b"},
    }));
    snapshot.hub.agent.leases = Listing::of(vec![lease]);
    assert_eq!(status(&snapshot).hub.leader.as_deref(), Some("hub-agent_a_b"));
}

/// Makes the hub of the healthy fleet a cluster without members. Its Lease has this holder.
fn without_members(holder: &str) -> Snapshot {
    let mut snapshot = healthy();
    snapshot.members.clear();
    let mut lease = json!({"metadata": meta("fleet-system", "2bf2b407.hub.networking.fleet.azure.com")});
    lease["spec"] = json!({"holderIdentity": holder, "renewTime": "2027-01-15T12:09:55.000000Z"});
    snapshot.hub.agent.leases = Listing::of(vec![built_in(lease)]);
    snapshot.hub.agent.deployments = Listing::of(Vec::new());
    snapshot
}

#[test]
fn a_member_that_is_taken_for_the_hub_is_not_known_in_each_view() {
    use crate::codes::Code;
    use crate::report::CheckResult;
    for holder in ["member-agent_a_b", "member-net-controller-manager-5d_b"] {
        let snapshot = without_members(holder);
        let found = status(&snapshot);
        let why = "hub: context hub leads to a cluster without hub agent and members: name the hub with --hub-context, or the \
                   namespace of its agent with --agent-namespace";
        assert_eq!((found.verdict, found.hub.leader), (Verdict::NotKnown, None));
        assert_eq!(found.not_known, [why]);
        let services = crate::services(&snapshot, &crate::services::Rows::default());
        assert_eq!(services.not_known, [why, "east: no kubeconfig context leads to this cluster"]);
        let latency = crate::latency::latency(&snapshot, &crate::latency::Options::default());
        assert_eq!((latency.verdict, latency.not_known), (Verdict::NotKnown, vec![why.to_owned()]));
        let check = crate::check::check(&snapshot, crate::check::Stage::Installed);
        let rows = check.categories.iter().flat_map(|category| &category.checks);
        let errors: Vec<Code> = rows.filter(|row| row.result == CheckResult::Error).map(|row| row.code).collect();
        assert_eq!((check.verdict, errors), (Verdict::Fault, vec![Code::FN107]));
    }
    // A hub whose first member has not joined yet.
    for holder in ["hub-agent_a_b", "hub-net-controller-manager-5d_b"] {
        let snapshot = without_members(holder);
        assert_eq!((status(&snapshot).verdict, status(&snapshot).not_known), (Verdict::Healthy, Vec::new()));
        assert_eq!(crate::check::check(&snapshot, crate::check::Stage::Installed).verdict, Verdict::Healthy);
    }
}

#[test]
fn a_member_that_loses_its_namespace_is_a_fault() {
    let mut snapshot = healthy();
    let namespaces = snapshot.hub.namespaces.objects_mut().expect("they are known");
    namespaces[1].metadata.deletion_timestamp = Some(Time(at("2027-01-15T12:00:00Z")));
    let found = status(&snapshot);
    assert_eq!((found.members[WEST].state, found.verdict), (MemberState::Leaving, Verdict::Fault));
    snapshot.hub.namespaces.objects_mut().expect("they are known").remove(1);
    take_agent(&mut snapshot);
    let found = status(&snapshot);
    assert_eq!((found.members[WEST].state, found.verdict), (MemberState::NoNamespace, Verdict::Fault));
}

#[test]
fn zeros_from_before_the_first_export_are_not_shown() {
    let mut snapshot = healthy();
    let agents = snapshot.hub.member_agents.objects_mut().expect("they are known");
    let counts = agents[WEST].status.as_mut().expect("the hub agent counts");
    (counts.exported_services, counts.exported_endpoints, counts.imported_services) = (Some(0), Some(0), Some(0));
    let west = &status(&snapshot).members[WEST];
    assert_eq!((west.exports, west.endpoints, west.imports), (Some(1), None, None));
    snapshot.hub.internal_exports = Listing::of(Vec::new());
    let west = &status(&snapshot).members[WEST];
    assert_eq!((west.exports, west.endpoints, west.imports), (Some(0), Some(0), Some(0)), "nothing is exported");
}

#[test]
fn each_member_says_who_makes_its_slices() {
    use SliceMaker::{KubeControllerManager, MemberAgent, Nobody};
    let (minute_ago, hour_ago) = ("2027-01-15T12:08:30Z", "2027-01-15T11:10:00Z");
    let nothing = || Listing::of(Vec::new());
    let theirs = controller_manager;
    let ours = || lease("fleetnet-endpointslices", "member-agent_1", NOW);
    let unknown = || Listing::Denied("forbidden".to_owned());
    for (arguments, theirs, ours, expected) in [
        (&[][..], theirs(NOW), nothing(), Some(KubeControllerManager)),
        (&[], theirs(NOW), ours(), Some(KubeControllerManager)),
        (&["--endpointslices=off"], theirs(NOW), nothing(), Some(KubeControllerManager)),
        (&["--endpointslices=on"], theirs(NOW), ours(), Some(MemberAgent)),
        (&["--endpointslices=on"], nothing(), ours(), Some(MemberAgent)),
        (&[], theirs(hour_ago), ours(), Some(MemberAgent)),
        (&["--endpointslices=auto"], theirs(minute_ago), ours(), Some(Nobody)),
        (&[], theirs(hour_ago), nothing(), Some(Nobody)),
        (&[], theirs(hour_ago), lease("fleetnet-endpointslices", "member-agent_1", hour_ago), Some(Nobody)),
        (&["--endpointslices=off"], theirs(hour_ago), ours(), Some(Nobody)),
        (&[], nothing(), ours(), None),
        (&[], unknown(), ours(), None),
        (&[], theirs(hour_ago), unknown(), None),
        (&["--endpointslices=on"], theirs(NOW), nothing(), None),
        (&["--endpointslices=on"], theirs(hour_ago), nothing(), Some(Nobody)),
        (&["--endpointslices=on"], nothing(), nothing(), Some(Nobody)),
        (&["--endpointslices-takeover-after=1m"], theirs(minute_ago), ours(), Some(MemberAgent)),
        (&["--endpointslices-takeover-after=2h"], theirs(hour_ago), ours(), Some(Nobody)),
    ] {
        let of_case = format!("{arguments:?} {theirs:?} {ours:?}");
        let is_on_beside_another = arguments == ["--endpointslices=on"] && theirs == controller_manager(NOW);
        let mut snapshot = healthy();
        let west = &mut snapshot.members[WEST];
        let containers = json!({"containers": [{"name": "agent", "args": arguments}]});
        set(&mut west.agent.deployments, "/spec/template/spec", containers);
        (west.controller_manager, west.agent.leases) = (theirs, ours);
        let made_by = |snapshot: &Snapshot| status(snapshot).members[WEST].slices_made_by;
        assert_eq!(made_by(&snapshot), expected, "{of_case}");
        let without = |expected| match expected {
            Some(MemberAgent) if is_on_beside_another => None,
            Some(MemberAgent) => Some(Nobody),
            _ => expected,
        };
        let [user, verb, group, resource, namespace] = ["u", "list", "", "pods", ""].map(str::to_owned);
        let right = MissingRight { user, verb, group, resource, namespace };
        snapshot.members[WEST].agent.missing_slice_rights = Listing::of(vec![right]);
        assert_eq!(made_by(&snapshot), without(expected), "{of_case}, without the right to list pods");
    }
}
