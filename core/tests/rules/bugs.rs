//! Tests that fleetnet does not have the known bugs of the Go agents. A test's name begins with the number of its bug
//! (B1 to B22) in docs/contributors/behaviour.md.

use crate::oracle::assert_settled;
use crate::support::agent::removed;
use crate::support::build::{
    Build, BuildExport, BuildHubSlice, BuildImport, BuildInternalExport, BuildRequest, BuildService, BuildSlice,
    IntoObject, SYSTEM, accepted_export, claim, content, derived_service, distributed_slice, imported_slice, in_hub_of,
    in_system, internal_export, named, no_conflict, not_found, pending, port, request, resolved, seconds, service,
    service_export, service_import, slice, slice_export, valid,
};
use crate::support::cluster::Answer;
use crate::support::view::{hub_view, member_view, observe_change, observe_removal, writes};
use crate::support::world::{Entry, Who, World, fleet};
use fleetnet_core::hub;
use fleetnet_core::member::Key;
use fleetnet_core::model::{ConsumerType, Kind, Object};
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_types::ObjectName;

fn count(world: &World, who: Who, kind: Kind) -> usize {
    world.cluster(who).list(kind).count()
}

/// Returns the sorted addresses of the endpoints in a member's imported slices.
fn imported(world: &World, member: usize) -> Vec<String> {
    let slices = world.members[member].cluster.list(Kind::EndpointSlice);
    let mut all: Vec<String> = slices
        .filter_map(|object| match object {
            Object::EndpointSlice(slice) if slice.imported => Some(&slice.content.endpoints),
            _ => None,
        })
        .flatten()
        .flat_map(|endpoint| endpoint.addresses.iter().map(ToString::to_string))
        .collect();
    all.sort();
    all
}

fn set_endpoints(world: &mut World, slice: &str, endpoints: &[&str]) {
    world.edit(Who::Member(0), Kind::EndpointSlice, &named(slice), |object| {
        let Object::EndpointSlice(slice) = object else { return };
        slice.content = content(endpoints);
    });
}

/// If `blocked` is true, adds a finalizer of another controller to an object, so that the object stays after its
/// deletion. Otherwise removes the finalizers of other controllers.
fn hold(world: &mut World, who: Who, kind: Kind, name: &ObjectName, blocked: bool) {
    let done = world.edit(who, kind, name, |object| {
        object.meta_mut().finalizers.others = if blocked { vec!["example.com/hold".into()] } else { Vec::new() };
    });
    assert!(done, "{kind:?} {name} is there");
}

/// Rule E6: A source slice is deleted
/// Then: The member agent withdraws the EndpointSliceExport on the delete event (bug B1). If no agent ran at the time
/// of the deletion, the member agent withdraws the EndpointSliceExport at its next start
#[test]
fn b1_a_deleted_slice_is_withdrawn_by_its_event() {
    let mut world = fleet(2, ConsumerType::ClusterIp);
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    let before = world.now;
    world.tick_micros = 0; // no time passes, so no timer fires
    world.delete(Who::Member(0), Kind::EndpointSlice, &named("work/app-1"));
    world.run();
    assert_eq!(world.now, before);
    assert_eq!(imported(&world, 1), [""; 0]);
    assert_eq!(count(&world, Who::Hub, Kind::EndpointSliceExport), 0);
    assert_eq!(count(&world, Who::Hub, Kind::EndpointSliceImport), 0);
    assert_settled(&world);
}

/// Also rule E6.
#[test]
fn b1_a_slice_deleted_while_the_agent_was_down_is_withdrawn_when_it_is_back() {
    for seed in 0..40 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        world.delete(Who::Member(0), Kind::EndpointSlice, &named("work/app-1"));
        world.restart(Who::Member(0));
        world.run();
        assert_eq!(imported(&world, 1), [""; 0], "seed {seed}");
        assert_settled(&world);
    }
}

/// Rule E5: A source slice is recycled: its Service is scaled to zero and back, so the annotations of the slice are
/// lost
/// Then: The member agent finds the EndpointSliceExport by the UID of the source slice. The name of the
/// EndpointSliceExport does not count. The member agent continues to use this EndpointSliceExport and creates no second
/// one (bug B1b)
#[test]
fn b1b_a_recycled_slice_keeps_its_export() {
    let mut world = fleet(2, ConsumerType::ClusterIp);
    let exports = |world: &World| -> Vec<(ObjectName, String)> {
        let all = world.hub.list(Kind::EndpointSliceExport);
        all.map(|export| (export.meta().name.clone(), export.meta().uid.to_string())).collect()
    };
    let first = exports(&world);
    for endpoints in [&[][..], &["10.0.0.7"][..]] {
        let mark = world.ledger.len();
        set_endpoints(&mut world, "work/app-1", endpoints); // same name and same UID, everything else is new
        world.run();
        assert_eq!(exports(&world), first);
        assert_eq!(imported(&world, 2), endpoints);
        assert_eq!(world.ledger.len() - mark, 5, "1 + 2K writes: {:#?}", world.lines_since(mark));
    }
}

/// Also rule E5.
#[test]
fn b1b_an_export_is_found_by_the_uid_of_its_slice_under_any_name() {
    let source = slice("work/app-1").generation(2).endpoints(&["10.0.0.9"]);
    let named_by_go = slice_export("member-1", &slice("work/app-1")).called("member-1-work-app-1-zzzzz");
    let view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        source.object(),
        Object::EndpointSliceExport(named_by_go.clone()),
    ]);
    let planned = writes(&view, &Key::SliceExport(named("work/app-1")));
    let [Write { at, action: Action::Patch { patch: Patch::EndpointSliceExport(spec), .. }, .. }] = &planned[..] else {
        panic!("one patch, not {planned:#?}");
    };
    assert_eq!(*at, named_by_go.meta.name);
    assert_eq!(*spec.content, content(&["10.0.0.9"]));
}

/// Rule E7: The member agent has created an EndpointSliceExport, but the agent's cache does not contain that
/// EndpointSliceExport yet
/// Then: The member agent tries to create an EndpointSliceExport with the same name, and finds the existing
/// EndpointSliceExport. The member agent never creates a second EndpointSliceExport (bug B2)
#[test]
fn b2_a_view_that_lags_never_exports_a_slice_twice() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let mark = world.ledger.len();
    let export = world.hub.list(Kind::EndpointSliceExport).next().cloned().expect("exported");
    // A false watch event reports the new export as deleted, so the agent creates the export a second time.
    let name = export.meta().name.clone();
    let lost = removed(Kind::EndpointSliceExport, name, export.meta().uid.clone());
    world.members[0].agent.notify(lost);
    world.run();
    assert_eq!(world.lines_since(mark), ["member-1 creates EndpointSliceExport (AlreadyExists)"]);
    assert_eq!(world.hub.list(Kind::EndpointSliceExport).collect::<Vec<_>>(), [&export]);
    assert_settled(&world);
}

/// Rule E8: A source slice has two EndpointSliceExports
/// Then: The EndpointSliceExport with the newest generation of the source slice stays. When this EndpointSliceExport
/// has the current content of the source slice, the member agent deletes the other one (bug B2)
#[test]
fn b2_the_second_export_of_a_slice_is_deleted_once_the_first_is_current() {
    let source = slice("work/app-1").generation(3);
    let current = slice_export("member-1", &source);
    let stale =
        slice_export("member-1", &slice("work/app-1").endpoints(&["10.0.0.8"])).called("other").uid("uid-other");
    let mut view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        source.object(),
        Object::EndpointSliceExport(stale.clone()),
        Object::EndpointSliceExport(current.clone().with_addresses(&["10.0.0.8"], 2)),
    ]);
    let key = Key::SliceExport(named("work/app-1"));
    let first = writes(&view, &key);
    assert!(
        matches!(&first[..], [Write { at, action: Action::Patch { .. }, .. }] if *at == current.meta.name),
        "{first:#?}"
    );
    observe_change(&mut view, Object::EndpointSliceExport(current));
    assert_eq!(writes(&view, &key), [Write::delete(Kind::EndpointSliceExport, &stale.meta)]);
}

/// Rule S13: A ServiceExport is created again while its old InternalServiceExport is being deleted
/// Then: The member agent creates the new InternalServiceExport as soon as the old one is removed. The new export is
/// not lost (bug B4)
#[test]
fn b4_an_export_recreated_while_the_old_one_is_being_deleted_is_not_lost() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let in_hub = in_hub_of("member-1", "work-app");
    hold(&mut world, Who::Hub, Kind::InternalServiceExport, &in_hub, true);
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run();
    world.create(Who::Member(0), service_export("work/app").object());
    world.run();
    let old = world.hub.get(Kind::InternalServiceExport, &in_hub).expect("still dying");
    assert!(old.meta().deleting);
    hold(&mut world, Who::Hub, Kind::InternalServiceExport, &in_hub, false);
    world.run();
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    assert_settled(&world);
}

/// Rule M13: A MultiClusterService is deleted and created again while its objects are being deleted
/// Then: The member agent imports the target as soon as the old objects are removed. The new MultiClusterService is not
/// lost (bug B4)
#[test]
fn b4_an_import_recreated_while_the_old_one_is_being_deleted_is_not_lost() {
    for (who, kind, name) in [
        (Who::Hub, Kind::InternalServiceImport, in_hub_of("member-2", "work-app")),
        (Who::Member(1), Kind::ServiceImport, named("work/app")),
        (Who::Member(1), Kind::Service, ObjectName::new(SYSTEM, "work-app")),
    ] {
        let mut world = fleet(1, ConsumerType::LoadBalancer);
        hold(&mut world, who, kind, &name, true);
        world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
        world.run();
        assert_eq!(imported(&world, 1), [""; 0], "{kind:?}");
        world.create(Who::Member(1), request("work/app").object());
        world.run();
        assert!(world.cluster(who).get(kind, &name).is_some_and(|old| old.meta().deleting), "{kind:?}");
        hold(&mut world, who, kind, &name, false);
        world.run();
        assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"], "{kind:?}");
        assert_settled(&world);
    }
}

/// Also rule S13.
#[test]
fn b4_a_service_is_not_exported_again_while_its_export_is_being_deleted() {
    let source = service("work/app");
    let export = service_export("work/app").marked().with_conditions(&[valid("work/app"), pending("work/app")]);
    let same = internal_export("member-1", &source).port_set_since(seconds(2)).deleting();
    let of_an_earlier_service = internal_export("member-1", &service("work/app").uid("uid-earlier")).deleting();
    let key = Key::Export(named("work/app"));
    let name = in_hub_of("member-1", "work-app");
    for (case, dying) in [("the same Service", same), ("an earlier Service", of_an_earlier_service)] {
        let mut view = member_view([source.clone().object(), export.clone().object(), dying.clone().object()]);
        assert_eq!(writes(&view, &key), [], "{case}: its name is held until it is gone");
        assert_eq!(
            observe_removal(&mut view, &dying.object()),
            std::slice::from_ref(&key),
            "{case}: its end wakes the export"
        );
        let planned = writes(&view, &key);
        assert!(
            matches!(&planned[..], [Write { at, action: Action::Create(_), .. }] if *at == name),
            "{case}: {planned:#?}"
        );
    }
}

/// Rule I5: A ServiceImport is created again while its old claim is being deleted
/// Then: The member agent creates the new claim (InternalServiceImport) as soon as the old claim is removed (bug B4)
#[test]
fn b4_an_import_is_not_claimed_again_while_its_claim_is_being_deleted() {
    let request = request("work/app").taken_on();
    let import = service_import("work/app").controlled_by(&request);
    let same = claim("member-1", &import).deleting();
    let of_an_earlier_import = claim("member-1", &import.clone().uid("uid-earlier")).deleting();
    let key = Key::Import(named("work/app"));
    let name = in_hub_of("member-1", "work-app");
    for (case, dying) in [("the same import", same), ("an earlier import", of_an_earlier_import)] {
        let mut view = member_view([request.clone().object(), import.clone().object(), dying.clone().object()]);
        assert_eq!(writes(&view, &key), [], "{case}: its name is held until it is gone");
        let woken = [Key::MultiClusterService(named("work/app")), key.clone()];
        assert_eq!(observe_removal(&mut view, &dying.object()), woken, "{case}: its end wakes the import");
        let planned = writes(&view, &key);
        assert!(
            matches!(&planned[..], [Write { at, action: Action::Create(_), .. }] if *at == name),
            "{case}: {planned:#?}"
        );
    }
}

/// Also rule M13.
#[test]
fn b4_a_multi_cluster_service_never_uses_an_import_being_deleted_and_recreates_it_when_it_is_gone() {
    let request = request("work/app").taken_on().with_conditions(&[not_found()]);
    let key = Key::MultiClusterService(named("work/app"));
    let unresolved = service_import("work/app").controlled_by(&request);
    for (case, import) in [
        ("nobody's", service_import("work/app")),
        ("ours", unresolved.clone()),
        ("ours, with exporters", unresolved.showing(resolved(&["member-2"]))),
    ] {
        let dying = import.deleting();
        let mut view = member_view([request.clone().object(), dying.clone().object()]);
        assert_eq!(writes(&view, &key), [], "{case}");
        let requeue = observe_removal(&mut view, &dying.object());
        assert!(requeue.contains(&key), "{case}: its end requeues the MultiClusterService: {requeue:?}");
        let planned = writes(&view, &key);
        assert!(
            matches!(&planned[..], [Write { action: Action::Create(Desired::ServiceImport { .. }), .. }]),
            "{case}: {planned:#?}"
        );
    }
}

/// Rule E9: A source slice is exported again while its old EndpointSliceExport is being deleted
/// Then: The member agent creates the new EndpointSliceExport as soon as the old EndpointSliceExport is removed (bug
/// B4)
#[test]
fn b4_a_slice_exported_again_while_its_export_is_being_deleted_is_not_lost() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    let export = world.hub.list(Kind::EndpointSliceExport).next().expect("exported").meta().name.clone();
    hold(&mut world, Who::Hub, Kind::EndpointSliceExport, &export, true);
    let set_weight = |world: &mut World, weight: Option<&str>| {
        world.edit(Who::Member(0), Kind::ServiceExport, &named("work/app"), |object| {
            let Object::ServiceExport(export) = object else { return };
            export.weight = weight.map(Into::into);
        });
        world.run();
    };
    set_weight(&mut world, Some("0"));
    assert_eq!(imported(&world, 1), [""; 0]);
    set_weight(&mut world, None); // exports the slice again, under the name of the old export, which is being deleted
    assert_eq!(imported(&world, 1), [""; 0]);
    hold(&mut world, Who::Hub, Kind::EndpointSliceExport, &export, false);
    world.run();
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    assert_settled(&world);
}

/// Rule H16: The ServiceImport in the hub is being deleted
/// Then: The hub agent writes no result to this ServiceImport. When the hub agent sets the outcome of an export, the
/// hub agent also ignores this ServiceImport. The hub agent creates a new ServiceImport when the old one is removed
/// (bug B5)
#[test]
fn b5_an_import_being_deleted_gets_no_outcome_and_is_recreated_when_it_is_gone() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    hold(&mut world, Who::Hub, Kind::ServiceImport, &named("work/app"), true);
    world.delete(Who::Hub, Kind::ServiceImport, &named("work/app"));
    world.run();
    let dying = world.hub.get(Kind::ServiceImport, &named("work/app")).cloned();
    // A second member exports the Service. Its export is not added to a ServiceImport that is being deleted.
    world.create(Who::Member(1), service("work/app").object());
    world.create(Who::Member(1), service_export("work/app").object());
    world.run();
    assert_eq!(world.hub.get(Kind::ServiceImport, &named("work/app")).cloned(), dying);
    assert_eq!(conflict_status(&world, 1).as_deref(), Some("Unknown"), "not judged by an import that will vanish");
    hold(&mut world, Who::Hub, Kind::ServiceImport, &named("work/app"), false);
    world.run();
    assert_eq!(conflict_status(&world, 1).as_deref(), Some("False"));
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    assert_settled(&world);
}

/// Also rule H16.
#[test]
fn b5_no_export_gets_the_outcome_of_an_import_that_is_being_deleted() {
    let stamped = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let key = hub::Key::Service(named("work/app"));
    let view = hub_view([stamped.clone().object(), import.clone().object()]);
    assert_eq!(writes(&view, &key)[0].kind(), Kind::InternalServiceExport, "while it lives");
    let view = hub_view([stamped.object(), import.deleting().object()]);
    let kinds: Vec<Kind> = writes(&view, &key).iter().map(|write| write.kind()).collect();
    assert_eq!(kinds, [Kind::ServiceImport], "only its claims, which hold it back");
}

fn conflict_status(world: &World, member: usize) -> Option<String> {
    let Some(Object::ServiceExport(export)) =
        world.members[member].cluster.get(Kind::ServiceExport, &named("work/app"))
    else {
        return None;
    };
    let conflict = export.conditions.iter().find(|condition| &*condition.condition_type == "Conflict");
    conflict.map(|condition| condition.status.to_string())
}

/// Rule H17: A user deletes the ServiceImport in the hub
/// Then: The hub agent creates the ServiceImport again (bug B5)
#[test]
fn b5_an_import_that_somebody_deleted_is_recreated() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    world.delete(Who::Hub, Kind::ServiceImport, &named("work/app"));
    world.run();
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    assert_settled(&world);
}

/// Rule H14: The only InternalServiceExport of a Service has no finalizer yet
/// Then: The hub agent does not delete the ServiceImport that it has just created (bug B6)
#[test]
fn b6_an_import_is_not_deleted_while_its_only_export_is_not_marked_yet() {
    let fresh = internal_export("member-1", &service("work/app"));
    let view = hub_view([fresh.object(), service_import("work/app").object()]);
    let planned = writes(&view, &hub::Key::Service(named("work/app")));
    let kinds: Vec<Kind> = planned.iter().map(|write| write.kind()).collect();
    assert_eq!(kinds, [Kind::InternalServiceExport], "its stamp, and nothing about the import: {planned:#?}");
    // The last export is gone, so the plan deletes the ServiceImport.
    let import = service_import("work/app");
    let view = hub_view([import.clone().object()]);
    let planned = writes(&view, &hub::Key::Service(named("work/app")));
    assert_eq!(planned, [Write::delete(Kind::ServiceImport, &import.meta)]);
}

/// Rule H15: A conflicted InternalServiceExport disappears during conflict resolution
/// Then: The hub agent completes the conflict resolution, and writes the exporting members to the ServiceImport (bug
/// B7)
#[test]
fn b7_the_import_shows_its_exporters_whatever_becomes_of_an_export_in_conflict() {
    let other = service("work/app").ports(&[port("http", 81)]);
    let winner = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    let loser = internal_export("member-2", &other).port_set_since(seconds(3));
    let import = service_import("work/app");
    let mut view = hub_view([winner.object(), loser.clone().object(), import.clone().object()]);
    let key = hub::Key::Service(named("work/app"));
    let status = Patch::ServiceImportStatus(resolved(&["member-1"]));
    assert_eq!(writes(&view, &key), [Write::patch(&import.meta, status)]);
    // One plan writes the outcomes of conflict resolution to all exports.
    observe_change(&mut view, import.showing(resolved(&["member-1"])).object());
    let outcomes = writes(&view, &key).len();
    assert_eq!(outcomes, 2);
    observe_removal(&mut view, &loser.object());
    assert_eq!(writes(&view, &key).len(), 1);
}

/// Also rule H15.
#[test]
fn b7_an_export_that_vanishes_during_conflict_resolution_blocks_no_other() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    world.create(Who::Member(1), service("work/app").ports(&[port("http", 81)]).object());
    world.create(Who::Member(1), service_export("work/app").object());
    let loser = in_hub_of("member-2", "work-app");
    while !world.hub_agent.in_flight.iter().any(|(write, _)| {
        write.at == loser
            && matches!(write.action, Action::Patch { patch: Patch::InternalServiceExportConditions(_), .. })
    }) {
        assert!(world.step(), "its outcome is written at some time");
    }
    world.delete(Who::Hub, Kind::InternalServiceExport, &loser);
    world.edit(Who::Hub, Kind::InternalServiceExport, &loser, |export| export.meta_mut().finalizers.ours = false);
    assert_eq!(world.hub.get(Kind::InternalServiceExport, &loser), None);
    world.run();
    let failed: Vec<String> =
        world.ledger.iter().filter(|entry| entry.answer != Answer::Done).map(Entry::line).collect();
    assert_eq!(
        failed,
        ["hub patches conditions of InternalServiceExport (Conflict)"],
        "member-2 made it anew meanwhile"
    );
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    assert_settled(&world);
}

/// Also rule M9.
#[test]
fn b10_a_multi_cluster_service_that_lost_the_race_leaves_the_winners_import_alone() {
    let winner = request("work/app").taken_on().deriving("work-app");
    let import = service_import("work/app").controlled_by(&winner).showing(resolved(&["member-2"]));
    let loser = request("work/late").importing("app").taken_on();
    let others = [winner.object(), import.object(), derived_service("work-app", "work/app").object()];
    let key = Key::MultiClusterService(named("work/late"));

    // The MultiClusterService `late` is being deleted. `late` does not control the ServiceImport, so the plan does not
    // change the ServiceImport.
    let dying = loser.deleting();
    let view = member_view(others.iter().cloned().chain([dying.object()]));
    let kinds: Vec<(Kind, ObjectName)> =
        writes(&view, &key).into_iter().map(|write| (write.kind(), write.at)).collect();
    assert_eq!(kinds, [(Kind::MultiClusterService, named("work/late"))], "only its own finalizer");

    // The MultiClusterService `late` now requests another Service (`web`). The plan does not change the ServiceImport
    // of `app`.
    let turned = request("work/late").importing("web").taken_on();
    let view = member_view(others.into_iter().chain([turned.object()]));
    let touched: Vec<ObjectName> = writes(&view, &key).into_iter().map(|write| write.at).collect();
    assert_eq!(touched, [named("work/web"), named("work/late")]);
}

/// Also rule M9.
#[test]
fn b10_the_winner_stays_undisturbed_when_the_loser_goes() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    world.create(Who::Member(1), request("work/late").importing("app").object());
    world.run();
    let mark = world.ledger.len();
    world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/late"));
    world.run();
    assert_eq!(world.lines_since(mark), ["member-2 patches labels of MultiClusterService"]);
    assert_settled(&world);
}

/// Rule P4: Another MultiClusterService becomes the controlling owner of the ServiceImport
/// Then: The member agent binds the imported slice to the derived Service of the other MultiClusterService. The member
/// agent records no latency sample (bug B11)
///
/// Also rule M14.
#[test]
fn b11_an_imported_slice_is_bound_again_when_another_multi_cluster_service_takes_over() {
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1"))).marked();
    let name = distributed.meta.name.name.clone();
    let old = request("work/old").importing("app").taken_on().deriving("work-old").deleting();
    let new = request("work/new").importing("app").taken_on().deriving("work-new");
    let import = service_import("work/app").controlled_by(&new).showing(resolved(&["member-2"]));
    let imported = imported_slice(&name, "work-old");
    let mut view = member_view([
        old.object(),
        new.object(),
        import.object(),
        imported.clone().object(),
        Object::EndpointSliceImport(distributed),
    ]);
    let key = Key::SliceImport(in_system(&name));
    assert_eq!(writes(&view, &key), [], "nothing to bind it to yet");
    let requeue = observe_change(&mut view, derived_service("work-new", "work/new").object());
    assert!(requeue.contains(&key), "the derived Service wakes its slices: {requeue:?}");
    let planned = writes(&view, &key);
    let [Write { at, action: Action::Patch { patch: Patch::ImportedSlice(wanted), .. }, sample: None, .. }] =
        &planned[..]
    else {
        panic!("one patch without a sample, not {planned:#?}");
    };
    assert_eq!((at, wanted.service.as_deref()), (&imported.meta.name, Some("work-new")));
}

/// Also rule P2.
#[test]
fn b12_a_slice_that_comes_before_its_multi_cluster_service_is_imported_when_there_is_something_to_bind_it_to() {
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1")));
    let key = Key::SliceImport(in_system(&distributed.meta.name.name));
    let mut view = member_view([Object::EndpointSliceImport(distributed.clone())]);
    assert_eq!(writes(&view, &key), []);
    let request = request("work/app").taken_on().deriving("work-app");
    observe_change(&mut view, derived_service("work-app", "work/app").object());
    assert_eq!(writes(&view, &key), [], "a Service without its MultiClusterService is nobody's");
    let requeue = observe_change(&mut view, request.object());
    assert!(requeue.contains(&key), "the MultiClusterService requeues its slices: {requeue:?}");
    assert_eq!(writes(&view, &key), [Write::add_finalizer(Kind::EndpointSliceImport, &distributed.meta)]);
}

/// Rule S10: The outcome in the hub belongs to an earlier export of the Service: the Service was created again, became
/// eligible again, or had weight 0
/// Then: The member agent sets `Conflict=Unknown`, and exports no slice until the hub agent sets the outcome of the new
/// export. The agent sets `Conflict=Unknown` before it deletes the earlier export. So the earlier outcome does not stay
/// if the agent crashes between these two writes (bug B9)
#[test]
fn b9_the_outcome_of_an_earlier_export_does_not_apply_to_a_new_one() {
    // The agent has withdrawn an earlier export of the Service and has removed the finalizer from the ServiceExport.
    // The status of the ServiceExport still shows the outcome of conflict resolution for that earlier export.
    let export = service_export("work/app").with_conditions(&[valid("work/app"), no_conflict("work/app")]);
    let view = member_view([service("work/app").object(), export.object(), slice("work/app-1").object()]);
    assert_eq!(writes(&view, &Key::SliceExport(named("work/app-1"))), []);
}
