//! Tests of the treatment of silent members by importers, and by the hub agent for importers that do not know silent
//! members.

use crate::support::build::{
    Build, BuildHubSlice, BuildImport, BuildInternalExport, BuildRequest, BuildSlice, IntoObject, condition,
    derived_service, distributed_slice, endpoint, found, imported_slice, in_hub_of, in_system, internal_export,
    member_agent, named, no_conflict, request, resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{NOW, claimed_hub_view, member_view, observe_change, observe_removal, planned, writes};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub::{self, Key, SilenceLimits};
use fleetnet_core::member;
use fleetnet_core::model::{
    AddressType, Announcement, HubSlice, Kind, MemberAgent, Object, Silence, SilencePhase, SilentMember, SliceContent,
    Treatment,
};
use fleetnet_core::plan::{Action, Patch, Plan, Write};
use fleetnet_types::{ConditionStatus, WatchState};
use std::slice::from_ref;
use std::sync::Arc;

const LIMITS: SilenceLimits = SilenceLimits { soft_micros: 60_000_000, hard_micros: 600_000_000 };

/// Returns the MemberAgent of member-1, in which the hub agent lists these silent members.
fn listing(members: &[(&str, Treatment)]) -> MemberAgent {
    let mut agent = member_agent("member-1", Features::ALL, Features::ALL);
    let silent =
        |(cluster, treatment): &(&str, Treatment)| SilentMember { cluster: (*cluster).into(), treatment: *treatment };
    agent.status.silent_members = members.iter().map(silent).collect();
    agent
}

/// Returns the slice of a member that member-1 imports, and the imported slice with its content.
fn imported(cluster: &str, addresses: &[&str]) -> (HubSlice, Object) {
    let source = slice("work/app-1").uid(&format!("uid-of-{cluster}")).endpoints(addresses);
    let distributed = distributed_slice("member-1", &slice_export(cluster, &source)).marked();
    let mut present = imported_slice(&distributed.meta.name.name, "work-app");
    present.content = (*distributed.spec.content).clone();
    present.observed_generation = Some(distributed.spec.reference.generation);
    (distributed, present.object())
}

/// Returns the view of member-1, which imports these slices, and whose MemberAgent is `agent`.
fn importer(agent: MemberAgent, slices: &[(HubSlice, Object)]) -> member::Planner {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2", "member-3"]));
    let objects = [request.object(), import.object(), derived_service("work-app", "work/app").object(), agent.object()];
    let slices = slices
        .iter()
        .flat_map(|(distributed, present)| [Object::EndpointSliceImport(distributed.clone()), present.clone()]);
    member_view(objects.into_iter().chain(slices))
}

/// Returns the content that a plan writes to an imported slice; `None` if it writes nothing.
fn written(view: &member::Planner, slice: &HubSlice) -> Option<SliceContent> {
    let key = member::Key::SliceImport(in_system(&slice.meta.name.name));
    let plan = planned(view, &key);
    let [Write { action: Action::Patch { patch: Patch::ImportedSlice(slice), .. }, .. }] = &plan.writes[..] else {
        assert_eq!(plan, Plan::default());
        return None;
    };
    Some(slice.content.clone())
}

/// Rule O20: The hub agent lists a silent exporter in the MemberAgent of an importer
/// Then: The importer moves the endpoints of its slices to the draining ones, or removes all, while it has imported
/// ready endpoints of the Service, address family and port from a member that is not listed, or, for a withdrawn one,
/// from a draining one. Slices without ports count as slices of one port. Otherwise it imports them as usual
#[test]
fn endpoints_of_a_silent_member_are_draining_or_withdrawn_while_another_member_has_ready_ones() {
    let (two, three) = (imported("member-2", &["10.2.0.1", "10.2.0.2"]), imported("member-3", &["10.3.0.1"]));
    let slices = [two.clone(), three.clone()];
    let draining = SliceContent {
        endpoints: Vec::new(),
        draining: vec![endpoint("10.2.0.1"), endpoint("10.2.0.2")],
        ..(*two.0.spec.content).clone()
    };
    let none = SliceContent { draining: Vec::new(), ..draining.clone() };
    for (treatment, expected) in [(Treatment::Draining, &draining), (Treatment::Withdrawn, &none)] {
        let view = importer(listing(&[("member-2", treatment)]), &slices);
        assert_eq!(written(&view, &two.0).as_ref(), Some(expected), "{treatment:?}");
        assert_eq!(written(&view, &three.0), None);
    }
    for treatment in Treatment::ALL {
        let all = importer(listing(&[("member-2", treatment), ("member-3", treatment)]), &slices);
        assert_eq!((written(&all, &two.0), written(&all, &three.0)), (None, None), "only silent members are left");
    }
    let both = importer(listing(&[("member-2", Treatment::Withdrawn), ("member-3", Treatment::Draining)]), &slices);
    assert_eq!(written(&both, &two.0), Some(none), "the other one was heard later, or returns");
    assert_eq!(written(&both, &three.0), None);
    let alone = importer(listing(&[("member-2", Treatment::Withdrawn)]), from_ref(&two));
    assert_eq!(written(&alone, &two.0), None);
    let (mut empty, mut of_other_family) = (imported("member-3", &["10.3.0.1"]), imported("member-3", &["fd00::1"]));
    if let Object::EndpointSlice(present) = &mut empty.1 {
        present.content.endpoints.clear();
    }
    empty.0 = empty.0.with_addresses(&[], 1);
    let six = |content: &mut SliceContent| content.address_type = AddressType::IPv6;
    six(Arc::make_mut(&mut of_other_family.0.spec.content));
    if let Object::EndpointSlice(present) = &mut of_other_family.1 {
        six(&mut present.content);
    }
    // No container has the named target port.
    let mut of_no_port = imported("member-3", &["10.3.0.1"]);
    Arc::make_mut(&mut of_no_port.0.spec.content).ports.clear();
    if let Object::EndpointSlice(present) = &mut of_no_port.1 {
        present.content.ports.clear();
    }
    let mut of_another = imported("member-3", &["10.3.0.1"]);
    if let Object::EndpointSlice(present) = &mut of_another.1 {
        (present.imported, present.observed_generation) = (false, None);
    }
    let others = [
        (empty, "no endpoint is ready"),
        (of_other_family, "the other address family"),
        (of_no_port, "another port"),
        (of_another, "another writer's slice has its name"),
    ];
    for (other, why) in others {
        let view = importer(listing(&[("member-2", Treatment::Draining)]), &[two.clone(), other]);
        assert_eq!(written(&view, &two.0), None, "{why}");
    }
}

/// Also rule O20.
#[test]
fn a_change_of_the_list_or_of_the_last_ready_endpoints_of_others_is_followed_at_once() {
    let (two, three) = (imported("member-2", &["10.2.0.1"]), imported("member-3", &["10.3.0.1"]));
    let mut view = importer(listing(&[]), &[two.clone(), three.clone()]);
    let key = member::Key::SliceImport(in_system(&two.0.meta.name.name));
    let listed = listing(&[("member-2", Treatment::Draining)]).version(2);
    assert!(observe_change(&mut view, listed.object()).contains(&key));
    let content = written(&view, &two.0).expect("a change");
    let Object::EndpointSlice(mut drained) = two.1.clone() else { panic!() };
    drained.content = content;
    drained.meta.resource_version += 1;
    observe_change(&mut view, drained.object());
    assert_eq!(written(&view, &two.0), None);
    let Object::EndpointSlice(mut other) = three.1 else { panic!() };
    other.content.endpoints.clear();
    other.meta.resource_version += 1;
    assert!(observe_change(&mut view, other.clone().object()).contains(&key));
    let all = written(&view, &two.0).expect("a change");
    assert_eq!(all, *two.0.spec.content, "they are the last endpoints now");
    let Object::EndpointSlice(mut present) = two.1.clone() else { panic!() };
    present.content = all;
    present.meta.resource_version += 2;
    observe_change(&mut view, present.object());
    other.content = (*three.0.spec.content).clone();
    other.meta.resource_version += 1;
    assert!(observe_change(&mut view, other.object()).contains(&key));
    assert!(written(&view, &two.0).is_some(), "others have ready endpoints again");
}

/// Also rules O19, O20.
#[test]
fn only_a_hub_agent_that_maintains_the_list_counts_and_a_new_memberagent_has_no_list_yet() {
    let (two, three) = (imported("member-2", &["10.2.0.1"]), imported("member-3", &["10.3.0.1"]));
    let slices = [two.clone(), three];
    let mut old = listing(&[("member-2", Treatment::Draining)]);
    old.status.announcement = Announcement::new("1.0.0", Features::ALL.without(Feature::SilentMembers));
    assert_eq!(written(&importer(old, &slices), &two.0), None);

    let mut view = importer(listing(&[("member-2", Treatment::Draining)]), &slices);
    let mut created = listing(&[]).version(7).uid("created again");
    created.status = Default::default();
    observe_change(&mut view, created.clone().object());
    assert!(written(&view, &two.0).is_some(), "the hub agent has not written its status yet");
    created.status.announcement = Announcement::new("1.2.3", Features::ALL);
    observe_change(&mut view, created.version(8).object());
    assert_eq!(written(&view, &two.0), None);

    // The hub agent is replaced by one that writes no status.
    let mut view = importer(listing(&[("member-2", Treatment::Draining)]), &slices);
    let mut created = listing(&[]).version(7).uid("created again");
    created.status = Default::default();
    observe_change(&mut view, created.object());
    let key = member::Key::SliceImport(in_system(&two.0.meta.name.name));
    let plan = view.plan(&key, seconds(21));
    assert_eq!(plan.again, Some(seconds(80)), "a minute after the last announcement");
    assert_eq!(view.plan(&key, seconds(79)).writes.len(), 1, "the list counts");
    assert_eq!(view.plan(&key, seconds(80)).writes, []);

    let Object::EndpointSlice(mut drained) = two.1 else { panic!() };
    drained.content.draining = std::mem::take(&mut drained.content.endpoints);
    let slices = [(two.0.clone(), drained.object()), slices[1].clone()];
    let mut unknown = importer(listing(&[("member-2", Treatment::Draining)]), &slices);
    unknown.watch_state(Kind::MemberAgent, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(written(&unknown, &two.0), None, "after a restart, the list is not known before the kind is listed");
}

/// Also rule O20.
#[test]
fn slices_of_a_silent_member_are_removed_without_waiting_for_a_replacement_that_is_drained() {
    let (two, three) = (imported("member-2", &["10.2.0.1"]), imported("member-3", &["10.3.0.1"]));
    let source = slice("work/app-2").uid("uid-of-another").endpoints(&["10.2.0.1"]);
    let other = distributed_slice("member-1", &slice_export("member-2", &source)).marked();
    let mut drained = imported_slice(&other.meta.name.name, "work-app");
    drained.content = SliceContent { draining: vec![endpoint("10.2.0.1")], endpoints: Vec::new(), ..drained.content };
    let gone = (two.0.deleting(), two.1);
    let name = gone.0.meta.name.name.clone();
    let slices = [gone, (other, drained.object()), three];
    let view = importer(listing(&[("member-2", Treatment::Draining)]), &slices);
    let key = member::Key::SliceImport(in_system(&name));
    let writes = writes(&view, &key);
    assert!(matches!(writes[..], [Write { action: Action::Delete { .. }, .. }]), "{writes:?}");
}

/// Rule O23: An exporter of a Service is silent
/// Then: The MultiClusterService in each importer and the ServiceImport in the hub have the condition `ExporterSilent`
/// True. It becomes False when all exporters renew again
#[test]
fn a_condition_names_the_silent_exporters() {
    let (two, three) = (imported("member-2", &["10.2.0.1"]), imported("member-3", &["10.3.0.1"]));
    let slices = [two, three];
    let of = |view: &member::Planner| {
        let key = member::Key::MultiClusterService(named("work/app"));
        let writes = writes(view, &key);
        let [Write { action: Action::Patch { patch: Patch::MultiClusterServiceStatus { conditions, .. }, .. }, .. }] =
            &writes[..]
        else {
            assert_eq!(writes, []);
            return None;
        };
        let silent = conditions.iter().find(|it| &*it.condition_type == "ExporterSilent")?;
        Some((silent.status, silent.message.to_string()))
    };
    assert_eq!(of(&importer(listing(&[]), &slices)), None);
    let one = of(&importer(listing(&[("member-2", Treatment::Draining)]), &slices)).expect("a condition");
    assert_eq!(one.0, ConditionStatus::True);
    assert!(one.1.contains("silent: member-2. Importers use"), "{}", one.1);
    let both =
        of(&importer(listing(&[("member-2", Treatment::Draining), ("member-3", Treatment::Withdrawn)]), &slices));
    assert!(
        both.as_ref().is_some_and(|(_, text)| text.contains("(member-2, member-3), so their endpoints stay in use")),
        "{both:?}"
    );

    // After a restart, it is not known who is silent until the MemberAgents are listed.
    let shown = condition("ExporterSilent", "True", "MemberSilent", &one.1, 1);
    let reported = request("work/app").taken_on().deriving("work-app").with_conditions(&[found(), shown]);
    let mut restarted = importer(listing(&[]), &slices);
    observe_change(&mut restarted, reported.object());
    assert_eq!(of(&restarted).map(|(status, _)| status), Some(ConditionStatus::False));
    restarted.watch_state(Kind::MemberAgent, WatchState::Incomplete, NOW, &mut Vec::new());
    assert_eq!(of(&restarted), None);
}

// === Importers that do not know silent members ===

/// Returns the view of a hub in which member-2 with `silent` and member-3 with `ready` endpoints export a Service, and
/// member-1 imports it. member-2 is silent since [`NOW`].
fn hub_with(silent: usize, ready: usize, importer: Features) -> (hub::Planner, HubSlice) {
    let addresses =
        |net: usize, number: usize| -> Vec<String> { (0..number).map(|it| format!("10.{net}.0.{it}")).collect() };
    let export = |cluster: &str, net, number| {
        let addresses = addresses(net, number);
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let source = slice("work/app-1").uid(&format!("uid-of-{cluster}")).endpoints(&addresses);
        slice_export(cluster, &source).marked()
    };
    let (two, three) = (export("member-2", 2, silent), export("member-3", 3, ready));
    let import = service_import("work/app").showing(resolved(&["member-2", "member-3"])).claimed_by(&["member-1"]);
    let mut of_two = member_agent("member-2", Features::ALL, Features::ALL);
    let renewed = of_two.renewed.expect("a time");
    of_two.status.silence = Some(Silence { phase: SilencePhase::Draining, since: NOW, renewed, count: 1 });
    let distributed_slices =
        [&two, &three].map(|export| Object::EndpointSliceImport(distributed_slice("member-1", export)));
    let agents = [of_two.object(), member_agent("member-1", importer, Features::ALL).object()];
    let exports = [two.clone(), three].map(Object::EndpointSliceExport);
    let mut view =
        claimed_hub_view([import.object()].into_iter().chain(exports).chain(distributed_slices).chain(agents));
    view.silence_limits = Some(LIMITS);
    (view, two)
}

/// Rule O21: An importer of a silent member's slices does not announce `SilentMembers`
/// Then: The hub agent removes endpoints of silent members from its distributed slices, while another member's
/// distributed slice of the importer has ready endpoints. Each minute since the judgement, also while the member must
/// prove itself (rule O17), allows to remove half of the endpoints of the Service and address family. Slices keep their
/// shares, rounded up
#[test]
fn an_importer_that_does_not_know_silent_members_loses_their_endpoints_in_steps() {
    let without = Features::ALL.without(Feature::SilentMembers);
    let left = |(mut view, export): (hub::Planner, HubSlice), minutes: i64| {
        let key =
            Key::DistributedSlice { slice: export.meta.name.name.clone(), importer: "fleet-member-member-1".into() };
        let mut left = Vec::new();
        for minute in 0..minutes {
            let now = NOW.plus_micros(minute * 60_000_000);
            let plan = view.plan(&key, now);
            if let [Write { action: Action::Patch { patch: Patch::EndpointSliceImport(spec), .. }, .. }] =
                &plan.writes[..]
            {
                let mut distributed = distributed_slice("member-1", &export).version(10 + minute.unsigned_abs());
                distributed.spec = spec.clone();
                view.applied(Object::EndpointSliceImport(distributed), now, &mut Vec::new());
            } else {
                assert_eq!(plan.writes, []);
            }
            let distributed = view.distributed_slices.get(&in_hub_of("member-1", &export.meta.name.name)).expect("it");
            let again = view.plan(&key, now).again;
            left.push((distributed.spec.content.endpoints.len(), again == Some(now.plus_micros(60_000_000))));
        }
        left
    };
    assert_eq!(left(hub_with(10, 1, without), 4), [(5, true), (2, true), (1, true), (0, false)]);
    assert_eq!(left(hub_with(10, 0, without), 3), [(10, false); 3], "never the last ones");
    assert_eq!(left(hub_with(10, 10, Features::ALL), 3), [(10, false); 3], "the importer does it itself");
    assert_eq!(left(hub_with(4, 4, Features::NONE), 2), [(0, false); 2], "the Go form");
    // No MemberAgent of the importer is known yet, as right after a start of the hub agent.
    let (mut view, export) = hub_with(10, 1, without);
    for state in [WatchState::Incomplete, WatchState::Complete] {
        view.watch_state(Kind::MemberAgent, state, NOW, &mut Vec::new());
    }
    let agent = view.member_agents.get(&in_hub_of("member-1", "member-1")).expect("it").clone().object();
    observe_removal(&mut view, &agent);
    assert_eq!(left((view, export), 3), [(5, true), (2, true), (1, true)]);
}

/// Also rule O21.
#[test]
fn slices_of_a_silent_member_are_removed_without_waiting_for_a_replacement_that_has_no_endpoints() {
    let (mut view, export) = hub_with(1, 1, Features::NONE);
    let key = |export: &HubSlice| Key::DistributedSlice {
        slice: export.meta.name.name.clone(),
        importer: "fleet-member-member-1".into(),
    };
    // Another slice has the same endpoint. The importer does not have it in that slice.
    let source = slice("work/app-2").uid("uid-of-another").endpoints(&["10.2.0.0"]);
    let other = slice_export("member-2", &source).marked();
    view.applied(Object::EndpointSliceExport(other.clone()), NOW, &mut Vec::new());
    let distributed = distributed_slice("member-1", &other).with_addresses(&[], 1).version(9);
    view.applied(Object::EndpointSliceImport(distributed), NOW, &mut Vec::new());
    assert_eq!(planned_in_hub(&view, &key(&other)), []);
    // The MemberAgent of the silent member is deleted, and it stays silent.
    let agent = view.member_agents.get(&in_hub_of("member-2", "member-2")).expect("it").clone().object();
    observe_removal(&mut view, &agent);
    assert_eq!(planned_in_hub(&view, &key(&other)), []);
    view.applied(Object::EndpointSliceExport(export.clone().deleting().version(9)), NOW, &mut Vec::new());
    let writes = planned_in_hub(&view, &key(&export));
    assert!(matches!(writes[..], [Write { action: Action::Delete { .. }, .. }]), "{writes:?}");
}

/// Returns the number of endpoints of a silent member's slice that member-1 has after a plan.
fn left_at_once(view: &hub::Planner, export: &HubSlice) -> usize {
    let key = Key::DistributedSlice { slice: export.meta.name.name.clone(), importer: "fleet-member-member-1".into() };
    match &view.plan(&key, NOW).writes[..] {
        [] => export.spec.content.endpoints.len(),
        [Write { action: Action::Patch { patch: Patch::EndpointSliceImport(spec), .. }, .. }] => {
            spec.content.endpoints.len()
        }
        other => panic!("{other:?}"),
    }
}

/// Also rule O21.
#[test]
fn only_slices_that_the_importer_has_from_other_members_replace_those_of_a_silent_one() {
    let without = Features::ALL.without(Feature::SilentMembers);
    type Change = fn(&mut HubSlice);
    let table: [(&str, Change, usize); 4] = [
        ("as it is", |_| (), 5),
        ("of another Service", |distributed| distributed.spec.owner = named("work/other"), 10),
        (
            "of the other address family",
            |distributed| Arc::make_mut(&mut distributed.spec.content).address_type = AddressType::IPv6,
            10,
        ),
        (
            "made from a slice of the silent member",
            |distributed| distributed.spec.reference.cluster = "member-2".into(),
            10,
        ),
    ];
    for (why, change, left) in table {
        let (mut view, export) = hub_with(10, 1, without);
        let is_other = |distributed: &&HubSlice| distributed.meta.name.name != export.meta.name.name;
        let mut distributed = view.distributed_slices.iter().find(is_other).expect("it").clone().version(9);
        change(&mut distributed);
        view.applied(Object::EndpointSliceImport(distributed), NOW, &mut Vec::new());
        assert_eq!(left_at_once(&view, &export), left, "{why}");
    }
    let (mut view, export) = hub_with(10, 1, without);
    view.silence_limits = None;
    assert_eq!(left_at_once(&view, &export), 10, "the hub agent does not look for silent members");

    // The distributed slice of the silent member was made from a slice of the other one, which the importer lacks.
    let (mut view, export) = hub_with(10, 1, without);
    let is_other = |distributed: &&HubSlice| distributed.meta.name.name != export.meta.name.name;
    let other = Object::EndpointSliceImport(view.distributed_slices.iter().find(is_other).expect("it").clone());
    observe_removal(&mut view, &other);
    let mut forged = distributed_slice("member-1", &export).version(9);
    forged.spec.reference.cluster = "member-3".into();
    view.applied(Object::EndpointSliceImport(forged), NOW, &mut Vec::new());
    assert_eq!(left_at_once(&view, &export), 10, "no other slice");
}

/// Also rule O21.
#[test]
fn what_is_left_of_members_that_fell_silent_earlier_counts_as_ready() {
    let (mut view, export) = hub_with(10, 1, Features::ALL.without(Feature::SilentMembers));
    let mut earlier = member_agent("member-4", Features::ALL, Features::ALL);
    let (since, renewed) = (NOW.plus_micros(-60_000_000), earlier.renewed.expect("a time"));
    earlier.status.silence = Some(Silence { phase: SilencePhase::Draining, since, renewed, count: 1 });
    let source =
        slice("work/app-1").uid("uid-of-member-4").endpoints(&["10.4.0.1", "10.4.0.2", "10.4.0.3", "10.4.0.4"]);
    let of_earlier = Object::EndpointSliceExport(slice_export("member-4", &source).marked());
    for object in [earlier.object(), of_earlier] {
        view.applied(object, NOW, &mut Vec::new());
    }
    // Of the four endpoints, one is left after two steps. So two are ready beside ten.
    assert_eq!(left_at_once(&view, &export), 4);
}

/// Also rules D10, O20.
#[test]
fn an_importer_that_knows_silent_members_keeps_their_endpoints_until_it_has_the_replacement() {
    let (mut view, export) = hub_with(1, 1, Features::ALL);
    let source = slice("work/app-2").uid("uid-of-another").endpoints(&["10.2.0.0"]);
    view.applied(Object::EndpointSliceExport(slice_export("member-2", &source).marked()), NOW, &mut Vec::new());
    view.applied(Object::EndpointSliceExport(export.clone().deleting().version(9)), NOW, &mut Vec::new());
    let key = Key::DistributedSlice { slice: export.meta.name.name, importer: "fleet-member-member-1".into() };
    assert_eq!(planned_in_hub(&view, &key), []);
}

fn planned_in_hub(view: &hub::Planner, key: &Key) -> Vec<Write> {
    view.plan(key, NOW.plus_micros(300_000_000)).writes
}

/// Also rule O23.
#[test]
fn the_imported_service_in_the_hub_shows_silent_exporters() {
    let (mut view, _) = hub_with(1, 1, Features::ALL);
    let key = Key::Service(named("work/app"));
    let conditions = |view: &hub::Planner| {
        view.plan(&key, NOW).writes.into_iter().find_map(|write| match write.action {
            Action::Patch { patch: Patch::ServiceImportConditions(conditions), .. } => Some(conditions),
            _ => None,
        })
    };
    let shown = conditions(&view);
    // Without their InternalServiceExports, the ServiceImport is removed in this view. The condition is planned once it
    // stays.
    assert_eq!(shown, None);
    for cluster in ["member-2", "member-3"] {
        let export = internal_export(cluster, &service("work/app"));
        let export = export.port_set_since(seconds(5)).judged(no_conflict("work/app"));
        view.applied(export.object(), NOW, &mut Vec::new());
    }
    let import = view.hub_imports.get(&named("work/app")).expect("it").clone();
    let shown = conditions(&view).expect("a condition");
    assert_eq!(
        shown.iter().map(|it| (&*it.condition_type, it.status)).collect::<Vec<_>>(),
        [("ExporterSilent", ConditionStatus::True)]
    );
    let fresh = internal_export("member-3", &service("work/app")).port_set_since(seconds(5)).version(2);
    let mut beside = view.clone();
    beside.applied(fresh.object(), NOW, &mut Vec::new());
    assert_eq!(conditions(&beside).as_ref(), Some(&shown), "also beside other writes");
    let mut import = import.version(9);
    import.conditions = shown;
    view.applied(import.object(), NOW, &mut Vec::new());
    assert_eq!(conditions(&view), None);
    let mut restarted = view.clone();
    restarted.watch_state(Kind::MemberAgent, WatchState::Incomplete, NOW, &mut Vec::new());
    let heard = member_agent("member-2", Features::ALL, Features::ALL).version(9).object();
    restarted.applied(heard, NOW, &mut Vec::new());
    assert_eq!(conditions(&restarted), None, "it is not known yet which exporters are silent");
    let mut requeue = Vec::new();
    let (_, reads) = view.plan_and_reads(&key, NOW);
    view.planned(&key, reads);
    view.applied(member_agent("member-2", Features::ALL, Features::ALL).version(9).object(), NOW, &mut requeue);
    assert!(requeue.contains(&key));
    let shown = conditions(&view).expect("a condition");
    assert_eq!(shown.iter().map(|it| it.status).collect::<Vec<_>>(), [ConditionStatus::False]);
}
