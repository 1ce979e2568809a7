//! Tests of the member agent's view: what it keeps of earlier states, its times, and what it tells the agent.

use crate::support::agent::{View as _, removed};
use crate::support::build::{
    Build, BuildHubSlice, IntoObject, accepted_export, content, distributed_slice, imported_slice, in_system,
    internal_export, internal_member_cluster, member_agent, named, seconds, service, service_export, service_import,
    slice, slice_export, system_namespace,
};
use crate::support::mcs;
use crate::support::view::{SEEN, complete, member_view, observe_change, observe_removal};
use crate::support::world::settings;
use fleetnet_core::features::Features;
use fleetnet_core::limits::RESTORE_GRACE_MICROS;
use fleetnet_core::member::latency::Import;
use fleetnet_core::member::{ImportLimits, Key, Limits, McsApi, Membership, Planner, Settings, SliceStreamUse};
use fleetnet_core::model::{
    AddressType, Announcement, EndpointSlice, HubSlice, Kind, McsLabels, MembershipAgent, MembershipState, Object,
    Service, SliceContent, SliceStreamOffer,
};
use fleetnet_types::{Timestamp, WatchState};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns a distributed slice of a Service, which member-2 exports.
fn distributed(path: &str) -> HubSlice {
    distributed_slice("member-1", &slice_export("member-2", &slice(path).uid(path))).marked()
}

fn of_hub(slice: &HubSlice) -> Object {
    Object::EndpointSliceImport(slice.clone())
}

/// Returns the distributed slice with one IPv6 address.
fn six(slice: HubSlice, address: &str) -> HubSlice {
    let content = SliceContent { address_type: AddressType::IPv6, ..content(&[address]) };
    HubSlice { spec: fleetnet_core::model::HubSliceSpec { content: Arc::new(content), ..slice.spec }, ..slice }
}

/// Returns an EndpointSlice of another writer that has the name of the slice imported from `distributed`.
fn in_its_place(distributed: &HubSlice) -> Object {
    let at = in_system(&distributed.meta.name.name).to_string();
    EndpointSlice { service: None, ..slice(&at) }.object()
}

/// Returns a new view that receives the objects of `view`.
fn rebuilt(view: &Planner) -> Planner {
    let mut rebuilt = view.forgetful();
    complete(&mut rebuilt);
    for object in view.objects() {
        rebuilt.applied(object, SEEN, &mut Vec::new());
    }
    rebuilt
}

type Step<'a> = &'a dyn Fn(&mut Planner);

/// Asserts that after each of these steps the view is the same as a new view of the objects that it has then.
fn assert_keeps_nothing(why: &str, settings: Settings, objects: &[Object], steps: &[Step<'_>]) {
    let mut view = Planner::new(settings);
    complete(&mut view);
    objects.iter().for_each(|object| view.applied(object.clone(), SEEN, &mut Vec::new()));
    assert_eq!(view, rebuilt(&view), "{why}: at the begin");
    for (number, step) in steps.iter().enumerate() {
        step(&mut view);
        assert_eq!(view, rebuilt(&view), "{why}: after step {number}");
    }
}

fn seen(view: &mut Planner, object: Object) {
    view.applied(object, SEEN, &mut Vec::new());
}

fn gone(view: &mut Planner, object: &Object) {
    let (kind, meta) = (object.kind(), object.meta());
    view.observe(removed(kind, meta.name.clone(), meta.uid.clone()), SEEN, &mut Vec::new());
}

#[test]
fn a_view_keeps_nothing_of_the_earlier_states_of_a_distributed_slice() {
    let slice = distributed("work/app-1");
    let mut moved = slice.clone().version(2);
    moved.spec.owner = named("work/other");
    let objects = [of_hub(&slice), in_its_place(&slice)];
    let moves = |view: &mut Planner| seen(view, of_hub(&moved));
    let ends = |view: &mut Planner| gone(view, &of_hub(&moved));
    assert_keeps_nothing("another writer's slice has its name", settings(0), &objects, &[&moves, &ends]);
    let previewed = |view: &mut Planner| {
        let preview = slice.clone().with_addresses(&["10.0.0.9"], 5);
        view.show_preview(&slice.meta.name.name, preview.spec, SEEN, &mut Vec::new());
        gone(view, &of_hub(&slice));
    };
    assert_keeps_nothing("it has a preview", settings(0), &objects[..1], &[&previewed]);
}

#[test]
fn a_view_knows_the_slices_with_ipv6_addresses_to_import_after_each_change_of_what_is_imported() {
    let one = six(distributed("work/app-1"), "fd00::7");
    let own = Service { cluster_ips: vec!["fd00::7".into()], ..service("shop/new") }.object();
    let comes = |view: &mut Planner| seen(view, own.clone());
    let goes = |view: &mut Planner| gone(view, &own);
    assert_keeps_nothing("an own address", settings(0), &[of_hub(&one)], &[&comes, &goes]);

    let imports = ImportLimits { slices: 1, endpoints: 3 };
    let limited = || Settings { limits: Limits { imports, ..Limits::default() }, ..settings(0) };
    for second in [distributed("work/app-2"), six(distributed("work/app-2"), "fd00::8")] {
        let first = distributed("work/app-1");
        let goes = |view: &mut Planner| gone(view, &of_hub(&first));
        let comes = |view: &mut Planner| seen(view, of_hub(&first));
        assert_keeps_nothing("a limit", limited(), &[of_hub(&first), of_hub(&second)], &[&goes, &comes]);
    }
}

#[test]
fn a_view_keeps_nothing_of_what_the_agent_waited_for() {
    let imported = imported_slice("any", "work-app").object();
    let answered = |view: &mut Planner| view.imported_slice_written(&imported.meta().name, 1);
    assert_keeps_nothing("no webhook changes the slice", settings(0), std::slice::from_ref(&imported), &[&answered]);

    let (app, export) = (service("work/app"), internal_export("member-1", &service("work/app")).object());
    let ends = |view: &mut Planner| {
        view.service_exported(&named("work/app"), SEEN);
        gone(view, &app.clone().object());
    };
    let objects = [app.clone().object(), export];
    assert_keeps_nothing("an export without an outcome", settings(0), &objects, &[&ends]);

    let by_mcs_api = || Settings { mcs_api: McsApi::LabelledNamespaces, ..settings(0) };
    let merged = mcs::merged(mcs::import()).object();
    let restored = |view: &mut Planner| {
        view.hub_restored(SEEN);
        view.applied(merged.clone(), SEEN.plus_micros(RESTORE_GRACE_MICROS), &mut Vec::new());
    };
    assert_keeps_nothing("a restore of the hub", by_mcs_api(), std::slice::from_ref(&merged), &[&restored]);

    // Another writer puts its own slice, with our annotation, in the place of an import that is newer than its source.
    let slice = distributed("work/app-1");
    let labels = McsLabels { service: "app".into(), cluster: "member-2".into(), headless: false };
    let name = format!("work/{}", slice.meta.name.name);
    let newer = EndpointSlice { observed_generation: Some(9), ..crate::support::build::slice(&name) };
    let imported = EndpointSlice { imported: true, mcs: Some(Box::new(labels)), ..newer.clone() };
    let objects = [of_hub(&slice), imported.object()];
    let replaced = |view: &mut Planner| seen(view, newer.clone().uid("uid-of-another").object());
    assert_keeps_nothing("an import that is replaced", by_mcs_api(), &objects, &[&replaced]);
}

/// Returns a member that has seen each kind of change at the time `at`.
fn lived(at: Timestamp) -> Planner {
    let membership = Membership { agents: MembershipAgent::ALL.to_vec(), ..Membership::default() };
    let announces = Some(Announcement::new("1.2.3", Features::ALL));
    let mcs_api = McsApi::LabelledNamespaces;
    let mut view = Planner::new(Settings { announces, membership, mcs_api, ..settings(0) });
    view.slice_stream.chosen = SliceStreamUse::Offered;
    for kind in Planner::KINDS.iter().copied().chain([Kind::SystemNamespace]) {
        view.watch_state(kind, WatchState::Complete, at, &mut Vec::new());
    }
    let mut agent = member_agent("member-1", Features::ALL, Features::ALL);
    agent.status.slice_stream = Some(SliceStreamOffer { address: "hub:1".into(), ca_bundle: "PEM".into() });
    let objects = [
        system_namespace("uid-kube-system"),
        agent.clone().object(),
        mcs::importing().object(),
        mcs::merged(mcs::import()).object(),
        internal_member_cluster("member-1", MembershipState::Leave).object(),
        service("work/app").object(),
        service_export("work/app").object(),
        slice("work/app-1").object(),
        service_import("work/app").object(),
    ];
    let (name, uid) = (agent.meta.name, agent.meta.uid);
    objects.into_iter().for_each(|object| view.applied(object, at, &mut Vec::new()));
    view.observe(removed(Kind::MemberAgent, name, uid), at, &mut Vec::new());
    view.hub_followed(Some(at), at, &mut Vec::new());
    view.stream_began(at, &mut Vec::new());
    view.hub_restored(at);
    view.renewal_written(at, &mut Vec::new());
    view.slice_imported(&"member-2".into(), Import::Later, at.plus_micros(-12_000), at);
    view.latency_reported(at);
    view
}

/// Also rule A13.
#[test]
fn a_clock_that_is_set_moves_all_times_of_a_member() {
    const HOUR_MICROS: i64 = 3_600_000_000;
    let at = seconds(10_000);
    for by in [-2 * HOUR_MICROS, HOUR_MICROS] {
        let mut view = lived(at);
        view.clock_set(by);
        assert_eq!(view, lived(at.plus_micros(by)), "as if it had lived with the new clock");
    }
}

#[test]
fn a_view_names_service_and_exporter_of_the_distributed_slices_that_exist() {
    let slice = distributed("work/app-1");
    let view = member_view([of_hub(&slice)]);
    let (name, unknown) = (&slice.meta.name.name, "unknown".into());
    assert_eq!(view.owner_of_distributed_slice(name), Some(named("work/app")));
    assert_eq!(view.origin_of_distributed_slice(name), Some(&"member-2".into()));
    assert_eq!(view.owner_of_distributed_slice(&unknown), None);
    assert_eq!(view.origin_of_distributed_slice(&unknown), None);
}

#[test]
fn a_member_without_the_mcs_api_keeps_and_plans_nothing_of_it() {
    let mut view = member_view([]);
    observe_change(&mut view, mcs::importing().object());
    assert_eq!(view.namespaces.iter().count(), 0);
    let derived = Service { imports: Some("app".into()), ..service("work/left") };
    let requeued = observe_change(&mut view, derived.object());
    assert!(!requeued.iter().any(|key| matches!(key, Key::McsImport(_))), "{requeued:?}");
}

/// Also rule A3.
#[test]
fn a_change_requeues_each_key_of_a_member_once_and_in_order() {
    let internal = internal_export("member-1", &service("work/app")).object();
    let slices = ["work/app-1", "work/app-2", "work/app-3"].map(|path| slice(path).uid(path));
    let exported = slices.each_ref().map(|slice| Object::EndpointSliceExport(slice_export("member-1", slice)));
    let objects = slices.into_iter().map(IntoObject::object).chain(exported);
    let mut view = member_view(objects.chain([service("work/app").object(), internal]));
    let mut requeue = Vec::new();
    view.applied(accepted_export("work/app").object(), SEEN, &mut requeue);
    assert!(requeue.len() >= 4, "{requeue:?}");
    let distinct: BTreeSet<Key> = requeue.iter().cloned().collect();
    assert_eq!(requeue, distinct.into_iter().collect::<Vec<_>>());
}

#[test]
fn each_change_of_a_watch_plans_the_heartbeat_also_the_first() {
    let mut view = Planner::new(settings(0));
    for state in [WatchState::Incomplete, WatchState::Complete] {
        let mut requeue = Vec::new();
        view.watch_state(Kind::MemberAgent, state, SEEN, &mut requeue);
        assert_eq!(requeue, [Key::Heartbeat], "{state:?}");
    }
}

// A MergedServiceImport has the name of the one Service that it is for.
#[test]
fn a_merged_import_is_planned_when_it_names_its_own_service() {
    let merged = mcs::merged(mcs::import());
    let wrong = fleetnet_core::model::MergedServiceImport { service: named("work/other"), ..merged.clone() };
    let mut view = mcs::view([mcs::importing().object()]);
    observe_change(&mut view, wrong.object());
    let requeued = observe_change(&mut view, merged.version(2).object());
    assert!(requeued.contains(&Key::McsImport(mcs::app())), "{requeued:?}");
}

// While its last exports end, the derived Service is all that is left of an import.
#[test]
fn a_derived_service_that_is_left_of_an_import_goes_at_once_when_the_member_leaves() {
    let membership = |state| internal_member_cluster("member-1", state);
    let merged = mcs::merged(mcs::import()).marked();
    let mut view = mcs::view([mcs::importing().object(), merged.clone().object()]);
    view.settings.membership.agents = MembershipAgent::ALL.to_vec();
    observe_change(&mut view, membership(MembershipState::Join).version(0).object());
    let key = Key::McsImport(mcs::app());
    mcs::settle(&mut view, &key);
    observe_removal(&mut view, &merged.object());
    assert_eq!(mcs::settle(&mut view, &key), ["delete McsServiceImport"]);
    let requeued = observe_change(&mut view, membership(MembershipState::Leave).object());
    assert!(requeued.contains(&key), "{requeued:?}");
    assert_eq!(mcs::settle(&mut view, &key), ["delete Service"]);
}
