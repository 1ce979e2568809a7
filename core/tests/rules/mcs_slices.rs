//! Tests of imports of slices by the standard API in the member agent.

use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildRequest, IntoObject, accepted_export, claim, content,
    derived_service, distributed_slice, found, in_hub_of, in_system, member_agent, named, namespace, request, resolved,
    seconds, service, service_import, slice, slice_export,
};
use crate::support::mcs::{app, import, importing, merged, settle, view, view_of};
use crate::support::view::{
    NOW, member_view, observe_change, observe_removal, planned, planned_at, undecodable, writes,
};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::limits::{ORPHAN_GRACE_MICROS, RESTORE_GRACE_MICROS};
use fleetnet_core::member::{Key, McsApi, Planner, SliceStreamUse, StreamEnd};
use fleetnet_core::model::{
    EndpointSlice, HubSlice, ImportType, Kind, McsLabels, MergedImport, Object, ServedPort, Service, SilentMember,
    Treatment,
};
use fleetnet_core::names;
use fleetnet_core::plan::{Action, Desired, ImportedSlice, Patch, Plan, Sample, Write};
use fleetnet_types::{ObjectName, Text, WatchState};
use std::sync::Arc;

trait IntoImport {
    fn object(self) -> Object;
}

impl IntoImport for HubSlice {
    fn object(self) -> Object {
        Object::EndpointSliceImport(self)
    }
}

/// Returns the distributed slice of a source slice of `work/app` in a cluster.
fn from(cluster: &str, source: &str) -> HubSlice {
    distributed_slice("member-1", &slice_export(cluster, &slice(source)))
}

fn distributed() -> HubSlice {
    from("member-3", "work/app-1")
}

fn at(distributed: &HubSlice) -> ObjectName {
    ObjectName::new("work", distributed.meta.name.name.clone())
}

fn key(distributed: &HubSlice) -> Key {
    Key::SliceImport(at(distributed))
}

/// Returns a view of a member that has imported `work/app`, without its slices.
fn without_slices() -> Planner {
    let mut view = view([importing().object(), merged(import()).object()]);
    settle(&mut view, &Key::McsImport(app()));
    view
}

/// Returns a view of a member that has imported `work/app` with these distributed slices.
fn with_slices(distributed: &[HubSlice]) -> Planner {
    let mut view = without_slices();
    for distributed in distributed {
        observe_change(&mut view, distributed.clone().object());
        settle(&mut view, &key(distributed));
    }
    view
}

fn imported(view: &Planner, distributed: &HubSlice) -> Option<EndpointSlice> {
    view.slices.get(&at(distributed)).cloned()
}

fn derived() -> Text {
    names::mcs_derived(&app()).name
}

fn wanted(addresses: &[&str], generation: i64) -> ImportedSlice {
    ImportedSlice {
        service: Some(derived()),
        mcs: Some(McsLabels { service: "app".into(), cluster: "member-3".into(), headless: false }),
        content: content(addresses),
        observed_generation: generation,
    }
}

fn sample(first: bool) -> Option<Sample> {
    Some(Sample::SliceImported { origin: "member-3".into(), first, exported_since: Some(seconds(5)) })
}

/// Rule MI10: The hub agent distributes a slice of a Service that the member imports by the standard API
/// Then: The member agent imports the slice into the namespace of the Service, under the name of the distributed slice,
/// by the rules of the next section. It waits until the derived Service exists and the MergedServiceImport lists the
/// exporting cluster. If the namespace of the Service in the distributed slice is another one, nothing is imported
///
/// Rule MI11: A slice is imported by the standard API
/// Then: The imported slice has the labels `multicluster.kubernetes.io/service-name` and `source-cluster`, and is bound
/// to the derived Service. A slice of a headless Service has no derived Service, and its label
/// `service.kubernetes.io/headless` hides it from kube-proxy. The slice has only ports that its exporting cluster
/// serves, under their names in the merged import. Without such a port, it has no endpoints
#[test]
fn a_slice_is_imported_beside_its_service_import_in_one_write_for_each_change() {
    let (mut view, distributed) = (without_slices(), distributed());
    assert!(observe_change(&mut view, distributed.clone().object()).contains(&key(&distributed)));
    assert_eq!(writes(&view, &key(&distributed)), [Write::add_finalizer(Kind::EndpointSliceImport, &distributed.meta)]);
    observe_change(&mut view, distributed.clone().marked().version(2).object());
    let create = Write::create(at(&distributed), Desired::EndpointSlice(wanted(&["10.0.0.1"], 1)));
    assert_eq!(writes(&view, &key(&distributed)), [create.measured(sample(true))]);
    assert_eq!(settle(&mut view, &key(&distributed)), ["create EndpointSlice"]);
    assert_eq!(writes(&view, &Key::SliceImport(in_system(&distributed.meta.name.name))), [], "nobody imports it there");

    let changed = distributed.clone().marked().with_addresses(&["10.0.0.9"], 2).version(3);
    assert!(observe_change(&mut view, changed.object()).contains(&key(&distributed)));
    let present = imported(&view, &distributed).expect("it is imported");
    let patch = Write::patch(&present.meta, Patch::ImportedSlice(wanted(&["10.0.0.9"], 2)));
    assert_eq!(writes(&view, &key(&distributed)), [patch.measured(sample(false))]);
    settle(&mut view, &key(&distributed));

    for edit in 0..4 {
        let mut edited = imported(&view, &distributed).expect("it is imported").version(90 + edit);
        let labels = edited.mcs.as_deref_mut().expect("labels of the standard API");
        match edit {
            0 => edited.imported = false,
            1 => edited.service = None,
            2 => labels.cluster = "member-9".into(),
            _ => labels.headless = true,
        }
        assert!(observe_change(&mut view, edited.clone().object()).contains(&key(&distributed)));
        let repair = Write::patch(&edited.meta, Patch::ImportedSlice(wanted(&["10.0.0.9"], 2)));
        assert_eq!(writes(&view, &key(&distributed)), [repair], "edit {edit}");
        settle(&mut view, &key(&distributed));
    }
    let present = imported(&view, &distributed).expect("it is imported").object();
    assert!(observe_removal(&mut view, &present).contains(&key(&distributed)));
    assert_eq!(settle(&mut view, &key(&distributed)), ["create EndpointSlice"]);
}

/// Also rule MI12.
#[test]
fn a_slice_whose_labels_were_edited_while_no_agent_ran_is_labelled_again() {
    let unmarked = distributed();
    let distributed = unmarked.clone().marked();
    let before = with_slices(std::slice::from_ref(&distributed));
    let present = imported(&before, &distributed).expect("it is imported");
    let without_manager = EndpointSlice { imported: false, ..present };
    let without_labels = EndpointSlice { service: None, mcs: None, ..without_manager.clone() };
    let without_annotation = EndpointSlice { observed_generation: None, ..without_manager.clone() };
    // The hub may have lost the distributed slice meanwhile, and with it the finalizer.
    let mut view = without_slices();
    observe_change(&mut view, without_labels.clone().object());
    observe_change(&mut view, unmarked.object());
    assert_eq!(settle(&mut view, &key(&distributed)), ["patch EndpointSliceImport", "patch EndpointSlice"]);
    for edited in [without_manager, without_labels.clone(), without_annotation.clone()] {
        let mut view = without_slices();
        observe_change(&mut view, edited.object());
        observe_change(&mut view, distributed.clone().object());
        assert_eq!(settle(&mut view, &key(&distributed)), ["patch EndpointSlice"]);
    }
    let labelled = |service: &str, cluster: &str| {
        let labels = McsLabels { service: service.into(), cluster: cluster.into(), headless: false };
        EndpointSlice { mcs: Some(Box::new(labels)), ..without_annotation.clone() }
    };
    let of_others = [
        EndpointSlice { observed_generation: None, ..without_labels },
        labelled("other", "member-3"),
        labelled("app", "member-9"),
    ];
    for of_other in of_others {
        let mut view = without_slices();
        observe_change(&mut view, of_other.clone().object());
        observe_change(&mut view, distributed.clone().object());
        assert_eq!(writes(&view, &key(&distributed)), [], "it looks as if somebody else had made it: {of_other:?}");
        assert_eq!(planned(&view, &key(&distributed)).blocking_reasons.len(), 1);
    }
}

/// Also rules MI8, MI11.
#[test]
fn a_slice_of_a_headless_service_is_hidden_from_kube_proxy_when_no_client_has_an_address_of_the_service_any_more() {
    let distributed = distributed().marked();
    let mut view = with_slices(std::slice::from_ref(&distributed));
    let headless = MergedImport { import_type: ImportType::Headless, ..import() };
    observe_change(&mut view, merged(headless).marked().version(9).object());
    assert_eq!(
        settle(&mut view, &key(&distributed)),
        [] as [&str; 0],
        "the address of the derived Service still works"
    );
    let gone = view.services.get(&names::mcs_derived(&app())).cloned().expect("a Service").object();
    assert!(observe_removal(&mut view, &gone).contains(&key(&distributed)));
    assert_eq!(settle(&mut view, &key(&distributed)), ["patch EndpointSlice"]);
    let present = imported(&view, &distributed).expect("it is imported");
    assert_eq!(present.service, None);
    assert!(present.mcs.expect("labels").headless);
}

/// Also rule MI11.
#[test]
fn clients_reach_a_cluster_only_at_the_ports_that_it_serves() {
    let served = |name: &str, own_name: &str| ServedPort { name: name.into(), own_name: own_name.into() };
    let own = |names: &[&str]| {
        let port = content(&["10.0.0.1"]).ports.remove(0);
        names.iter().map(|name| fleetnet_core::model::EndpointPort { name: (*name).into(), ..port.clone() }).collect()
    };
    type Case<'a> = (&'a [&'a str], Option<Vec<ServedPort>>, &'a [&'a str], usize);
    let table: [Case<'_>; 6] = [
        (&["http", "admin"], None, &["http", "admin"], 1),
        (&["http", "admin"], Some(vec![served("http", "http")]), &["http"], 1),
        (&["web", "admin"], Some(vec![served("http", "web"), served("admin", "admin")]), &["http", "admin"], 1),
        (&[""], Some(vec![served("tcp-80", "")]), &["tcp-80"], 1),
        (&["http"], Some(Vec::new()), &[], 0),
        (&[], Some(vec![served("http", "web")]), &[], 1), // no container has the named target port
    ];
    for (present, served, expected, endpoints) in table {
        let mut distributed = distributed().marked();
        let mut content = content(&["10.0.0.1"]);
        content.ports = own(present);
        content.draining = content.endpoints.clone();
        distributed.spec.content = content.into();
        let mut import = import();
        import.clusters[0].ports.clone_from(&served);
        let mut view = without_slices();
        observe_change(&mut view, merged(import).marked().version(9).object());
        observe_change(&mut view, distributed.clone().object());
        settle(&mut view, &key(&distributed));
        let slice = imported(&view, &distributed).expect("it is imported").content;
        let names: Vec<&str> = slice.ports.iter().map(|port| &*port.name).collect();
        assert_eq!(names, expected, "{served:?}");
        assert_eq!((slice.endpoints.len(), slice.draining.len()), (endpoints, endpoints), "{served:?}");
    }
}

/// Rule MI17: An exporting cluster renames a port to its name in the merged import, and the slice with the new name
/// arrives before the MergedServiceImport
/// Then: The imported slice keeps the port and its endpoints: a port with the name of a served port of the merged
/// import counts as this port, unless the slice has the port that the MergedServiceImport names
#[test]
fn a_cluster_keeps_its_endpoints_while_it_renames_a_port_to_the_name_in_the_import() {
    let served = |name: &str, own_name: &str| ServedPort { name: name.into(), own_name: own_name.into() };
    let table: [(&[&str], Vec<ServedPort>, &[&str]); 4] = [
        (&["http"], vec![served("http", "web")], &["http"]),
        (&["http", "admin"], vec![served("http", "web"), served("admin", "admin")], &["http", "admin"]),
        // The port with the name of the import has another number, so the cluster serves it only by its other port.
        (&["web", "http"], vec![served("http", "web")], &["http"]),
        (&["other"], vec![served("http", "web")], &[]),
    ];
    for (present, served, expected) in table {
        let mut distributed = distributed().marked();
        let mut content = content(&["10.0.0.1"]);
        let port = content.ports.remove(0);
        content.ports = (80_i32..)
            .zip(present)
            .map(|(number, name)| fleetnet_core::model::EndpointPort {
                name: (*name).into(),
                port: Some(number.into()),
                ..port.clone()
            })
            .collect();
        distributed.spec.content = content.into();
        let mut import = import();
        import.clusters[0].ports = Some(served.clone());
        let mut view = without_slices();
        observe_change(&mut view, merged(import).marked().version(9).object());
        observe_change(&mut view, distributed.clone().object());
        settle(&mut view, &key(&distributed));
        let slice = imported(&view, &distributed).expect("it is imported").content;
        let ports: Vec<&str> = slice.ports.iter().map(|port| &*port.name).collect();
        assert_eq!(ports, expected, "{present:?} {served:?}");
        assert_eq!(slice.endpoints.is_empty(), expected.is_empty(), "{present:?} {served:?}");
        assert!(
            slice.ports.iter().all(|port| port.name[..] != *"http" || port.port == Some(80_i32.into())),
            "{present:?}"
        );
    }
}

/// Also rules MI3, MI10.
#[test]
fn a_slice_waits_for_its_derived_service_and_its_cluster() {
    let distributed = distributed().marked();
    let mut view = view([importing().object(), merged(import()).marked().object(), distributed.clone().object()]);
    assert_eq!(writes(&view, &key(&distributed)), []);
    let foreign = service(&names::mcs_derived(&app()).to_string());
    observe_change(&mut view, foreign.clone().object());
    assert_eq!(writes(&view, &key(&distributed)), [], "clients of this Service expect other endpoints");
    observe_removal(&mut view, &foreign.object());
    settle(&mut view, &Key::McsImport(app()));
    assert_eq!(writes(&view, &key(&distributed)).len(), 1);
    let other = from("member-7", "work/app-1").marked();
    assert!(observe_change(&mut view, other.clone().object()).contains(&key(&other)));
    assert_eq!(writes(&view, &key(&other)), [], "its ports are not known");
    let moved =
        HubSlice { spec: fleetnet_core::model::HubSliceSpec { owner: named("other/app"), ..other.spec }, ..other };
    let requeued = observe_change(&mut view, moved.clone().version(2).object());
    assert!(requeued.contains(&Key::SliceImport(ObjectName::new("other", moved.meta.name.name.clone()))));
    assert_eq!(writes(&view, &key(&moved)), [], "of another namespace");
}

/// Also rule MI14.
#[test]
fn a_withdrawn_slice_is_deleted_and_its_finalizer_removed() {
    let distributed = distributed().marked();
    let mut view = with_slices(std::slice::from_ref(&distributed));
    let dying = distributed.clone().deleting().version(5);
    assert!(observe_change(&mut view, dying.clone().object()).contains(&key(&distributed)));
    let in_system = Key::SliceImport(in_system(&distributed.meta.name.name));
    assert_eq!(writes(&view, &in_system), [], "the import of the standard API still exists");
    let left = imported(&view, &distributed).expect("it stays");
    assert_eq!(settle(&mut view, &key(&distributed)), ["delete EndpointSlice"]);
    let release = [Write::remove_finalizer(Kind::EndpointSliceImport, &dying.meta)];
    assert_eq!(writes(&view, &in_system), release);
    let theirs = EndpointSlice { observed_generation: None, ..slice(&at(&distributed).to_string()) };
    observe_change(&mut view, theirs.object());
    assert_eq!(writes(&view, &in_system), release, "the slice of another writer does not count");
    let view = view_of(McsApi::Off, [importing().object(), dying.object(), left.object()]);
    assert_eq!(writes(&view, &in_system), release, "nobody removes the imports of an API that is off now");
}

/// Rule MI16: A distributed slice is withdrawn, and the hub has another slice of the same Service and cluster
/// Then: The imported slice stays until the other one is imported, also while it is not known if the Service is
/// imported
#[test]
fn a_slice_stays_until_its_replacement_is_imported() {
    let (old, new) = (from("member-3", "work/app-1").marked(), from("member-3", "work/app-2").marked());
    let mut view = with_slices(std::slice::from_ref(&old));
    observe_change(&mut view, new.clone().object());
    observe_change(&mut view, old.clone().deleting().version(5).object());
    assert_eq!(writes(&view, &key(&old)), [], "no endpoint is missing");
    settle(&mut view, &key(&new));
    assert_eq!(settle(&mut view, &key(&old)), ["delete EndpointSlice"]);
}

/// Rule MI13: The namespace does not import any more, or the last cluster ends its export
/// Then: The member agent deletes the imported slices, also while the hub cannot be reached. An EndpointSlice of
/// another writer stays. If the hub was restored, the imported slices stay until the MergedServiceImport has the
/// agent's finalizer, and for 60 s more
#[test]
fn slices_end_with_the_import_and_those_of_other_writers_stay() {
    let distributed = distributed().marked();
    let mut view = with_slices(std::slice::from_ref(&distributed));
    assert!(observe_change(&mut view, namespace("work").version(2).object()).contains(&key(&distributed)));
    assert_eq!(settle(&mut view, &key(&distributed)), ["delete EndpointSlice"], "also while the hub cannot be reached");
    let theirs = EndpointSlice { observed_generation: None, ..slice(&at(&distributed).to_string()) };
    observe_change(&mut view, theirs.clone().object());
    assert_eq!(writes(&view, &key(&distributed)), []);
    observe_change(&mut view, importing().version(3).object());
    settle(&mut view, &Key::McsImport(app()));
    let plan = planned(&view, &key(&distributed));
    assert_eq!((plan.writes.len(), plan.blocking_reasons.len()), (0, 1), "its name is in use");
    observe_removal(&mut view, &theirs.object());
    settle(&mut view, &key(&distributed));
    let present = imported(&view, &distributed).expect("it is imported");
    let withdrawn = merged(import()).marked().deleting().version(9);
    assert!(observe_change(&mut view, withdrawn.object()).contains(&key(&distributed)), "nobody exports it any more");
    let mut going = view.clone();
    assert_eq!(settle(&mut view, &key(&distributed)), ["delete EndpointSlice"]);
    observe_change(&mut going, present.deleting().version(9).object());
    assert_eq!(writes(&going, &key(&distributed)), [], "it is deleted already");
}

/// Also rule MI13.
#[test]
fn an_orphan_stays_until_the_hub_agent_had_time_to_distribute_it_again() {
    let distributed = distributed().marked();
    let mut view = with_slices(std::slice::from_ref(&distributed));
    view.hub_restored(seconds(20));
    assert!(observe_removal(&mut view, &distributed.clone().object()).contains(&key(&distributed)));
    observe_removal(&mut view, &merged(import()).object());
    let plan = planned(&view, &key(&distributed));
    assert_eq!((plan.writes.len(), plan.again), (0, Some(seconds(20).plus_micros(RESTORE_GRACE_MICROS))));
    observe_change(&mut view, merged(import()).version(30).object());
    let plan = planned_at(&view, &key(&distributed), seconds(9_000));
    assert_eq!((plan.writes.len(), plan.again), (0, None), "the hub agent does not know yet that this member imports");
    let mut requeue = Vec::new();
    let marked = merged(import()).marked().version(31).object();
    fleetnet_core::member::Planner::applied(&mut view, marked, seconds(9_000), &mut requeue);
    assert!(requeue.contains(&key(&distributed)));
    let until = seconds(9_000).plus_micros(ORPHAN_GRACE_MICROS);
    assert_eq!(planned_at(&view, &key(&distributed), seconds(9_001)).again, Some(until));
    let deletion = Write::delete(Kind::EndpointSlice, &imported(&view, &distributed).expect("it stays").meta);
    assert_eq!(planned_at(&view, &key(&distributed), until).writes, std::slice::from_ref(&deletion));
    observe_change(&mut view, namespace("work").version(2).object());
    assert_eq!(writes(&view, &key(&distributed)), [deletion], "the namespace does not import any more");
}

/// Also rules MI1, MI13.
#[test]
fn slices_stay_while_something_is_unknown() {
    let kinds =
        [Kind::MergedServiceImport, Kind::Namespace, Kind::Service, Kind::EndpointSliceImport, Kind::EndpointSlice];
    let distributed = distributed().marked();
    for kind in kinds {
        for state in [WatchState::Incomplete, WatchState::Absent, WatchState::Unknown] {
            let mut view = with_slices(std::slice::from_ref(&distributed));
            observe_change(&mut view, namespace("work").version(2).object());
            assert_ne!(writes(&view, &key(&distributed)), []);
            view.watch_state(kind, state, NOW, &mut Vec::new());
            assert_eq!(writes(&view, &key(&distributed)), [], "{kind:?} {state:?}");
        }
    }
    let objects = [
        (Kind::MergedServiceImport, in_hub_of("member-1", &names::merged_import_name(&app()))),
        (Kind::Namespace, ObjectName::new("", "work")),
        (Kind::EndpointSliceImport, distributed.meta.name.clone()),
        (Kind::EndpointSlice, at(&distributed)),
    ];
    for (kind, name) in objects {
        let mut view = with_slices(std::slice::from_ref(&distributed));
        observe_change(&mut view, namespace("work").version(2).object());
        undecodable(&mut view, kind, &name);
        assert_eq!(writes(&view, &key(&distributed)), [], "{kind:?}");
    }
    let mut view = view_of(McsApi::Off, [importing().object(), merged(import()).marked().object()]);
    assert!(!observe_change(&mut view, distributed.clone().object()).contains(&key(&distributed)));
    assert_eq!(writes(&view, &key(&distributed)), [], "the standard API is off");
}

/// Also rule J8.
#[test]
fn each_of_two_imports_goes_back_soon_after_a_hub_agent_has_written_their_slice() {
    for first in 0..2 {
        let distributed = distributed().marked().with_addresses(&["10.0.0.1"], 4);
        let mut view = both(&distributed);
        view.slice_stream.chosen = SliceStreamUse::Fixed;
        let name = &distributed.meta.name.name;
        let imports = [at(&distributed), in_system(name)];
        let before = imports.each_ref().map(|at| view.slices.get(at).cloned().expect("it is imported"));
        let preview = distributed.clone().with_addresses(&["10.0.0.9"], 5);
        view.show_preview(name, preview.spec, seconds(20), &mut Vec::new());
        for at in &imports {
            assert_eq!(settle(&mut view, &Key::SliceImport(at.clone())), ["patch EndpointSlice"]);
        }
        view.stream_ended(StreamEnd::ByHub, seconds(20), &mut Vec::new());
        let goes_back = Some(seconds(20).plus_micros(RESTORE_GRACE_MICROS));
        let back_at = |view: &Planner, at: &ObjectName| planned(view, &Key::SliceImport(at.clone())).again;
        assert_eq!(imports.each_ref().map(|at| back_at(&view, at)), [goes_back, goes_back]);
        observe_change(&mut view, before[first].clone().version(40).object());
        assert_eq!(back_at(&view, &imports[1 - first]), goes_back, "the other one has not gone back yet");
    }
}

/// Rule MI25: MultiClusterServices, or the objects that claim Services, are not listed, or their kinds are absent
/// Then: The member agent imports slices by the standard API as usual
#[test]
fn an_import_by_the_mcs_api_needs_no_kind_of_the_other_api() {
    let distributed = distributed().marked();
    for kind in [Kind::MultiClusterService, Kind::ServiceImport, Kind::InternalServiceImport, Kind::ServiceExport] {
        for state in [WatchState::Incomplete, WatchState::Absent, WatchState::Unknown] {
            let mut view = with_slices(std::slice::from_ref(&distributed));
            view.watch_state(kind, state, NOW, &mut Vec::new());
            observe_change(&mut view, distributed.clone().with_addresses(&["10.0.0.9"], 2).version(3).object());
            assert_eq!(settle(&mut view, &key(&distributed)), ["patch EndpointSlice"], "{kind:?} {state:?}");
            observe_removal(&mut view, &distributed.clone().object());
            observe_change(&mut view, namespace("work").version(2).object());
            assert_eq!(settle(&mut view, &key(&distributed)), ["delete EndpointSlice"], "{kind:?} {state:?}");
        }
    }
}

/// Returns a view in which both APIs have imported `work/app`.
fn both(distributed: &HubSlice) -> Planner {
    let mut view = with_slices(std::slice::from_ref(distributed));
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-3"]));
    let claim = claim("member-1", &import).east_west().with_status(resolved(&["member-3"]));
    for object in [claim.object(), request.object(), import.object(), derived_service("work-app", "work/app").object()]
    {
        observe_change(&mut view, object);
    }
    settle(&mut view, &Key::SliceImport(in_system(&distributed.meta.name.name)));
    view
}

/// Rule MI14: Both APIs import a Service
/// Then: Each API has its own imported slice of each distributed slice, and each can end alone. The member agent
/// removes the finalizer of the distributed slice when both imported slices are gone. It acknowledges a preview of the
/// slice stream when both have it
#[test]
fn both_apis_import_a_slice_side_by_side_and_each_can_end_alone() {
    let distributed = distributed().marked();
    let in_system = in_system(&distributed.meta.name.name);
    let mut view = both(&distributed);
    assert_eq!(view.slices.get(&in_system).expect("it is imported").service.as_deref(), Some("work-app"));
    let changed = distributed.clone().with_addresses(&["10.0.0.9"], 2).version(6);
    let requeued = observe_change(&mut view, changed.object());
    let keys = [Key::SliceImport(in_system), key(&distributed)];
    assert!(keys.iter().all(|key| requeued.contains(key)));
    keys.iter().for_each(|key| assert_eq!(settle(&mut view, key), ["patch EndpointSlice"]));
    observe_change(&mut view, namespace("work").version(2).object());
    assert_eq!(settle(&mut view, &keys[1]), ["delete EndpointSlice"]);
    assert_eq!(writes(&view, &keys[0]), [], "the import of the other API stays");

    let mut view = both(&distributed);
    let dying = distributed.clone().deleting().version(9);
    observe_change(&mut view, dying.clone().object());
    assert_eq!(settle(&mut view, &keys[0]), ["delete EndpointSlice"]);
    assert_eq!(writes(&view, &keys[0]), [], "the finalizer stays until both are gone");
    let mut unknown = view.clone();
    let last = view.slices.get(&at(&distributed)).cloned().expect("it stays").object();
    observe_removal(&mut unknown, &last);
    undecodable(&mut unknown, Kind::EndpointSlice, &at(&distributed));
    assert_eq!(writes(&unknown, &keys[0]), [], "perhaps it was created again");
    assert!(observe_removal(&mut view, &last).contains(&keys[0]));
    assert_eq!(writes(&view, &keys[0]), [Write::remove_finalizer(Kind::EndpointSliceImport, &dying.meta)]);
}

/// Rule MI15: Both APIs import a Service, and one cluster exports it by only one of them
/// Then: Each API imports only slices of the clusters that its import lists. When a cluster ends its export by the
/// standard API, the import of its slices by this API ends at once. By the fleet's API, the import of a slice ends 60 s
/// after no claim (InternalServiceImport) lists its cluster, because a claim may lose its clusters for a moment. While
/// this is not known, or no claim is granted and the derived Service exists, imports neither begin nor end
#[test]
fn a_slice_is_imported_only_by_the_api_with_which_its_cluster_exports() {
    let distributed = distributed().marked();
    let at_fleet = in_system(&distributed.meta.name.name);
    let key_of_fleet = Key::SliceImport(at_fleet.clone());
    let claim_of =
        |clusters: &[&str]| claim("member-1", &service_import("work/app")).east_west().with_status(resolved(clusters));
    let mut view = both(&distributed);
    observe_change(&mut view, claim_of(&["member-3"]).object());
    assert_eq!(writes(&view, &key_of_fleet), []);
    // The cluster ends its export by the fleet's API.
    assert!(observe_change(&mut view, claim_of(&["member-2"]).version(2).object()).contains(&key_of_fleet));
    let until = seconds(20).plus_micros(ORPHAN_GRACE_MICROS);
    let plan = planned(&view, &key_of_fleet);
    assert_eq!((plan.writes.len(), plan.again), (0, Some(until)), "perhaps the hub agent lists it again in a moment");
    let deletion = Write::delete(Kind::EndpointSlice, &view.slices.get(&at_fleet).expect("it stays").meta);
    assert_eq!(planned_at(&view, &key_of_fleet, until).writes, [deletion]);
    assert_eq!(writes(&view, &key(&distributed)), [], "it exports by the standard API");
    let present = view.slices.get(&at_fleet).cloned().expect("it stays").object();
    observe_removal(&mut view, &present);
    assert_eq!(planned(&view, &key_of_fleet), Plan::default(), "it is not imported again");
    observe_change(&mut view, claim_of(&["member-3"]).version(3).object());
    assert_eq!(settle(&mut view, &key_of_fleet), ["create EndpointSlice"]);
    // The cluster ends its export by the standard API.
    let mut left = import();
    left.clusters.remove(0);
    assert!(observe_change(&mut view, merged(left).marked().version(9).object()).contains(&key(&distributed)));
    assert_eq!(settle(&mut view, &key(&distributed)), ["delete EndpointSlice"]);
    observe_change(&mut view, claim_of(&[]).version(4).object());
    assert_eq!(planned(&view, &key_of_fleet).again, None, "the hub agent withdraws it");
    observe_change(&mut view, claim_of(&["member-2"]).version(5).object());
    assert_eq!(planned(&view, &key_of_fleet), Plan::default(), "it exports by no API, so the hub agent withdraws it");
}

/// Also rule MI15.
#[test]
fn without_proof_an_import_of_the_fleets_api_neither_begins_nor_ends() {
    let distributed = distributed().marked();
    let key = Key::SliceImport(in_system(&distributed.meta.name.name));
    let claim_of =
        |clusters: &[&str]| claim("member-1", &service_import("work/app")).east_west().with_status(resolved(clusters));
    let later = seconds(90_000);
    // The claim has no answer for a moment, or is undecodable, or the MergedServiceImports are not listed.
    for case in 0..4 {
        let mut view = both(&distributed);
        let claimed = claim_of(&["member-2"]).object();
        match case {
            0 => drop(observe_change(&mut view, claim_of(&[]).object())),
            1 => {
                observe_change(&mut view, claimed.clone());
                undecodable(&mut view, Kind::InternalServiceImport, &claimed.meta().name);
            }
            2 => {
                view.watch_state(Kind::MergedServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
                observe_change(&mut view, claimed);
            }
            _ => {
                // This cluster imports the Service only by the fleet's API.
                let unmarked = merged(import()).version(9);
                observe_change(&mut view, unmarked.object());
                observe_change(&mut view, claimed);
            }
        }
        assert_eq!(planned_at(&view, &key, later).writes, [], "case {case}: it stays");
        let changed = distributed.clone().with_addresses(&["10.0.0.9"], 2).version(6);
        observe_change(&mut view, changed.object());
        assert_eq!(planned_at(&view, &key, later).writes.len(), 1, "case {case}: it follows its source");
        let present = view.slices.get(&in_system(&distributed.meta.name.name)).cloned().expect("it stays");
        observe_removal(&mut view, &present.object());
        let begins = planned_at(&view, &key, later).writes.len();
        assert_eq!(begins, usize::from(case == 3), "case {case}: without proof, it does not begin");
        if case < 3 {
            let theirs = slice(&in_system(&distributed.meta.name.name).to_string());
            observe_change(&mut view, theirs.object());
            assert_eq!(planned_at(&view, &key, later), Plan::default(), "case {case}: nothing is in the way yet");
        }
    }
    // Without a MultiClusterService, there is nothing to wait for.
    let mut view = both(&distributed);
    let request = view.multi_cluster_services.iter().next().cloned().expect("a MultiClusterService");
    observe_removal(&mut view, &request.object());
    observe_change(&mut view, claim_of(&[]).object());
    let deletions = planned_at(&view, &key, later).writes;
    assert!(matches!(&deletions[..], [Write { action: Action::Delete { .. }, .. }]), "{deletions:?}");
}

/// Also rule MI16.
#[test]
fn a_withdrawn_slice_stays_while_it_is_not_known_if_its_replacement_is_imported() {
    let (old, new) = (from("member-3", "work/app-1").marked(), from("member-3", "work/app-2").marked());
    let mut view = with_slices(std::slice::from_ref(&old));
    view.watch_state(Kind::MergedServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
    observe_change(&mut view, new.clone().object());
    observe_change(&mut view, old.clone().deleting().version(5).object());
    assert_eq!(writes(&view, &key(&old)), [], "no endpoint is missing");
    view.watch_state(Kind::MergedServiceImport, WatchState::Complete, NOW, &mut Vec::new());
    settle(&mut view, &key(&new));
    assert_eq!(settle(&mut view, &key(&old)), ["delete EndpointSlice"]);
}

/// Also rule MI16.
#[test]
fn a_withdrawn_slice_waits_only_for_an_import_that_is_missing() {
    let (old, new) = (from("member-3", "work/app-1").marked(), from("member-3", "work/app-2").marked());
    let mut view = with_slices(&[old.clone(), new.clone()]);
    view.watch_state(Kind::MergedServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
    observe_change(&mut view, old.clone().deleting().version(5).object());
    assert_eq!(settle(&mut view, &key(&old)), ["delete EndpointSlice"], "the other one is imported");
    let mut view = with_slices(std::slice::from_ref(&old));
    view.watch_state(Kind::MergedServiceImport, WatchState::Incomplete, NOW, &mut Vec::new());
    observe_change(&mut view, slice(&at(&new).to_string()).object());
    observe_change(&mut view, new.object());
    observe_change(&mut view, old.clone().deleting().version(5).object());
    assert_eq!(writes(&view, &key(&old)), [], "another writer's slice has its name, and does not count");
}

/// Also rules MI3, MI11.
#[test]
fn a_slice_is_not_bound_to_a_service_of_another_writer() {
    let distributed = distributed().marked();
    let headless = MergedImport { import_type: ImportType::Headless, ..import() };
    let mut view = view([importing().object(), merged(headless).object()]);
    settle(&mut view, &Key::McsImport(app()));
    observe_change(&mut view, distributed.clone().object());
    settle(&mut view, &key(&distributed));
    assert_eq!(imported(&view, &distributed).expect("it is imported").service, None);
    observe_change(&mut view, service(&names::mcs_derived(&app()).to_string()).object());
    observe_change(&mut view, merged(import()).marked().version(9).object());
    assert_eq!(planned(&view, &key(&distributed)), Plan::default(), "clients of this Service expect other endpoints");
}

#[test]
fn a_slice_follows_its_source_also_while_its_derived_service_has_no_label() {
    let distributed = distributed().marked();
    let mut view = with_slices(std::slice::from_ref(&distributed));
    let derived = view.services.get(&names::mcs_derived(&app())).cloned().expect("a Service");
    observe_removal(&mut view, &derived.clone().object());
    observe_change(&mut view, Service { imports: None, ..derived }.uid("later").version(70).object());
    observe_change(&mut view, distributed.clone().with_addresses(&["10.0.0.9"], 2).version(6).object());
    assert_eq!(settle(&mut view, &key(&distributed)), ["patch EndpointSlice"]);
}

/// Also rule MI10.
#[test]
fn a_slice_whose_service_moved_to_another_namespace_is_an_orphan() {
    let distributed = distributed().marked();
    let mut view = with_slices(std::slice::from_ref(&distributed));
    let spec = fleetnet_core::model::HubSliceSpec { owner: named("other/app"), ..distributed.spec.clone() };
    observe_change(&mut view, HubSlice { spec, ..distributed.clone() }.version(6).object());
    let deletion = Write::delete(Kind::EndpointSlice, &imported(&view, &distributed).expect("it stays").meta);
    let until = seconds(20).plus_micros(ORPHAN_GRACE_MICROS);
    assert_eq!(planned(&view, &key(&distributed)).again, Some(until));
    assert_eq!(planned_at(&view, &key(&distributed), until).writes, [deletion]);
}

/// Also rule MI14.
#[test]
fn a_preview_is_acknowledged_when_both_apis_have_imported_it() {
    let distributed = distributed().marked();
    let mut view = both(&distributed);
    let preview = distributed.clone().with_addresses(&["10.0.0.9"], 2);
    let unseen = HubSlice { spec: preview.spec.clone(), ..preview.clone() };
    view.show_preview(&distributed.meta.name.name, preview.spec, seconds(30), &mut Vec::new());
    let keys = [Key::SliceImport(in_system(&distributed.meta.name.name)), key(&distributed)];
    settle(&mut view, &keys[0]);
    assert_eq!(keys.each_ref().map(|key| planned(&view, key).acknowledged), [None, None]);
    settle(&mut view, &keys[1]);
    assert_eq!(keys.each_ref().map(|key| planned(&view, key).acknowledged), [Some(2), Some(2)]);
    // Nothing of it is imported, so neither import changes.
    let mut spec = unseen.spec;
    spec.reference.generation = 3;
    spec.content = content(&["10.0.0.9", "127.0.0.1"]).into();
    view.show_preview(&distributed.meta.name.name, spec, seconds(31), &mut Vec::new());
    assert_eq!(keys.each_ref().map(|key| planned(&view, key).acknowledged), [Some(3), Some(3)]);
}

#[test]
fn endpoints_of_a_silent_cluster_are_draining_while_another_cluster_serves() {
    let (two, three) = (from("member-2", "work/app-1").marked(), from("member-3", "work/app-1").marked());
    let mut view = with_slices(&[two.clone(), three.clone()]);
    let features = Features::from_iter([Feature::SilentMembers]);
    let mut agent = member_agent("member-1", features, features);
    agent.status.silent_members = vec![SilentMember { cluster: "member-3".into(), treatment: Treatment::Draining }];
    observe_change(&mut view, agent.object());
    settle(&mut view, &key(&three));
    let present = imported(&view, &three).expect("it is imported").content;
    assert_eq!((present.endpoints.len(), present.draining.len()), (0, 1));
    let gone = imported(&view, &two).expect("it is imported").object();
    assert!(observe_removal(&mut view, &gone).contains(&key(&three)), "no other cluster serves");
    settle(&mut view, &key(&three));
    assert_eq!(imported(&view, &three).expect("it is imported").content.endpoints.len(), 1);
    let mut other_port = two.clone().version(7);
    let mut content = content(&["10.0.0.1"]);
    content.ports[0].name = "grpc".into();
    other_port.spec.content = content.into();
    observe_change(&mut view, other_port.object());
    settle(&mut view, &key(&two));
    assert_eq!(settle(&mut view, &key(&three)), [] as [&str; 0], "the other cluster serves another port");
    let mut of_both_ports = three.clone().with_addresses(&["10.0.0.1"], 2).version(8);
    let mut content = crate::support::build::content(&["10.0.0.1"]);
    content.ports.push(fleetnet_core::model::EndpointPort { name: "grpc".into(), ..content.ports[0].clone() });
    of_both_ports.spec.content = content.into();
    observe_change(&mut view, of_both_ports.object());
    settle(&mut view, &key(&three));
    let present = imported(&view, &three).expect("it is imported").content;
    assert_eq!(present.endpoints.len(), 1, "nobody else serves the first port");
}

/// Also rule O20.
#[test]
fn the_last_endpoints_of_a_headless_service_without_ports_stay_while_their_cluster_is_silent() {
    let without_ports = |cluster: &str| {
        let mut slice = from(cluster, "work/app-1").marked();
        Arc::make_mut(&mut slice.spec.content).ports.clear();
        slice
    };
    let (two, three) = (without_ports("member-2"), without_ports("member-3"));
    let headless = MergedImport { import_type: ImportType::Headless, ports: Vec::new(), ..import() };
    let mut view = view([importing().object(), merged(headless).object()]);
    settle(&mut view, &Key::McsImport(app()));
    let features = Features::from_iter([Feature::SilentMembers]);
    let mut agent = member_agent("member-1", features, features);
    let shown = |view: &Planner| {
        let content = imported(view, &three).expect("it is imported").content;
        (content.endpoints.len(), content.draining.len())
    };
    for (version, treatment, beside_others) in [(1, Treatment::Draining, (0, 1)), (2, Treatment::Withdrawn, (0, 0))] {
        agent.status.silent_members = vec![SilentMember { cluster: "member-3".into(), treatment }];
        observe_change(&mut view, agent.clone().version(version).object());
        observe_change(&mut view, three.clone().object());
        settle(&mut view, &key(&three));
        assert_eq!(shown(&view), (1, 0), "{treatment:?}: no other cluster serves");
        observe_change(&mut view, two.clone().object());
        settle(&mut view, &key(&two));
        settle(&mut view, &key(&three));
        assert_eq!(shown(&view), beside_others, "{treatment:?}: the other cluster serves");
        for slice in [&two, &three] {
            let present = imported(&view, slice).expect("it is imported").object();
            observe_removal(&mut view, &present);
            observe_removal(&mut view, &slice.clone().object());
        }
    }
}

/// Rule E11: A member has an imported slice
/// Then: The member agent never exports an imported slice. Its labels do not count. It also exports no slice with the
/// label `multicluster.kubernetes.io/service-name`, which another implementation of the standard API may have imported
#[test]
fn a_slice_with_labels_of_the_mcs_api_is_never_exported() {
    let labels = McsLabels { service: "app".into(), cluster: "west".into(), headless: false };
    let own = slice("work/app-1");
    let imported = EndpointSlice { mcs: Some(Box::new(labels)), ..slice("work/app-2") };
    let objects = [service("work/app").object(), accepted_export("work/app").object()];
    let view = member_view(objects.into_iter().chain([own.clone().object(), imported.clone().object()]));
    let is_created = |slice: EndpointSlice| {
        writes(&view, &Key::SliceExport(slice.meta.name)).iter().any(|write| matches!(write.action, Action::Create(_)))
    };
    assert_eq!((is_created(own), is_created(imported)), (true, false));
}

#[test]
fn parts_that_are_not_imported_are_reported_to_the_user_of_the_service_import() {
    let mut distributed = distributed().marked();
    distributed.spec.content = content(&["10.0.0.1", "127.0.0.1"]).into();
    let mut view = without_slices();
    observe_change(&mut view, distributed.clone().object());
    let plan = planned(&view, &key(&distributed));
    let [Write { events, .. }] = &plan.writes[..] else { panic!("one write") };
    assert_eq!(events[0].source, Kind::McsServiceImport);
    assert_eq!(plan.blocking_reasons.len(), 1);
}

/// Also rule MI4.
#[test]
fn endpoints_stay_while_the_hub_has_older_served_ports_after_a_restore() {
    let distributed = distributed().marked();
    let mut view = with_slices(std::slice::from_ref(&distributed));
    view.hub_restored(seconds(20));
    let mut older = import();
    older.clusters[0].ports = Some(Vec::new());
    observe_change(&mut view, merged(older).marked().version(30).object());
    let plan = planned(&view, &key(&distributed));
    assert_eq!((plan.writes, plan.again), (Vec::new(), Some(seconds(20).plus_micros(RESTORE_GRACE_MICROS))));
    assert_eq!(planned_at(&view, &key(&distributed), seconds(9_000)).writes.len(), 1, "no newer state came");
}
