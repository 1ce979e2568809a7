//! Tests of Services and exports in whole fleets: users create, change and delete these objects, and create them again.

use crate::fleet::{
    bound, count, derived, edit_service, export, export_condition, export_of, import_in_hub, imported, names, reappear,
    request_reason, set_endpoints, status_and_reason, vanish, weigh,
};
use crate::oracle::{assert_settled, state};
use crate::support::build::{
    Build, BuildInternalExport, BuildNamespace, BuildService, BuildSlice, IntoObject, accepted_export, content,
    in_hub_of, internal_export, named, namespace, no_conflict, port, request, service, service_export, slice,
    slice_export,
};
use crate::support::view::{member_view, writes};
use crate::support::world::{Who, World, fleet};
use fleetnet_core::member;
use fleetnet_core::model::{Condition, ConsumerType, Kind, Object, Service, ServiceType};
use fleetnet_core::plan::{Action, Write};
use fleetnet_types::{ConditionStatus, Timestamp};

const MINUTE_MICROS: i64 = 60_000_000;

fn position(lines: &[String], line: &str) -> usize {
    lines.iter().position(|present| present == line).unwrap_or_else(|| panic!("{line:?} is in {lines:#?}"))
}

/// Rule S7: The weight of a ServiceExport changes from 0 to another value
/// Then: The member agent starts a new export. The member agent exports no slice before the hub agent sets the outcome
/// (accepted or conflicted) of the new export
#[test]
fn a_weight_that_comes_back_from_zero_starts_the_export_again() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    weigh(&mut world, 0, Some("0"));
    world.run();
    assert_eq!(count(&world, Who::Hub, Kind::InternalServiceExport), 0);
    let address = derived(&world, 1, "work-app").map(|service| service.meta.uid.clone());
    let mark = world.ledger.len();
    weigh(&mut world, 0, Some("5"));
    world.run();
    let lines = world.lines_since(mark);
    let order = [
        "member-1 patches conditions of ServiceExport", // valid, and pending: the old outcome no longer applies
        "member-1 patches finalizers of ServiceExport",
        "member-1 creates InternalServiceExport",
        "hub patches conditions of InternalServiceExport",
        "member-1 creates EndpointSliceExport",
    ];
    let places = order.map(|line| position(&lines, line));
    assert!(places.is_sorted(), "{lines:#?}");
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    assert!(address.is_some(), "the derived Service outlived the pause");
    assert_eq!(derived(&world, 1, "work-app").map(|service| service.meta.uid.clone()), address);
    assert_settled(&world);
}

#[test]
fn a_weight_that_becomes_invalid_after_zero_begins_nothing() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    weigh(&mut world, 0, Some("0"));
    world.run();
    let mark = world.ledger.len();
    weigh(&mut world, 0, Some("many"));
    world.run();
    assert_eq!(world.lines_since(mark), ["member-1 patches conditions of ServiceExport"]);
    assert_eq!(export_condition(&world, 0, "Valid"), "ServiceExportInvalidWeightAnnotation");
}

/// Also rule S3.
#[test]
fn a_service_that_may_not_be_exported_any_more_is_withdrawn_and_comes_back_when_it_may() {
    type Change = fn(&mut Service);
    let ineligible: [(&str, Change); 2] = [
        ("ExternalName", |service| service.service_type = ServiceType::ExternalName),
        ("headless", |service| service.headless = true),
    ];
    for (case, change) in ineligible {
        let mut world = fleet(1, ConsumerType::LoadBalancer);
        edit_service(&mut world, 0, &named("work/app"), change);
        world.run();
        assert_eq!(export_condition(&world, 0, "Valid"), "ServiceIneligible", "{case}");
        assert_eq!(imported(&world, 1), [""; 0], "{case}");
        for kind in [Kind::InternalServiceExport, Kind::EndpointSliceExport, Kind::EndpointSliceImport] {
            assert_eq!(count(&world, Who::Hub, kind), 0, "{case}: {kind:?}");
        }
        let of_ours = export_of(&world, 0, "work/app").map(|export| export.meta.finalizers.ours);
        assert_eq!(of_ours, Some(false), "{case}: nothing is left to clean up");
        edit_service(&mut world, 0, &named("work/app"), |service| {
            service.service_type = ServiceType::ClusterIp;
            service.headless = false;
        });
        world.run();
        assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"], "{case}");
        assert_settled(&world);
    }
}

/// Also rule S2.
#[test]
fn an_export_that_is_requested_before_its_service_exists_starts_with_it() {
    let mut world = World::new(1);
    world.create(Who::Member(0), service_export("work/app").object());
    world.run();
    assert_eq!(export_condition(&world, 0, "Valid"), "ServiceNotFound");
    assert_eq!(count(&world, Who::Hub, Kind::InternalServiceExport), 0);
    world.create(Who::Member(0), service("work/app").object());
    world.run();
    assert_eq!(export_condition(&world, 0, "Valid"), "ServiceIsValid");
    assert_eq!(export_condition(&world, 0, "Conflict"), "NoConflictFound");
    assert_settled(&world);
}

/// Also rule H13.
#[test]
fn the_last_export_to_go_takes_the_hub_s_import_with_it() {
    let mut world = fleet(0, ConsumerType::LoadBalancer);
    let mut two = World::new(2);
    std::mem::swap(&mut two.hub, &mut world.hub);
    std::mem::swap(&mut two.members[0].cluster, &mut world.members[0].cluster);
    two.restart_all();
    export(&mut two, 1, "work/app", 80, &["10.0.1.1"]);
    two.run();
    let clusters = |world: &World| import_in_hub(world, "work/app").map(|import| import.status.clusters.clone());
    assert_eq!(clusters(&two), Some(vec!["member-1".into(), "member-2".into()]));
    two.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    two.run();
    assert_eq!(clusters(&two), Some(vec!["member-2".into()]));
    two.delete(Who::Member(1), Kind::ServiceExport, &named("work/app"));
    two.run();
    assert_eq!(clusters(&two), None);
    assert_eq!(two.hub.all().count(), 0);
}

/// Rule E10: The label `kubernetes.io/service-name` of a source slice changes to the name of another Service
/// Then: The member agent exports the slice as a slice of this other Service
#[test]
fn a_slice_that_moves_to_another_service_is_exported_for_that_one() {
    let mut world = fleet(1, ConsumerType::LoadBalancer);
    export(&mut world, 0, "work/web", 81, &["10.0.0.9"]);
    world.create(Who::Member(1), request("work/web").object());
    world.run();
    world.create(Who::Member(0), slice("work/app-2").endpoints(&["10.0.0.3"]).object());
    world.run();
    assert_eq!(bound(&world, 1, "work-app"), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    world.edit(Who::Member(0), Kind::EndpointSlice, &named("work/app-2"), |object| {
        let Object::EndpointSlice(slice) = object else { return };
        slice.service = Some("web".into());
    });
    world.run();
    assert_eq!(bound(&world, 1, "work-app"), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(bound(&world, 1, "work-web"), ["10.0.0.3", "10.0.0.9"]);
    world.edit(Who::Member(0), Kind::EndpointSlice, &named("work/app-2"), |object| {
        let Object::EndpointSlice(slice) = object else { return };
        slice.service = None;
    });
    world.run();
    assert_eq!(bound(&world, 1, "work-web"), ["10.0.0.9"], "nobody's any more");
}

/// Rule E14: A source slice is deleted and created again under the same name
/// Then: The member agent creates an EndpointSliceExport for the new slice, and deletes the EndpointSliceExport of the
/// old slice
#[test]
fn a_slice_made_again_under_its_name_gets_an_export_of_its_own_and_the_old_one_goes() {
    for seed in 0..30 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        let before = names(&world, Who::Hub, Kind::EndpointSliceExport);
        world.delete(Who::Member(0), Kind::EndpointSlice, &named("work/app-1"));
        world.create(Who::Member(0), slice("work/app-1").endpoints(&["10.0.0.9"]).object());
        world.run();
        let after = names(&world, Who::Hub, Kind::EndpointSliceExport);
        assert!(after.len() == 1 && after != before, "seed {seed}: {before:?}, then {after:?}");
        assert_eq!(imported(&world, 1), ["10.0.0.9"], "seed {seed}");
        assert_settled(&world);
    }
}

/// Rule S16: A namespace is deleted: its Services, slices and ServiceExports are removed in any order
/// Then: The member agent withdraws all exports and slices of the namespace. Then the member agent removes the
/// finalizers of the ServiceExports
#[test]
fn what_vanishes_with_the_namespace_of_its_service_is_withdrawn_in_any_order() {
    for seed in 0..40 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        vanish(&mut world, Who::Member(0), "work");
        world.run_for(2 * MINUTE_MICROS);
        assert_eq!(imported(&world, 1), [""; 0], "seed {seed}");
        assert_eq!(count(&world, Who::Member(0), Kind::ServiceExport), 0, "seed {seed}: it was let go");
        let left: Vec<Kind> = world.hub.all().map(Object::kind).collect();
        assert_eq!(left, [Kind::InternalServiceImport], "seed {seed}: only who waits for an export");
        assert_settled(&world);
    }
}

/// Rule H18: The namespace of the Service does not exist in the hub
/// Then: The hub agent creates the ServiceImport as soon as the namespace exists
#[test]
fn an_import_in_the_hub_waits_for_its_namespace_and_goes_on_in_the_moment_that_it_is_made() {
    let mut world = World::new(2);
    world.hub.missing_namespaces.insert("work".to_owned());
    export(&mut world, 0, "work/app", 80, &["10.0.0.1"]);
    world.create(Who::Member(1), request("work/app").object());
    world.run();
    assert_eq!(count(&world, Who::Hub, Kind::ServiceImport), 0);
    assert_eq!(export_condition(&world, 0, "Conflict"), "ServicePendingConflictResolution");
    reappear(&mut world, Who::Hub, "work");
    world.create(Who::Hub, namespace("work").object());
    world.run(); // no time passes, so no timer causes a retry
    assert_eq!(imported(&world, 1), ["10.0.0.1"]);
    assert_settled(&world);
}

/// Rule H19: The namespace of the Service disappears from the hub
/// Then: The agents keep exports, claims and imported slices. When the namespace exists again, the hub agent grants the
/// claim (InternalServiceImport) that was granted before
#[test]
fn a_namespace_that_vanishes_from_the_hub_takes_nothing_away_and_its_claimer_has_it_again() {
    let mut world = fleet(2, ConsumerType::LoadBalancer);
    // The waiting claim gets an older creationTimestamp than the granted claim. The granted claim must still stay
    // granted.
    world.edit(Who::Hub, Kind::InternalServiceImport, &in_hub_of("member-3", "work-app"), |claim| {
        claim.meta_mut().created = Timestamp::default();
    });
    world.run();
    let before = state(&world);
    vanish(&mut world, Who::Hub, "work");
    world.run();
    assert_eq!(count(&world, Who::Hub, Kind::ServiceImport), 0);
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(request_reason(&world, 1, "work/app"), "FoundServiceImport", "nobody is told of it");
    reappear(&mut world, Who::Hub, "work");
    world.create(Who::Hub, namespace("work").object());
    world.run();
    let mut after = state(&world);
    after.retain(|name, _| !name.contains("Namespace"));
    assert_eq!(after, before);
    assert_settled(&world);
}

/// Rule S20: The ports of an accepted export change, and the hub agent has not set the new outcome yet. Or the hub has
/// lost the export (restore from a backup)
/// Then: The previous outcome (accepted) stays valid until the hub agent sets the new outcome. Until then, the member
/// agent continues to export slices
#[test]
fn slices_stay_exported_by_the_previous_outcome_until_the_hub_resolves_the_changed_ports() {
    let source = service("work/app").ports(&[port("http", 81)]);
    let judged_before = internal_export("member-1", &source).generation(2).judged(no_conflict("work/app"));
    let (old, new) = (slice("work/app-1"), slice("work/app-2"));
    for (case, in_hub) in [("not judged yet", Some(judged_before)), ("lost by a hub that was restored", None)] {
        let export = Object::EndpointSliceExport(slice_export("member-1", &old));
        let objects = [source.clone().object(), accepted_export("work/app").object(), old.clone().object(), export];
        let view = member_view(objects.into_iter().chain(in_hub.map(IntoObject::object)).chain([new.clone().object()]));
        assert_eq!(writes(&view, &member::Key::SliceExport(named("work/app-1"))), [], "{case}: it stays");
        let planned = writes(&view, &member::Key::SliceExport(named("work/app-2")));
        assert!(matches!(&planned[..], [Write { action: Action::Create(_), .. }]), "{case}: {planned:#?}");
    }
}

/// Rule S17: Another writer edits the conditions of a ServiceExport
/// Then: The member agent restores the conditions that the agent owns. The conditions of other writers keep their
/// content and their position in the list
#[test]
fn conditions_edited_by_hand_are_mended_and_those_of_others_stay() {
    let mut world = fleet(0, ConsumerType::LoadBalancer);
    let theirs = Condition {
        condition_type: "Theirs".into(),
        status: ConditionStatus::True,
        reason: "Reason".into(),
        message: "".into(),
        observed_generation: 1,
        last_transition: world.now,
    };
    world.edit(Who::Member(0), Kind::ServiceExport, &named("work/app"), |object| {
        let Object::ServiceExport(export) = object else { return };
        export.conditions = vec![theirs.clone()];
    });
    world.run();
    let export = export_of(&world, 0, "work/app").expect("it is there");
    assert_eq!(export.conditions[0], theirs);
    let status = |condition: &str| status_and_reason(&export.conditions, condition).map(|(status, _)| status);
    assert_eq!((status("Valid"), status("Conflict")), (Some("True".to_owned()), Some("False".to_owned())));
    assert_settled(&world);
}

/// Returns the exporters in the ServiceImport of member-2, and the ports of its derived Service.
fn shown(world: &World) -> (Vec<String>, Vec<i32>) {
    let Some(Object::ServiceImport(import)) =
        world.cluster(Who::Member(1)).get(Kind::ServiceImport, &named("work/app"))
    else {
        panic!("the import is there");
    };
    let clusters = import.status.clusters.iter().map(ToString::to_string).collect();
    let ports =
        derived(world, 1, "work-app").map(|service| service.ports.iter().map(|port| port.port.as_written()).collect());
    (clusters, ports.unwrap_or_default())
}

/// Rule H20: Members start or stop exporting a Service, or all exporting members change to the same new ports
/// Then: The importing members update three parts of the import: the list of exporting clusters in the status, the
/// ports of the derived Service, and the slices
#[test]
fn importers_follow_the_exporters_that_join_and_leave_and_their_ports() {
    let mut world = fleet(2, ConsumerType::LoadBalancer);
    assert_eq!(shown(&world), (vec!["member-1".to_owned()], vec![80]));
    export(&mut world, 2, "work/app", 80, &["10.0.2.1"]);
    world.run();
    assert_eq!(shown(&world), (vec!["member-1".to_owned(), "member-3".to_owned()], vec![80]));
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2", "10.0.2.1"]);
    for member in [0, 2] {
        edit_service(&mut world, member, &named("work/app"), |service| service.ports = vec![port("http", 81)]);
    }
    world.run();
    assert_eq!(shown(&world), (vec!["member-1".to_owned(), "member-3".to_owned()], vec![81]));
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run();
    assert_eq!(shown(&world), (vec!["member-3".to_owned()], vec![81]));
    assert_eq!(imported(&world, 1), ["10.0.2.1"]);
    assert_settled(&world);
}

/// Rule S15: An export is conflicted
/// Then: The member agent sets `Conflict=True` on the ServiceExport and exports no slices. The member agent exports the
/// slices as soon as the conflict ends
#[test]
fn a_conflicted_export_exports_no_slices_until_the_winner_has_left() {
    let mut world = fleet(2, ConsumerType::LoadBalancer);
    export(&mut world, 2, "work/app", 81, &["10.0.2.1"]);
    world.run();
    let status_and_reason = |world: &World| {
        export_of(world, 2, "work/app").and_then(|export| status_and_reason(&export.conditions, "Conflict"))
    };
    assert_eq!(status_and_reason(&world), Some(("True".to_owned(), "ConflictFound".to_owned())));
    assert_eq!(imported(&world, 1), ["10.0.0.1", "10.0.0.2"]);
    let slices = world.hub.list(Kind::EndpointSliceExport).map(|export| export.meta().name.namespace.to_string());
    assert_eq!(slices.collect::<Vec<_>>(), ["fleet-member-member-1"], "the loser exports none");
    world.delete(Who::Member(0), Kind::ServiceExport, &named("work/app"));
    world.run();
    assert_eq!(status_and_reason(&world), Some(("False".to_owned(), "NoConflictFound".to_owned())));
    assert_eq!(shown(&world), (vec!["member-3".to_owned()], vec![81]));
    assert_eq!(imported(&world, 1), ["10.0.2.1"]);
    assert_settled(&world);
}

/// Rule A5: Somebody deletes an object that an agent created
/// Then: The agent creates the object again. The fleet is in the same state as before
#[test]
fn any_object_of_ours_that_somebody_deletes_is_recreated() {
    let settled = fleet(1, ConsumerType::LoadBalancer);
    let expected = state(&settled);
    let ours: Vec<(Who, Kind)> = [
        (Who::Hub, Kind::InternalServiceExport),
        (Who::Hub, Kind::InternalServiceImport),
        (Who::Hub, Kind::ServiceImport),
        (Who::Hub, Kind::EndpointSliceExport),
        (Who::Hub, Kind::EndpointSliceImport),
        (Who::Member(1), Kind::ServiceImport),
        (Who::Member(1), Kind::Service),
        (Who::Member(1), Kind::EndpointSlice),
    ]
    .to_vec();
    for (who, kind) in ours {
        for seed in 0..8 {
            let mut world = settled.clone().in_any_order(seed);
            let name = world.cluster(who).list(kind).next().expect("one of each").meta().name.clone();
            world.delete(who, kind, &name);
            world.run();
            assert_eq!(state(&world), expected, "{kind:?} of {who:?}, seed {seed}");
        }
    }
}

type Edit = fn(&mut Object);

/// Returns edits of the agents' objects, at least one for each kind of object.
fn edits() -> [(Who, Kind, Edit); 13] {
    fn names_source(object: &mut Object, path: &str) {
        let Object::EndpointSliceExport(slice) = object else { return };
        slice.spec.reference.source = named(path);
    }
    fn names_owner_and_source(object: &mut Object) {
        let Object::EndpointSliceExport(slice) = object else { return };
        slice.spec.owner = named("work/web");
        slice.spec.reference.source = named("work/web-1");
    }
    [
        (Who::Hub, Kind::EndpointSliceExport, names_owner_and_source),
        (Who::Hub, Kind::EndpointSliceExport, |object| names_source(object, "work/other")),
        (Who::Hub, Kind::EndpointSliceExport, |object| names_source(object, "other/app-1")),
        (Who::Hub, Kind::EndpointSliceExport, |object| names_source(object, "/")),
        (Who::Hub, Kind::InternalServiceExport, |object| {
            let Object::InternalServiceExport(export) = object else { return };
            export.ports = vec![port("other", 99)];
        }),
        (Who::Hub, Kind::InternalServiceExport, |object| {
            let Object::InternalServiceExport(export) = object else { return };
            export.conditions.clear();
        }),
        (Who::Hub, Kind::InternalServiceImport, |object| {
            let Object::InternalServiceImport(claim) = object else { return };
            claim.status.clusters = vec!["member-9".into()];
        }),
        (Who::Hub, Kind::ServiceImport, |object| {
            let Object::ServiceImport(import) = object else { return };
            import.status.ports = vec![port("other", 99)];
        }),
        (Who::Hub, Kind::ServiceImport, |object| {
            let Object::ServiceImport(import) = object else { return };
            import.claims.importers.insert("fleet-member-member-9".into(), "member-9".into());
        }),
        (Who::Hub, Kind::EndpointSliceExport, |object| {
            let Object::EndpointSliceExport(slice) = object else { return };
            slice.spec.content = content(&["10.6.6.6"]).into();
        }),
        (Who::Hub, Kind::EndpointSliceImport, |object| {
            let Object::EndpointSliceImport(slice) = object else { return };
            slice.spec.content = content(&["10.6.6.6"]).into();
        }),
        (Who::Member(1), Kind::ServiceImport, |object| {
            let Object::ServiceImport(import) = object else { return };
            import.status.ports = vec![port("other", 99)];
        }),
        (Who::Member(1), Kind::EndpointSlice, |object| {
            let Object::EndpointSlice(slice) = object else { return };
            slice.content = content(&["10.6.6.6"]);
        }),
    ]
}

/// Rule A6: Somebody edits an object that an agent created, while the agents run or are stopped
/// Then: The agent repairs the object. The fleet is in the same state as before
#[test]
fn whatever_of_ours_somebody_edits_is_mended() {
    let settled = fleet(1, ConsumerType::LoadBalancer);
    let mut without_endpoints = settled.clone();
    set_endpoints(&mut without_endpoints, "work/app-1", &[]);
    without_endpoints.run();
    for settled in [settled, without_endpoints] {
        let expected = state(&settled);
        for ((index, (who, kind, edit)), seed) in
            edits().iter().enumerate().flat_map(|edit| (0..8).map(move |seed| (edit, seed)))
        {
            let mut world = settled.clone().in_any_order(seed);
            let name = world.cluster(*who).list(*kind).next().expect("one of each").meta().name.clone();
            assert!(world.edit(*who, *kind, &name, edit), "edit {index} changes something");
            let mut meanwhile = world.clone();
            world.run();
            assert_eq!(state(&world), expected, "edit {index} of {kind:?}, seed {seed}");
            meanwhile.restart_all();
            meanwhile.run();
            assert_eq!(state(&meanwhile), expected, "edit {index} of {kind:?} while no agent ran, seed {seed}");
        }
    }
}

/// Also rule A6.
#[test]
fn a_name_that_somebody_used_for_another_service_is_used_again_when_it_is_free() {
    let mut settled = World::new(2);
    for path in ["a-b/c", "a/b-c"] {
        export(&mut settled, 0, path, 80, &["10.0.0.1"]);
        settled.create(Who::Member(1), request(path).object());
        settled.run();
    }
    let expected = state(&settled);
    for (kind, seed) in [Kind::InternalServiceExport, Kind::InternalServiceImport]
        .into_iter()
        .flat_map(|kind| (0..8).map(move |seed| (kind, seed)))
    {
        let mut world = settled.clone().in_any_order(seed);
        let second = world.hub.list(kind).nth(1).expect("two of them, the second under its longer name");
        let name = second.meta().name.clone();
        world.edit(Who::Hub, kind, &name, |object| match object {
            Object::InternalServiceExport(export) => export.reference.source = named("work/other"),
            Object::InternalServiceImport(claim) => claim.reference.source = named("work/other"),
            _ => {}
        });
        world.run();
        assert_eq!(state(&world), expected, "{kind:?}, seed {seed}");
    }
}

/// Also rule S14.
#[test]
fn an_export_that_its_member_knows_nothing_of_goes() {
    let mut world = fleet(0, ConsumerType::LoadBalancer);
    world.create(Who::Member(0), slice("work/web-1").object());
    world.run();
    let left_over = slice_export("member-1", &slice("work/web-1"));
    let name = in_hub_of("member-1", &left_over.meta.name.name);
    assert!(world.create(Who::Hub, Object::EndpointSliceExport(left_over)));
    world.run();
    assert_eq!(world.hub.get(Kind::EndpointSliceExport, &name), None, "its Service is not exported");
    assert_eq!(names(&world, Who::Hub, Kind::EndpointSliceExport).len(), 1);
}

/// Rule S21: A conflicted export is withdrawn (rules S2, S3, S4) or denied (rule T10)
/// Then: The member agent sets `Conflict=Unknown`, because a Service that is not exported cannot be in conflict
#[test]
fn what_is_not_exported_any_more_is_in_conflict_with_nobody() {
    type Way<'a> = (&'a str, &'a dyn Fn(&mut World));
    let ways: [Way<'_>; 4] = [
        ("weight 0", &|world| weigh(world, 1, Some("0"))),
        ("no Service", &|world| world.delete(Who::Member(1), Kind::Service, &named("work/app"))),
        ("ExternalName", &|world| {
            edit_service(world, 1, &named("work/app"), |service| service.service_type = ServiceType::ExternalName);
        }),
        ("not allowed", &|world| {
            world.create(Who::Hub, namespace("work").exported_from_by("member-1").object());
        }),
    ];
    for (way, withdraw) in ways {
        for seed in 0..10 {
            let mut world = World::new(2).in_any_order(seed);
            export(&mut world, 0, "work/app", 80, &["10.0.0.1"]);
            world.run();
            export(&mut world, 1, "work/app", 81, &["10.1.0.1"]);
            world.run();
            assert_eq!(export_condition(&world, 1, "Conflict"), "ConflictFound", "{way}");
            withdraw(&mut world);
            world.run();
            assert_eq!(
                export_condition(&world, 1, "Conflict"),
                "ServicePendingConflictResolution",
                "{way}, seed {seed}"
            );
            let conflicted = world.hub.list(Kind::InternalServiceExport).filter(|object| match object {
                Object::InternalServiceExport(internal) => {
                    status_and_reason(&internal.conditions, "Conflict").is_some_and(|(status, _)| status == "True")
                }
                _ => false,
            });
            assert_eq!(conflicted.count(), 0, "{way}, seed {seed}");
        }
    }
}

/// Rule S22: The weight of a ServiceExport becomes invalid while the export is being withdrawn
/// Then: The member agent completes the withdrawal and starts no new export (rule S5)
#[test]
fn an_invalid_weight_does_not_restart_an_export_being_withdrawn() {
    for seed in 0..20 {
        let mut world = fleet(1, ConsumerType::LoadBalancer).in_any_order(seed);
        weigh(&mut world, 0, Some("0"));
        while world.hub.list(Kind::InternalServiceExport).any(|export| !export.meta().deleting) {
            assert!(world.step(), "it is withdrawn");
        }
        weigh(&mut world, 0, Some("many"));
        world.run();
        assert_eq!(export_condition(&world, 0, "Valid"), "ServiceExportInvalidWeightAnnotation", "seed {seed}");
        assert_eq!(count(&world, Who::Hub, Kind::InternalServiceExport), 0, "seed {seed}");
        assert_eq!(imported(&world, 1), Vec::<String>::new(), "seed {seed}");
    }
}
