//! Tests of undecodable objects. Such an object exists, so agents do not remove its dependents and do not create it a
//! second time. Objects that do not depend on it do not wait.

use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, BuildRequest, BuildService, IntoObject, SYSTEM,
    accepted_export, claim, conflict, derived_service, distributed_slice, finalizers_of, found, imported_slice,
    in_hub_of, in_system, internal_export, named, no_conflict, port, request, resolved, seconds, service,
    service_import, slice, slice_export,
};
use crate::support::view::{
    blocking_reasons, claimed_hub_view, hub_view, member_view, observe_change, observe_removal,
    observe_undecodable_removal, planned, undecodable, writes,
};
use crate::support::world::GRACE_MICROS;
use fleetnet_core::limits::ORPHAN_GRACE_MICROS;
use fleetnet_core::model::{
    EndpointSlice, HubSlice, InternalServiceExport, InternalServiceImport, Kind, Object, ServiceImport,
};
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::ObjectName;

// === Undecodable objects in the hub, seen by the hub agent ===

fn hub_service(path: &str) -> hub::Key {
    hub::Key::Service(named(path))
}

fn hub_slice(slice: &HubSlice) -> hub::Key {
    hub::Key::Slice(slice.meta.name.name.clone())
}

/// Returns the export of `work/app-1` by member-1, and its distributed slice for member-2.
fn exported() -> (HubSlice, HubSlice) {
    let export = slice_export("member-1", &slice("work/app-1")).marked();
    let distributed = distributed_slice("member-2", &export);
    (export, distributed)
}

fn claimed_import(importers: &[&str]) -> ServiceImport {
    service_import("work/app").showing(resolved(&["member-1"])).claimed_by(importers)
}

#[test]
fn a_distributed_slice_stays_while_its_export_cannot_be_decoded() {
    let (export, distributed) = exported();
    let mut view = hub_view([claimed_import(&["member-2"]).object(), Object::EndpointSliceImport(distributed.clone())]);
    let withdrawal = [Write::delete(Kind::EndpointSliceImport, &distributed.meta)];
    assert_eq!(writes(&view, &hub_slice(&export)), withdrawal, "it is gone");
    undecodable(&mut view, Kind::EndpointSliceExport, &export.meta.name);
    assert_eq!(planned(&view, &hub_slice(&export)), Plan::default(), "it is there");
    let mut liar = distributed;
    liar.spec.reference.cluster = "member-9".into();
    observe_change(&mut view, Object::EndpointSliceImport(liar));
    assert_eq!(planned(&view, &hub_slice(&export)), Plan::default(), "whatever cluster it says that it is from");
    assert_eq!(
        observe_undecodable_removal(&mut view, Kind::EndpointSliceExport, &export.meta.name),
        [hub_slice(&export)]
    );
    assert_eq!(writes(&view, &hub_slice(&export)), withdrawal);
}

#[test]
fn an_undecodable_export_delays_only_its_own_distributed_slices() {
    let (export, distributed) = exported();
    let changed = HubSlice { spec: export.clone().with_addresses(&["10.0.0.9"], 2).spec, ..export.clone() };
    let update = [Write::patch(&distributed.meta, Patch::EndpointSliceImport(changed.spec.clone()))];
    let objects = [
        claimed_import(&["member-2"]).object(),
        Object::EndpointSliceExport(changed.clone()),
        Object::EndpointSliceImport(distributed.clone()),
    ];
    let table: [(&str, ObjectName, &[Write]); 2] = [
        ("another slice's", in_hub_of("member-1", "member-1-work-web-1-00000"), &update),
        ("another member's under this name", in_hub_of("member-3", &export.meta.name.name), &update),
    ];
    for (case, name, expected) in table {
        let mut view = claimed_hub_view(objects.clone());
        undecodable(&mut view, Kind::EndpointSliceExport, &name);
        assert_eq!(writes(&view, &hub_slice(&export)), expected, "{case}");
    }

    // While member-1's export is undecodable, an export of member-3 with the same name must not take over the
    // distributed slices.
    let mut thief = changed.uid("thief");
    thief.meta.name = in_hub_of("member-3", &export.meta.name.name);
    let mut view = claimed_hub_view([
        claimed_import(&["member-2"]).object(),
        Object::EndpointSliceExport(thief),
        Object::EndpointSliceImport(distributed),
    ]);
    undecodable(&mut view, Kind::EndpointSliceExport, &export.meta.name);
    assert_eq!(writes(&view, &hub_slice(&export)), []);
}

#[test]
fn a_distributed_slice_that_cannot_be_decoded_is_not_made_twice_and_the_others_are_made() {
    let (export, distributed) = exported();
    let other = distributed_slice("member-3", &export);
    let import = claimed_import(&["member-2", "member-3"]);
    let mut view = claimed_hub_view([import.object(), Object::EndpointSliceExport(export.clone())]);
    undecodable(&mut view, Kind::EndpointSliceImport, &distributed.meta.name);
    let give = |at: &ObjectName| {
        let desired = Desired::EndpointSliceImport(export.spec.clone());
        Write::create(at.clone(), desired)
    };
    assert_eq!(writes(&view, &hub_slice(&export)), [give(&other.meta.name)]);
    assert_eq!(
        observe_undecodable_removal(&mut view, Kind::EndpointSliceImport, &distributed.meta.name),
        [hub_slice(&export)]
    );
    assert_eq!(writes(&view, &hub_slice(&export)), [give(&distributed.meta.name), give(&other.meta.name)]);
}

fn export_in_hub(cluster: &str, number: i32) -> InternalServiceExport {
    let export = internal_export(cluster, &service("work/app").ports(&[port("http", number)]));
    export.port_set_since(seconds(2)).judged(no_conflict("work/app"))
}

#[test]
fn an_import_names_a_cluster_on_while_its_export_cannot_be_decoded() {
    let import = service_import("work/app").showing(resolved(&["member-1", "member-2", "member-3"]));
    let other_ports = export_in_hub("member-4", 81).judged(conflict("work/app"));
    let beside = [export_in_hub("member-2", 80).object(), export_in_hub("member-3", 80).object(), other_ports.object()];
    let mut view = hub_view([import.clone().object()]);
    assert_eq!(writes(&view, &hub_service("work/app")), [Write::delete(Kind::ServiceImport, &import.meta)]);
    let status = |clusters| Write::patch(&import.meta, Patch::ServiceImportStatus(resolved(clusters)));

    let at = in_hub_of("member-1", "whatever-it-is-of");
    undecodable(&mut view, Kind::InternalServiceExport, &at);
    assert_eq!(writes(&view, &hub_service("work/app")), [status(&["member-1"])], "the others are gone");
    for export in beside {
        observe_change(&mut view, export);
    }
    assert_eq!(writes(&view, &hub_service("work/app")), [], "all in their places, and other ports do not win");

    let mut changed = view.clone();
    observe_change(&mut changed, export_in_hub("member-5", 80).object());
    let all = ["member-1", "member-2", "member-3", "member-5"];
    assert_eq!(writes(&changed, &hub_service("work/app")), [status(&all)], "another one with these ports joins");
    let mut changed = view.clone();
    observe_removal(&mut changed, &export_in_hub("member-3", 80).object());
    assert_eq!(writes(&changed, &hub_service("work/app")), [status(&["member-1", "member-2"])], "one leaves");

    let requeue = observe_undecodable_removal(&mut view, Kind::InternalServiceExport, &at);
    assert_eq!(requeue, [hub_service("work/app")]);
    assert_eq!(writes(&view, &hub_service("work/app")), [status(&["member-2", "member-3"])]);
}

#[test]
fn an_undecodable_export_delays_no_other_of_its_namespace() {
    let import = service_import("work/app").showing(resolved(&["member-1", "member-2"]));
    let (stays, dying) = (export_in_hub("member-1", 80), export_in_hub("member-2", 80).deleting());
    let mut view = hub_view([import.clone().object(), stays.object(), dying.object()]);
    undecodable(&mut view, Kind::InternalServiceExport, &in_hub_of("member-2", "work-web"));
    let status = Patch::ServiceImportStatus(resolved(&["member-1"]));
    let expected = [Write::patch(&import.meta, status)];
    assert_eq!(writes(&view, &hub_service("work/app")), expected, "what is known of it is that it goes");
}

fn claim_of(cluster: &str) -> InternalServiceImport {
    claim(cluster, &service_import("work/app").uid(&format!("import-of-{cluster}")))
}

#[test]
fn a_claim_that_cannot_be_decoded_is_kept_with_its_slices() {
    let (export, distributed) = exported();
    let import = claimed_import(&["member-2", "member-3"]);
    let mut view = hub_view([
        import.clone().object(),
        export_in_hub("member-1", 80).object(),
        Object::EndpointSliceExport(export.clone()),
        Object::EndpointSliceImport(distributed.clone()),
        Object::EndpointSliceImport(distributed_slice("member-3", &export)),
    ]);
    let keep = |clusters: &[&str]| {
        let claims = claimed_import(clusters).claims;
        let finalizers = finalizers_of(&import.meta, !clusters.is_empty());
        [Write::patch(&import.meta, Patch::Claims { importers: claims.importers, load_balancer: None, finalizers })]
    };
    assert_eq!(writes(&view, &hub_service("work/app")), keep(&[]));
    let at = in_hub_of("member-2", "whatever-it-claims");
    undecodable(&mut view, Kind::InternalServiceImport, &at);
    assert_eq!(writes(&view, &hub_service("work/app")), keep(&["member-2"]), "that of member-3 is gone");

    // The ServiceImport was deleted and created again, so it records no claim. The undecodable claim of member-2
    // exists, so the slices of member-2 stay.
    observe_change(&mut view, claimed_import(&[]).object());
    let withdrawn = in_hub_of("member-3", &distributed.meta.name.name);
    let targets: Vec<ObjectName> = writes(&view, &hub_slice(&export)).into_iter().map(|write| write.at).collect();
    assert_eq!(targets, [withdrawn], "the slices of member-2 stay");
    observe_change(&mut view, import.object());
    let requeue = observe_undecodable_removal(&mut view, Kind::InternalServiceImport, &at);
    assert!(requeue.contains(&hub_service("work/app")) && requeue.contains(&hub_slice(&export)), "{requeue:?}");
}

#[test]
fn nobody_becomes_the_one_claimer_while_a_claim_that_may_be_it_cannot_be_decoded() {
    let (waiting, shared) = (claim_of("member-3"), claim_of("member-4").east_west());
    let objects = [
        claimed_import(&["member-2"]).object(),
        export_in_hub("member-1", 80).object(),
        waiting.clone().object(),
        shared.clone().object(),
    ];
    let mut view = hub_view(objects);
    let at = in_hub_of("member-2", "work-app");
    undecodable(&mut view, Kind::InternalServiceImport, &at);
    let mark = |claim: &InternalServiceImport| Write::add_finalizer(Kind::InternalServiceImport, &claim.meta);
    assert_eq!(writes(&view, &hub_service("work/app")), [mark(&shared)], "any number may be among many");
    let requeue = observe_undecodable_removal(&mut view, Kind::InternalServiceImport, &at);
    assert_eq!(requeue, [hub_service("work/app")]);
    assert!(writes(&view, &hub_service("work/app")).contains(&mark(&waiting)));
}

#[test]
fn an_undecodable_claim_delays_no_other_of_its_namespace() {
    let dying = claim_of("member-2").marked().with_status(resolved(&["member-1"])).deleting();
    let import = claimed_import(&["member-2"]);
    let mut view = hub_view([import.clone().object(), export_in_hub("member-1", 80).object(), dying.object()]);
    undecodable(&mut view, Kind::InternalServiceImport, &in_hub_of("member-2", "work-web"));
    let finalizers = import.meta.finalizers.without_ours();
    let patch = Patch::Claims { importers: claimed_import(&[]).claims.importers, load_balancer: None, finalizers };
    assert_eq!(writes(&view, &hub_service("work/app")), [Write::patch(&import.meta, patch)]);
}

#[test]
fn an_import_of_the_hub_that_cannot_be_decoded_is_not_made_twice_and_nobody_loses_by_it() {
    let (old, distributed) = exported();
    let new = slice_export("member-1", &slice("work/app-2")).marked();
    let granted = claim_of("member-2").marked().with_status(resolved(&["member-1"]));
    let at = named("work/app");
    let mut view = hub_view([
        export_in_hub("member-1", 80).object(),
        granted.object(),
        Object::EndpointSliceExport(old.clone().deleting()),
        Object::EndpointSliceExport(new),
        Object::EndpointSliceImport(distributed),
    ]);
    undecodable(&mut view, Kind::ServiceImport, &at);
    assert_eq!(planned(&view, &hub_service("work/app")), Plan::default());
    assert_eq!(planned(&view, &hub_slice(&old)), Plan::default(), "what takes its place cannot be given");

    let web = internal_export("member-1", &service("work/web")).port_set_since(seconds(2));
    observe_change(&mut view, web.object());
    let create = Write::create(named("work/web"), Desired::ServiceImport { controller: None, finalizer: false });
    assert_eq!(writes(&view, &hub_service("work/web")), [create], "others go on");

    let requeue = observe_undecodable_removal(&mut view, Kind::ServiceImport, &at);
    for key in [hub_service("work/app"), hub_slice(&old)] {
        assert!(requeue.contains(&key), "{key:?} is not in {requeue:?}");
    }
    assert_eq!(writes(&view, &hub_service("work/app"))[0].at, at);
}

// === Undecodable objects, seen by an importing member agent ===

fn import_key(path: &str) -> member::Key {
    member::Key::Import(named(path))
}

fn request_key(path: &str) -> member::Key {
    member::Key::MultiClusterService(named(path))
}

fn slice_key(distributed: &HubSlice) -> member::Key {
    member::Key::SliceImport(in_system(&distributed.meta.name.name))
}

fn distributed(source: &str) -> HubSlice {
    distributed_slice("member-1", &slice_export("member-2", &slice(source))).marked()
}

/// Objects in member-1 for the import of `work/app`, except slices.
struct Imported {
    request: Object,
    import: Object,
    claim: Object,
    service: Object,
}

fn imported() -> Imported {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    Imported {
        claim: claim("member-1", &import).marked().with_status(resolved(&["member-2"])).object(),
        request: request.object(),
        import: import.object(),
        service: derived_service("work-app", "work/app").object(),
    }
}

const LONG_AFTER: i64 = 100 * ORPHAN_GRACE_MICROS;

#[test]
fn an_imported_slice_stays_beyond_every_grace_while_its_distributed_slice_is_undecodable() {
    let Imported { request, import, claim, service } = imported();
    let (distributed, other) = (distributed("work/app-1"), distributed("work/app-2"));
    let [imported, forgotten] =
        [&distributed, &other].map(|distributed| imported_slice(&distributed.meta.name.name, "work-app"));
    let mut view =
        member_view([request, import, claim, service, imported.clone().object(), forgotten.clone().object()]);
    undecodable(&mut view, Kind::EndpointSliceImport, &distributed.meta.name);
    let late = seconds(20).plus_micros(LONG_AFTER);
    assert_eq!(view.plan(&slice_key(&distributed), late), Plan::default());
    let delete = |slice| vec![Write::delete(Kind::EndpointSlice, slice)];
    assert_eq!(view.plan(&slice_key(&other), late).writes, delete(&forgotten.meta), "others go");

    let requeue = observe_undecodable_removal(&mut view, Kind::EndpointSliceImport, &distributed.meta.name);
    assert!(requeue.contains(&slice_key(&distributed)), "{requeue:?}");
    let until = seconds(20).plus_micros(ORPHAN_GRACE_MICROS);
    assert_eq!(planned(&view, &slice_key(&distributed)).again, Some(until), "from when it was gone");
    assert_eq!(view.plan(&slice_key(&distributed), until).writes, delete(&imported.meta));
}

#[test]
fn an_import_that_cannot_be_decoded_keeps_its_claim_and_its_derived_service() {
    let Imported { request, claim, service, .. } = imported();
    let mut view = member_view([request, claim, service]);
    let at = named("work/app");
    undecodable(&mut view, Kind::ServiceImport, &at);
    let late = seconds(20).plus_micros(LONG_AFTER);
    assert_eq!(view.plan(&request_key("work/app"), late), Plan::default(), "neither made twice nor retired");
    assert_eq!(planned(&view, &import_key("work/app")), Plan::default());

    let requeue = observe_undecodable_removal(&mut view, Kind::ServiceImport, &at);
    for key in [request_key("work/app"), import_key("work/app")] {
        assert!(requeue.contains(&key), "{key:?} is not in {requeue:?}");
    }
    let kinds: Vec<Kind> = writes(&view, &request_key("work/app")).iter().map(|write| write.kind()).collect();
    assert_eq!(kinds[0], Kind::ServiceImport, "made anew, and the derived Service has its grace from now on");
    assert!(!kinds.contains(&Kind::Service));
}

#[test]
fn the_grace_of_a_derived_service_does_not_run_while_its_import_cannot_be_decoded() {
    let Imported { request, service, .. } = imported();
    let mut view = member_view([request.clone(), service]);
    undecodable(&mut view, Kind::ServiceImport, &named("work/app"));
    let late = seconds(20).plus_micros(LONG_AFTER);
    let Object::MultiClusterService(request) = request else { panic!("{request:?}") };
    let without_exporters = service_import("work/app").controlled_by(&request).object();
    view.applied(without_exporters, late, &mut Vec::new());
    let plan = view.plan(&request_key("work/app"), late);
    assert_eq!(plan.again, Some(late.plus_micros(GRACE_MICROS)));
    assert!(plan.writes.iter().all(|write| write.kind() != Kind::Service), "{plan:?}");
}

#[test]
fn a_derived_service_that_cannot_be_decoded_is_not_made_twice_and_keeps_its_slices() {
    let Imported { request, import, claim, service } = imported();
    let lost = distributed("work/app-1");
    let orphan = imported_slice(&lost.meta.name.name, "work-app");
    let mut view = member_view([request, import, claim, orphan.object()]);
    let late = seconds(20).plus_micros(LONG_AFTER);
    assert_eq!(view.plan(&slice_key(&lost), late).writes.len(), 1, "without the Service nobody needs it");
    undecodable(&mut view, Kind::Service, &service.meta().name);
    assert_eq!(view.plan(&slice_key(&lost), late), Plan::default());
    assert_eq!(planned(&view, &request_key("work/app")), Plan::default());
    let requeue = observe_undecodable_removal(&mut view, Kind::Service, &service.meta().name);
    for key in [slice_key(&lost), request_key("work/app")] {
        assert!(requeue.contains(&key), "{key:?} is not in {requeue:?}");
    }
}

#[test]
fn a_multi_cluster_service_that_cannot_be_decoded_keeps_its_slices_and_they_follow_their_source() {
    let Imported { import, claim, service, .. } = imported();
    let changed =
        HubSlice { spec: distributed("work/app-1").with_addresses(&["10.0.0.9"], 2).spec, ..distributed("work/app-1") };
    let (new, lost) = (distributed("work/app-2"), distributed("work/app-3"));
    let [imported, orphan] =
        [&changed, &lost].map(|distributed| imported_slice(&distributed.meta.name.name, "work-app"));
    let mut view = member_view([
        import,
        claim,
        service,
        Object::EndpointSliceImport(changed.clone()),
        Object::EndpointSliceImport(new.clone()),
        imported.object(),
        orphan.clone().object(),
    ]);
    undecodable(&mut view, Kind::MultiClusterService, &named("work/app"));
    assert!(matches!(writes(&view, &slice_key(&changed))[..], [Write { action: Action::Patch { .. }, .. }]));
    assert!(matches!(writes(&view, &slice_key(&new))[..], [Write { action: Action::Create(_), .. }]));
    assert_eq!(view.plan(&slice_key(&lost), seconds(20).plus_micros(LONG_AFTER)), Plan::default());
    assert_eq!(planned(&view, &import_key("work/app")), Plan::default());

    let requeue = observe_undecodable_removal(&mut view, Kind::MultiClusterService, &named("work/app"));
    for key in [slice_key(&changed), slice_key(&lost), import_key("work/app")] {
        assert!(requeue.contains(&key), "{key:?} is not in {requeue:?}");
    }
    assert_eq!(writes(&view, &slice_key(&lost)), [Write::delete(Kind::EndpointSlice, &orphan.meta)]);
}

// The imported slices of its Service show to which derived Service a new slice belongs.
#[test]
fn a_new_slice_is_planned_again_when_the_one_that_shows_its_derived_service_goes() {
    let Imported { import, claim, service, .. } = imported();
    let (old, new) = (distributed("work/app-1"), distributed("work/app-2"));
    let imported = imported_slice(&old.meta.name.name, "work-app").object();
    let both = [&old, &new].map(|slice| Object::EndpointSliceImport(slice.clone()));
    let mut view = member_view([import, claim, service, imported].into_iter().chain(both.clone()));
    undecodable(&mut view, Kind::MultiClusterService, &named("work/app"));
    assert!(matches!(writes(&view, &slice_key(&new))[..], [Write { action: Action::Create(_), .. }]));
    let requeue = observe_removal(&mut view, &both[0]);
    assert_eq!(writes(&view, &slice_key(&new)), []);
    assert!(requeue.contains(&slice_key(&new)), "{requeue:?}");
}

#[test]
fn only_its_imported_slices_tell_the_derived_service_of_an_undecodable_multi_cluster_service() {
    let Imported { import, service, .. } = imported();
    let (present, new) = (distributed("work/app-1"), distributed("work/app-2"));
    let imported = imported_slice(&present.meta.name.name, "work-app");
    let with = |slice: &EndpointSlice| {
        let distributed = [&new, &present].map(|slice| Object::EndpointSliceImport(slice.clone()));
        let objects = [import.clone(), service.clone(), slice.clone().object()];
        member_view(distributed.into_iter().chain(objects))
    };
    let begins = |slice: &EndpointSlice, request: &str| {
        let mut view = with(slice);
        undecodable(&mut view, Kind::MultiClusterService, &named(request));
        writes(&view, &slice_key(&new)).len()
    };
    assert_eq!(begins(&imported, "work/app"), 1);
    assert_eq!(begins(&imported, "work/other"), 0, "the MultiClusterService of the derived Service is gone");
    let theirs = EndpointSlice { imported: false, observed_generation: None, ..imported.clone() };
    assert_eq!(begins(&theirs, "work/app"), 0, "another writer bound its slice to the derived Service");
    // While all objects are decodable, no slice looks at the others of its Service.
    assert_eq!(observe_removal(&mut with(&imported), &imported.object()), [slice_key(&present)]);
}

#[test]
fn a_slice_waits_for_those_that_take_its_place_also_where_its_multi_cluster_service_cannot_be_decoded() {
    let Imported { import, service, .. } = imported();
    let (old, new) = (distributed("work/app-1").deleting(), distributed("work/app-2"));
    let imported = imported_slice(&old.meta.name.name, "work-app");
    let mut view = member_view([
        import,
        service,
        Object::EndpointSliceImport(old.clone()),
        Object::EndpointSliceImport(new.clone()),
        imported.clone().object(),
    ]);
    assert_eq!(writes(&view, &slice_key(&old)), [Write::delete(Kind::EndpointSlice, &imported.meta)]);
    undecodable(&mut view, Kind::MultiClusterService, &named("work/app"));
    assert_eq!(writes(&view, &slice_key(&old)), []);
    observe_change(&mut view, imported_slice(&new.meta.name.name, "work-app").object());
    assert_eq!(writes(&view, &slice_key(&old)), [Write::delete(Kind::EndpointSlice, &imported.meta)]);
}

#[test]
fn a_claim_of_ours_that_cannot_be_decoded_is_not_made_twice_and_takes_nothing_away() {
    let Imported { request, import, service, .. } = imported();
    let mut view = member_view([request, import, service]);
    let at = in_hub_of("member-1", "work-app");
    undecodable(&mut view, Kind::InternalServiceImport, &at);
    assert_eq!(planned(&view, &import_key("work/app")), Plan::default());
    let late = seconds(20).plus_micros(LONG_AFTER);
    assert_eq!(view.plan(&request_key("work/app"), late), Plan::default());

    observe_change(&mut view, service_import("work/web").marked().object());
    assert_eq!(writes(&view, &import_key("work/web"))[0].at, in_hub_of("member-1", "work-web"), "others are claimed");

    let requeue = observe_undecodable_removal(&mut view, Kind::InternalServiceImport, &at);
    assert!(requeue.contains(&import_key("work/app")), "{requeue:?}");
    assert_eq!(writes(&view, &import_key("work/app"))[0].at, at);
}

#[test]
fn how_an_import_is_claimed_waits_for_a_multi_cluster_service_that_cannot_be_decoded() {
    let Imported { import, .. } = imported();
    let mut view = member_view([import]);
    undecodable(&mut view, Kind::MultiClusterService, &named("work/app"));
    assert_eq!(planned(&view, &import_key("work/app")), Plan::default());
    let requeue = observe_change(&mut view, request("work/app").taken_on().object());
    assert!(requeue.contains(&import_key("work/app")), "{requeue:?}");
    assert!(matches!(writes(&view, &import_key("work/app"))[..], [Write { action: Action::Create(_), .. }]));
}

/// Asserts that a plan has no writes, and that its blocking reason names the object that a user must repair or delete.
fn assert_blocked_by(plan: &Plan, name: &str) {
    assert_eq!(plan.writes, []);
    let why = blocking_reasons(plan).first().map_or("", |(_, message)| message);
    assert!(why.contains(name) && why.contains("Repair or delete"), "{why:?}");
}

#[test]
fn what_is_being_deleted_stays_while_what_was_made_for_it_cannot_be_decoded() {
    let going = request("work/app").taken_on().deriving("work-app").deleting();
    let import = service_import("work/app").marked().deleting();
    let export = accepted_export("work/app").deleting();
    let import_made = named("work/app");
    let service_made = ObjectName::new(SYSTEM, "work-app");
    let in_hub = in_hub_of("member-1", "work-app");
    let table = [
        (going.clone().object(), request_key("work/app"), Kind::ServiceImport, import_made),
        (going.clone().object(), request_key("work/app"), Kind::Service, service_made),
        (import.object(), import_key("work/app"), Kind::InternalServiceImport, in_hub.clone()),
        (export.object(), member::Key::Export(named("work/app")), Kind::InternalServiceExport, in_hub),
    ];
    for (object, key, kind, made) in table {
        let mut view = member_view([object]);
        undecodable(&mut view, kind, &made);
        assert_blocked_by(&planned(&view, &key), &made.to_string());
        let requeue = observe_undecodable_removal(&mut view, kind, &made);
        assert!(requeue.contains(&key), "{key:?} is not in {requeue:?}");
        assert_eq!(writes(&view, &key).len(), 1, "{key:?} is let go");
    }
    let service = imported().service;
    let mut view = member_view([going.object(), service.clone()]);
    undecodable(&mut view, Kind::ServiceImport, &named("work/app"));
    assert_eq!(
        writes(&view, &request_key("work/app")),
        [Write::delete(Kind::Service, service.meta())],
        "the others go"
    );
}

// === Undecodable objects, seen by an exporting member agent ===

#[test]
fn an_own_export_that_cannot_be_decoded_gets_no_second_name() {
    let objects = || [service("work/app").object(), accepted_export("work/app").object()];
    let key = member::Key::Export(named("work/app"));
    let name = |view: &member::Planner| {
        let names: Vec<ObjectName> = writes(view, &key).into_iter().map(|write| write.at).collect();
        <[ObjectName; 1]>::try_from(names).expect("one export")
    };
    let mut view = member_view(objects());
    let [first] = name(&view);
    undecodable(&mut view, Kind::InternalServiceExport, &first);
    assert_eq!(planned(&view, &key), Plan::default());

    observe_change(&mut view, service("work/web").object());
    observe_change(&mut view, accepted_export("work/web").object());
    assert_eq!(writes(&view, &member::Key::Export(named("work/web"))).len(), 1, "others are exported");

    assert!(observe_undecodable_removal(&mut view, Kind::InternalServiceExport, &first).contains(&key));
    assert_eq!(name(&view), [first]);
}

#[test]
fn an_own_export_of_a_slice_that_cannot_be_decoded_gets_no_second_name() {
    let (one, other) = (slice("work/app-1"), slice("work/app-2"));
    let of_one = slice_export("member-1", &one).meta.name;
    let objects = [service("work/app").object(), accepted_export("work/app").object(), one.object(), other.object()];
    let mut view = member_view(objects);
    undecodable(&mut view, Kind::EndpointSliceExport, &of_one);
    let key = |slice: &str| member::Key::SliceExport(named(slice));
    assert_eq!(planned(&view, &key("work/app-1")), Plan::default());
    assert_eq!(writes(&view, &key("work/app-2")).len(), 1, "others are exported");
    assert!(observe_undecodable_removal(&mut view, Kind::EndpointSliceExport, &of_one).contains(&key("work/app-1")));
    assert_eq!(writes(&view, &key("work/app-1"))[0].at, of_one);
}

#[test]
fn an_export_that_went_without_naming_its_source_is_recreated_under_its_name() {
    let source = slice("work/app-1");
    let mut dying = slice_export("member-1", &source).deleting();
    dying.spec.reference.source.name = "".into();
    let export = Object::EndpointSliceExport(dying.clone());
    let objects = [service("work/app").object(), accepted_export("work/app").object(), source.object(), export];
    let mut view = member_view(objects);
    let key = member::Key::SliceExport(named("work/app-1"));
    assert_eq!(writes(&view, &key), [], "its name is not free yet");
    let requeue = observe_removal(&mut view, &Object::EndpointSliceExport(dying.clone()));
    assert!(requeue.contains(&key), "{requeue:?}");
    assert_eq!(writes(&view, &key)[0].at, dying.meta.name);
}

#[test]
fn what_is_exported_stays_while_its_source_or_its_service_export_cannot_be_decoded() {
    let (app, source) = (service("work/app"), slice("work/app-1"));
    let internal = internal_export("member-1", &app).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let exported = Object::EndpointSliceExport(slice_export("member-1", &source));
    let (export_key, slice_key) =
        (member::Key::Export(named("work/app")), member::Key::SliceExport(named("work/app-1")));
    let all = [app.object(), accepted_export("work/app").object(), source.object()];
    let keys_of = |kind| if kind == Kind::EndpointSlice { vec![&slice_key] } else { vec![&export_key, &slice_key] };
    for hidden in &all {
        let kind = hidden.kind();
        let others = all.iter().filter(|object| object.kind() != kind).cloned();
        let mut view = member_view(others.chain([internal.clone().object(), exported.clone()]));
        for key in keys_of(kind) {
            assert!(!writes(&view, key).is_empty(), "without the {kind:?} {key:?} withdraws");
        }
        undecodable(&mut view, kind, &hidden.meta().name);
        for key in [&export_key, &slice_key] {
            assert_eq!(planned(&view, key), Plan::default(), "the {kind:?} cannot be read");
        }
        let requeue = observe_undecodable_removal(&mut view, kind, &hidden.meta().name);
        for key in keys_of(kind) {
            assert!(requeue.contains(key), "{key:?} is not in {requeue:?}");
        }
    }

    // The source slice is gone. So the agent withdraws its export, even while the Service is undecodable.
    let mut view = member_view([all[1].clone(), internal.object(), exported.clone()]);
    undecodable(&mut view, Kind::Service, &named("work/app"));
    assert_eq!(writes(&view, &slice_key), [Write::delete(Kind::EndpointSliceExport, exported.meta())]);
    observe_change(&mut view, slice("work/app-2").object());
    assert_eq!(writes(&view, &slice_key), [], "what takes its place cannot be exported yet");
}

#[test]
fn an_imported_slice_of_an_undecodable_import_is_not_exported_whatever_its_label() {
    let distributed = distributed("work/app-1");
    let mut relabelled = imported_slice(&distributed.meta.name.name, "app");
    (relabelled.imported, relabelled.observed_generation) = (false, None);
    let app = format!("{SYSTEM}/app");
    let objects = [service(&app).object(), accepted_export(&app).object(), relabelled.clone().object()];
    let mut view = member_view(objects);
    let key = member::Key::SliceExport(relabelled.meta.name);
    assert_eq!(writes(&view, &key).len(), 1);
    undecodable(&mut view, Kind::EndpointSliceImport, &distributed.meta.name);
    assert_eq!(planned(&view, &key), Plan::default());
}
