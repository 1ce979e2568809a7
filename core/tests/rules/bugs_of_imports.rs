//! Tests that fleetnet does not have the known bugs of the Go agents in names and imports.
//! docs/contributors/behaviour.md lists the bugs by number.

use crate::fleet::{bound, count, derived, edit_request, export, imported, names, request_reason};
use crate::oracle::{assert_empty, assert_settled};
use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildRequest, IntoObject, claim, derived_service, found, in_hub_of,
    internal_export, named, request, resolved, service, service_export, service_import,
};
use crate::support::view::{hub_view, member_view, observe_change, planned, writes};
use crate::support::world::{Who, World};
use fleetnet_core::model::{InternalLoadBalancer, Kind, Service};
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::{ObjectName, Text};

/// Two Services whose names collide: namespace and name joined by a hyphen give the same text, `a-b-c`.
const ALIKE: [&str; 2] = ["a-b/c", "a/b-c"];

/// Returns a fleet in which member-1 exports both Services of `ALIKE` and member-2 imports both.
fn alike(seed: u64) -> World {
    let mut world = World::new(2).in_any_order(seed);
    for (path, endpoint) in ALIKE.iter().zip(["10.0.0.1", "10.0.0.2"]) {
        export(&mut world, 0, path, 80, &[endpoint]);
        world.create(Who::Member(1), request(path).object());
    }
    world.run();
    world
}

/// Returns the endpoints that member-2 imports for each Service of `ALIKE`.
fn routed(world: &World) -> [Vec<String>; 2] {
    ALIKE.map(|path| {
        let services = world.cluster(Who::Member(1)).list(Kind::Service);
        let of_path = services.filter_map(|object| match object {
            fleetnet_core::model::Object::Service(service) => Some(service),
            _ => None,
        });
        let derived: Vec<&Service> = of_path.filter(|service| service.derived_from == Some(named(path))).collect();
        let [service] = derived[..] else { return Vec::new() };
        bound(world, 1, &service.meta.name.name)
    })
}

/// Rule N1: Two objects `a-b`/`c` and `a`/`b-c` (namespace/name) have the same joined name `a-b-c`, for an export, a
/// claim (InternalServiceImport) or a derived Service
/// Then: The object that already has the name keeps the name. For the other object, the agent appends 5 hex digits of
/// the object's UID to the name. Both objects are exported or imported, in any order of their creation. If one of
/// the two objects is deleted, the other object does not change (bug B3)
#[test]
fn b3_services_whose_names_join_alike_are_exported_and_imported_side_by_side() {
    for seed in 0..20 {
        let mut world = alike(seed);
        for (who, kind) in [
            (Who::Hub, Kind::InternalServiceExport),
            (Who::Hub, Kind::InternalServiceImport),
            (Who::Hub, Kind::ServiceImport),
            (Who::Member(1), Kind::ServiceImport),
            (Who::Member(1), Kind::Service),
        ] {
            assert_eq!(count(&world, who, kind), 2, "seed {seed}: {kind:?}");
        }
        assert_eq!(routed(&world), [["10.0.0.1"], ["10.0.0.2"]], "seed {seed}");
        assert_settled(&world);
        let mark = world.ledger.len();
        world.restart_all();
        world.run();
        assert_eq!(world.lines_since(mark), [""; 0], "seed {seed}: nobody fights for a name");
        // If export and import of one of the two Services are removed, the import of the other stays. `gone` is the
        // index of the removed one. One of the two has a derived Service without a suffix in its name, so both are
        // tried.
        for gone in 0..2 {
            let mut world = world.clone();
            world.delete(Who::Member(0), Kind::ServiceExport, &named(ALIKE[gone]));
            world.delete(Who::Member(1), Kind::MultiClusterService, &named(ALIKE[gone]));
            world.run();
            let stays = ["10.0.0.2", "10.0.0.1"][gone];
            assert_eq!(imported(&world, 1), [stays], "seed {seed}");
            assert_settled(&world);
            world.create(Who::Member(0), service_export(ALIKE[gone]).object());
            world.create(Who::Member(1), request(ALIKE[gone]).object());
            world.run();
            assert_eq!(routed(&world), [["10.0.0.1"], ["10.0.0.2"]], "seed {seed}: and back");
        }
    }
}

/// Asserts that a name is valid for a Service and ends in the first five hex digits of the UID.
fn assert_is_label_ending_in_uid(name: &str, uid: &str) {
    let digits: String = uid.chars().filter(char::is_ascii_hexdigit).take(5).collect::<String>().to_ascii_lowercase();
    assert!(name.ends_with(&format!("-{digits}")), "{name} ends in {digits} of {uid}");
    assert!(name.len() <= 63 && name.starts_with(|first: char| first.is_ascii_lowercase()), "{name}");
    assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
}

/// Rule N2: A joined name is longer than 63 characters, or is no DNS label
/// Then: The agent shortens the joined name and appends 5 hex digits of the object's UID (bug B3)
#[test]
fn b3_names_that_are_too_long_or_no_label_are_cut_and_end_in_digits_of_the_uid() {
    let (long, digit) = ("w".repeat(63), "1work");
    for (namespace, name) in [(&*long, "n".repeat(63)), (digit, "app".to_owned())] {
        let path = format!("{namespace}/{name}");
        let mut world = World::new(2);
        export(&mut world, 0, &path, 80, &["10.0.0.1"]);
        world.create(Who::Member(1), request(&path).object());
        world.run();
        assert_eq!(request_reason(&world, 1, &path), "FoundServiceImport", "{path}");
        let [derived] = &names(&world, Who::Member(1), Kind::Service)[..] else { panic!("one derived Service") };
        let [request] = &world.members[1].cluster.list(Kind::MultiClusterService).collect::<Vec<_>>()[..] else {
            panic!("one MultiClusterService")
        };
        assert_is_label_ending_in_uid(derived, &request.meta().uid);
        assert_eq!(bound(&world, 1, derived), ["10.0.0.1"], "{path}");
        for kind in [Kind::InternalServiceExport, Kind::InternalServiceImport] {
            let [name] = &names(&world, Who::Hub, kind)[..] else { panic!("one {kind:?}") };
            assert!(name.len() <= 63, "{name}");
        }
        assert_settled(&world);
        world.delete(Who::Member(1), Kind::MultiClusterService, &named(&path));
        for kind in [Kind::ServiceExport, Kind::EndpointSlice, Kind::Service] {
            let all: Vec<ObjectName> =
                world.cluster(Who::Member(0)).list(kind).map(|it| it.meta().name.clone()).collect();
            all.iter().for_each(|name| world.delete(Who::Member(0), kind, name));
        }
        world.run();
        assert_empty(&world);
    }
}

/// Rule N4: The name of a Service begins with a digit, which Kubernetes allows from 1.36 (KEP-5311)
/// Then: Both APIs export and import the Service. New derived Services begin with a letter (rule N2), so that an
/// importer before 1.36 accepts them. A derived Service that Go agents gave a name with a digit keeps this name
#[test]
fn a_derived_service_of_go_agents_whose_name_begins_with_a_digit_keeps_it_and_gets_slices() {
    let mut world = World::new(2);
    let path = "2048-game/3scale";
    export(&mut world, 0, path, 80, &["10.0.0.1"]);
    world.create(Who::Member(1), derived_service("2048-game-3scale", path).object());
    world.create(Who::Member(1), request(path).taken_on().deriving("2048-game-3scale").object());
    world.run();
    assert_eq!(names(&world, Who::Member(1), Kind::Service), ["2048-game-3scale"]);
    assert_eq!(bound(&world, 1, "2048-game-3scale"), ["10.0.0.1"]);
    assert_settled(&world);
}

/// Also rule N1.
#[test]
fn b3_a_claim_whose_name_another_import_holds_gets_one_of_its_own() {
    let request = request("a/b-c").taken_on();
    let import = service_import("a/b-c").controlled_by(&request).uid("0a1b2c3d-aaaa");
    let mut other = claim("member-1", &service_import("a-b/c").uid("another"));
    other.meta.name = in_hub_of("member-1", "a-b-c");
    let mut view = member_view([request.object(), import.clone().object(), other.object()]);
    let planned = writes(&view, &member::Key::Import(named("a/b-c")));
    let [Write { at, action: Action::Create(Desired::InternalServiceImport { .. }), .. }] = &planned[..] else {
        panic!("one claim, not {planned:#?}");
    };
    assert_eq!(*at, in_hub_of("member-1", "a-b-c-0a1b2"));
    let of_request = format!("{:?}", writes(&view, &member::Key::MultiClusterService(named("a/b-c"))));
    assert!(!of_request.contains("NameHeldByAnother"), "a name is free: {of_request}");
    let mut own = claim("member-1", &import);
    own.meta.name = in_hub_of("member-1", "a-b-c-0a1b2");
    observe_change(&mut view, own.object());
    let of_request = format!("{:?}", self::planned(&view, &member::Key::MultiClusterService(named("a/b-c"))));
    assert!(!of_request.contains("NameHeldByAnother"), "it has a claim: {of_request}");
}

/// Rule C7: A claim (InternalServiceImport) is deleted while the Service has no exporting member
/// Then: The hub agent removes the finalizer of the claim at once (bug B15)
#[test]
fn b15_a_claim_that_goes_does_not_wait_for_exporters() {
    let key = hub::Key::Service(named("work/app"));
    let dying = claim("member-2", &service_import("work/app")).marked().deleting();
    let unmark = Write::remove_finalizer(Kind::InternalServiceImport, &dying.meta);
    let waits = internal_export("member-1", &service("work/app")).marked();
    let of_claim = |import: Option<fleetnet_core::model::ServiceImport>| -> Vec<Write> {
        let objects = [dying.clone().object(), waits.clone().object()];
        let view = hub_view(objects.into_iter().chain(import.map(IntoObject::object)));
        let planned = writes(&view, &key);
        planned.into_iter().filter(|write| write.kind() != Kind::InternalServiceExport).collect()
    };
    let unresolved = service_import("work/app");
    assert_eq!(of_claim(Some(unresolved.clone())), std::slice::from_ref(&unmark), "no exporter is accepted");
    let granted = unresolved.claimed_by(&["member-2"]);
    let struck = Patch::Claims {
        importers: Default::default(),
        load_balancer: None,
        finalizers: granted.meta.finalizers.without_ours(),
    };
    let struck = Write::patch(&granted.meta, struck);
    assert_eq!(of_claim(Some(granted)), [struck], "it is struck out first");
    let answered = dying.clone().with_status(resolved(&["member-1"]));
    let view = hub_view([answered.object()]);
    assert_eq!(writes(&view, &key), [unmark], "the import is gone");
}

/// Rule M5: The user requests an internal load balancer for a MultiClusterService, or removes this request
/// Then: The member agent adds the annotation `service.beta.kubernetes.io/azure-load-balancer-internal` to the derived
/// Service, or removes this annotation (bug B17)
#[test]
fn b17_a_multi_cluster_service_for_an_internal_load_balancer_may_be_taken_back() {
    let mut world = World::new(2);
    export(&mut world, 0, "work/app", 80, &["10.0.0.1"]);
    world.create(Who::Member(1), request("work/app").object());
    world.run();
    let internal = |world: &World| derived(world, 1, "work-app").map(|service| service.internal_load_balancer);
    assert_eq!(internal(&world), Some(false));
    for (wanted, request) in [
        (true, InternalLoadBalancer::Requested),
        (false, InternalLoadBalancer::NotRequested),
        (true, InternalLoadBalancer::Requested),
    ] {
        edit_request(&mut world, 1, "work/app", |it| it.internal_load_balancer = request);
        let mark = world.ledger.len();
        world.run();
        assert_eq!(internal(&world), Some(wanted));
        assert_eq!(world.lines_since(mark), ["member-2 patches content of Service"]);
    }
    assert_settled(&world);
}

/// Rule M6: A MultiClusterService has no target
/// Then: The member agent imports nothing, removes the objects of the earlier target, and sets `Valid=Unknown`. A
/// MultiClusterService without a target causes no repeated errors (bug B17)
#[test]
fn b17_a_multi_cluster_service_without_a_target_imports_nothing_and_gives_back_what_it_had() {
    let empty = request("work/app").importing("");
    let key = member::Key::MultiClusterService(named("work/app"));
    let view = member_view([empty.object()]);
    let [Write { action: Action::Patch { patch, .. }, .. }] = &writes(&view, &key)[..] else { panic!("its status") };
    assert!(matches!(patch, Patch::MultiClusterServiceStatus { .. }), "{patch:?}");
    assert!(planned(&view, &key).again.is_none(), "and nobody looks again");

    let had = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&had).showing(resolved(&["member-2"]));
    let service = derived_service("work-app", "work/app");
    let had = had.importing("");
    let view = member_view([had.object(), import.clone().object(), service.clone().object()]);
    let deletes = [Write::delete(Kind::ServiceImport, &import.meta), Write::delete(Kind::Service, &service.meta)];
    assert_eq!(writes(&view, &key)[..2], deletes);

    let mut world = World::new(2);
    export(&mut world, 0, "work/app", 80, &["10.0.0.1"]);
    world.create(Who::Member(1), request("work/app").object());
    world.run();
    edit_request(&mut world, 1, "work/app", |request| request.import_name = Text::from(""));
    world.run();
    assert_eq!(imported(&world, 1), [""; 0]);
    assert_eq!(count(&world, Who::Member(1), Kind::Service), 0);
    assert_eq!(count(&world, Who::Hub, Kind::InternalServiceImport), 0);
    edit_request(&mut world, 1, "work/app", |request| request.import_name = "app".into());
    world.run();
    assert_eq!(imported(&world, 1), ["10.0.0.1"]);
    assert_settled(&world);
}
