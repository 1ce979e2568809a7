//! Tests of the handover (make-before-break): exporter, hub and importer remove a slice only after the endpoints of its
//! replacement are imported, in every order of events.

use crate::oracle::assert_settled;
use crate::support::build::{
    Build, BuildHubSlice, BuildImport, BuildRequest, BuildSlice, IntoObject, SYSTEM, accepted_export, content,
    derived_service, distributed_slice, found, imported_slice, in_hub_of, in_system, named, port, request, resolved,
    service, service_import, slice, slice_export,
};
use crate::support::view::{claimed_hub_view, hub_view, member_view, observe_change, observe_removal, writes};
use crate::support::world::{Who, World, fleet};
use fleetnet_core::model::{ConsumerType, EndpointSlice, HubSlice, Kind, Object};
use fleetnet_core::plan::{Action, Write};
use fleetnet_core::{hub, member};

fn deletes(write: &Write) -> bool {
    matches!(write.action, Action::Delete { .. })
}

// === Plans of the exporting member agent ===

fn export_key(slice: &str) -> member::Key {
    member::Key::SliceExport(named(slice))
}

/// Rule E12: New source slices replace old source slices (handover)
/// Then: The member agent exports the new slices first. Only then does the member agent delete the EndpointSliceExport
/// of an old slice, or remove the endpoints from it
#[test]
fn an_export_stays_until_the_slices_that_take_its_place_are_exported() {
    let (old, new) = (slice("work/app-1"), slice("work/app-2").endpoints(&["10.0.0.2"]));
    let standing = slice_export("member-1", &old);
    let objects = [
        service("work/app").object(),
        accepted_export("work/app").object(),
        Object::EndpointSliceExport(standing.clone()),
    ];
    let mut view = member_view(objects.clone().into_iter().chain([new.clone().object()]));
    assert_eq!(writes(&view, &export_key("work/app-1")), []);
    assert!(matches!(writes(&view, &export_key("work/app-2"))[..], [Write { action: Action::Create(_), .. }]));

    let requeue = observe_change(&mut view, Object::EndpointSliceExport(slice_export("member-1", &new)));
    assert!(requeue.contains(&export_key("work/app-1")), "{requeue:?}");
    let withdrawal = [Write::delete(Kind::EndpointSliceExport, &standing.meta)];
    assert_eq!(writes(&view, &export_key("work/app-1")), withdrawal);

    let mut view = member_view(objects.into_iter().chain([new.clone().object()]));
    let requeue = observe_removal(&mut view, &new.object());
    assert!(requeue.contains(&export_key("work/app-1")), "{requeue:?}");
    assert_eq!(writes(&view, &export_key("work/app-1")), withdrawal, "nothing takes its place any more");
}

/// Rule E13: A Service is no longer exported
/// Then: The member agent withdraws the slices of the Service, and does not wait for replacement slices
#[test]
fn a_service_that_is_not_exported_any_more_waits_for_nothing() {
    let (old, new) = (slice("work/app-1"), slice("work/app-2"));
    let standing = slice_export("member-1", &old);
    let export = accepted_export("work/app");
    let objects = [
        service("work/app").object(),
        export.clone().object(),
        Object::EndpointSliceExport(standing.clone()),
        new.object(),
    ];
    let mut view = member_view(objects);
    assert_eq!(writes(&view, &export_key("work/app-1")), []);
    let requeue = observe_change(&mut view, export.deleting().object());
    assert!(requeue.contains(&export_key("work/app-1")), "{requeue:?}");
    assert_eq!(writes(&view, &export_key("work/app-1")), [Write::delete(Kind::EndpointSliceExport, &standing.meta)]);
}

/// Also rule E12.
#[test]
fn an_export_is_not_emptied_before_the_slices_that_take_its_place_are_exported() {
    let (old, new) = (slice("work/app-1"), slice("work/app-2"));
    let emptied = old.clone().endpoints(&[]).generation(2);
    let mut view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        Object::EndpointSliceExport(slice_export("member-1", &old)),
        emptied.object(),
        new.clone().object(),
    ]);
    assert_eq!(writes(&view, &export_key("work/app-1")), []);
    let requeue = observe_change(&mut view, Object::EndpointSliceExport(slice_export("member-1", &new)));
    assert!(requeue.contains(&export_key("work/app-1")), "{requeue:?}");
    assert!(matches!(writes(&view, &export_key("work/app-1"))[..], [Write { action: Action::Patch { .. }, .. }]));
}

/// Also rule E12.
#[test]
fn a_slice_that_moves_to_another_service_does_not_wait_for_the_first_one() {
    let mut moved = slice("work/app-1").endpoints(&[]).generation(2);
    moved.service = Some("web".into());
    let view = member_view([
        service("work/app").object(),
        service("work/web").object(),
        accepted_export("work/app").object(),
        accepted_export("work/web").object(),
        Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-1"))),
        moved.object(),
        slice("work/app-2").object(),
    ]);
    assert!(matches!(writes(&view, &export_key("work/app-1"))[..], [Write { action: Action::Patch { .. }, .. }]));
}

// === Plans of the hub agent ===

fn hub_key(export: &HubSlice) -> hub::Key {
    hub::Key::Slice(export.meta.name.name.clone())
}

/// Returns member-1's exports of these slices of `work/app`, with our finalizer.
fn exports<const N: usize>(slices: [&str; N]) -> [HubSlice; N] {
    slices.map(|name| slice_export("member-1", &slice(name)).marked())
}

/// Rule D10: New slices of a Service replace old slices (handover)
/// Then: The hub agent deletes an old distributed slice (EndpointSliceImport), or removes the endpoints from it, only
/// after its importing member has imported the new slices. The hub agent decides this for each importing member
/// separately
#[test]
fn a_distributed_slice_stays_until_its_importer_has_those_that_take_its_place() {
    let [old, new] = exports(["work/app-1", "work/app-2"]);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2", "member-3"]);
    let distributed_slices = ["member-2", "member-3"].map(|importer| distributed_slice(importer, &old));
    let mut view = hub_view([
        Object::EndpointSliceExport(old.clone().deleting()),
        Object::EndpointSliceExport(new.clone()),
        import.object(),
        Object::EndpointSliceImport(distributed_slices[0].clone()),
        Object::EndpointSliceImport(distributed_slices[1].clone()),
    ]);
    assert_eq!(writes(&view, &hub_key(&old)), []);

    let requeue = observe_change(&mut view, Object::EndpointSliceImport(distributed_slice("member-3", &new)));
    assert!(requeue.contains(&hub_key(&old)), "{requeue:?}");
    let withdrawal = |distributed| Write::delete(Kind::EndpointSliceImport, distributed);
    assert_eq!(writes(&view, &hub_key(&old)), [withdrawal(&distributed_slices[1].meta)], "each importer for itself");
    observe_change(&mut view, Object::EndpointSliceImport(distributed_slice("member-2", &new)));
    assert_eq!(
        writes(&view, &hub_key(&old)),
        distributed_slices.each_ref().map(|distributed| withdrawal(&distributed.meta))
    );
}

/// Also rule D10.
#[test]
fn a_distributed_slice_waits_for_no_export_that_goes_nor_for_another_member_s_nor_without_a_claim() {
    let [old, new] = exports(["work/app-1", "work/app-2"]);
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let claimed = import.clone().claimed_by(&["member-2"]);
    let of_another = slice_export("member-3", &slice("work/app-2")).marked();
    let table = [
        ("goes too", new.clone().deleting(), claimed.clone()),
        ("another member's", of_another, claimed.clone()),
        ("no claim", new.clone(), import),
        ("nothing to say", HubSlice { spec: new.clone().with_addresses(&[], 1).spec, ..new }, claimed),
    ];
    let distributed = distributed_slice("member-2", &old);
    for (why, other, import) in table {
        let view = hub_view([
            Object::EndpointSliceExport(old.clone().deleting()),
            Object::EndpointSliceExport(other),
            import.object(),
            Object::EndpointSliceImport(distributed.clone()),
        ]);
        assert_eq!(
            writes(&view, &hub_key(&old)),
            [Write::delete(Kind::EndpointSliceImport, &distributed.meta)],
            "{why}"
        );
    }
}

#[test]
fn an_export_is_unmarked_only_after_its_distributed_slices() {
    let [old, new] = exports(["work/app-1", "work/app-2"]);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let dying = old.clone().deleting();
    let going = distributed_slice("member-2", &old).deleting();
    let view = hub_view([
        Object::EndpointSliceExport(dying.clone()),
        Object::EndpointSliceExport(new),
        import.object(),
        Object::EndpointSliceImport(going),
    ]);
    assert_eq!(writes(&view, &hub_key(&old)), [Write::remove_finalizer(Kind::EndpointSliceExport, &dying.meta)]);
}

/// Also rule D10.
#[test]
fn a_distributed_slice_is_not_emptied_before_its_importer_has_those_that_take_its_place() {
    let [old, new] = exports(["work/app-1", "work/app-2"]);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let emptied = HubSlice { spec: old.clone().with_addresses(&[], 2).spec, ..old.clone() };
    let distributed = distributed_slice("member-2", &old);
    let mut view = claimed_hub_view([
        Object::EndpointSliceExport(emptied),
        Object::EndpointSliceExport(new.clone()),
        import.object(),
        Object::EndpointSliceImport(distributed),
    ]);
    assert_eq!(writes(&view, &hub_key(&old)), []);
    let requeue = observe_change(&mut view, Object::EndpointSliceImport(distributed_slice("member-2", &new)));
    assert!(requeue.contains(&hub_key(&old)), "{requeue:?}");
    assert!(matches!(writes(&view, &hub_key(&old))[..], [Write { action: Action::Patch { .. }, .. }]));
}

/// Also rule D10.
#[test]
fn a_distributed_slice_goes_when_what_takes_its_place_leaves_the_service() {
    let [old, new] = exports(["work/app-1", "work/app-2"]);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let distributed = distributed_slice("member-2", &old);
    let mut view = hub_view([
        Object::EndpointSliceExport(old.clone().deleting()),
        Object::EndpointSliceExport(new.clone()),
        import.object(),
        Object::EndpointSliceImport(distributed.clone()),
    ]);
    assert_eq!(writes(&view, &hub_key(&old)), []);
    let mut moved = new.version(2);
    moved.spec.owner = named("work/another");
    let requeue = observe_change(&mut view, Object::EndpointSliceExport(moved));
    assert!(requeue.contains(&hub_key(&old)), "{requeue:?}");
    assert_eq!(writes(&view, &hub_key(&old)), [Write::delete(Kind::EndpointSliceImport, &distributed.meta)]);
}

/// Also rule D10.
#[test]
fn a_distributed_slice_goes_when_another_member_takes_the_name_of_what_takes_its_place() {
    // The replacement slice that member-1 exports has the same name in the hub as a slice that member-3 exports. Under
    // this name the hub agent distributes only the slice of member-3. So the old slice of member-1 must not wait for
    // the replacement.
    let [old, new] = exports(["work/app-1", "work/app-2"]);
    let rightful = slice_export("member-3", &slice("work/web-1")).marked();
    let new = new.called(&rightful.meta.name.name);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let distributed = distributed_slice("member-2", &old);
    let mut view = hub_view([
        Object::EndpointSliceExport(old.clone().deleting()),
        Object::EndpointSliceExport(new),
        import.object(),
        Object::EndpointSliceImport(distributed.clone()),
    ]);
    assert_eq!(writes(&view, &hub_key(&old)), []);
    let requeue = observe_change(&mut view, Object::EndpointSliceExport(rightful));
    assert!(requeue.contains(&hub_key(&old)), "{requeue:?}");
    assert_eq!(writes(&view, &hub_key(&old)), [Write::delete(Kind::EndpointSliceImport, &distributed.meta)]);
}

// === Plans of the importing member agent ===

fn import_key(distributed: &HubSlice) -> member::Key {
    member::Key::SliceImport(in_system(&distributed.meta.name.name))
}

/// Returns a MultiClusterService of member-1 with its ServiceImport and its derived Service.
fn bound() -> Vec<Object> {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    vec![request.object(), import.object(), derived_service("work-app", "work/app").object()]
}

fn distributed(source: &str) -> HubSlice {
    distributed_slice("member-1", &slice_export("member-2", &slice(source))).marked()
}

/// Rule P10: New slices of a Service replace old slices (handover)
/// Then: The member agent first waits until the new imported slices of the same Service and exporting member exist.
/// Then the member agent deletes the old imported slice, or removes its endpoints
#[test]
fn an_imported_slice_stays_until_those_that_take_its_place_are_imported() {
    let (old, new) = (distributed("work/app-1"), distributed("work/app-2"));
    let imported = imported_slice(&old.meta.name.name, "work-app");
    let objects = [
        Object::EndpointSliceImport(old.clone().deleting()),
        Object::EndpointSliceImport(new.clone()),
        imported.clone().object(),
    ];
    let mut view = member_view(bound().into_iter().chain(objects.clone()));
    assert_eq!(writes(&view, &import_key(&old)), []);
    observe_change(&mut view, imported_slice(&new.meta.name.name, "another").object());
    assert_eq!(writes(&view, &import_key(&old)), [], "the other is bound to another Service");
    let requeue = observe_change(&mut view, imported_slice(&new.meta.name.name, "work-app").object());
    assert!(requeue.contains(&import_key(&old)), "{requeue:?}");
    let withdrawal = [Write::delete(Kind::EndpointSlice, &imported.meta)];
    assert_eq!(writes(&view, &import_key(&old)), withdrawal);

    let mut view = member_view(bound().into_iter().chain(objects.clone()));
    let requeue = observe_change(&mut view, Object::EndpointSliceImport(new.deleting()));
    assert!(requeue.contains(&import_key(&old)), "{requeue:?}");
    assert_eq!(writes(&view, &import_key(&old)), withdrawal, "nothing takes its place any more");

    let view = member_view(objects);
    assert_eq!(writes(&view, &import_key(&old)), withdrawal, "there is nothing to bind the other to");
}

/// Also rule P10.
#[test]
fn an_imported_slice_goes_when_what_takes_its_place_leaves_the_service() {
    let (old, new) = (distributed("work/app-1"), distributed("work/app-2"));
    let imported = imported_slice(&old.meta.name.name, "work-app");
    let objects = [
        Object::EndpointSliceImport(old.clone().deleting()),
        Object::EndpointSliceImport(new.clone()),
        imported.clone().object(),
    ];
    let mut view = member_view(bound().into_iter().chain(objects));
    assert_eq!(writes(&view, &import_key(&old)), []);
    let mut moved = new.version(2);
    moved.spec.owner = named("work/another");
    let requeue = observe_change(&mut view, Object::EndpointSliceImport(moved));
    assert!(requeue.contains(&import_key(&old)), "{requeue:?}");
    assert_eq!(writes(&view, &import_key(&old)), [Write::delete(Kind::EndpointSlice, &imported.meta)]);
}

/// Also rule P10.
#[test]
fn an_imported_slice_is_not_emptied_before_those_that_take_its_place_are_imported() {
    let (old, new) = (distributed("work/app-1"), distributed("work/app-2"));
    let imported = imported_slice(&old.meta.name.name, "work-app");
    let emptied = HubSlice { spec: old.clone().with_addresses(&[], 2).spec, ..old.clone() };
    let with = |present: EndpointSlice| {
        let distributed = [&emptied, &new].map(|slice| Object::EndpointSliceImport(slice.clone()));
        member_view(bound().into_iter().chain(distributed).chain([present.object()]))
    };
    let elsewhere = with(imported_slice(&old.meta.name.name, "another"));
    assert_eq!(writes(&elsewhere, &import_key(&old)).len(), 1, "no client of the Service uses its endpoints");
    let mut view = with(imported);
    assert_eq!(writes(&view, &import_key(&old)), []);
    let requeue = observe_change(&mut view, imported_slice(&new.meta.name.name, "work-app").object());
    assert!(requeue.contains(&import_key(&old)), "{requeue:?}");
    assert!(matches!(writes(&view, &import_key(&old))[..], [Write { action: Action::Patch { .. }, .. }]));
}

/// Also rule P10.
#[test]
fn an_imported_slice_waits_for_its_own_cluster_only() {
    let old = distributed("work/app-1");
    let other = distributed_slice("member-1", &slice_export("member-3", &slice("work/app-2"))).marked();
    let imported = imported_slice(&old.meta.name.name, "work-app");
    let objects = [
        Object::EndpointSliceImport(old.clone().deleting()),
        Object::EndpointSliceImport(other),
        imported.clone().object(),
    ];
    let view = member_view(bound().into_iter().chain(objects));
    let planned = writes(&view, &import_key(&old));
    assert_eq!(planned, [Write::delete(Kind::EndpointSlice, &imported.meta)]);
    assert!(planned.iter().all(deletes));
}

#[test]
fn an_imported_slice_waits_for_none_whose_name_somebody_else_has() {
    let (old, new) = (distributed("work/app-1"), distributed("work/app-2"));
    let imported = imported_slice(&old.meta.name.name, "work-app");
    let mut theirs = imported_slice(&new.meta.name.name, "another");
    (theirs.imported, theirs.observed_generation) = (false, None);
    let objects = [
        Object::EndpointSliceImport(old.clone().deleting()),
        Object::EndpointSliceImport(new),
        imported.clone().object(),
        theirs.object(),
    ];
    let view = member_view(bound().into_iter().chain(objects));
    assert_eq!(writes(&view, &import_key(&old)), [Write::delete(Kind::EndpointSlice, &imported.meta)]);
}

// === A whole fleet, with its agents in every order ===

/// Returns the addresses to which kube-proxy in an importer routes.
fn routed(world: &World, importer: usize) -> Vec<String> {
    let of_service = |object: &Object| match object {
        Object::EndpointSlice(slice) if &*slice.meta.name.namespace == SYSTEM && slice.service.is_some() => {
            let addresses = slice.content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
            Some(addresses.map(ToString::to_string).collect::<Vec<String>>())
        }
        _ => None,
    };
    world.cluster(Who::Member(importer)).all().filter_map(of_service).flatten().collect()
}

fn edit_slice(world: &mut World, name: &str, endpoints: &[&str]) {
    world.edit(Who::Member(0), Kind::EndpointSlice, &named(name), |object| {
        let Object::EndpointSlice(slice) = object else { return };
        slice.content = content(endpoints);
    });
}

fn recreate(world: &mut World) {
    world.edit(Who::Member(0), Kind::Service, &named("work/app"), |object| {
        let Object::Service(service) = object else { return };
        service.ports = vec![port("http", 81)];
    });
    world.create(Who::Member(0), slice("work/app-2").endpoints(&["10.0.0.1", "10.0.0.2"]).object());
    world.create(Who::Member(0), slice("work/app-3").endpoints(&["10.0.0.3"]).object());
    world.delete(Who::Member(0), Kind::EndpointSlice, &named("work/app-1"));
}

fn recreate_beside_an_empty_one(world: &mut World) {
    world.create(Who::Member(0), slice("work/app-2").endpoints(&["10.0.0.2", "10.0.0.3"]).object());
    edit_slice(world, "work/app-1", &[]);
}

/// Rule A7: Slices are created again in any order in the exporting member, the hub or the importing member
/// Then: Importing members are never without endpoints
#[test]
fn importers_are_never_without_endpoints_while_slices_are_recreated() {
    type Change = fn(&mut World);
    let changes: [(Change, usize); 2] = [(recreate, 3), (recreate_beside_an_empty_one, 2)];
    for (change, left) in changes {
        for seed in 0..150 {
            let mut world = fleet(2, ConsumerType::ClusterIp).in_any_order(seed);
            change(&mut world);
            let mut steps = 0;
            while world.step() {
                steps += 1;
                for importer in [1, 2] {
                    let last = world.last;
                    assert_ne!(routed(&world, importer), [""; 0], "seed {seed}, step {steps}, {last:?}");
                }
            }
            assert_eq!(routed(&world, 1).len(), left, "seed {seed}");
            assert_eq!(world.hub.all().filter(|object| in_exporter(object)).count(), 2, "seed {seed}");
            assert_settled(&world);
        }
    }
}

fn in_exporter(object: &Object) -> bool {
    object.kind() == Kind::EndpointSliceExport
        && object.meta().name.namespace == in_hub_of("member-1", "").namespace
        && !object.meta().deleting
}
