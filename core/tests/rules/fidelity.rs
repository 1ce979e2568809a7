//! Tests that the importer gets each field of a Service and its slices that exporter, hub and importer support.

use crate::oracle::assert_settled;
use crate::support::build::{
    BuildExport, BuildImport, BuildInternalExport, BuildRequest, BuildService, IntoObject, accepted_export, content,
    derived_service, distributed_slice, found, in_hub_of, internal_export, mcs_part, member_agent, named, no_conflict,
    pending, port, request, resolved, seconds, service, service_export, service_import, slice, slice_export, valid,
};
use crate::support::property::for_any;
use crate::support::view::{hub_view, member_view, observe_change, observe_removal, planned, undecodable, writes};
use crate::support::world::{Who, World, cluster_id};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub;
use fleetnet_core::member::{Key, Planner};
use fleetnet_core::model::{
    AddressType, Announcement, ConsumerType, Endpoint, EndpointPort, EndpointSlice, ImportStatus, ImportType, Kind,
    MemberAgent, MultiClusterService, Object, Service, ServiceExport, ServiceImport, ServiceType, SessionAffinity,
    SliceContent,
};
use fleetnet_core::plan::{Action, DerivedService, Desired, ExportContent, Patch, Plan, Write};
use fleetnet_types::WatchState;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};

const STICKY: SessionAffinity = SessionAffinity::ClientIp { timeout_seconds: 60 };

fn app() -> Key {
    Key::Export(named("work/app"))
}

/// Returns the view of an exporting member's agent. The hub agent announces these features.
fn exporter(service: &Service, export: &ServiceExport, hub: Features) -> Planner {
    member_view([
        service.clone().object(),
        export.clone().object(),
        member_agent("member-1", Features::ALL, hub).object(),
    ])
}

// === Headless Services ===

/// Rule F5: A headless Service is exported
/// Then: The member agent exports the Service only if its ServiceExport asks for headless export
/// (`networking.fleet.azure.com/export-headless: "true"`) and the hub announces the feature `Headless`. A Service of
/// type ExternalName is never exported
#[test]
fn a_headless_service_is_exported_where_its_export_asks_for_it() {
    let headless = service("work/app").headless();
    let requested = ServiceExport {
        headless: true,
        ..accepted_export("work/app").with_conditions(&[valid("work/app"), pending("work/app")])
    };
    let plan = planned(&exporter(&headless, &requested, Features::ALL), &app());
    let [Write { action: Action::Create(Desired::InternalServiceExport { content, .. }), .. }] = &plan.writes[..]
    else {
        panic!("{plan:?}")
    };
    assert!(content.headless);

    let assert_ineligible = |service: &Service, export: &ServiceExport, hub: Features| {
        let plan = planned(&exporter(service, export, hub), &app());
        let condition = plan.writes.iter().find_map(|write| match &write.action {
            Action::Patch { patch: Patch::ServiceExportConditions(list), .. } => list.first(),
            _ => None,
        });
        assert_eq!(condition.map(|condition| &*condition.reason), Some("ServiceIneligible"), "{plan:?}");
        plan.writes.iter().flat_map(|write| write.events.iter().map(|event| event.message.clone())).collect::<Vec<_>>()
    };
    let plain_export = service_export("work/app");
    let reported = assert_ineligible(&headless, &plain_export, Features::ALL);
    assert_eq!(
        reported,
        [
            "service work/app is not eligible for export: it is headless; set the annotation networking.fleet.azure.com/export-headless of the \
          ServiceExport to \"true\" to export it"
        ]
    );
    let requested = ServiceExport { headless: true, ..plain_export };
    let reported = assert_ineligible(&headless, &requested, Features::ALL.without(Feature::Headless));
    assert!(reported[0].contains("the hub agent does not announce support for headless Services"), "{reported:?}");
    let external = service("work/app").of_type(ServiceType::ExternalName);
    assert_ineligible(&external, &requested, Features::ALL);
}

/// Also rule F5.
#[test]
fn whether_a_headless_service_may_be_exported_is_not_decided_before_the_hub_is_heard() {
    let requested = ServiceExport { headless: true, ..service_export("work/app") };
    let mut view = member_view([service("work/app").headless().object(), requested.object()]);
    view.watch_state(Kind::MemberAgent, WatchState::Incomplete, seconds(11), &mut Vec::new());
    assert_eq!(planned(&view, &app()), Plan::default());
    let requeue = observe_change(&mut view, member_agent("member-1", Features::ALL, Features::ALL).object());
    assert!(requeue.contains(&app()), "{requeue:?}");
}

/// Also rule F5.
#[test]
fn while_the_features_of_the_hub_are_assumed_a_headless_export_stays_and_none_begins() {
    let headless = service("work/app").headless();
    let exported = slice_export("member-1", &slice("work/app-1"));
    let key = Key::SliceExport(named("work/app-1"));
    // The first announcement of the hub agent may still come.
    let view = |in_hub: Option<&Service>| {
        let internal = in_hub.map(|of| internal_export("member-1", of).judged(no_conflict("work/app")).object());
        let requested = ServiceExport { headless: true, ..accepted_export("work/app") };
        let objects = [headless.clone().object(), requested.object(), slice("work/app-1").object()];
        member_view(objects.into_iter().chain([Object::EndpointSliceExport(exported.clone())]).chain(internal))
    };
    let stays = view(Some(&headless));
    assert_eq!((writes(&stays, &app()), writes(&stays, &key)), (vec![], vec![]));
    let withdrawn = [Write::delete(Kind::EndpointSliceExport, &exported.meta)];
    for in_hub in [None, Some(&service("work/app"))] {
        assert_eq!(writes(&view(in_hub), &key), withdrawn, "the hub has no headless export of it");
    }
    // Perhaps the undecodable export is headless.
    let mut unknown = view(None);
    undecodable(&mut unknown, Kind::InternalServiceExport, &in_hub_of("member-1", "work-app"));
    assert_eq!((writes(&unknown, &app()), writes(&unknown, &key)), (vec![], vec![]));
    observe_change(&mut unknown, slice("work/app-2").object());
    observe_removal(&mut unknown, &slice("work/app-1").object());
    assert_eq!(writes(&unknown, &key), [], "its replacement cannot be exported yet");
}

/// Rule F6: Some exports of a Service are headless and other exports of the Service are not
/// Then: The hub agent reports a conflict between these exports. The message says which exports are headless
#[test]
fn an_import_is_headless_where_its_winner_is_and_the_others_must_be_too() {
    let content = |cluster: &str, headless: bool, at: i64| {
        let mut content = internal_export(cluster, &service("work/app"));
        content.headless = headless;
        content.port_set_since(seconds(at))
    };
    let (first, second) = (content("member-1", true, 2), content("member-2", false, 3));
    let status = ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-1"]) };
    let import = service_import("work/app");
    let resolving = hub_view([first.clone().object(), second.clone().object(), import.clone().object()]);
    let key = hub::Key::Service(named("work/app"));
    let write = Write::patch(&import.meta, Patch::ServiceImportStatus(status.clone()));
    assert_eq!(writes(&resolving, &key), [write]);
    let judging = hub_view([first.object(), second.object(), import.showing(status).object()]);
    let events: Vec<_> = planned(&judging, &key).writes.into_iter().flat_map(|write| write.events).collect();
    let [event] = &events[..] else { panic!("{events:?}") };
    assert!(event.message.contains("member-2's is not headless, member-1's is headless"), "{}", event.message);
}

// === Session affinity ===

/// Rule F9: A Service has session affinity
/// Then: The agents copy the session affinity to the derived Service. If several members export the Service, the
/// derived Service gets the session affinity of the winning export. Different session affinities are no conflict
#[test]
fn session_affinity_is_exported_to_a_hub_that_supports_it_and_removed_again() {
    let sticky = Service { session_affinity: STICKY, ..service("work/app") };
    let export = accepted_export("work/app");
    let plain = internal_export("member-1", &service("work/app")).judged(no_conflict("work/app"));
    let full = internal_export("member-1", &sticky).judged(no_conflict("work/app"));
    let written = |stored: &fleetnet_core::model::InternalServiceExport, hub: Features| {
        let mut view = exporter(&sticky, &export, hub);
        view.applied(stored.clone().object(), seconds(10), &mut Vec::new());
        let content = |write: Write| match write.action {
            Action::Patch { patch: Patch::InternalServiceExport { content, .. }, .. } => Some(content),
            other => panic!("{other:?}"),
        };
        writes(&view, &app()).into_iter().find_map(content)
    };
    let content = ExportContent { ports: vec![port("http", 80)], session_affinity: STICKY, ..ExportContent::default() };
    assert_eq!(written(&plain, Features::ALL), Some(content.clone()));
    assert_eq!(written(&full, Features::ALL), None);
    let edited = full.clone().mcs(mcs_part());
    assert_eq!(written(&edited, Features::ALL), Some(content.clone()), "another writer added the standard API");
    assert_eq!(written(&plain, Features::NONE), None, "compared in the Go form");
    let taken_back = ExportContent { session_affinity: SessionAffinity::None, ..content };
    assert_eq!(written(&full, Features::NONE), Some(taken_back));
}

/// Also rule F9.
#[test]
fn an_import_has_the_session_affinity_of_its_winner() {
    let content = |cluster: &str, session_affinity: SessionAffinity, at: i64| {
        let sticky = Service { session_affinity, ..service("work/app") };
        internal_export(cluster, &sticky).port_set_since(seconds(at)).object()
    };
    let import = service_import("work/app");
    let key = hub::Key::Service(named("work/app"));
    for (one, other) in [(STICKY, SessionAffinity::None), (SessionAffinity::None, STICKY)] {
        let view = hub_view([content("member-1", one, 2), content("member-2", other, 3), import.clone().object()]);
        let status = ImportStatus { session_affinity: one, ..resolved(&["member-1", "member-2"]) };
        let write = Write::patch(&import.meta, Patch::ServiceImportStatus(status));
        assert_eq!(writes(&view, &key), [write], "another affinity is no conflict");
    }
}

// === The derived Service ===

fn bound_request() -> MultiClusterService {
    request("work/app").taken_on().deriving("work-app").consumed_as(ConsumerType::ClusterIp).with_conditions(&[found()])
}

fn import_of(request: &MultiClusterService, status: ImportStatus) -> ServiceImport {
    service_import("work/app").controlled_by(request).showing(status)
}

fn wanted() -> DerivedService {
    DerivedService {
        derived_from: named("work/app"),
        consumer_type: ConsumerType::ClusterIp,
        ports: vec![port("http", 80)],
        headless: false,
        session_affinity: SessionAffinity::None,
        dual_stack: false,
        internal_load_balancer: false,
    }
}

fn standing() -> Service {
    derived_service("work-app", "work/app").of_type(ServiceType::ClusterIp)
}

fn derived(request: &MultiClusterService, status: ImportStatus, others: Vec<Object>) -> Vec<Write> {
    let import = import_of(request, status);
    let objects = [request.clone().object(), import.object()].into_iter().chain(others);
    writes(&member_view(objects), &Key::MultiClusterService(named("work/app")))
}

/// Rule F8: A headless Service is imported
/// Then: The derived Service is headless. The type that the MultiClusterService requests does not count. When the
/// imported Service becomes headless, or is no longer headless, the member agent deletes the derived Service and
/// creates it again. Clients find the derived Service by its name, and a headless Service has no address, so the old
/// address cannot stay
#[test]
fn the_derived_service_of_a_headless_import_is_headless_whatever_type_is_requested() {
    let headless = || ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-1"]) };
    let asks_for_address = bound_request().consumed_as(ConsumerType::LoadBalancer);
    let desired = Desired::Service(DerivedService { headless: true, ..wanted() });
    let at = standing().meta.name;
    let create = [Write::create(at, desired)];
    assert_eq!(derived(&asks_for_address, headless(), vec![]), create);
    assert_eq!(derived(&bound_request(), headless(), vec![]), create);
    let stands = standing().headless();
    assert_eq!(derived(&bound_request(), headless(), vec![stands.clone().object()]), []);
    // A Service cannot gain or lose its cluster IP, so the agent deletes the Service and creates it again.
    let [with, without] = [standing(), stands].map(|service| Write::delete(Kind::Service, &service.meta));
    assert_eq!(derived(&bound_request(), headless(), vec![standing().object()]), [with]);
    assert_eq!(derived(&bound_request(), resolved(&["member-1"]), vec![standing().headless().object()]), [without]);
}

/// Also rule F9.
#[test]
fn a_derived_service_has_its_imports_session_affinity() {
    let sticky = ImportStatus { session_affinity: STICKY, ..resolved(&["member-1"]) };
    let patch = |session_affinity| {
        let patch = Patch::DerivedService(DerivedService { session_affinity, ..wanted() });
        [Write::patch(&standing().meta, patch)]
    };
    assert_eq!(derived(&bound_request(), sticky.clone(), vec![standing().object()]), patch(STICKY));
    let stuck = Service { session_affinity: STICKY, ..standing() };
    assert_eq!(derived(&bound_request(), sticky, vec![stuck.clone().object()]), []);
    assert_eq!(derived(&bound_request(), resolved(&["member-1"]), vec![stuck.object()]), patch(SessionAffinity::None));
}

/// Returns the distributed slice of a slice of `work/app` with IPv6 addresses.
fn distributed_six() -> Object {
    let mut six = slice("work/app-1");
    six.content = SliceContent { address_type: AddressType::IPv6, ..content(&["fd00::1"]) };
    Object::EndpointSliceImport(distributed_slice("member-1", &slice_export("member-2", &six)))
}

/// Rule F4: A member imports IPv6 addresses
/// Then: The derived Service requests both address families (`PreferDualStack`), and keeps both families as long as the
/// derived Service exists
#[test]
fn a_derived_service_requests_both_families_once_ipv6_slices_are_distributed_and_keeps_them() {
    let status = || resolved(&["member-1"]);
    let patch = Patch::DerivedService(DerivedService { dual_stack: true, ..wanted() });
    let write = Write::patch(&standing().meta, patch);
    assert_eq!(derived(&bound_request(), status(), vec![standing().object(), distributed_six()]), [write]);
    let both = Service { dual_stack: true, ..standing() };
    assert_eq!(derived(&bound_request(), status(), vec![both.clone().object(), distributed_six()]), []);
    assert_eq!(derived(&bound_request(), status(), vec![both.object()]), [], "its address stays when they go");
    let mut view =
        member_view([bound_request().object(), import_of(&bound_request(), status()).object(), standing().object()]);
    let requeue = observe_change(&mut view, distributed_six());
    assert!(requeue.contains(&Key::MultiClusterService(named("work/app"))), "{requeue:?}");
}

/// Also rule F4.
#[test]
fn a_derived_service_requests_both_families_only_once_an_ipv6_address_is_imported() {
    let distributed = |addresses: &[&str]| {
        let mut six = slice("work/app-1");
        six.content = SliceContent { address_type: AddressType::IPv6, ..content(addresses) };
        Object::EndpointSliceImport(distributed_slice("member-1", &slice_export("member-2", &six)))
    };
    let status = || resolved(&["member-1"]);
    let mut leaving = distributed(&["fd00::1"]);
    leaving.meta_mut().deleting = true;
    for unfit in [distributed(&["::1", "fe80::1"]), distributed(&[]), leaving] {
        assert_eq!(derived(&bound_request(), status(), vec![standing().object(), unfit.clone()]), []);
        let mut view = member_view([
            bound_request().object(),
            import_of(&bound_request(), status()).object(),
            standing().object(),
            unfit,
        ]);
        let mut fit = distributed(&["::1", "fd00::1"]);
        fit.meta_mut().resource_version += 1;
        let requeue = observe_change(&mut view, fit);
        let key = Key::MultiClusterService(named("work/app"));
        assert!(requeue.contains(&key), "{requeue:?}");
        let patch = Patch::DerivedService(DerivedService { dual_stack: true, ..wanted() });
        assert_eq!(writes(&view, &key), [Write::patch(&standing().meta, patch)]);
    }
}

// === From export to import, with random contents and features ===

fn any_endpoint(address: impl Strategy<Value = String>) -> impl Strategy<Value = Endpoint> {
    let addresses = prop::collection::vec(address.prop_map(Into::into), 1..3);
    (addresses, option::of("[a-z]{1,5}"), option::of("zone-[1-3]")).prop_map(|(addresses, hostname, zone)| {
        let plain = Endpoint { addresses, ..Endpoint::default() };
        Endpoint { hostname: hostname.map(Into::into), zone: zone.map(Into::into), ..plain }
    })
}

fn any_content() -> impl Strategy<Value = SliceContent> {
    let endpoints = |six: bool| {
        let address =
            (1..250_u8).prop_map(move |last| if six { format!("fd00::{last:x}") } else { format!("10.0.0.{last}") });
        prop::collection::vec(any_endpoint(address), 0..5)
    };
    let port = ("[a-z]{0,5}", prop_oneof!["TCP", "UDP"], option::of(1..9_i32), option::of("[a-z]{1,4}")).prop_map(
        |(name, protocol, port, app_protocol)| EndpointPort {
            name: name.into(),
            protocol: protocol.into(),
            port: port.map(Into::into),
            app_protocol: app_protocol.map(Into::into),
        },
    );
    let lists = any::<bool>().prop_flat_map(move |six| (Just(six), endpoints(six), endpoints(six)));
    (lists, prop::collection::vec(port, 0..3)).prop_map(|((six, endpoints, draining), ports)| SliceContent {
        address_type: if six { AddressType::IPv6 } else { AddressType::IPv4 },
        endpoints,
        draining,
        ports,
    })
}

fn any_features() -> impl Strategy<Value = Features> {
    let some = prop::collection::btree_set(prop::sample::select(Feature::ALL.to_vec()), 0..5);
    prop_oneof![Just(Features::ALL), Just(Features::NONE), some.prop_map(|set| set.into_iter().collect())]
}

/// Returns the part of a slice that the importer gets if hub and importer support these features; `None` if it gets no
/// slice.
fn common(content: &SliceContent, hub: Features, importer: Features) -> Option<SliceContent> {
    let both = |feature| hub.has(feature) && importer.has(feature);
    if content.address_type == AddressType::IPv6 && !both(Feature::IPv6) {
        return None;
    }
    let bare = |endpoint: &Endpoint| Endpoint { addresses: endpoint.addresses.clone(), ..Endpoint::default() };
    let reduced = |list: &[Endpoint]| -> Vec<Endpoint> {
        if both(Feature::EndpointDetails) { list.to_vec() } else { list.iter().map(bare).collect() }
    };
    let draining = if both(Feature::DrainingEndpoints) { reduced(&content.draining) } else { Vec::new() };
    Some(SliceContent { endpoints: reduced(&content.endpoints), draining, ..content.clone() })
}

/// Returns a fleet after its last step. In this fleet, member-1 exports `work/app` with this slice, and member-2
/// imports it.
fn imported(content: &SliceContent, session_affinity: SessionAffinity, hub: Features, importer: Features) -> World {
    let mut world = World::new(2);
    world.run();
    for (member, known_features, hub) in [(0, Features::NONE, hub), (1, importer, Features::ALL)] {
        world.create(Who::Hub, member_agent(&cluster_id(member), known_features, hub).object());
        announce(&mut world, member, |agent| agent.status.announcement = Announcement::new("1.2.3", hub)); // a create does not write the status
    }
    let source = EndpointSlice { content: content.clone(), ..slice("work/app-1") };
    world.create(Who::Member(0), Service { session_affinity, ..service("work/app") }.object());
    world.create(Who::Member(0), source.object());
    world.create(Who::Member(0), service_export("work/app").object());
    world.create(Who::Member(1), request("work/app").consumed_as(ConsumerType::ClusterIp).object());
    world.run();
    world
}

fn imports(world: &World) -> Vec<SliceContent> {
    let slice = |object: &Object| match object {
        Object::EndpointSlice(slice) if slice.imported => Some(slice.content.clone()),
        _ => None,
    };
    world.members[1].cluster.all().filter_map(slice).collect()
}

/// Situations that the random cases of this file must cover.
const SHOWN: [&str; 4] = ["a slice arrives", "no slice arrives", "IPv6 arrives", "session affinity arrives"];

/// Rule F1: A slice is exported and imported
/// Then: Every carried field arrives in the imported slice, if all agents on the path support the field. Only the
/// features that the agents announce now matter, not earlier announcements. After the field arrives, the agents make no
/// further writes
#[test]
fn export_then_import_preserves_every_field_that_all_agents_support() {
    let input = (any_content(), any::<bool>(), any_features(), any_features());
    for_any(200, &input, (&SHOWN, 5), |(content, sticky, hub, importer)| {
        let affinity = if sticky { STICKY } else { SessionAffinity::None };
        let mut world = imported(&content, affinity, hub, importer);
        let expected: Vec<_> = common(&content, hub, importer).into_iter().collect();
        assert_eq!(&imports(&world), &expected);
        let derived = world.members[1].cluster.all().find_map(|object| match object {
            Object::Service(service) => service.derived_from.is_some().then_some(service),
            _ => None,
        });
        let derived = derived.expect("one is derived");
        let known_features = hub.has(Feature::SessionAffinity) && importer.has(Feature::SessionAffinity);
        assert_eq!(derived.session_affinity, if known_features { affinity } else { SessionAffinity::None });
        let is_any = |content: &SliceContent| content.endpoints.len() + content.draining.len() > 0;
        let has_six = expected.iter().any(|content| content.address_type == AddressType::IPv6 && is_any(content));
        assert_eq!(derived.dual_stack, has_six);

        // The announced features change. The import must depend only on the current features, not on earlier ones.
        // Afterwards, restarted agents write nothing.
        for (hub, importer) in [(Features::ALL, Features::ALL), (Features::NONE, Features::NONE), (hub, importer)] {
            announce(&mut world, 0, |agent| agent.status.announcement = Announcement::new("1.2.3", hub));
            announce(&mut world, 1, |agent| agent.member = Announcement::new("1.2.3", importer));
            world.run();
            assert_eq!(imports(&world), common(&content, hub, importer).into_iter().collect::<Vec<_>>());
            let mark = world.ledger.len();
            world.restart_all();
            world.run();
            assert_eq!(world.lines_since(mark), Vec::<String>::new());
        }
        let arrives = !expected.is_empty();
        let shown = [arrives, !arrives, has_six, known_features && sticky];
        SHOWN.into_iter().zip(shown).filter_map(|(class, shown)| shown.then_some(class)).collect()
    });
}

fn announce(world: &mut World, member: usize, change: impl FnOnce(&mut MemberAgent)) {
    let name = named(&format!("fleet-member-member-{0}/member-{0}", member + 1));
    world.edit(Who::Hub, Kind::MemberAgent, &name, |object| {
        let Object::MemberAgent(agent) = object else { return };
        change(agent);
    });
}

/// Also rule F1.
#[test]
fn all_of_a_rich_slice_arrives_and_the_fleet_settles() {
    let mut rich = content(&["10.0.0.1"]);
    rich.endpoints[0].hostname = Some("db-0".into());
    rich.endpoints[0].zone = Some("zone-1".into());
    rich.draining = content(&["10.0.0.2"]).endpoints;
    let world = imported(&rich, STICKY, Features::ALL, Features::ALL);
    assert_eq!(imports(&world), [rich]);
    assert_settled(&world);
}

/// Tests of this file that run random histories. `proved.rs` also runs these tests with broken agents, and asserts that
/// each test then fails.
pub(crate) const HISTORIES: &[(&str, fn())] = &[(
    "export_then_import_preserves_every_field_that_all_agents_support",
    export_then_import_preserves_every_field_that_all_agents_support,
)];
