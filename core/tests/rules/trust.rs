//! Tests of limited trust in members. Whatever a member writes in its own hub namespace, other members are not harmed.

use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, BuildNamespace, BuildService, IntoObject,
    claim, distributed_slice, in_hub_of, internal_export, named, namespace, no_conflict, port, resolved, seconds,
    service, service_import, slice, slice_export,
};
use crate::support::view::{
    blocking_reasons, claimed_hub_view, events_of, hub_view, member_view, observe_change, observe_removal,
    observe_undecodable_removal, planned, undecodable, writes,
};
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::member;
use fleetnet_core::model::{HubSlice, InternalServiceImport, Kind, Object, ServiceImport};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName};
use std::collections::BTreeMap;

fn slice_key(export: &HubSlice) -> Key {
    Key::Slice(export.meta.name.name.clone())
}

/// Returns the ServiceImport of `work/app`, which member-1 exports and member-3 imports.
fn claimed() -> ServiceImport {
    service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-3"])
}

/// Returns the ServiceImport of [`claimed`] with member-2 as a second accepted exporter.
fn shared() -> ServiceImport {
    claimed().showing(resolved(&["member-1", "member-2"]))
}

/// Returns an export of member-1 with finalizer, its distributed slice for member-3, and the ServiceImport of the
/// Service.
fn standing() -> [Object; 3] {
    let export = distributed();
    let distributed = distributed_slice("member-3", &export);
    [Object::EndpointSliceExport(export), Object::EndpointSliceImport(distributed), claimed().object()]
}

fn distributed() -> HubSlice {
    slice_export("member-1", &slice("work/app-1")).marked().created(seconds(2))
}

fn view_of(objects: impl IntoIterator<Item = HubSlice>) -> Planner {
    claimed_hub_view(standing().into_iter().chain(objects.into_iter().map(Object::EndpointSliceExport)))
}

// === The cluster id of a member comes from the hub namespace, not from the content of the object ===

/// Also rule T1.
#[test]
fn a_distributed_slice_names_the_cluster_of_the_namespace_that_it_comes_from() {
    let mut liar = distributed();
    liar.spec.reference.cluster = "member-9".into();
    let view = claimed_hub_view([Object::EndpointSliceExport(liar.clone()), claimed().object()]);
    let planned = writes(&view, &slice_key(&liar));
    let [Write { action: Action::Create(Desired::EndpointSliceImport(spec)), .. }] = &planned[..] else {
        panic!("one distributed slice, not {planned:#?}");
    };
    assert_eq!(&*spec.reference.cluster, "member-1");

    let mut copied = distributed_slice("member-3", &liar);
    let view = claimed_hub_view([
        Object::EndpointSliceExport(liar.clone()),
        Object::EndpointSliceImport(copied.clone()),
        claimed().object(),
    ]);
    assert_eq!(writes(&view, &slice_key(&liar)).len(), 1, "a distributed slice that says otherwise is mended");
    copied.spec.reference.cluster = "member-1".into();
    let updated = [Object::EndpointSliceExport(liar.clone()), Object::EndpointSliceImport(copied), claimed().object()];
    assert_eq!(writes(&claimed_hub_view(updated), &slice_key(&liar)), []);
}

/// Rule T2: An InternalServiceExport or a claim (InternalServiceImport) is in a namespace that is no member namespace
/// Then: The hub agent ignores the InternalServiceExport or claim. The ignored object blocks no other object
#[test]
fn a_cluster_that_is_no_member_exports_no_slices_and_blocks_nobody() {
    let mut stranger = distributed().created(seconds(1)).uid("stranger");
    stranger.meta.name.namespace = "default".into();
    let view = view_of([stranger.clone()]);
    let unmark = Write::remove_finalizer(Kind::EndpointSliceExport, &stranger.meta);
    assert_eq!(writes(&view, &slice_key(&stranger)), [unmark], "the distributed slices of member-1 stay");
    stranger.meta.finalizers.ours = false;
    assert_eq!(writes(&view_of([stranger.clone()]), &slice_key(&stranger)), []);
    assert_eq!(writes(&hub_view([Object::EndpointSliceExport(stranger.clone())]), &slice_key(&stranger)), []);
}

/// Rule T8: A member writes a time before the creation of its InternalServiceExport to the annotation
/// `ports-offered-since`
/// Then: The hub agent counts the age of the ports from the creationTimestamp of the InternalServiceExport
#[test]
fn no_port_set_is_older_than_its_export() {
    let export = |cluster: &str, number| internal_export(cluster, &service("work/app").ports(&[port("http", number)]));
    let honest = export("member-1", 80).created(seconds(5)).port_set_since(seconds(6));
    let import = service_import("work/app");
    for (made, winner) in [(7, "member-1"), (4, "member-2")] {
        let forged = export("member-2", 81).created(seconds(made)).port_set_since(seconds(1));
        let view = hub_view([honest.clone().object(), forged.object(), import.clone().object()]);
        let planned = writes(&view, &Key::Service(named("work/app")));
        let [Write { action: Action::Patch { patch: Patch::ServiceImportStatus(status), .. }, .. }] = &planned[..]
        else {
            panic!("one status, not {planned:#?}");
        };
        assert_eq!(status.clusters, [winner.into()], "made at second {made}");
    }
}

// === A second export with the name or source slice of another namespace's export is not distributed ===

/// Returns an export of member-2 that has the name of member-1's export.
fn second_of_name() -> HubSlice {
    let mut second = slice_export("member-2", &slice("work/app-1").uid("other")).created(seconds(3));
    second.meta.name.name = distributed().meta.name.name;
    second
}

/// Returns an export by member-2 of member-1's source slice.
fn second_of_slice() -> HubSlice {
    slice_export("member-2", &slice("work/app-1")).uid("second").created(seconds(3))
}

/// Rule D8: Two members create an EndpointSliceExport with the same name
/// Then: The EndpointSliceExport with the oldest creationTimestamp owns the name. If both EndpointSliceExports have the
/// same creationTimestamp, the EndpointSliceExport in the alphabetically first member namespace owns the name
/// (exception: rule T6). The hub agent does not distribute the EndpointSliceExport that does not own the name
///
/// Rule T3: A member exports a slice under a name that belongs to an EndpointSliceExport in another namespace
/// Then: The hub agent does not distribute the EndpointSliceExport of this member, and emits `NameHeldByAnother` once.
/// The finalizer of the EndpointSliceExport records that the Event was emitted, so the Event is not repeated
#[test]
fn a_second_export_under_a_name_that_another_namespace_holds_is_not_distributed_and_emits_one_event() {
    let second = second_of_name();
    let plan = planned(&view_of([second.clone()]), &slice_key(&second));
    let marking = Write::add_finalizer(Kind::EndpointSliceExport, &second.meta);
    assert_eq!(plan.writes.iter().map(|write| &write.action).collect::<Vec<_>>(), [&marking.action]);
    let holder = distributed().meta.name;
    let message = format!(
        "EndpointSlice work/app-1 of cluster member-2 is not distributed: EndpointSliceExport {holder} of cluster \
         member-1 already uses the name. Delete the one that does not belong there"
    );
    assert_eq!(events_of(&plan), [("NameHeldByAnother", &*message)]);
    assert_eq!(blocking_reasons(&plan), events_of(&plan));
    let updated = second.marked();
    assert_eq!(
        writes(&view_of([updated.clone()]), &slice_key(&updated)),
        [],
        "its finalizer remembers that it was told"
    );
}

/// Rule T4: A member exports a slice, and another member namespace already exports a slice with the same UID for the
/// same Service
/// Then: The hub agent does not distribute the second EndpointSliceExport, and deletes the distributed slices
/// (EndpointSliceImports) of the second EndpointSliceExport. The hub agent emits `SliceHeldByAnother` once
#[test]
fn a_second_export_of_a_slice_that_another_namespace_holds_is_not_distributed_and_emits_one_event() {
    let second = second_of_slice();
    assert_ne!(second.meta.name.name, distributed().meta.name.name);
    let plan = planned(&view_of([second.clone()]), &slice_key(&second));
    let marking = Write::add_finalizer(Kind::EndpointSliceExport, &second.meta);
    assert_eq!(plan.writes.iter().map(|write| &write.action).collect::<Vec<_>>(), [&marking.action]);
    let holder = distributed().meta.name;
    let message = format!(
        "EndpointSlice work/app-1 (uid uid-app-1) of cluster member-2 is not distributed: cluster member-1 already \
         exports it, as EndpointSliceExport {holder}. If one cluster joined the fleet under two ids, remove one of \
         them. Otherwise one of the two clusters exports a slice of the other"
    );
    assert_eq!(events_of(&plan), [("SliceHeldByAnother", &*message)]);
    assert_eq!(blocking_reasons(&plan), events_of(&plan));
    let updated = second.marked();
    assert_eq!(writes(&view_of([updated.clone()]), &slice_key(&updated)), []);
    assert_eq!(writes(&view_of([updated]), &slice_key(&distributed())), [], "the holder is served as before");
}

/// Also rule T4.
#[test]
fn distributed_slices_of_an_export_that_becomes_second_are_deleted_with_one_event() {
    let second = second_of_slice().marked();
    let distributed = distributed_slice("member-3", &second);
    let view = hub_view(
        standing()
            .into_iter()
            .chain([Object::EndpointSliceExport(second.clone()), Object::EndpointSliceImport(distributed.clone())]),
    );
    let plan = planned(&view, &slice_key(&second));
    let [withdrawal] = &plan.writes[..] else { panic!("one withdrawal, not {plan:#?}") };
    assert_eq!(withdrawal.action, Write::delete(Kind::EndpointSliceImport, &distributed.meta).action);
    assert_eq!(events_of(&plan).into_iter().map(|(reason, _)| reason).collect::<Vec<_>>(), ["SliceHeldByAnother"]);
}

/// Rule T5: An EndpointSliceExport that is not distributed (rules T3, T4) is deleted, or the competing
/// EndpointSliceExport is removed
/// Then: If the undistributed EndpointSliceExport is deleted, the hub agent removes its finalizer at once. If the
/// competing EndpointSliceExport is removed, the hub agent distributes the undistributed EndpointSliceExport, and no
/// user needs to act
#[test]
fn the_deletion_of_an_undistributed_export_is_not_blocked() {
    for second in [second_of_name(), second_of_slice()] {
        let dying = second.marked().deleting();
        let unmark = Write::remove_finalizer(Kind::EndpointSliceExport, &dying.meta);
        assert_eq!(writes(&view_of([dying.clone()]), &slice_key(&dying)), [unmark]);
        let unmarked =
            HubSlice { meta: fleetnet_core::model::Meta { finalizers: Default::default(), ..dying.meta }, ..dying };
        assert_eq!(writes(&view_of([unmarked.clone()]), &slice_key(&unmarked)), []);
    }
}

/// Also rule T5.
#[test]
fn an_undistributed_export_is_distributed_when_the_holder_is_gone() {
    let distribution_of = |export: &HubSlice| {
        let at = in_hub_of("member-3", &export.meta.name.name);
        let mut spec = export.spec.clone();
        spec.reference.cluster = "member-2".into();
        Write::create(at, Desired::EndpointSliceImport(spec))
    };
    for second in [second_of_name(), second_of_slice()] {
        let second = second.marked();
        let holder = Object::EndpointSliceExport(distributed());
        let dying = Object::EndpointSliceExport(distributed().deleting());
        let mut view = claimed_hub_view([holder, shared().object(), Object::EndpointSliceExport(second.clone())]);
        let key = slice_key(&second);
        observe_change(&mut view, dying.clone());
        assert!(!writes(&view, &key).contains(&distribution_of(&second)), "while the holder goes");
        assert!(observe_removal(&mut view, &dying).contains(&key));
        assert_eq!(writes(&view, &key), [distribution_of(&second)]);
    }
}

/// Rule T7: One member exports a slice twice, or the reference in an EndpointSliceExport has no UID
/// Then: The hub agent distributes each of these EndpointSliceExports as usual
#[test]
fn one_member_may_export_a_slice_twice_for_a_moment() {
    let second = distributed().called("member-1-work-app-1-fffff").uid("second").created(seconds(3));
    let planned = writes(&view_of([second.clone()]), &slice_key(&second));
    assert!(matches!(&planned[..], [Write { action: Action::Create(_), .. }]), "{planned:#?}");
}

/// Also rule T7.
#[test]
fn a_reference_without_uid_is_nobodys() {
    let mut first = distributed();
    first.spec.reference.uid = "".into();
    let mut second = second_of_slice().marked();
    second.spec.reference.uid = "".into();
    let exports = [first, second.clone()].map(Object::EndpointSliceExport);
    let planned = writes(&claimed_hub_view(exports.into_iter().chain([shared().object()])), &slice_key(&second));
    assert!(matches!(&planned[..], [Write { action: Action::Create(_), .. }]), "{planned:#?}");
}

/// Rule T6: Two members export slices under one name, or export the same slice
/// Then: If the name starts with the cluster id of one of the members, the name belongs to this member. Otherwise, the
/// name belongs to the oldest EndpointSliceExport with this name. A source slice belongs to the accepted exporter of
/// its Service. Without an accepted exporter, the source slice belongs to its oldest EndpointSliceExport. An
/// EndpointSliceExport that does not own its name owns no source slice. EndpointSliceExports of different Services do
/// not compete for a source slice
#[test]
fn nobody_captures_the_name_of_another_clusters_slice() {
    // member-2 created its export first, under the name that the export of member-1 gets later.
    let squatter = second_of_name().created(seconds(1)).marked();
    assert_eq!(writes(&view_of([squatter.clone()]), &slice_key(&squatter)), [], "the slice of member-1 stays");
    assert_eq!(planned(&view_of([squatter.clone()]), &slice_key(&squatter)).blocking_reasons.len(), 1);
}

/// Also rule T6.
#[test]
fn nobody_captures_a_slice_of_a_service_that_it_does_not_export() {
    // member-2 imported member-1's slice, so it knows the UID of the slice. member-2 exports the slice under this UID
    // before member-1 does.
    let squatter = second_of_slice().created(seconds(1)).marked();
    let mut view = view_of([squatter.clone()]);
    assert_eq!(writes(&view, &slice_key(&squatter)), []);
    assert_eq!(writes(&view, &slice_key(&distributed())), [], "the slice of member-1 stays");

    // If both members are accepted exporters of the Service, the older of the two exports is distributed. So the
    // distributed slice of member-1 is deleted.
    let requeue = observe_change(&mut view, shared().version(2).object());
    assert!(requeue.contains(&slice_key(&squatter)) && requeue.contains(&slice_key(&distributed())), "{requeue:?}");
    let planned = writes(&view, &slice_key(&distributed()));
    assert!(matches!(&planned[..], [Write { action: Action::Delete { .. }, .. }]), "{planned:#?}");
}

/// Also rule T6.
#[test]
fn nobody_captures_a_slice_with_a_service_of_its_own() {
    // member-2 is an accepted exporter of its own Service `other/app`. It exports one of member-1's slices as a slice
    // of this Service.
    let mut squatter = second_of_slice().created(seconds(1)).marked();
    squatter.spec.owner = named("other/app");
    let own = service_import("other/app").showing(resolved(&["member-2"]));
    let export = Object::EndpointSliceExport(distributed());
    let view = claimed_hub_view([Object::EndpointSliceExport(squatter), export, own.object(), claimed().object()]);
    let planned = writes(&view, &slice_key(&distributed()));
    assert!(matches!(&planned[..], [Write { action: Action::Create(_), .. }]), "{planned:#?}");
}

/// Also rule T6.
#[test]
fn an_export_without_its_name_holds_no_slice_of_others() {
    // member-2's export has the name of one of member-1's exports (`work/app-1`), and the source reference of another
    // (`work/app-2`).
    let other = slice_export("member-1", &slice("work/app-2")).marked().created(seconds(3));
    let mut squatter = second_of_name().created(seconds(1)).marked();
    squatter.spec.reference = other.spec.reference.clone();
    let mut view = view_of([squatter, other.clone()]);
    observe_change(&mut view, shared().version(2).object());
    let planned = writes(&view, &slice_key(&other));
    assert!(matches!(&planned[..], [Write { action: Action::Create(_), .. }]), "{planned:#?}");
    assert_eq!(planned[0].at, in_hub_of("member-3", &other.meta.name.name));
}

/// Rule T33: One member exports one source slice many times
/// Then: A source slice has one owner among its EndpointSliceExports (rule T6). If the owner changes, the hub agent
/// requeues each EndpointSliceExport of the source slice once. After any other change, the hub agent requeues only the
/// changed EndpointSliceExport
#[test]
fn however_many_exports_claim_a_source_slice_each_is_requeued_once() {
    let empty = |index: usize| {
        let mut export = second_of_slice().with_addresses(&[], 1);
        export.meta.name.name = format!("member-2-work-app-1-{index:05}").into();
        Object::EndpointSliceExport(export)
    };
    let mut view = hub_view(standing().into_iter().chain((0..50).map(empty)));
    for (change, keys) in [(empty(50), 1), (shared().version(2).object(), 3 * 52)] {
        let requeue = observe_change(&mut view, change);
        assert!(requeue.len() <= keys, "{}", requeue.len());
    }
}

// === Only members that claim the Service get distributed slices ===

/// Rule T34: The record of importers (`service-in-use-by`) has an entry for a namespace that is no member namespace, or
/// that has no claim (InternalServiceImport)
/// Then: The hub agent creates nothing for the entry. Slices that are already distributed for the entry stay until the
/// entry is removed. An undecodable claim counts as an existing claim, so this rule does not apply to its entry
#[test]
fn nothing_is_distributed_to_a_recorded_importer_without_a_claim() {
    let recorded = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2", "member-3"]);
    let exported = distributed();
    let claims = claim("member-3", &service_import("work/app")).east_west().marked();
    let objects = [Object::EndpointSliceExport(exported.clone()), recorded.object(), claims.object()];
    let planned = |more: Vec<Object>| {
        let view = hub_view(objects.clone().into_iter().chain(more));
        writes(&view, &slice_key(&exported)).into_iter().map(|write| write.at).collect::<Vec<_>>()
    };
    let at = |importer: &str| in_hub_of(importer, &exported.meta.name.name);
    assert_eq!(planned(Vec::new()), [at("member-3")]);

    // An importer without a claim keeps a slice that was already distributed to it, until the ServiceImport no longer
    // records the importer.
    let distributed = distributed_slice("member-2", &exported);
    assert_eq!(planned(vec![Object::EndpointSliceImport(distributed)]), [at("member-3")]);

    let claimed = claim("member-2", &service_import("work/app")).east_west();
    assert_eq!(planned(vec![claimed.clone().object()]), [at("member-2"), at("member-3")]);
    assert_eq!(planned(vec![claimed.deleting().object()]), [at("member-3")], "one that goes");

    // A claim of a member that has no right to import from this namespace has no effect.
    let closed = namespace("work").imported_from_by("member-3");
    let claimed = claim("member-2", &service_import("work/app")).east_west();
    assert_eq!(planned(vec![closed.object(), claimed.object()]), [at("member-3")]);
}

/// Also rule T34.
#[test]
fn a_recorded_importer_with_an_undecodable_claim_keeps_its_slices() {
    let recorded = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let exported = distributed();
    let mut view = hub_view([Object::EndpointSliceExport(exported.clone()), recorded.object()]);
    let unmark = Write::remove_finalizer(Kind::EndpointSliceExport, &exported.meta);
    assert_eq!(writes(&view, &slice_key(&exported)), std::slice::from_ref(&unmark));
    let claim_name = in_hub_of("member-2", "work-app");
    undecodable(&mut view, Kind::InternalServiceImport, &claim_name);
    let planned = writes(&view, &slice_key(&exported));
    assert!(matches!(&planned[..], [Write { action: Action::Create(_), .. }]), "{planned:#?}");
    let requeue = observe_undecodable_removal(&mut view, Kind::InternalServiceImport, &claim_name);
    assert!(requeue.contains(&slice_key(&exported)), "{requeue:?}");
    assert_eq!(writes(&view, &slice_key(&exported)), [unmark]);
}

/// Also rule T34.
#[test]
fn nothing_is_written_to_what_is_recorded_and_cannot_be_the_namespace_of_a_member() {
    for namespace in
        ["default", "fleet-member-", "fleet-member-../default", "fleet-member-a/b", "fleet-member-a?dryRun=All"]
    {
        let mut recorded = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&[]);
        recorded.claims.importers.insert(namespace.into(), "member-2".into());
        let mut claimed = claim("member-2", &service_import("work/app")).east_west();
        claimed.meta.name.namespace = namespace.into();
        let objects = [Object::EndpointSliceExport(distributed()), recorded.object(), claimed.object()];
        assert_eq!(
            writes(&hub_view(objects), &slice_key(&distributed())),
            [Write::remove_finalizer(Kind::EndpointSliceExport, &distributed().meta)],
            "{namespace:?}"
        );
    }
}

// === What a member does to its own exports ===

/// Rule T30: The hub agent adds the finalizer and the stamp (`ports-offered-since`) to an accepted
/// InternalServiceExport. Each time, the member removes the finalizer and the stamp again
/// Then: The hub agent ignores this export in conflict resolution. No other export waits for this export
#[test]
fn an_export_that_cannot_be_stamped_delays_nobody() {
    let accepted = |cluster: &str| internal_export(cluster, &service("work/app")).judged(no_conflict("work/app"));
    // member-2 removes the hub agent's finalizer and `ports-offered-since` from its export again and again, or fills
    // the object up to the size limit, so that the hub agent cannot add them.
    let bare = accepted("member-2");
    let joins = internal_export("member-3", &service("work/app")).port_set_since(seconds(9));
    let import = service_import("work/app").showing(resolved(&["member-1", "member-2"]));
    let objects = [accepted("member-1").port_set_since(seconds(2)).object(), bare.object(), joins.object()];
    let view = hub_view(objects.into_iter().chain([import.clone().object()]));
    let shown = Patch::ServiceImportStatus(resolved(&["member-1", "member-3"]));
    let planned = writes(&view, &Key::Service(named("work/app")));
    assert!(planned.contains(&Write::patch(&import.meta, shown)), "{planned:#?}");
}

/// Rule T31: The source Service in an InternalServiceExport has a name that is invalid for a Service
/// Then: The hub agent creates no ServiceImport for the InternalServiceExport, and logs the reason
#[test]
fn nothing_is_made_for_an_export_whose_source_has_a_name_that_no_service_can_have() {
    for (namespace, name) in [("../x", "app"), ("work", "app?dryRun=All"), ("a b", "app"), ("work", "")] {
        let mut export = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
        export.reference.source = ObjectName::new(namespace, name);
        let plan = planned(&hub_view([export.clone().object()]), &Key::Service(export.reference.source));
        assert_eq!((plan.writes.len(), plan.blocking_reasons.len()), (0, 1), "{namespace:?} {name:?}");
    }
}

/// Rule T32: A member exports slices without an accepted export of the Service: the member has no export, or its export
/// is conflicted
/// Then: The hub agent creates no new distributed slices (EndpointSliceImports) for this member's EndpointSliceExports.
/// The hub agent updates existing distributed slices until the member sees the outcome and withdraws its slices. No
/// withdrawal of other slices waits for these slices
#[test]
fn slices_of_an_exporter_that_is_not_accepted_are_not_distributed() {
    let fresh = slice_export("member-2", &slice("work/app-2"));
    let mut view = view_of([fresh.clone()]);
    assert_eq!(writes(&view, &slice_key(&fresh)), [], "nor marked");
    assert!(observe_change(&mut view, shared().version(2).object()).contains(&slice_key(&fresh)));
    assert_eq!(writes(&view, &slice_key(&fresh)), [Write::add_finalizer(Kind::EndpointSliceExport, &fresh.meta)]);

    // A slice that was distributed before the export was in conflict has the finalizer. It is not distributed to new
    // importers.
    let name = fresh.meta.name.name.clone();
    let key = Key::DistributedSlice { slice: name, importer: in_hub_of("member-3", "").member_namespace() };
    assert_eq!(view_of([fresh.clone().marked()]).plan(&key, seconds(20)).writes, []);

    // If an importer already has the slice, it still gets changes of the slice. This ends when member-2 sees that its
    // export is not accepted, and withdraws the slice.
    let exported = fresh.marked();
    let distributed = Object::EndpointSliceImport(distributed_slice("member-3", &exported));
    let mut view = view_of([exported.clone().with_addresses(&["10.0.0.9"], 2)]);
    observe_change(&mut view, distributed);
    let planned = writes(&view, &slice_key(&exported));
    assert!(matches!(&planned[..], [Write { action: Action::Patch { .. }, .. }]), "{planned:#?}");

    // A slice of member-2 is being deleted. It waits for its replacement only if member-2 is an accepted exporter.
    let (going, distributed) = (exported.clone().deleting(), distributed_slice("member-3", &exported));
    let next = Object::EndpointSliceExport(slice_export("member-2", &slice("work/app-3")).marked());
    let withdrawal = Write::delete(Kind::EndpointSliceImport, &distributed.meta);
    for (import, expected) in [(claimed(), vec![withdrawal]), (shared(), vec![])] {
        let objects = [Object::EndpointSliceExport(going.clone()), Object::EndpointSliceImport(distributed.clone())];
        let view = hub_view(objects.into_iter().chain([next.clone(), import.object()]));
        assert_eq!(writes(&view, &slice_key(&going)), expected);
    }
}

/// Rule C10: Several members import a Service, one of them with type LoadBalancer
/// Then: The annotation `service-in-use-by` lists all importing members. Its key `LoadBalancer` contains the member
/// with the exclusive claim. The hub agent does not trust the type in a claim (InternalServiceImport), because each
/// member can write its own claims. A member cannot become the exclusive importer by a change of type, and cannot use a
/// second claim to get ahead of pending claims. If only one member imports the Service, `service-in-use-by` has the
/// format of the Go agents
#[test]
fn one_importer_of_several_does_not_become_exclusive() {
    let both = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2", "member-3"]);
    let import = both.claimed_alone_by("member-3");
    let claim_of = |cluster: &str, at: i64| {
        claim(cluster, &service_import("work/app")).created(seconds(at)).marked().with_status(resolved(&["member-1"]))
    };
    let (shared, holder) = (claim_of("member-2", 1).east_west(), claim_of("member-3", 5));
    let internal =
        internal_export("member-1", &service("work/app")).port_set_since(seconds(2)).judged(no_conflict("work/app"));
    let planned = |import: &ServiceImport, claims: &[&InternalServiceImport]| {
        let claims = claims.iter().map(|claim| (*claim).clone().object());
        let view = hub_view([internal.clone().object(), import.clone().object()].into_iter().chain(claims));
        writes(&view, &Key::Service(named("work/app")))
    };
    assert_eq!(planned(&import, &[&shared, &holder]), []);

    // member-2 can change its own claim, which is older than the claim of member-3, to type LoadBalancer. member-3
    // keeps the exclusive claim.
    let turned = claim_of("member-2", 1);
    let sole = claims_of("member-3");
    let struck = Patch::Claims { importers: sole, load_balancer: None, finalizers: import.meta.finalizers.clone() };
    assert_eq!(planned(&import, &[&turned, &holder]), [Write::patch(&import.meta, struck)]);

    // Member-2 shares the import and adds a second claim, of type LoadBalancer. The older claim of member-3, which
    // already waits, is granted first.
    let alone = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let waiting = |cluster: &str, at: i64| claim(cluster, &service_import("work/app")).created(seconds(at));
    let (mut second, waits) = (waiting("member-2", 9), waiting("member-3", 5));
    second.meta.name.name = "second".into();
    let mark = Write::add_finalizer(Kind::InternalServiceImport, &waits.meta);
    assert_eq!(planned(&alone, &[&shared, &waits, &second]), [mark]);
}

/// Also rule D11.
#[test]
fn distributed_slices_stay_of_an_export_that_was_edited_to_belong_to_a_service_that_nobody_exports() {
    let (export, distributed) = (distributed(), distributed_slice("member-3", &distributed()));
    let mut edited = export;
    edited.spec.owner = named("work/another");
    let key = slice_key(&edited);
    let view = hub_view([
        Object::EndpointSliceExport(edited),
        Object::EndpointSliceImport(distributed),
        claimed().object(),
        claim("member-3", &service_import("work/app")).marked().object(),
    ]);
    assert_eq!(writes(&view, &key), [], "its member is about to mend that");
}

fn claims_of(cluster: &str) -> BTreeMap<MemberNamespace, ClusterId> {
    [(names::member_namespace(cluster), cluster.into())].into()
}

// === Metrics of a departed member are dropped ===

/// Rule T27: A cluster has left the fleet: no distributed slice (EndpointSliceImport) comes from the cluster, and no
/// Service is imported from the cluster
/// Then: The member agent removes the metric series of the cluster from its metrics
#[test]
fn a_cluster_is_an_origin_while_anything_comes_from_it_or_is_imported_from_it() {
    let origins = |view: &member::Planner| ["member-2", "member-3"].map(|cluster| view.is_origin(&cluster.into()));
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1")));
    let mut view = member_view([Object::EndpointSliceImport(distributed.clone())]);
    assert_eq!(origins(&view), [true, false]);
    let mut of_other = distributed.version(2);
    of_other.spec.reference.cluster = "member-3".into();
    observe_change(&mut view, Object::EndpointSliceImport(of_other.clone()));
    assert_eq!(origins(&view), [false, true]);

    let claim = claim("member-1", &service_import("work/app")).with_status(resolved(&["member-2"])).object();
    observe_change(&mut view, claim.clone());
    observe_removal(&mut view, &Object::EndpointSliceImport(of_other));
    assert_eq!(origins(&view), [true, false], "one without slices, and one without anything");
    observe_removal(&mut view, &claim);
    assert_eq!(origins(&view), [false, false]);
}
