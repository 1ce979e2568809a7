//! Tests of objects that somebody creates or edits with kubectl. Agents repair or remove what they own, and change
//! nothing else.

use crate::fleet::{bound, derived, edit_service, names};
use crate::oracle::{assert_settled, state};
use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildRequest, BuildSlice, IntoObject, accepted_export, claim, named,
    not_found, request, resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::view::{member_view, writes};
use crate::support::world::{Who, World, fleet};
use fleetnet_core::member::Key;
use fleetnet_core::model::{ConsumerType, ImportStatus, InternalServiceImport, Kind, Object, Owner, ServiceImport};
use fleetnet_core::plan::{Controller, Patch, Write};
use fleetnet_core::reasons::Reason;

const EXPORTED: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

/// Returns the object of a kind in a cluster. Panics unless there is exactly one.
fn the_only(world: &World, who: Who, kind: Kind) -> Object {
    let mut all = world.cluster(who).list(kind).cloned();
    let only = all.next().expect("there is one");
    assert_eq!(all.next(), None);
    only
}

/// Returns a copy of an object under another name, as after `kubectl get -o yaml`, an edit and `kubectl create`.
fn copied_as(object: &Object, name: &str) -> Object {
    let mut copied = object.clone();
    copied.meta_mut().name.name = name.into();
    copied.meta_mut().uid = format!("uid-{name}").into();
    copied
}

/// Also rule I4.
#[test]
fn a_second_claim_that_somebody_made_goes_and_the_first_stays() {
    let request = request("work/app").taken_on();
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let first = claim("member-1", &import).marked().with_status(resolved(&["member-2"]));
    let mut second = first.clone().uid("second");
    second.meta.name.name = "work-app-copy".into();
    // The second claim has either the same status as the first claim, or none. In both cases the agent only deletes the
    // second claim. If the agent copied the status of both claims to the ServiceImport, each status would overwrite the
    // other.
    for status in [resolved(&["member-2"]), ImportStatus::default()] {
        let second = InternalServiceImport { status, ..second.clone() };
        let view = member_view([
            request.clone().object(),
            import.clone().object(),
            first.clone().object(),
            second.clone().object(),
        ]);
        let write = Write::delete(Kind::InternalServiceImport, &second.meta);
        assert_eq!(writes(&view, &Key::Import(named("work/app"))), [write]);
    }
}

/// Rule M22: A user creates a second Service with the labels of a derived Service
/// Then: The member agent deletes the second Service. The first Service keeps its address and slices
#[test]
fn a_second_service_that_is_labelled_as_derived_goes_and_the_one_with_the_address_stays() {
    for name in ["a-copy", "work-app-copy"] {
        for seed in 0..10 {
            let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
            let expected = state(&world);
            let uid = derived(&world, 1, "work-app").expect("one is derived").meta.uid.clone();
            let second = copied_as(&the_only(&world, Who::Member(1), Kind::Service), name);
            assert!(world.create(Who::Member(1), second));
            world.run();
            assert_eq!(names(&world, Who::Member(1), Kind::Service), ["work-app"], "{name}, seed {seed}");
            assert_eq!(derived(&world, 1, "work-app").map(|it| it.meta.uid.clone()), Some(uid), "{name}, seed {seed}");
            assert_eq!(bound(&world, 1, "work-app"), EXPORTED, "{name}, seed {seed}");
            assert_eq!(state(&world), expected, "{name}, seed {seed}");
        }
    }
}

/// A Go hub agent reads the exporter's cluster id from the reference in the InternalServiceExport. So the member agent
/// repairs the cluster id there, although our hub agent reads it from the namespace.
///
/// Also rule A6.
#[test]
fn the_cluster_that_an_export_names_is_mended() {
    for seed in 0..10 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        let expected = state(&world);
        let internal = the_only(&world, Who::Hub, Kind::InternalServiceExport).meta().name.clone();
        world.edit(Who::Hub, Kind::InternalServiceExport, &internal, |object| {
            let Object::InternalServiceExport(internal) = object else { return };
            internal.reference.cluster = "another".into();
        });
        assert_ne!(state(&world), expected);
        world.run();
        assert_eq!(state(&world), expected, "seed {seed}");
    }
}

/// Also rule E8.
#[test]
fn of_two_exports_of_a_slice_the_more_complete_one_is_kept_whatever_their_age() {
    let source = slice("work/app-1").generation(3);
    let kept = slice_export("member-1", &source).created(seconds(2));
    let restored = slice_export("member-1", &slice("work/app-1").generation(2).endpoints(&["10.0.0.8"]));
    let restored = restored.called("restored").uid("restored").created(seconds(9));
    let view = member_view([
        service("work/app").object(),
        accepted_export("work/app").object(),
        source.object(),
        Object::EndpointSliceExport(kept),
        Object::EndpointSliceExport(restored.clone()),
    ]);
    let write = Write::delete(Kind::EndpointSliceExport, &restored.meta);
    assert_eq!(writes(&view, &Key::SliceExport(named("work/app-1"))), [write]);
}

/// Also rule M2.
#[test]
fn an_import_that_others_own_is_adopted_beside_them() {
    let request = request("work/app").taken_on().with_conditions(&[not_found()]);
    let tool = Owner {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "release".into(),
        uid: "uid-release".into(),
        controller: false,
        block_owner_deletion: false,
    };
    let import = ServiceImport { owners: vec![tool.clone()], ..service_import("work/app") };
    let view = member_view([request.object(), import.clone().object()]);
    let patch = Patch::ServiceImportOwners {
        others: vec![tool],
        controller: Controller { name: "app".into(), uid: "uid-request-work/app".into() },
        finalizers: import.meta.finalizers.with_ours(),
    };
    let write = Write::patch(&import.meta, patch);
    assert_eq!(writes(&view, &Key::MultiClusterService(named("work/app"))), [write]);
}

/// Rule M23: A MultiClusterService is deleted after its derived Service lost the agent's labels while no agent ran
/// Then: The member agent does not delete the derived Service, because without the labels the Service looks like a
/// Service of a user. The agent emits an Event `DerivedServiceLost` with the name of the Service
#[test]
fn a_derived_service_whose_labels_were_removed_while_no_agent_ran_is_reported_when_its_multi_cluster_service_goes() {
    for seed in 0..10 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        let at = derived(&world, 1, "work-app").expect("one is derived").meta.name.clone();
        edit_service(&mut world, 1, &at, |service| service.derived_from = None);
        world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
        world.restart_all();
        let mark = world.ledger.len();
        world.run();
        assert!(derived(&world, 1, "work-app").is_some(), "seed {seed}: nothing tells it from somebody else's");
        let reported = world.ledger[mark..].iter().flat_map(|entry| &entry.write.events);
        let reported =
            reported.filter(|event| event.reason == Reason::DerivedServiceLost).map(|event| event.message.as_str());
        let text = "Service fleet-system/work-app does not have the labels of MultiClusterService work/app, so the \
                    agent leaves it unchanged. Delete it if nobody needs it";
        assert_eq!(reported.collect::<Vec<_>>(), [text], "seed {seed}");
    }
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    world.delete(Who::Member(1), Kind::MultiClusterService, &named("work/app"));
    world.run();
    let reported = world.ledger.iter().flat_map(|entry| &entry.write.events);
    assert_eq!(
        reported.filter(|event| event.reason == Reason::DerivedServiceLost).count(),
        0,
        "one that goes is not lost"
    );
}

/// Rule C11: A member has two claims (InternalServiceImports) of a Service, and one of the two is deleted
/// Then: The hub agent removes the finalizer of the deleted claim. The other claim stays granted
#[test]
fn a_second_claim_that_the_hub_marked_already_goes_too() {
    for consumer in [ConsumerType::LoadBalancer, ConsumerType::ClusterIp] {
        for seed in 0..10 {
            let mut world = fleet(1, consumer).in_any_order(seed);
            let expected = state(&world);
            let second = copied_as(&the_only(&world, Who::Hub, Kind::InternalServiceImport), "work-app-copy");
            assert!(world.create(Who::Hub, second));
            world.run();
            assert_eq!(names(&world, Who::Hub, Kind::InternalServiceImport), ["work-app"], "{consumer:?}, seed {seed}");
            assert_eq!(state(&world), expected, "{consumer:?}, seed {seed}");
            assert_settled(&world);
        }
    }
}
