//! Tests of imports by the standard API in the member agent: the derived Service and the ServiceImport.

use crate::support::agent::{View as _, applied, removed};
use crate::support::build::{
    Build, BuildHubSlice, IntoObject, distributed_slice, in_hub_of, merged_service_import, named, namespace, port,
    seconds, service, slice, slice_export,
};
use crate::support::mcs::{self, app, import, importing, merged, view, view_of};
use crate::support::view::{
    NOW, SEEN, blocking_reasons, observe_and_plan, observe_change, observe_removal, planned, planned_at, undecodable,
    writes,
};
use crate::support::world::settings;
use fleetnet_core::limits::RESTORE_GRACE_MICROS;
use fleetnet_core::member::{Key, McsApi, Planner, Settings};
use fleetnet_core::model::{
    AddressType, ImportType, IpFamily, Kind, McsImportSpec, McsProperties, McsServiceImport, MergedImport,
    MergedServiceImport, Object, Service, ServiceType, SessionAffinity,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, Plan, Write};
use fleetnet_types::{ObjectName, WatchState};
use std::sync::Arc;

fn key() -> Key {
    Key::McsImport(app())
}

fn settle(view: &mut Planner) -> Vec<String> {
    mcs::settle(view, &key())
}

fn derived(view: &Planner) -> Option<Service> {
    view.services.get(&names::mcs_derived(&app())).cloned()
}

/// Returns status, reason and message of the condition `Ready` of the ServiceImport.
fn ready(view: &Planner) -> (&'static str, String, String) {
    let import = imported(view).expect("an import");
    let ready = &import.status.conditions[0];
    assert_eq!(&*ready.condition_type, "Ready");
    (ready.status.as_str(), ready.reason.to_string(), ready.message.to_string())
}

fn imported(view: &Planner) -> Option<McsServiceImport> {
    view.mcs_imports.get(&app()).cloned()
}

/// Rule MI6: An import begins
/// Then: The member agent adds its finalizer to the MergedServiceImport and creates the derived Service. Then it
/// creates the ServiceImport, with addresses and families of the derived Service in one write, and then its status
///
/// Rule MI9: A cluster joins or leaves the exporters of an imported Service
/// Then: The member agent updates `status.clusters` of the ServiceImport, in one write
#[test]
fn an_import_is_made_in_four_writes_and_one_in_the_hub() {
    let mut view = view([importing().object(), merged(import()).object()]);
    let expected =
        ["patch MergedServiceImport", "create Service", "create McsServiceImport", "status McsServiceImport"];
    assert_eq!(settle(&mut view), expected);
    let (derived, present) = (derived(&view).expect("a Service"), imported(&view).expect("a ServiceImport"));
    assert_eq!(derived.imports.as_deref(), Some("app"));
    assert_eq!(derived.internal_traffic_policy.as_deref(), Some("Cluster"), "imported endpoints have no node");
    assert_eq!(present.spec.ips, derived.cluster_ips);
    assert_eq!(present.spec.properties.families, [IpFamily::IPv4]);
    assert_eq!(present.spec.properties.internal_traffic_policy.as_deref(), Some("Local"));
    assert_eq!(present.spec.properties.labels, import().properties.labels);
    assert_eq!(present.status.clusters, ["member-2", "member-3"].map(Into::into));
    assert!(present.status.has_slices);
    assert_eq!(&*present.status.conditions[0].reason, "Ready");
    assert!(view.merged_imports.iter().all(|merged| merged.meta.finalizers.ours));
    let mut left = merged(import()).marked();
    Arc::make_mut(&mut left.import).clusters.pop();
    observe_change(&mut view, left.version(9).object());
    assert_eq!(settle(&mut view), ["status McsServiceImport"], "a cluster left");
}

/// Rule MI2: The hub has a MergedServiceImport for a Service, and the member has a namespace with the name of the
/// Service's namespace
/// Then: The member agent imports the Service if the namespace has the label `fleetnet/import: "true"`, or if all
/// namespaces import. Namespaces of Kubernetes and `fleet-system` never import
#[test]
fn only_allowed_namespaces_import() {
    let system = merged_service_import("member-1", "kube-system/app", &Arc::new(import()));
    let fleet = merged_service_import("member-1", "fleet-system/app", &Arc::new(import()));
    let table = [
        (McsApi::LabelledNamespaces, importing(), merged(import()), true),
        (McsApi::LabelledNamespaces, namespace("work"), merged(import()), false),
        (McsApi::AllNamespaces, namespace("work"), merged(import()), true),
        (McsApi::AllNamespaces, namespace("work").deleting(), merged(import()), false),
        (McsApi::AllNamespaces, namespace("other"), merged(import()), false),
        (McsApi::AllNamespaces, namespace("kube-system"), system, false),
        (McsApi::AllNamespaces, namespace("fleet-system"), fleet, false),
        (McsApi::Off, importing(), merged(import()), false),
    ];
    for (api, namespace, merged, imports) in table {
        let shown = format!("{api:?} {namespace:?}");
        let key = Key::McsImport(merged.service.clone());
        let view = view_of(api, [namespace.object(), merged.object()]);
        assert_eq!(!writes(&view, &key).is_empty(), imports, "{shown}");
    }
}

/// Rule MI5: An import ends
/// Then: The member agent removes its finalizer from the MergedServiceImport when the ServiceImport is gone
///
/// Also rule MI4.
#[test]
fn an_import_ends_with_its_label_at_once_and_with_its_last_export_after_the_grace_of_the_derived_service() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    assert!(observe_change(&mut view, namespace("work").version(2).object()).contains(&key()));
    assert!(writes(&view, &key()).iter().all(|write| write.kind() != Kind::MergedServiceImport), "not yet");
    assert_eq!(settle(&mut view), ["delete McsServiceImport", "delete Service", "patch MergedServiceImport"]);
    assert!(view.merged_imports.iter().all(|merged| !merged.meta.finalizers.ours));

    observe_change(&mut view, importing().version(3).object());
    settle(&mut view);
    let marked = merged(import()).marked().deleting().version(9);
    assert!(observe_change(&mut view, marked.object()).contains(&key()));
    assert_eq!(settle(&mut view), ["delete McsServiceImport", "patch MergedServiceImport"]);
    assert_eq!(view.merged_imports.iter().count(), 0, "the finalizer is gone");
    let grace = settings(0).derived_service_grace_micros;
    let until = seconds(20).plus_micros(grace);
    assert_eq!(planned(&view, &key()).again, Some(until));
    let ips = derived(&view).expect("it stays").cluster_ips;
    let deletion = Write::delete(Kind::Service, &derived(&view).expect("it stays").meta);
    assert_eq!(planned_at(&view, &key(), until).writes, [deletion]);
    observe_change(&mut view, merged(import()).version(20).object());
    settle(&mut view);
    assert_eq!(imported(&view).expect("it is back").spec.ips, ips, "with its address");
    let mut restarted = Planner::new(Settings { mcs_api: McsApi::LabelledNamespaces, ..settings(0) });
    for kind in Planner::KINDS.iter().filter(|kind| **kind != Kind::MergedServiceImport) {
        restarted.watch_state(*kind, WatchState::Complete, SEEN, &mut Vec::new());
    }
    let mut requeue = Vec::new();
    for object in [importing().object(), derived(&view).expect("a Service").object()] {
        restarted.observe(applied(object), SEEN, &mut requeue);
    }
    assert_eq!(requeue, [key()]);
    restarted.watch_state(Kind::MergedServiceImport, WatchState::Complete, seconds(50), &mut Vec::new());
    let plan = planned_at(&restarted, &key(), seconds(49).plus_micros(grace));
    assert!(plan.writes.iter().all(|write| write.kind() != Kind::Service), "the grace begins with the list");
    let deletion = Write::delete(Kind::Service, &derived(&restarted).expect("it stays").meta);
    assert_eq!(planned_at(&restarted, &key(), seconds(50).plus_micros(grace)).writes, [deletion]);
}

/// Also rule MI4.
#[test]
fn the_state_before_a_restore_of_the_hub_is_kept_for_the_grace_only() {
    let mut view = view([importing().object(), merged(import()).object()]);
    let mut same = view.clone();
    view.hub_restored(seconds(20));
    let end = seconds(20).plus_micros(RESTORE_GRACE_MICROS);
    for (version, at, is_kept) in [(2, end.plus_micros(-1), true), (3, end, false)] {
        for view in [&mut view, &mut same] {
            view.applied(merged(import()).version(version).object(), at, &mut Vec::new());
        }
        assert_eq!(view != same, is_kept, "{version}");
    }
}

/// Rule MI4: The last cluster ends its export
/// Then: The member agent deletes the ServiceImport at once. The derived Service stays for `--derived-service-grace`.
/// If an export comes back in this time, the import has the same address. The time begins again with the first list
/// after a restart. For 60 s after a restore of the hub, the import and its slices stay as they are, unless the whole
/// MergedServiceImport is the same as before
#[test]
fn an_import_stays_for_a_while_after_a_restore_of_the_hub() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    view.hub_restored(seconds(20));
    observe_removal(&mut view, &merged(import()).object());
    let plan = planned(&view, &key());
    assert_eq!(plan.writes, []);
    assert!(plan.again > Some(seconds(30)));
    let older = MergedImport { ports: vec![port("web", 81)], ..import() };
    observe_change(&mut view, merged(older).marked().version(30).object());
    assert_eq!(planned(&view, &key()).writes, [], "the backup has an older state");
    let mut fewer = import();
    fewer.clusters.pop();
    observe_change(&mut view, merged(fewer).marked().version(31).object());
    assert_eq!(planned(&view, &key()).writes, [], "an exporter is missing");
    let both = vec![IpFamily::IPv4, IpFamily::IPv6];
    let families = McsProperties { families: both, ..import().properties };
    observe_change(&mut view, merged(MergedImport { properties: families, ..import() }).marked().version(31).object());
    assert_eq!(planned(&view, &key()).writes, [], "the backup has other families");
    let mut fewer_ports = import();
    fewer_ports.clusters[1].ports = Some(Vec::new());
    observe_change(&mut view, merged(fewer_ports).marked().version(31).object());
    let plan = planned(&view, &key());
    assert_eq!((plan.writes.len(), plan.again > Some(seconds(30))), (0, true), "a cluster serves fewer ports");
    view.hub_restored(seconds(40));
    let plan = planned(&view, &key());
    assert!(plan.again > Some(seconds(90)), "a second restore does not make the older state the newest");
    let older = MergedImport { ports: vec![port("web", 81)], ..import() };
    observe_change(&mut view, merged(older).marked().version(31).object());
    assert_ne!(planned_at(&view, &key(), seconds(9_000)).writes, []);
    observe_change(&mut view, merged(import()).version(32).object());
    assert_eq!(settle(&mut view), ["patch MergedServiceImport"], "the same as before");
}

/// Also rule MI4.
#[test]
fn after_a_restore_an_import_stays_as_it_was_before_the_restore_and_not_as_it_was_earlier() {
    let of_port = |number| merged(MergedImport { ports: vec![port("http", number)], ..import() }).marked();
    // The MergedServiceImport changed while the state before an earlier restore counted.
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    view.hub_restored(seconds(20));
    observe_change(&mut view, of_port(81).version(30).object());
    assert_eq!(planned(&view, &key()).writes, []);
    view.hub_restored(seconds(20).plus_micros(RESTORE_GRACE_MICROS));
    let plan = planned_at(&view, &key(), seconds(21).plus_micros(RESTORE_GRACE_MICROS));
    assert_ne!(plan.writes, [], "this is the state before the second restore");

    // A MergedServiceImport that was being deleted imported nothing before the restore.
    let mut view = self::view([importing().object(), merged(import()).deleting().object()]);
    view.hub_restored(seconds(20));
    observe_change(&mut view, of_port(81).version(30).object());
    assert_ne!(planned(&view, &key()).writes, []);
}

/// Rule MI3: Another writer has made a Service or a ServiceImport with a name that the import needs
/// Then: The member agent leaves this object alone, and reports the blocking reason `NameHeldByAnother`. If it is the
/// name of the derived Service, the ServiceImport of the agent has no addresses and shows the cause (MI19). If it is
/// the name of the ServiceImport, this ServiceImport gets an Event, because its status belongs to the other writer
///
/// Also rules MI5, MI19.
#[test]
fn objects_of_other_writers_are_left_alone() {
    let at = names::mcs_derived(&app());
    let theirs = service(&format!("{}/{}", at.namespace, at.name)).object();
    let mut view = view([importing().object(), merged(import()).marked().object(), theirs.clone()]);
    assert_eq!(settle(&mut view), ["create McsServiceImport", "status McsServiceImport"]);
    let plan = planned(&view, &key());
    let [(reason, message)] = blocking_reasons(&plan)[..] else { panic!() };
    assert_eq!(reason, "NameHeldByAnother");
    assert!(message.contains("derived-"), "{message}");
    assert_eq!(ready(&view), ("False", "Pending".to_owned(), message.to_owned()), "its user sees it");
    assert_eq!(imported(&view).expect("an import").spec.ips.len(), 0);
    observe_removal(&mut view, &theirs);
    settle(&mut view);
    let foreign = McsServiceImport { is_ours: false, ..imported(&view).expect("an import") }.uid("theirs");
    let mut earlier = foreign.clone().version(29);
    earlier.spec.ips = vec!["10.9.9.9".into()];
    observe_change(&mut view, earlier.object());
    observe_change(&mut view, foreign.clone().version(30).object());
    let changed = MergedImport { ports: vec![port("http", 81)], ..import() };
    observe_change(&mut view, merged(changed).marked().version(9).object());
    assert_eq!(settle(&mut view), ["patch Service"]);
    assert_eq!(blocking_reasons(&planned(&view, &key())).len(), 1);
    observe_change(&mut view, namespace("work").version(2).object());
    assert_eq!(settle(&mut view), ["delete Service", "patch MergedServiceImport"]);
    observe_change(&mut view, theirs);
    assert_eq!(settle(&mut view), [] as [&str; 0]);
    assert_eq!(imported(&view), Some(foreign.version(30)));
}

/// Rule MI7: Ports, session affinity or families of the merged import change
/// Then: The member agent changes the derived Service and then the ServiceImport. The API server chooses the first
/// family of the derived Service: the default of the cluster. For another family, the derived Service requests both,
/// and keeps both from then on. So no change of families changes an address. The ServiceImport shows the addresses of
/// those families that all exporters have
#[test]
fn a_change_of_the_merged_import_changes_both_objects() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    let sticky = SessionAffinity::ClientIp { timeout_seconds: 60 };
    let changed = MergedImport { ports: vec![port("http", 81)], session_affinity: sticky, ..import() };
    observe_change(&mut view, merged(changed).marked().version(9).object());
    assert_eq!(settle(&mut view), ["patch Service", "patch McsServiceImport"]);
    assert_eq!(derived(&view).expect("a Service").session_affinity, sticky);
}

/// Returns the merged import with these families.
fn of_families(families: &[IpFamily]) -> MergedServiceImport {
    let properties = McsProperties { families: families.to_vec(), ..import().properties };
    merged(MergedImport { properties, ..import() }).marked()
}

/// Returns the families and the addresses that the ServiceImport shows.
fn shown(view: &Planner) -> (Vec<IpFamily>, Vec<String>) {
    let spec = imported(view).expect("an import").spec;
    (spec.properties.families, spec.ips.iter().map(ToString::to_string).collect())
}

/// Also rule MI7.
#[test]
fn no_change_of_families_changes_an_address() {
    let (four, six) = (IpFamily::IPv4, IpFamily::IPv6);
    let (v4, v6) = ("10.96.0.7".to_owned(), "fd00::7".to_owned());
    let mut view = view([importing().object(), of_families(&[four]).object()]);
    assert_eq!(settle(&mut view), ["create Service", "create McsServiceImport", "status McsServiceImport"]);
    let uid = derived(&view).expect("a Service").meta.uid;
    let import_only = &["patch McsServiceImport"][..];
    let both = &["patch Service", "patch McsServiceImport"][..];
    type Row<'a> = (&'a [IpFamily], &'a [&'a str], Vec<IpFamily>, Vec<String>);
    let table: [Row<'_>; 6] = [
        (&[four, six], both, vec![four, six], vec![v4.clone(), v6.clone()]),
        (&[six], import_only, vec![six], vec![v6.clone()]),
        (&[six, four], import_only, vec![four, six], vec![v4.clone(), v6.clone()]),
        (&[four], import_only, vec![four], vec![v4.clone()]),
        (&[], import_only, vec![four, six], vec![v4.clone(), v6]),
        (&[four], import_only, vec![four], vec![v4.clone()]),
    ];
    for (version, (families, expected, shown_families, addresses)) in (10..).zip(table) {
        observe_change(&mut view, of_families(families).version(version).object());
        assert_eq!(settle(&mut view), expected, "{families:?}");
        assert_eq!(shown(&view), (shown_families, addresses), "{families:?}");
        let derived = derived(&view).expect("a Service");
        assert_eq!((derived.meta.uid, &derived.cluster_ips[0][..]), (uid.clone(), &*v4), "{families:?}");
    }
}

/// Also rule MI7.
#[test]
fn an_import_of_a_family_that_is_not_the_default_of_the_cluster_has_an_address_of_it() {
    let mut view = view([importing().object(), of_families(&[IpFamily::IPv6]).object()]);
    let made = ["create Service", "patch Service", "create McsServiceImport", "status McsServiceImport"];
    assert_eq!(settle(&mut view), made, "the ServiceImport waits for the address");
    assert_eq!(shown(&view), (vec![IpFamily::IPv6], vec!["fd00::7".to_owned()]));
    assert_eq!(ready(&view).0, "True");
    let kubernetes = service("default/kubernetes").object();
    let mut view = mcs::view([importing().object(), of_families(&[IpFamily::IPv6]).object(), kubernetes]);
    let made = ["create Service", "create McsServiceImport", "status McsServiceImport"];
    assert_eq!(settle(&mut view), made, "the default family of the cluster is known");
}

/// Rule MI20: The cluster has no family of the merged import
/// Then: If some exporters have slices of a family of the cluster, the ServiceImport shows the address of this family,
/// and clients reach these exporters. Otherwise it has no addresses, and shows `Ready=False`, reason
/// `IPFamilyNotSupported`
#[test]
fn an_import_without_a_family_of_the_cluster_says_so_and_uses_exporters_that_have_one() {
    let at = names::mcs_derived(&app());
    let ipv4_only = Service {
        dual_stack: true,
        imports: Some("app".into()),
        cluster_ips: vec!["10.96.0.7".into()],
        ..service(&format!("{}/{}", at.namespace, at.name))
    };
    let mut view = view([importing().object(), of_families(&[IpFamily::IPv6]).object(), ipv4_only.object()]);
    let slice_of = |cluster: &str| distributed_slice("member-1", &slice_export(cluster, &slice("work/app-1"))).marked();
    observe_change(&mut view, Object::EndpointSliceImport(slice_of("member-9")));
    let plan = planned(&view, &key());
    assert_eq!(plan.writes.len(), 1);
    assert_eq!(settle(&mut view), ["create McsServiceImport", "status McsServiceImport"]);
    let (status, reason, message) = ready(&view);
    assert_eq!((status, &*reason), ("False", "IPFamilyNotSupported"));
    assert!(message.contains("family IPv6, and this cluster has IPv4 only"), "{message}");
    assert_eq!(shown(&view), (Vec::new(), Vec::new()));
    assert_eq!(blocking_reasons(&planned(&view, &key()))[0].0, "IPFamilyNotSupported");

    let mut of_other_family = slice_of("member-3").called("member-3-work-app-6");
    Arc::make_mut(&mut of_other_family.spec.content).address_type = AddressType::IPv6;
    observe_change(&mut view, Object::EndpointSliceImport(of_other_family));
    assert_eq!(settle(&mut view), [] as [&str; 0], "this cluster cannot reach its endpoints");
    let distributed = Object::EndpointSliceImport(slice_of("member-3"));
    assert!(observe_change(&mut view, distributed.clone()).contains(&key()));
    assert_eq!(settle(&mut view), ["patch McsServiceImport", "status McsServiceImport"]);
    assert_eq!(shown(&view), (vec![IpFamily::IPv4], vec!["10.96.0.7".to_owned()]));
    assert_eq!(ready(&view).0, "True");
    assert!(observe_removal(&mut view, &distributed).contains(&key()));
    assert_eq!(settle(&mut view), ["patch McsServiceImport", "status McsServiceImport"]);
    assert_eq!(ready(&view).1, "IPFamilyNotSupported");
}

/// Rule MI8: The merged import becomes headless
/// Then: The ServiceImport becomes headless and has no addresses. The derived Service and its slices stay for
/// `--derived-service-grace`, so that clients can use the address that they have resolved. Then the member agent
/// deletes the derived Service, and the slices become those of a headless Service
///
/// Also rule MI21.
#[test]
fn a_service_that_becomes_headless_keeps_its_address_for_the_grace_of_the_derived_service() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    let ips = imported(&view).expect("an import").spec.ips;
    let headless = MergedImport { import_type: ImportType::Headless, ..import() };
    observe_change(&mut view, merged(headless.clone()).marked().version(9).object());
    assert_eq!(settle(&mut view), ["patch McsServiceImport"]);
    let present = imported(&view).expect("an import").spec;
    assert_eq!((present.import_type, present.ips.len(), present.derived), (ImportType::Headless, 0, None));
    assert_eq!(present.properties.families, [IpFamily::IPv4], "its endpoints have this family");
    let until = seconds(20).plus_micros(settings(0).derived_service_grace_micros);
    assert_eq!(planned(&view, &key()).again, Some(until));
    let deletion = Write::delete(Kind::Service, &derived(&view).expect("it stays").meta);
    assert_eq!(planned_at(&view, &key(), until).writes, [deletion]);

    observe_change(&mut view, merged(import()).marked().version(10).object());
    assert_eq!(settle(&mut view), ["patch McsServiceImport"], "it has an address again");
    assert_eq!(imported(&view).expect("an import").spec.ips, ips);
    observe_change(&mut view, merged(headless).marked().version(11).object());
    settle(&mut view);
    observe_change(&mut view, namespace("work").version(2).object());
    assert_eq!(settle(&mut view), ["delete McsServiceImport", "delete Service", "patch MergedServiceImport"]);
}

/// Rule MI19: A server rejects or denies a write of the derived Service, for example because of a quota, or another
/// writer has its name
/// Then: The ServiceImport shows `Ready=False`, reason `Pending`, with the cause. If there is no derived Service, the
/// ServiceImport has no addresses. If the ServiceImport itself cannot be created, its namespace gets an Event. A slice
/// that cannot be written gives an Event on the ServiceImport
#[test]
fn a_write_that_a_server_does_not_accept_is_shown_in_the_service_import() {
    let mut view = view([importing().object(), merged(import()).marked().object()]);
    let message = "cluster member-1 denied the request to create Service: exceeded quota";
    view.write_rejected(&key(), message.to_owned());
    let [service, import] = &planned(&view, &key()).writes[..] else { panic!("two writes") };
    assert_eq!((service.kind(), import.kind()), (Kind::Service, Kind::McsServiceImport));
    mcs::execute(&mut view, import.clone());
    let [_, status] = &planned(&view, &key()).writes[..] else { panic!("two writes") };
    assert_eq!(status.events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["WriteRefused"]);
    mcs::execute(&mut view, status.clone());
    assert_eq!(ready(&view), ("False", "Pending".to_owned(), message.to_owned()));
    assert_eq!(shown(&view), (Vec::new(), Vec::new()));
    let plan = planned(&view, &key());
    assert_eq!((plan.writes.len(), blocking_reasons(&plan)), (1, vec![("WriteRefused", message)]), "it tries again");
    assert_eq!(settle(&mut view), ["create Service", "patch McsServiceImport", "status McsServiceImport"]);
    assert_eq!(ready(&view).0, "True", "also before the rejection is forgotten");
}

/// Rule MI18: Somebody edits or deletes the derived Service or the ServiceImport
/// Then: The member agent restores all fields that it owns. A derived Service has no selector and no external
/// addresses, and the `internalTrafficPolicy` Cluster, because imported endpoints have no node. Fields of Kubernetes
/// that do not change where clients get, such as `publishNotReadyAddresses`, stay as they are
///
/// Rule MI21: A Service with addresses is imported
/// Then: The ServiceImport has the annotation `multicluster.kubernetes.io/derived-service` with the name of the derived
/// Service, because gateways read it. A headless Service has none
///
/// Also rule MI6.
#[test]
fn what_somebody_edits_or_deletes_is_repaired() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    let ips = imported(&view).expect("an import").spec.ips;
    let present = imported(&view).expect("an import").object();
    observe_removal(&mut view, &present);
    assert_eq!(settle(&mut view), ["create McsServiceImport", "status McsServiceImport"]);
    assert_eq!(imported(&view).expect("an import").spec.ips, ips, "its address stays");
    let edits: [fn(&mut Service); 4] = [
        |it| it.internal_traffic_policy = Some("Local".into()),
        |it| it.has_selector_or_external_ips = true,
        |it| it.service_type = ServiceType::NodePort,
        |it| it.session_affinity = SessionAffinity::ClientIp { timeout_seconds: 60 },
    ];
    for (version, edit) in (40..).step_by(5).zip(edits) {
        let mut edited = derived(&view).expect("a Service").version(version);
        edit(&mut edited);
        observe_change(&mut view, edited.object());
        assert_eq!(settle(&mut view), ["patch Service"], "{version}");
    }
    let present = imported(&view).expect("an import");
    assert_eq!(present.spec.derived, Some(names::mcs_derived(&app()).name), "gateways read it");
    let edited = McsImportSpec { derived: None, ..present.spec.clone() };
    observe_change(&mut view, McsServiceImport { spec: edited, ..present }.version(60).object());
    assert_eq!(settle(&mut view), ["patch McsServiceImport"]);
    let mut edited = imported(&view).expect("an import").version(65);
    edited.status.has_slices = false;
    observe_change(&mut view, edited.object());
    assert_eq!(settle(&mut view), ["status McsServiceImport"]);
    let present = derived(&view).expect("a Service");
    observe_removal(&mut view, &present.clone().object());
    assert_eq!(settle(&mut view), ["create Service"], "with the same address, by chance");
    let headless = Service { headless: true, cluster_ips: Vec::new(), ..present };
    observe_change(&mut view, headless.uid("headless").version(70).object());
    assert_eq!(settle(&mut view), ["delete Service", "create Service"], "no Service stops being headless");
    let other = MergedServiceImport { service: named("work/other"), ..merged(import()).marked() };
    observe_change(&mut view, other.version(50).object());
    assert!(writes(&view, &key()).iter().all(|write| write.kind() == Kind::McsServiceImport), "of another Service");
}

/// Rule MI12: Another writer removes the label that shows the member agent as the writer of an object
/// Then: The member agent restores the label. While no agent runs, only the labels of the standard API and the
/// annotation `last-observed-generation` show that an imported slice is the agent's; a derived Service and a
/// ServiceImport without the label belong to the other writer (MI3)
#[test]
fn a_label_that_somebody_removes_is_restored() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    let (service, present) = (derived(&view).expect("a Service"), imported(&view).expect("an import"));
    let edited = Service { imports: None, cluster_ips: Vec::new(), ..service.clone() };
    assert!(observe_change(&mut view, edited.version(60).object()).contains(&key()));
    assert_eq!(settle(&mut view), ["patch Service"]);
    assert_eq!(derived(&view).expect("a Service").imports, service.imports);
    let edited = McsServiceImport { is_ours: false, ..present };
    assert!(observe_change(&mut view, edited.version(61).object()).contains(&key()));
    assert_eq!(settle(&mut view), ["patch McsServiceImport"]);
    assert!(!imported(&view).expect("an import").relabelled);
}

/// Also rules MI5, MI18.
#[test]
fn an_object_that_is_being_deleted_is_left_alone() {
    let settled = |changes: &dyn Fn(&mut Planner)| {
        let mut view = view([importing().object(), merged(import()).object()]);
        settle(&mut view);
        let changed = MergedImport { ports: vec![port("http", 81)], ..import() };
        observe_change(&mut view, merged(changed).marked().version(9).object());
        changes(&mut view);
        writes(&view, &key()).iter().map(Write::kind).collect::<Vec<Kind>>()
    };
    let service_goes = |view: &mut Planner| {
        let service = derived(view).expect("a Service").deleting().version(60);
        observe_change(view, service.object());
    };
    let import_goes = |view: &mut Planner| {
        let import = imported(view).expect("an import").deleting().version(60);
        observe_change(view, import.object());
    };
    let without_import = settled(&|view| {
        let import = imported(view).expect("an import").object();
        observe_removal(view, &import);
        service_goes(view);
    });
    assert_eq!(without_import, [], "the ServiceImport waits for the address of the next derived Service");
    assert_eq!(settled(&import_goes), [Kind::Service]);
    let ended = settled(&|view| {
        service_goes(view);
        import_goes(view);
        observe_change(view, namespace("work").version(2).object());
    });
    assert_eq!(ended, [], "both are deleted already");
}

/// Also rule MI6.
#[test]
fn a_service_import_waits_for_the_address_of_its_derived_service() {
    let at = names::mcs_derived(&app());
    let without_address =
        Service { dual_stack: true, imports: Some("app".into()), ..service(&format!("{}/{}", at.namespace, at.name)) };
    let mut view = view([importing().object(), merged(import()).marked().object(), without_address.clone().object()]);
    assert_eq!(writes(&view, &key()), []);
    let with_address = Service { cluster_ips: vec!["10.96.0.7".into()], ..without_address };
    observe_change(&mut view, with_address.version(2).object());
    assert_eq!(settle(&mut view), ["create McsServiceImport", "status McsServiceImport"]);
}

/// Also rule MI4.
#[test]
fn the_grace_of_a_derived_service_begins_when_the_hub_certainly_has_no_export() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    let made = derived(&view).expect("a Service").object();
    let late = seconds(9_000);
    let until = Some(late.plus_micros(settings(0).derived_service_grace_micros));
    // The MergedServiceImport was there until then. Another finalizer keeps it.
    let withdrawn = merged(import()).marked().with_finalizer("theirs").deleting().version(9);
    observe_and_plan(&mut view, applied(withdrawn.object()), late);
    for now in [late, late.plus_micros(1)] {
        assert_eq!(planned_at(&view, &key(), now).again, until);
    }
    // It was undecodable until then.
    let mut view = mcs::view([importing().object()]);
    let merged_at = in_hub_of("member-1", &names::merged_import_name(&app()));
    undecodable(&mut view, Kind::MergedServiceImport, &merged_at);
    observe_change(&mut view, made);
    observe_and_plan(&mut view, removed(Kind::MergedServiceImport, merged_at, "".into()), late);
    assert_eq!(planned_at(&view, &key(), late), Plan { again: until, ..Plan::default() });
}

/// Also rule MI2.
#[test]
fn what_an_earlier_process_imported_stays_where_the_mcs_api_is_off_now() {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view);
    assert_eq!(planned(&view_of(McsApi::Off, view.objects()), &key()), Plan::default());
}

/// Rule MI1: MergedServiceImports, namespaces, Services or ServiceImports of the standard API are not listed, their
/// kind is absent, or an object of the import is undecodable
/// Then: The member agent changes nothing of the import
#[test]
fn an_import_stays_while_something_is_unknown() {
    let kinds = [Kind::MergedServiceImport, Kind::Namespace, Kind::Service, Kind::McsServiceImport];
    let changed = MergedImport { ports: vec![port("http", 81)], ..import() };
    for kind in kinds {
        for state in [WatchState::Incomplete, WatchState::Absent, WatchState::Unknown] {
            let mut view = view([importing().object(), merged(import()).object()]);
            settle(&mut view);
            observe_change(&mut view, merged(changed.clone()).marked().version(9).object());
            assert_ne!(writes(&view, &key()), []);
            view.watch_state(kind, state, NOW, &mut Vec::new());
            assert_eq!(writes(&view, &key()), [], "{kind:?} {state:?}");
        }
    }
    let merged_at = in_hub_of("member-1", &names::merged_import_name(&app()));
    let objects = [
        (Kind::MergedServiceImport, merged_at),
        (Kind::Namespace, ObjectName::new("", "work")),
        (Kind::Service, names::mcs_derived(&app())),
        (Kind::McsServiceImport, app()),
    ];
    for (kind, name) in objects {
        let mut view = view([importing().object(), merged(import()).object()]);
        undecodable(&mut view, kind, &name);
        assert_eq!(writes(&view, &key()), [], "{kind:?}");
    }
    let view = view([importing().object(), merged(import()).object()]);
    let creation =
        writes(&view, &key()).into_iter().any(|write| matches!(write.action, Action::Create(Desired::McsService(_))));
    assert!(creation);
}
