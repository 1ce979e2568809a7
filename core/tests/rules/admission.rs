//! Tests of the checks on distributed slices before their import: addresses, ports, names and labels.

use crate::support::build::{
    Build, BuildImport, BuildRequest, BuildSlice, IntoObject, SYSTEM, accepted_export, content, derived_service,
    distributed_slice, found, imported_slice, in_hub_of, in_system, named, port, request, resolved, service,
    service_import, slice, slice_export,
};
use crate::support::view::{
    SEEN, blocking_reasons, events_of, member_view, observe_change, observe_removal, planned, writes,
};
use crate::support::world::settings;
use fleetnet_core::member::{Key, OwnRanges, Planner, Settings};
use fleetnet_core::model::{
    AddressType, EndpointPort, EndpointSlice, HubSlice, ImportStatus, Kind, Object, ServicePort, SessionAffinity,
    SliceContent, TargetPort,
};
use fleetnet_core::plan::{Action, Desired, Patch, Plan, Write};
use fleetnet_types::{ObjectName, WatchState};
use std::sync::Arc;

/// Returns the MultiClusterService, ServiceImport and derived Service with which member-1 imports `work/app`.
fn imported() -> [Object; 3] {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    [request.object(), import.object(), derived_service("work-app", "work/app").object()]
}

/// Returns the distributed slice of a source slice of `work/app` in member-2, with these addresses and this source
/// generation.
fn distributed(addresses: &[&str], generation: i64) -> HubSlice {
    let mut distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1"))).marked();
    distributed.spec.content = content(addresses).into();
    distributed.spec.reference.generation = generation;
    distributed
}

fn key(distributed: &HubSlice) -> Key {
    Key::SliceImport(in_system(&distributed.meta.name.name))
}

fn view_of(distributed: &HubSlice, slice: Option<EndpointSlice>) -> Planner {
    let objects = imported().into_iter().chain([Object::EndpointSliceImport(distributed.clone())]);
    member_view(objects.chain(slice.map(IntoObject::object)))
}

/// Returns the imported slice of the distributed slice `distributed`, with these addresses and this observed
/// generation.
fn imported_as(distributed: &HubSlice, addresses: &[&str], generation: i64) -> EndpointSlice {
    let imported = imported_slice(&distributed.meta.name.name, "work-app");
    EndpointSlice { content: content(addresses), observed_generation: Some(generation), ..imported }
}

const OMITTED: &str = "EndpointSlice work/app-1 of cluster member-2 has values that are not imported: address \
                       127.0.0.1 (loopback), address 169.254.1.1 (link-local), address 0.0.0.0 (unspecified) and 1 \
                       more. Correct the slice in cluster member-2";

// === Addresses of endpoints in imported slices ===

/// Rule T22: The importing member agent leaves out an address or a port
/// Then: The agent emits `AddressRefused` or `PortRefused` on the MultiClusterService with the first write that leaves
/// out the address or port. The agent emits the Event again only if the left-out values change. The log line has the
/// same text as the Event
#[test]
fn a_forbidden_address_is_omitted_and_its_importer_gets_an_event() {
    let distributed = distributed(&["127.0.0.1", "10.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1"], 4);
    let view = view_of(&distributed, None);
    let plan = planned(&view, &key(&distributed));
    let [Write { action: Action::Create(Desired::EndpointSlice(made)), events, .. }] = &plan.writes[..] else {
        panic!("one slice, not {plan:#?}");
    };
    assert_eq!(made.content, content(&["10.0.0.1"]));
    assert_eq!(events_of(&plan), [("AddressRefused", OMITTED)]);
    let about: Vec<(Kind, &ObjectName, bool)> =
        events.iter().map(|event| (event.source, &event.name, event.reason.is_warning())).collect();
    assert_eq!(about, [(Kind::MultiClusterService, &named("work/app"), true)]);
    assert_eq!(blocking_reasons(&plan), [("AddressRefused", OMITTED)], "and the log says so");
    let fewer = self::distributed(&["127.0.0.1", "10.0.0.1", "169.254.1.1", "0.0.0.0"], 4);
    let message = OMITTED.replace(" and 1 more", "");
    assert_eq!(events_of(&planned(&view_of(&fewer, None), &key(&fewer))), [("AddressRefused", &*message)]);
}

/// Also rule T22.
#[test]
fn an_omitted_address_costs_no_write_and_is_reported_again_only_when_it_changes() {
    let bad = ["10.0.0.1", "127.0.0.1"];
    let first = distributed(&bad, 4);
    let mut view = view_of(&first, Some(imported_as(&first, &["10.0.0.1"], 4)));
    assert_eq!(writes(&view, &key(&first)), [], "imported as far as it is fit");

    let changed = |addresses: &[&str], generation| Object::EndpointSliceImport(distributed(addresses, generation));
    observe_change(&mut view, changed(&["10.0.0.2", "127.0.0.1"], 5));
    let plan = planned(&view, &key(&first));
    assert_eq!((plan.writes.len(), events_of(&plan)), (1, Vec::new()), "refused as before");
    observe_change(&mut view, imported_as(&first, &["10.9.9.9"], 5).version(5).object());
    let plan = planned(&view, &key(&first));
    assert_eq!((plan.writes.len(), events_of(&plan)), (1, Vec::new()), "a repair of what somebody edited");
    observe_change(&mut view, changed(&["10.0.0.3", "127.0.0.2"], 6));
    let plan = planned(&view, &key(&first));
    assert_eq!(events_of(&plan).into_iter().map(|(reason, _)| reason).collect::<Vec<_>>(), ["AddressRefused"]);
    observe_change(&mut view, changed(&["10.0.0.3"], 7));
    let plan = planned(&view, &key(&first));
    assert_eq!((events_of(&plan), blocking_reasons(&plan)), (Vec::new(), Vec::new()), "all of it is fit again");
}

/// Also rule T22.
#[test]
fn a_restart_emits_no_event_about_earlier_imports() {
    let same = distributed(&["10.0.0.1", "127.0.0.1"], 4);
    let relabelled = EndpointSlice { service: Some("elsewhere".into()), ..imported_as(&same, &["10.0.0.1"], 4) };
    let plan = planned(&view_of(&same, Some(relabelled)), &key(&same));
    assert_eq!((plan.writes.len(), events_of(&plan)), (1, Vec::new()));
}

/// Also rule T22.
#[test]
fn the_event_comes_with_the_write_that_leaves_the_address_out() {
    let kinds = |plan: &Plan| plan.writes.iter().map(Write::kind).collect::<Vec<_>>();
    let distributed = distributed(&["10.0.0.1", "127.0.0.1"], 5);
    let mut unmarked = distributed.clone();
    unmarked.meta.finalizers.ours = false;
    let plan = planned(&view_of(&unmarked, None), &key(&unmarked));
    assert_eq!((kinds(&plan), events_of(&plan)), (vec![Kind::EndpointSliceImport], Vec::new()));
    let mut of_other_type = imported_as(&distributed, &["fd00::1"], 4);
    of_other_type.content.address_type = AddressType::IPv6;
    let plan = planned(&view_of(&distributed, Some(of_other_type)), &key(&distributed));
    assert_eq!((kinds(&plan), events_of(&plan)), (vec![Kind::EndpointSlice], Vec::new()), "it is deleted first");
}

/// Also rule T22.
#[test]
fn an_address_omitted_from_an_earlier_import_is_reported_though_its_source_is_the_same() {
    let reasons = |view: &Planner, distributed: &HubSlice| {
        let plan = planned(view, &key(distributed));
        events_of(&plan).into_iter().map(|(reason, _)| reason.to_owned()).collect::<Vec<_>>()
    };
    // The agent imported source generation 4 with both addresses. Since then the second address has become forbidden,
    // for example by address ranges that an operator configured.
    let same = distributed(&["10.0.0.1", "127.0.0.1"], 4);
    let view = view_of(&same, Some(imported_as(&same, &["10.0.0.1", "127.0.0.1"], 4)));
    assert_eq!(reasons(&view, &same), ["AddressRefused"]);

    // Another writer changed the addresses of the distributed slice, but not the source generation in it. The agent
    // must check the addresses although it has already imported this generation.
    let first = distributed(&["10.0.0.1"], 4);
    let mut view = view_of(&first, Some(imported_as(&first, &["10.0.0.1"], 4)));
    let forged = distributed(&["10.0.0.2", "127.0.0.1"], 4);
    observe_change(&mut view, Object::EndpointSliceImport(forged.clone()));
    assert_eq!(reasons(&view, &forged), ["AddressRefused"]);
}

/// Also rule T22.
#[test]
fn nothing_is_remembered_of_a_slice_that_is_gone() {
    let distributed = Object::EndpointSliceImport(distributed(&["127.0.0.1"], 4));
    let mut view = member_view(imported());
    let before = view.clone();
    observe_change(&mut view, distributed.clone());
    assert_ne!(view, before);
    observe_removal(&mut view, &distributed);
    assert_eq!(view, before);
}

/// Also rule T21.
#[test]
fn where_ranges_are_declared_for_the_source_what_lies_outside_them_is_left_out() {
    let ranges = |cluster: &str| [(cluster.into(), vec!["10.2.0.0/16".parse().expect("a range")])].into();
    let distributed = distributed(&["10.2.0.1", "10.3.0.1"], 4);
    let imports = |cluster: &str| {
        let settings = Settings { source_ranges: ranges(cluster), ..settings(0) };
        let mut view = Planner::new(settings);
        for kind in <Planner as crate::support::agent::View>::KINDS {
            view.watch_state(*kind, WatchState::Complete, SEEN, &mut Vec::new());
        }
        for object in imported().into_iter().chain([Object::EndpointSliceImport(distributed.clone())]) {
            view.applied(object, SEEN, &mut Vec::new());
        }
        planned(&view, &key(&distributed))
    };
    let plan = imports("member-2");
    let [Write { action: Action::Create(Desired::EndpointSlice(made)), .. }] = &plan.writes[..] else {
        panic!("one slice, not {plan:#?}");
    };
    assert_eq!(made.content, content(&["10.2.0.1"]));
    let message = "EndpointSlice work/app-1 of cluster member-2 has values that are not imported: address 10.3.0.1 \
                   (outside the ranges that --source-ranges declares for that cluster). Correct the slice in cluster \
                   member-2, or declare the ranges of its endpoints with --source-ranges";
    assert_eq!(events_of(&plan), [("AddressRefused", message)]);
    let plan = imports("member-3");
    assert_eq!((events_of(&plan), blocking_reasons(&plan)), (Vec::new(), Vec::new()), "of others nothing is declared");
}

/// Also rule T65.
#[test]
fn texts_of_other_members_are_escaped_and_short_in_messages() {
    for forged in ["a\nkind: Secret", "\u{1b}[2J", "\u{202e}drowssap", &"x".repeat(253)] {
        let mut distributed = distributed(&[], 4);
        let mut hostile = content(&[&format!("1{forged}"), &format!("2{forged}"), &format!("3{forged}")]);
        hostile.ports =
            vec![EndpointPort { name: forged.into(), protocol: forged.into(), port: None, app_protocol: None }];
        distributed.spec.content = hostile.into();
        distributed.spec.reference.cluster = forged.into();
        let plan = planned(&view_of(&distributed, None), &key(&distributed));
        let [("AddressRefused", message)] = events_of(&plan)[..] else { panic!("one Event, not {plan:#?}") };
        assert!(message.len() <= 1_024, "{} bytes", message.len());
        assert!(!message.contains(['\n', '\u{1b}', '\u{202e}']), "{message}");
        assert!(message.contains(". Correct the slice in cluster "), "{message}");
    }
}

// === Addresses of the importing cluster itself ===

/// Returns a Service of this cluster with this cluster IP.
fn own_service(path: &str, ip: &str) -> Object {
    let mut service = service(path);
    service.cluster_ips = vec![ip.into()];
    service.object()
}

/// Returns a slice of the API server of this cluster.
fn api_server(address: &str) -> Object {
    EndpointSlice { service: Some("kubernetes".into()), content: content(&[address]), ..slice("default/kubernetes") }
        .object()
}

/// Returns the view of a cluster with these ranges, in which a database and the API server have addresses.
fn view_with_own(own_ranges: OwnRanges, others: impl IntoIterator<Item = Object>) -> Planner {
    let mut view = Planner::new(Settings { own_ranges, ..settings(0) });
    let own = [own_service("shop/db", "10.96.0.10"), api_server("172.16.0.1")];
    // The own addresses become known last.
    for object in imported().into_iter().chain(others).chain(own) {
        view.applied(object, SEEN, &mut Vec::new());
    }
    for kind in <Planner as crate::support::agent::View>::KINDS {
        view.watch_state(*kind, WatchState::Complete, SEEN, &mut Vec::new());
    }
    view
}

/// Returns the addresses of the imported slice that a plan creates.
fn made(view: &Planner, distributed: &HubSlice) -> Vec<String> {
    let plan = planned(view, &key(distributed));
    let [Write { action: Action::Create(Desired::EndpointSlice(made)), .. }] = &plan.writes[..] else {
        panic!("one slice, not {plan:#?}");
    };
    made.content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect()
}

/// Rule T62: A distributed slice of another cluster has an address of the importing cluster itself: the cluster IP of
/// one of its Services, an address of its API server (EndpointSlices of `default/kubernetes`), or an address in the
/// ranges of `--own-ranges`
/// Then: The importing member agent leaves out the address. If a Service or the API server gets or loses an address
/// later, the agent changes the imports that have this address. With `--own-ranges=off`, the agent imports these
/// addresses. A cluster that imports its own slices by the standard API imports all their addresses, because its pods
/// can have addresses of its nodes
#[test]
fn addresses_of_the_importing_cluster_are_left_out_of_the_slices_of_others() {
    let all = ["10.2.0.1", "10.96.0.10", "172.16.0.1", "10.244.0.7"];
    let ranges = || OwnRanges::LeftOut(vec!["10.244.0.0/16".parse().expect("a range")]);
    let table: [(_, &[&str]); 3] =
        [(OwnRanges::default(), &["10.2.0.1", "10.244.0.7"]), (ranges(), &["10.2.0.1"]), (OwnRanges::Off, &all)];
    for (own, expected) in table {
        let distributed = distributed(&all, 4);
        // Neither of these slices is one of the API server.
        let other_service = EndpointSlice { content: content(&["10.2.0.1"]), ..slice("default/other-1") }.object();
        let other_namespace = slice("work/kubernetes-1").endpoints(&["10.2.0.1"]).object();
        let others = [Object::EndpointSliceImport(distributed.clone()), other_service, other_namespace];
        let view = view_with_own(own.clone(), others);
        assert_eq!(made(&view, &distributed), expected, "{own:?}");
    }
    let mut by_nat64 = distributed(&[], 4);
    let six = content(&["64:ff9b::a60:a", "64:ff9b::a60:b"]);
    by_nat64.spec.content = SliceContent { address_type: AddressType::IPv6, ..six }.into();
    let view = view_with_own(OwnRanges::default(), [Object::EndpointSliceImport(by_nat64.clone())]);
    assert_eq!(made(&view, &by_nat64), ["64:ff9b::a60:b"], "a60:a is 10.96.0.10");
}

/// Also rule T62.
#[test]
fn a_cluster_that_imports_its_own_slices_imports_all_addresses() {
    let mut own = distributed_slice("member-1", &slice_export("member-1", &slice("work/app-1"))).marked();
    own.spec.content = content(&["172.16.0.1", "10.96.0.10"]).into();
    let view = view_with_own(OwnRanges::default(), [Object::EndpointSliceImport(own.clone())]);
    assert_eq!(made(&view, &own), ["172.16.0.1", "10.96.0.10"], "a pod in the network of its node has such an address");
}

/// Also rule T62.
#[test]
fn the_event_about_an_own_address_names_the_address() {
    let distributed = distributed(&["10.2.0.1", "10.96.0.10"], 4);
    let view = view_with_own(OwnRanges::default(), [Object::EndpointSliceImport(distributed.clone())]);
    let message = "EndpointSlice work/app-1 of cluster member-2 has values that are not imported: address 10.96.0.10 \
                   (an address of the importing cluster itself). Correct the slice in cluster member-2";
    assert_eq!(events_of(&planned(&view, &key(&distributed))), [("AddressRefused", message)]);
}

/// Also rule T62.
#[test]
fn an_import_changes_when_an_address_becomes_one_of_this_cluster_and_when_it_ceases_to_be_one() {
    let distributed = distributed(&["10.2.0.1", "10.96.0.11", "172.16.0.9"], 4);
    let present = imported_as(&distributed, &["10.2.0.1", "10.96.0.11", "172.16.0.9"], 4);
    let mut view = view_of(&distributed, Some(present));
    assert_eq!(writes(&view, &key(&distributed)), []);
    let patched = |view: &Planner| {
        let plan = planned(view, &key(&distributed));
        let [Write { action: Action::Patch { patch: Patch::ImportedSlice(slice), .. }, events, .. }] = &plan.writes[..]
        else {
            panic!("one patch, not {plan:#?}");
        };
        let addresses = slice.content.endpoints.iter().map(|endpoint| endpoint.addresses[0].to_string());
        (addresses.collect::<Vec<_>>().join(" "), events.len())
    };
    let (service, server) = (own_service("shop/new", "10.96.0.11"), api_server("172.16.0.9"));
    assert!(observe_change(&mut view, service.clone()).contains(&key(&distributed)));
    assert_eq!(patched(&view), ("10.2.0.1 172.16.0.9".to_owned(), 1));
    assert!(observe_change(&mut view, server.clone()).contains(&key(&distributed)));
    assert_eq!(patched(&view), ("10.2.0.1".to_owned(), 1));

    observe_change(&mut view, imported_as(&distributed, &["10.2.0.1"], 4).object());
    assert_eq!(writes(&view, &key(&distributed)), [], "also after a restart");
    assert!(observe_removal(&mut view, &service).contains(&key(&distributed)));
    assert!(observe_removal(&mut view, &server).contains(&key(&distributed)));
    assert_eq!(patched(&view), ("10.2.0.1 10.96.0.11 172.16.0.9".to_owned(), 0));
}

/// Also rule T62.
#[test]
fn a_service_of_this_cluster_plans_only_the_imports_that_have_its_address() {
    let (one, mut other) = (distributed(&["10.96.0.11"], 4), distributed(&["10.96.0.12"], 4));
    other.meta.name.name = "other".into();
    let mut view = view_of(&one, None);
    observe_change(&mut view, Object::EndpointSliceImport(other.clone()));
    let requeued = observe_change(&mut view, own_service("shop/new", "10.96.0.11"));
    assert!(requeued.contains(&key(&one)) && !requeued.contains(&key(&other)), "{requeued:?}");
}

/// Also rule T20.
#[test]
fn a_slice_without_valid_endpoints_stays_empty_and_blocks_no_removal() {
    let unfit = distributed(&["127.0.0.1"], 4);
    let plan = planned(&view_of(&unfit, None), &key(&unfit));
    let [Write { action: Action::Create(Desired::EndpointSlice(made)), .. }] = &plan.writes[..] else {
        panic!("one slice, not {plan:#?}");
    };
    assert_eq!(made.content, content(&[]));

    let mut going = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-2"))).marked().deleting();
    going.spec.content = content(&["10.0.0.7"]).into();
    let stands = EndpointSlice { content: content(&["10.0.0.7"]), ..imported_slice(&going.meta.name.name, "work-app") };
    let goes = Write::delete(Kind::EndpointSlice, &stands.meta);
    for slice in [None, Some(imported_as(&unfit, &[], 4))] {
        let mut view = view_of(&unfit, slice);
        let objects = [Object::EndpointSliceImport(going.clone()), stands.clone().object()];
        objects.into_iter().for_each(|object| drop(observe_change(&mut view, object)));
        assert_eq!(writes(&view, &key(&going)), std::slice::from_ref(&goes), "nothing takes over from it");
    }
}

/// Also rule T20.
#[test]
fn a_slice_without_valid_endpoints_is_requeued_with_its_replacement() {
    let unfit = distributed(&["127.0.0.1"], 5);
    let mut view = view_of(&unfit, Some(imported_as(&unfit, &["10.0.0.1"], 4)));
    let other = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-2"))).marked();
    let requeue = observe_change(&mut view, Object::EndpointSliceImport(other.clone()));
    assert!(requeue.contains(&key(&unfit)), "{requeue:?}");
    assert_eq!(writes(&view, &key(&unfit)), [], "the other takes over first");
    let requeue = observe_change(&mut view, imported_slice(&other.meta.name.name, "work-app").object());
    assert!(requeue.contains(&key(&unfit)), "{requeue:?}");
    assert_eq!(writes(&view, &key(&unfit)).len(), 1);
}

// === Ports of imported slices ===

/// Also rule T23.
#[test]
fn a_malformed_port_is_omitted_and_its_importer_gets_an_event() {
    let mut distributed = distributed(&["10.0.0.1"], 4);
    let mut unfit = distributed.spec.content.ports[0].clone();
    (unfit.name, unfit.port) = ("admin".into(), Some((-5).into()));
    Arc::make_mut(&mut distributed.spec.content).ports.push(unfit);
    let plan = planned(&view_of(&distributed, None), &key(&distributed));
    let [Write { action: Action::Create(Desired::EndpointSlice(made)), .. }] = &plan.writes[..] else {
        panic!("one slice, not {plan:#?}");
    };
    assert_eq!(made.content, content(&["10.0.0.1"]));
    let message = "EndpointSlice work/app-1 of cluster member-2 has values that are not imported: port \"admin\" \
                   -5/TCP (not a port). Correct the slice in cluster member-2";
    assert_eq!(events_of(&plan), [("PortRefused", message)]);
}

/// Rule T24: A ServiceImport has malformed ports or target ports
/// Then: The importing member agent does not create or update the derived Service of the ServiceImport, and sets
/// `Valid=False` (reason `PortRefused`)
#[test]
fn a_service_is_not_derived_with_what_is_no_port() {
    let ports = |name: &str, number| vec![port("http", 80), ServicePort { name: name.into(), ..port("x", number) }];
    for (ports, derived) in [(ports("admin", 81), true), (ports("-j ACCEPT", 81), false), (ports("admin", 0), false)] {
        let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
        let status = ImportStatus { ports: ports.clone(), ..resolved(&["member-2"]) };
        let import = service_import("work/app").controlled_by(&request).showing(status);
        let view = member_view([request.object(), import.object()]);
        let plan = planned(&view, &Key::MultiClusterService(named("work/app")));
        let is_derived = |write: &Write| {
            !matches!(write.action, Action::Patch { patch: Patch::MultiClusterServiceStatus { .. }, .. })
        };
        let made: Vec<bool> = plan.writes.iter().map(is_derived).collect();
        assert_eq!((made, plan.blocking_reasons.is_empty()), (vec![derived], derived), "{ports:?}");
        let reported: Vec<&str> = events_of(&plan).into_iter().map(|(reason, _)| reason).collect();
        assert_eq!(reported.first().copied(), (!derived).then_some("PortRefused"), "{ports:?}");
        assert_eq!(events_of(&plan), blocking_reasons(&plan), "{ports:?}");
    }
}

/// Also rule T24.
#[test]
fn a_service_is_not_derived_with_what_ports_cannot_point_at() {
    use TargetPort::{Name, Number};
    let table = [
        (Number(8080.into()), true),
        (Name("http".into()), true),
        (Number(0.into()), false), // the API server would replace 0 by another number each time
        (Number((-1).into()), false),
        (Number(65_536.into()), false),
        (Name("".into()), false),
        (Name("80".into()), false),
        (Name("a-name-too-long-".into()), false),
        (Name("a--b".into()), false),
        (Name("Http".into()), false),
    ];
    for (target, derived) in table {
        let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
        let ports = vec![ServicePort { target_port: Some(target.clone()), ..port("http", 80) }];
        let import = service_import("work/app")
            .controlled_by(&request)
            .showing(ImportStatus { ports, ..resolved(&["member-2"]) });
        let plan =
            planned(&member_view([request.object(), import.object()]), &Key::MultiClusterService(named("work/app")));
        let derives = plan.writes.iter().any(|write| write.kind() == Kind::Service);
        assert_eq!((derives, plan.blocking_reasons.is_empty()), (derived, derived), "{target:?}");
    }
}

/// Rule T29: A ServiceImport has a session affinity that is invalid for a Service
/// Then: The derived Service does not get this session affinity
#[test]
fn a_session_affinity_that_no_service_can_have_is_left_out() {
    for (timeout_seconds, is_one) in [(1, true), (86_400, true), (0, false), (-1, false), (86_401, false)] {
        let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
        let session_affinity = SessionAffinity::ClientIp { timeout_seconds };
        let status = ImportStatus { session_affinity, ..resolved(&["member-2"]) };
        let import = service_import("work/app").controlled_by(&request).showing(status);
        let plan =
            planned(&member_view([request.object(), import.object()]), &Key::MultiClusterService(named("work/app")));
        let [Write { action: Action::Create(Desired::Service(made)), .. }] = &plan.writes[..] else {
            panic!("one Service, not {plan:#?}");
        };
        let expected = if is_one { session_affinity } else { SessionAffinity::None };
        assert_eq!(made.session_affinity, expected, "{timeout_seconds}");
    }
}

// === Names and labels of imported slices ===

/// Rule T26: The hub determines names of objects that a member imports
/// Then: An imported slice has the name of its distributed slice (EndpointSliceImport), if this name is valid and
/// unused in the importing cluster. All other names, and all labels, come from objects of the importing cluster
#[test]
fn a_slice_is_imported_under_no_name_that_a_slice_cannot_have() {
    for name in ["Work_App", "../app", "a b", "app.", ""] {
        let mut distributed = distributed(&["10.0.0.1"], 4);
        distributed.meta.name = in_hub_of("member-1", name);
        let plan = planned(&view_of(&distributed, None), &key(&distributed));
        assert_eq!((plan.writes.len(), plan.blocking_reasons.len()), (0, 1), "{name:?}");
    }
}

/// Also rule T26.
#[test]
fn a_distributed_slice_with_the_name_of_a_local_slice_does_not_change_the_local_one() {
    let own = slice("fleet-system/own-1");
    let export = slice_export("member-1", &own);
    let mut distributed = distributed(&["10.0.0.1"], 4);
    distributed.meta.name = in_hub_of("member-1", "own-1");
    distributed.meta.finalizers.ours = false;
    let objects = [service("fleet-system/own").object(), accepted_export("fleet-system/own").object(), own.object()];
    let exported = objects.into_iter().chain([Object::EndpointSliceExport(export)]);
    let view = member_view(exported.chain(imported()).chain([Object::EndpointSliceImport(distributed.clone())]));
    let plan = planned(&view, &key(&distributed));
    assert_eq!((plan.writes.len(), plan.blocking_reasons.len()), (0, 1), "not even marked");
    assert_eq!(writes(&view, &Key::SliceExport(named("fleet-system/own-1"))), [], "and its export stays");
}

/// Also rule T26.
#[test]
fn a_source_slice_with_the_name_of_a_distributed_slice_is_exported() {
    let distributed = distributed(&["10.0.0.1"], 4);
    let mut source = slice("work/own-1");
    source.meta.name.name = distributed.meta.name.name.clone();
    let key = Key::SliceExport(source.meta.name.clone());
    let objects = [service("work/own").object(), accepted_export("work/own").object(), source.object()];
    let view = member_view(objects.into_iter().chain([Object::EndpointSliceImport(distributed)]));
    assert!(
        matches!(writes(&view, &key)[..], [Write { action: Action::Create(Desired::EndpointSliceExport(_)), .. }]),
        "{:?}",
        writes(&view, &key)
    );
}

/// Also rule T26.
#[test]
fn a_slice_is_bound_to_this_clusters_derived_service_whatever_the_hub_names() {
    for owner in ["fleet-system/work-app", "work/work-app", "kube-system/kube-dns", "/", "work/app/../x"] {
        let mut distributed = distributed(&["10.0.0.1"], 4);
        distributed.spec.owner = named(owner);
        assert_eq!(writes(&view_of(&distributed, None), &key(&distributed)), [], "{owner}: nothing here imports that");
    }
    let distributed = distributed(&["10.0.0.1"], 4);
    let plan = planned(&view_of(&distributed, None), &key(&distributed));
    let [Write { at, action: Action::Create(Desired::EndpointSlice(made)), .. }] = &plan.writes[..] else {
        panic!("one slice, not {plan:#?}");
    };
    assert_eq!((&*at.namespace, made.service.as_deref()), (SYSTEM, Some("work-app")));
}

/// Also rule T26.
#[test]
fn the_hubs_owner_service_sets_no_name_and_no_label_here() {
    let request = request("work/app").taken_on().with_conditions(&[found()]);
    let status = ImportStatus { clusters: vec!["../../x".into(), "".into()], ..resolved(&[]) };
    let import = service_import("work/app").controlled_by(&request).showing(status);
    let view = member_view([request.clone().object(), import.object()]);
    let plan = planned(&view, &Key::MultiClusterService(named("work/app")));
    let labels = Patch::MultiClusterService {
        finalizers: request.meta.finalizers.clone(),
        import_label: Some("app".into()),
        derived_label: Some("work-app".into()),
    };
    assert_eq!(plan.writes, [Write::patch(&request.meta, labels)]);
}
