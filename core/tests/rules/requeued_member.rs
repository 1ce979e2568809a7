//! Each change of an object that the member agent sees requeues every key whose plan it changes. The tests change every
//! object of a few fixed views in every way that a rule reads, one change at a time.

use crate::support::agent::{View as _, applied};
use crate::support::build::{
    self, Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, BuildRequest, BuildService, BuildSlice,
    IntoObject, accepted_export, address, claim, condition, conflict, content, derived_service, distributed_slice,
    found, imported_slice, in_system, internal_export, internal_member_cluster, mcs_export, mcs_part, member_agent,
    named, no_conflict, pending, port, reference, request, resolved, seconds, service, service_export, service_import,
    slice, slice_export, system_namespace, valid,
};
use crate::support::mcs;
use crate::support::requeued::{NEEDLESS, Settled, Step, paths_of, paths_of_new, paths_of_watches, states_of};
use crate::support::view::{NOW, SEEN, complete};
use crate::support::world::settings;
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::limits::{FOUND_LEAVE_MICROS, PORTS_MAX};
use fleetnet_core::member::{
    ImportLimits, Key, Limits, McsApi, Membership, Planner, Settings, SliceStreamUse, StreamEnd,
};
use fleetnet_core::model::{
    AddressType, AgentStatus, Announcement, ConsumerType, EndpointSlice, HubSlice, ImportStatus, ImportType,
    InternalLoadBalancer, InternalMemberCluster, InternalServiceExport, InternalServiceImport, IpFamily, Kind,
    McsLabels, McsServiceExport, McsServiceImport, MemberAgent, MembershipAgent, MembershipState, MergedServiceImport,
    MultiClusterService, Namespace, Object, ServedPort, Service, ServiceExport, ServiceImport, ServiceType,
    SessionAffinity, SilentMember, SliceStreamOffer, Treatment,
};
use fleetnet_core::names;
use fleetnet_core::plan::Plan;
use fleetnet_types::{ObjectName, Timestamp, WatchState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// UID of the cluster of these views.
const OWN: &str = "uid-kube-system";
const COMPLETE: WatchState = WatchState::Complete;
const AFFINITY: SessionAffinity = SessionAffinity::ClientIp { timeout_seconds: 60 };

fn of_service(it: &Service) -> Vec<Object> {
    let changes: [fn(&mut Service); 15] = [
        |it| it.ports = vec![port("http", 80), port("metrics", 9090)],
        |it| it.ports = vec![port("http", 80); PORTS_MAX + 1],
        |it| it.service_type = ServiceType::ExternalName,
        |it| it.service_type = ServiceType::NodePort,
        |it| it.headless = !it.headless,
        |it| it.session_affinity = AFFINITY,
        |it| it.dual_stack = !it.dual_stack,
        |it| it.families = vec![IpFamily::IPv6],
        |it| it.has_selector_or_external_ips = true,
        |it| it.internal_traffic_policy = Some("Local".into()),
        |it| it.traffic_distribution = Some("PreferClose".into()),
        |it| it.cluster_ips = vec!["10.0.0.1".into()],
        |it| it.is_external_policy_local = true,
        |it| it.internal_load_balancer = !it.internal_load_balancer,
        |it| it.load_balancer = address("20.0.0.9"),
    ];
    let mut all = states_of(it, &changes);
    // The view keeps the labels of a Service as long as it has the same UID.
    let another = it.clone().uid("uid-of-another");
    all.push(Service { derived_from: Some(named("work/app")), ..another.clone() });
    all.push(Service { derived_from: None, imports: Some("app".into()), ..another.clone() });
    all.push(Service { derived_from: None, imports: None, ..another });
    all.into_iter().map(Object::Service).collect()
}

fn of_slice(it: &EndpointSlice) -> Vec<Object> {
    let changes: [fn(&mut EndpointSlice); 9] = [
        |it| it.service = Some("new".into()),
        |it| it.service = None,
        |it| it.content = content(&["10.0.0.7"]),
        |it| it.content.endpoints = Vec::new(),
        |it| it.content.draining = std::mem::take(&mut it.content.endpoints),
        |it| (it.content.address_type, it.content.endpoints) = (AddressType::IPv6, content(&["fd00::7"]).endpoints),
        |it| it.content.ports = vec![it.content.ports[0].clone(); PORTS_MAX + 1],
        |it| it.further_addresses = 2,
        |it| it.excess = 7,
    ];
    let mut all = states_of(it, &changes);
    if it.imported {
        all.push(EndpointSlice { observed_generation: Some(9), ..it.clone() });
        let of_another = it.clone().uid("uid-of-another");
        all.push(EndpointSlice { imported: false, mcs: None, observed_generation: None, ..of_another });
    } else {
        let labels = McsLabels { service: "app".into(), cluster: "member-3".into(), headless: false };
        all.push(EndpointSlice { mcs: Some(Box::new(labels)), ..it.clone() });
    }
    all.into_iter().map(Object::EndpointSlice).collect()
}

fn of_export(it: &ServiceExport) -> Vec<Object> {
    let changes: [fn(&mut ServiceExport); 7] = [
        |it| it.weight = Some("0".into()),
        |it| it.weight = Some("heavy".into()),
        |it| it.weight = Some("5".into()),
        |it| it.headless = !it.headless,
        |it| it.conditions = Vec::new(),
        |it| it.conditions = vec![valid("work/app"), conflict("work/app")],
        |it| it.conditions = vec![condition("Valid", "False", "ServiceNotFound", "no", 1), pending("work/app")],
    ];
    states_of(it, &changes).into_iter().map(Object::ServiceExport).collect()
}

fn of_mcs_export(it: &McsServiceExport) -> Vec<Object> {
    let changes: [fn(&mut McsServiceExport); 4] = [
        |it| it.labels = [("team".into(), "red".into())].into(),
        |it| it.annotations = [("note".into(), "new".into())].into(),
        |it| it.conditions = Vec::new(),
        |it| it.conditions = vec![conflict("work/app")],
    ];
    states_of(it, &changes).into_iter().map(Object::McsServiceExport).collect()
}

fn of_import(it: &ServiceImport) -> Vec<Object> {
    let changes: [fn(&mut ServiceImport); 7] = [
        |it| it.owners = Vec::new(),
        |it| it.owners.iter_mut().for_each(|owner| owner.uid = "uid-of-another".into()),
        |it| it.owners.iter_mut().for_each(|owner| owner.controller = !owner.controller),
        |it| it.status = ImportStatus::default(),
        |it| it.status = resolved(&["member-4"]),
        |it| it.status.import_type = Some(ImportType::Headless),
        |it| it.status.ports = vec![port("http", 0)],
    ];
    states_of(it, &changes).into_iter().map(Object::ServiceImport).collect()
}

fn of_request(it: &MultiClusterService) -> Vec<Object> {
    let changes: [fn(&mut MultiClusterService); 10] = [
        |it| it.import_name = "other".into(),
        |it| it.import_name = "app".into(),
        |it| it.import_name = "".into(),
        |it| it.consumer_type = ConsumerType::ClusterIp,
        |it| it.internal_load_balancer = InternalLoadBalancer::Requested,
        |it| it.internal_load_balancer = InternalLoadBalancer::Malformed,
        |it| it.import_label = None,
        |it| it.derived_label = None,
        |it| it.derived_label = Some("work-other".into()),
        |it| (it.conditions, it.load_balancer) = (Vec::new(), address("20.0.0.8")),
    ];
    states_of(it, &changes).into_iter().map(Object::MultiClusterService).collect()
}

fn of_internal_export(it: &InternalServiceExport) -> Vec<Object> {
    let changes: [fn(&mut InternalServiceExport); 13] = [
        |it| it.reference.source = named("work/new"),
        |it| it.reference.source = named("other/app"),
        |it| it.reference.uid = "uid-of-another".into(),
        |it| it.reference.cluster = "member-9".into(),
        |it| it.ports = Vec::new(),
        |it| it.headless = !it.headless,
        |it| it.session_affinity = AFFINITY,
        |it| it.mcs = if it.mcs.is_some() { None } else { Some(Arc::new(mcs_part())) },
        |it| it.conditions = Vec::new(),
        |it| it.conditions = vec![conflict("work/app")],
        |it| it.conditions = vec![condition("Valid", "False", "ExporterNotAllowed", "no", 1)],
        |it| it.conditions = vec![merge_outcome()],
        |it| it.conditions.push(condition("Disputed", "True", "WritesUndone", "undone", 1)),
    ];
    states_of(it, &changes).into_iter().map(Object::InternalServiceExport).collect()
}

fn merge_outcome() -> fleetnet_core::model::Condition {
    condition("multicluster.x-k8s.io/Conflict", "False", "NoConflictFound", "agreed", 1)
}

fn of_claim(it: &InternalServiceImport) -> Vec<Object> {
    let changes: [fn(&mut InternalServiceImport); 6] = [
        |it| it.reference.source = named("work/other"),
        |it| it.reference.uid = "uid-of-another".into(),
        |it| it.consumer_type = ConsumerType::ClusterIp,
        |it| it.status = ImportStatus::default(),
        |it| it.status = resolved(&["member-4"]),
        |it| it.status.ports = vec![port("other", 81)],
    ];
    states_of(it, &changes).into_iter().map(Object::InternalServiceImport).collect()
}

fn of_hub_slice(it: &HubSlice) -> Vec<HubSlice> {
    let changes: [fn(&mut HubSlice); 12] = [
        |it| it.spec.reference.source = named("work/app-9"),
        |it| it.spec.reference.uid = "uid-of-another".into(),
        |it| it.spec.reference.cluster = "member-9".into(),
        |it| it.spec.reference.cluster = "member-2".into(),
        |it| it.spec.reference.generation -= 1,
        |it| it.spec.reference.generation += 1,
        |it| it.spec.owner = named("work/other"),
        |it| it.spec.owner = named("other/app"),
        |it| it.spec.content = content(&["10.0.0.7", "10.0.0.8"]).into(),
        |it| it.spec.content = content(&[]).into(),
        |it| it.spec.content = Arc::new(six()),
        |it| it.misnamed = !it.misnamed,
    ];
    states_of(it, &changes)
}

fn six() -> fleetnet_core::model::SliceContent {
    fleetnet_core::model::SliceContent { address_type: AddressType::IPv6, ..content(&["fd00::7"]) }
}

fn of_member_agent(it: &MemberAgent) -> Vec<Object> {
    let changes: [fn(&mut MemberAgent); 12] = [
        |it| it.status.announcement = Announcement::new("1.2.3", Features::NONE),
        |it| it.status.announcement = Announcement::new("1.2.3", Features::ALL.without(Feature::SilentMembers)),
        |it| it.status.announcement.version = "".into(),
        |it| it.status.silent_members = silent("member-2", Treatment::Draining),
        |it| it.status.silent_members = silent("member-3", Treatment::Withdrawn),
        |it| it.status.slice_stream = Some(SliceStreamOffer { address: "a:1".into(), ca_bundle: "ca".into() }),
        |it| it.cluster_uid = Some("uid-of-another".into()),
        |it| it.cluster_uid = None,
        |it| it.leader = Some("another".into()),
        |it| it.renewed = Some(seconds(9)),
        |it| it.stopped = Some(seconds(9)),
        |it| it.member = Announcement::new("1.2.2", Features::NONE),
    ];
    states_of(it, &changes).into_iter().map(Object::MemberAgent).collect()
}

fn silent(cluster: &str, treatment: Treatment) -> Vec<SilentMember> {
    vec![SilentMember { cluster: cluster.into(), treatment }]
}

fn of_membership(it: &InternalMemberCluster) -> Vec<Object> {
    let changes: [fn(&mut InternalMemberCluster); 6] = [
        |it| it.state = MembershipState::Join,
        |it| it.state = MembershipState::Leave,
        |it| {
            it.meta.resource_version += 1;
            (it.state, it.heartbeat_micros) = (MembershipState::Leave, 30_000_000);
        },
        |it| it.state = MembershipState::Other,
        |it| it.heartbeat_micros *= 2,
        |it| it.agents = vec![AgentStatus::Other("{}".into())],
    ];
    states_of(it, &changes).into_iter().map(Object::InternalMemberCluster).collect()
}

fn of_mcs_import(it: &McsServiceImport) -> Vec<Object> {
    let changes: [fn(&mut McsServiceImport); 4] = [
        |it| it.spec.ports = Vec::new(),
        |it| it.spec.ips = vec!["10.9.9.9".into()],
        |it| it.status.clusters = Vec::new(),
        |it| it.status.conditions = Vec::new(),
    ];
    states_of(it, &changes).into_iter().map(Object::McsServiceImport).collect()
}

fn of_merged(it: &MergedServiceImport) -> Vec<Object> {
    let changes: [fn(&mut MergedServiceImport); 6] = [
        |it| it.service = named("work/other"),
        |it| Arc::make_mut(&mut it.import).import_type = ImportType::Headless,
        |it| Arc::make_mut(&mut it.import).ports = vec![port("other", 81)],
        |it| drop(Arc::make_mut(&mut it.import).clusters.pop()),
        |it| {
            let ports = vec![ServedPort { name: "http".into(), own_name: "web".into() }];
            Arc::make_mut(&mut it.import).clusters[0].ports = Some(ports);
        },
        |it| Arc::make_mut(&mut it.import).properties.families = vec![IpFamily::IPv6],
    ];
    states_of(it, &changes).into_iter().map(Object::MergedServiceImport).collect()
}

fn of_namespace(it: &Namespace) -> Vec<Object> {
    let changes: [fn(&mut Namespace); 1] = [|it| it.is_importing = !it.is_importing];
    states_of(it, &changes).into_iter().map(Object::Namespace).collect()
}

/// Returns the states of an object after each change that a rule reads.
fn states(object: &Object) -> Vec<Object> {
    match object {
        Object::Service(it) => of_service(it),
        Object::EndpointSlice(it) => of_slice(it),
        Object::ServiceExport(it) => of_export(it),
        Object::McsServiceExport(it) => of_mcs_export(it),
        Object::ServiceImport(it) => of_import(it),
        Object::MultiClusterService(it) => of_request(it),
        Object::InternalServiceExport(it) => of_internal_export(it),
        Object::InternalServiceImport(it) => of_claim(it),
        Object::EndpointSliceExport(it) => of_hub_slice(it).into_iter().map(Object::EndpointSliceExport).collect(),
        Object::EndpointSliceImport(it) => of_hub_slice(it).into_iter().map(Object::EndpointSliceImport).collect(),
        Object::MemberAgent(it) => of_member_agent(it),
        Object::InternalMemberCluster(it) => of_membership(it),
        Object::McsServiceImport(it) => of_mcs_import(it),
        Object::MergedServiceImport(it) => of_merged(it),
        Object::Namespace(it) => of_namespace(it),
        Object::SystemNamespace(_) | Object::MemberCluster(_) | Object::ClusterProperty(_) | Object::Node(_) => {
            Vec::new()
        }
    }
}

/// Returns an empty view of member-1, which announces all features and owns its id.
fn empty(change: impl FnOnce(&mut Settings)) -> Planner {
    let mut settings = Settings { announces: Some(Announcement::new("1.2.3", Features::ALL)), ..settings(0) };
    change(&mut settings);
    let mut view = Planner::new(settings);
    view.watch_state(Kind::SystemNamespace, WatchState::Complete, SEEN, &mut Vec::new());
    view.applied(system_namespace(OWN), SEEN, &mut Vec::new());
    view
}

fn own_agent() -> MemberAgent {
    let mut agent = member_agent("member-1", Features::ALL, Features::ALL);
    agent.cluster_uid = Some(OWN.into());
    agent.leader = Some("leader of member-1".into());
    agent
}

/// Kinds of whose earlier states the view keeps something: the last renewal and the last list of silent members, and
/// that this member leaves.
fn remembers(kind: Kind) -> bool {
    matches!(kind, Kind::MemberAgent | Kind::SystemNamespace | Kind::InternalMemberCluster)
}

fn settled(empty: Planner, objects: &[Object]) -> Settled<Planner> {
    settled_at(NOW, empty, objects)
}

fn settled_at(now: Timestamp, empty: Planner, objects: &[Object]) -> Settled<Planner> {
    let mut settled = Settled::new(empty, objects, Vec::new(), now);
    settled.remembers = remembers;
    // Most slices belong to Services that are not exported, so no object of such a key exists.
    settled.further = settled.view.slices.iter().map(|slice| Key::SliceExport(slice.meta.name.clone())).collect();
    settled.further.push(Key::Export(named("work/app")));
    settled
}

/// Asserts that each change of an object, and each new object, requeues every key whose plan it changes.
fn assert_requeued(settled: &Settled<Planner>, new: &[Object]) -> usize {
    let objects = settled.view.objects();
    let paths = objects.iter().flat_map(|object| paths_of(object, states(object)));
    settled.assert_requeued(paths.chain(paths_of_new(new.iter().cloned())))
}

/// Asserts that each change of a watch requeues every key whose plan it changes.
fn assert_watches(settled: &mut Settled<Planner>) -> usize {
    settled.remembers = |_| true; // while a list is not complete, facts stay as they were
    let system = |state| [Step::State(Kind::SystemNamespace, state), Step::State(Kind::SystemNamespace, COMPLETE)];
    let system = [WatchState::Absent, WatchState::Incomplete].map(|state| system(state).to_vec());
    settled.assert_requeued(paths_of_watches::<Planner>().into_iter().chain(system))
}

/// Executes the writes of all plans of imports, as the servers do. Returns all objects then.
fn imported(mut view: Planner, objects: &[Object]) -> Vec<Object> {
    complete(&mut view);
    objects.iter().for_each(|object| view.applied(object.clone(), SEEN, &mut Vec::new()));
    for _ in 0..3 {
        let is_import = |key: &Key| matches!(key, Key::McsImport(_) | Key::SliceImport(_));
        for key in view.every_key().into_iter().filter(is_import) {
            mcs::settle(&mut view, &key);
        }
    }
    view.objects()
}

/// Returns a Service that is exported by the fleet's API: with its ServiceExport, its InternalServiceExport, its slice,
/// and the export of this slice.
fn exported(path: &str) -> Vec<Object> {
    let (service, slice) = (service(path).uid(&format!("uid-{path}")), slice(&format!("{path}-1")));
    let slice = slice.uid(&format!("uid-of-slice-{path}"));
    let export = slice_export("member-1", &slice);
    let internal = internal_export("member-1", &service).uid(&format!("uid-in-hub-{path}"));
    let internal = internal.judged(no_conflict(path));
    vec![
        service.object(),
        accepted_export(path).object(),
        internal.object(),
        slice.object(),
        Object::EndpointSliceExport(export),
    ]
}

/// Returns a Service with several slices that the fleet's API exports, and a Service that is not exported yet.
fn exporting() -> Vec<Object> {
    let mut objects = exported("work/app");
    let second = slice("work/app-2").endpoints(&["10.0.0.2"]);
    let six = EndpointSlice { content: six(), ..slice("work/app-6") };
    objects.extend([second.object(), six.object(), own_agent().object(), service("work/new").object()]);
    objects.push(service_export("work/new").object());
    // These slices are gone, and wait until other slices have their endpoints: app-2, and one that does not exist yet.
    for (name, address) in [("work/app-3", "10.0.0.2"), ("work/app-8", "10.0.0.9")] {
        let gone = slice(name).uid(&format!("uid-{name}")).endpoints(&[address]);
        objects.push(Object::EndpointSliceExport(slice_export("member-1", &gone)));
    }
    objects
}

#[test]
fn a_change_of_an_object_of_an_export_requeues_every_key_whose_plan_it_changes() {
    let mut settled = settled(empty(|_| ()), &exporting());
    let of_other = distributed_slice("member-1", &slice_export("member-3", &slice("work/app-1").uid("uid-3")));
    let new = [
        service_export("work/none").object(),
        Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-2"))),
        internal_export("member-1", &service("work/new")).judged(no_conflict("work/new")).object(),
        internal_export("member-1", &service("work/gone")).object(),
        slice("work/app-5").endpoints(&["10.0.0.9"]).object(),
        Object::EndpointSliceExport(slice_export("member-1", &slice("work/app-2")).called("another")),
        Object::EndpointSliceExport(slice_export("member-1", &slice("work/gone-1").uid("uid-gone"))),
        Object::EndpointSliceImport(of_other),
    ];
    let needless = [assert_requeued(&settled, &new), assert_watches(&mut settled)];
    assert_eq!(needless, [1_094, 258], "{NEEDLESS}");
}

#[test]
fn a_change_of_an_object_of_another_export_requeues_every_key_whose_plan_it_changes() {
    let mut objects = exported("work/full");
    let headless = |export: ServiceExport| ServiceExport { headless: true, ..export };
    objects.extend([own_agent().object(), service("work/bare").headless().object()]);
    objects.push(headless(service_export("work/bare")).object());
    objects.extend([service("work/more").object(), service_export("work/more").marked().object()]);
    let mut other = internal_export("member-1", &service("work/more"));
    other.reference.source = named("other/more");
    objects.extend([slice("work/full-2").object(), other.object()]);
    objects.extend([service("work/none").object(), service_export("work/gone").marked().object()]);
    let limits = Limits { exports_per_namespace: 1, ..Limits::default() };
    let mut settled = settled(empty(|settings| settings.limits = limits), &objects);
    let needless = [assert_requeued(&settled, &[]), assert_watches(&mut settled)];
    assert_eq!(needless, [601, 187], "{NEEDLESS}");
}

fn by_mcs_api(settings: &mut Settings) {
    settings.mcs_api = McsApi::LabelledNamespaces;
}

fn with_routing_slices(settings: &mut Settings) {
    by_mcs_api(settings);
    settings.routing_slices = true;
}

/// Returns a Service that is exported by the standard API, one that is not exported yet, and one that both APIs export.
fn mcs_exports() -> Vec<Object> {
    let mut objects = exported("work/both");
    objects.push(mcs_export("work/both").object());
    let (service, slice) = (service("work/app"), slice("work/app-1"));
    let outcome = condition("Conflict", "False", "NoConflict", "agreed", 1);
    let export = McsServiceExport { conditions: vec![outcome], ..mcs_export("work/app") };
    let internal = internal_export("member-1", &service).mcs(mcs_part()).judged(merge_outcome());
    let of_slice = Object::EndpointSliceExport(slice_export("member-1", &slice));
    objects.extend([export.object(), internal.object(), slice.object(), of_slice, service.object()]);
    objects.extend([mcs_export("work/new").object(), build::service("work/new").object()]);
    objects.extend([own_agent().object(), mcs::importing().object()]);
    objects
}

#[test]
fn a_change_of_an_object_of_a_mcs_export_requeues_every_key_whose_plan_it_changes() {
    let mut settled = settled(empty(by_mcs_api), &mcs_exports());
    let needless = [
        assert_requeued(&settled, &[service_export("work/app").object(), mcs_export("work/none").object()]),
        assert_watches(&mut settled),
    ];
    assert_eq!(needless, [483, 216], "{NEEDLESS}");
}

/// Returns a distributed slice, which this member imports.
fn from(cluster: &str, name: &str, addresses: &[&str]) -> HubSlice {
    let source = slice(&format!("work/{name}")).uid(&format!("uid-{cluster}-{name}")).endpoints(addresses);
    distributed_slice("member-1", &slice_export(cluster, &source)).marked()
}

fn distributed(slice: &HubSlice) -> Object {
    Object::EndpointSliceImport(slice.clone())
}

/// Returns the objects of an import by the fleet's API.
fn importing() -> Vec<Object> {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let second = build::request("work/second").importing("app").created(seconds(3));
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2", "member-3"]));
    let claim = claim("member-1", &import).with_status(import.status.clone());
    let derived = derived_service("work-app", "work/app");
    let slices = [from("member-2", "app-1", &["10.0.0.1"]), from("member-3", "app-1", &["10.0.0.2"])];
    let further = from("member-3", "app-2", &["10.0.0.3"]);
    let objects = [request.object(), second.object(), import.object(), claim.object(), derived.object()];
    let objects: Vec<Object> = objects.into_iter().chain(slices.iter().map(distributed)).collect();
    let mut all = imported(empty(|_| ()), &[objects, vec![own_agent().object()]].concat());
    // This slice is gone, and waits until another one has its endpoint. The next one has lost its distributed slice.
    let removed = from("member-3", "app-9", &["10.0.0.4"]).deleting();
    all.extend([distributed(&further), distributed(&removed), bound_to_app(&removed.meta.name.name, "10.0.0.4")]);
    all.push(bound_to_app("lost", "10.0.0.8"));
    let rival = build::request("work/rival").taken_on().deriving("work-rival").created(seconds(0));
    let import = service_import("work/rival").controlled_by(&rival).showing(resolved(&["member-2"]));
    all.extend([rival.object(), import.object()]);
    all
}

fn bound_to_app(name: &str, address: &str) -> Object {
    imported_slice(name, "work-app").endpoints(&[address]).object()
}

#[test]
fn a_change_of_an_object_of_an_import_requeues_every_key_whose_plan_it_changes() {
    let limited = |settings: &mut Settings| settings.load_balancers_per_namespace = Some(1);
    let mut settled = settled(empty(limited), &importing());
    let third = from("member-3", "app-3", &["10.0.0.4"]);
    let taken = from("member-3", "app-2", &[]).meta.name.name;
    let foreign = EndpointSlice { service: None, ..slice(&in_system(&taken).to_string()) };
    let app = request("work/app");
    let new = [
        request("work/other").object(),
        service_import("work/other").object(),
        service_import("work/left").controlled_by(&app).showing(resolved(&["member-2"])).object(),
        claim("member-1", &service_import("work/app")).called("another").with_status(resolved(&["member-2"])).object(),
        claim("member-1", &service_import("work/gone")).called("work-gone").object(),
        request("work/third").created(seconds(0)).object(),
        derived_service("other", "work/app").object(),
        bound_to_app("found", "10.0.0.9"),
        distributed(&third),
        distributed(&HubSlice {
            spec: fleetnet_core::model::HubSliceSpec { content: Arc::new(six()), ..third.spec },
            ..third
        }),
        foreign.object(),
    ];
    let needless = [assert_requeued(&settled, &new), assert_watches(&mut settled)];
    assert_eq!(needless, [1_648, 436], "{NEEDLESS}");
}

// The MemberAgent lists a silent member. Addresses of this cluster, and those outside of the source ranges, are not
// imported, and neither is what exceeds a limit.
#[test]
fn a_change_of_an_object_of_a_limited_import_requeues_every_key_whose_plan_it_changes() {
    let mut objects = importing();
    let mut agent = own_agent();
    agent.status.silent_members = silent("member-2", Treatment::Withdrawn);
    objects.push(agent.object());
    objects.push(Service { cluster_ips: vec!["10.0.0.3".into()], ..service("work/own") }.object());
    let ports = vec![fleetnet_core::model::EndpointPort { port: Some(443.into()), ..content(&[]).ports[0].clone() }];
    let server = slice("default/kubernetes-1");
    let content = fleetnet_core::model::SliceContent { ports, ..content(&["10.0.0.2"]) };
    objects.push(EndpointSlice { service: Some("kubernetes".into()), content, ..server }.object());
    objects.push(distributed(&from("member-3", "app-3", &["10.0.0.4", "10.0.0.5", "10.0.0.6"])));
    let imports = ImportLimits { slices: 2, endpoints: 3 };
    let ranges = vec![("10.0.0.0/30".parse().expect("a range"))];
    let limited = |settings: &mut Settings| {
        settings.limits.imports = imports;
        settings.source_ranges = [("member-3".into(), ranges)].into();
    };
    let mut settled = settled(empty(limited), &objects);
    settled.remembers = |kind| remembers(kind) || kind == Kind::EndpointSliceImport;
    let needless = [
        assert_requeued(&settled, &[distributed(&from("member-3", "app-0", &["10.0.0.1"]))]),
        assert_watches(&mut settled),
    ];
    assert_eq!(needless, [2_154, 319], "{NEEDLESS}");
}

/// Returns the objects of imports by the standard API.
fn mcs_imports() -> Vec<Object> {
    let slices = [from("member-2", "app-1", &["10.0.0.1"]), from("member-3", "app-1", &["10.0.0.2"])];
    let objects = [own_agent().object(), mcs::importing().object(), mcs::merged(mcs::import()).object()];
    let mut all = imported(empty(by_mcs_api), &[&objects[..], &slices.each_ref().map(distributed)].concat());
    for object in &mut all {
        if let Object::Service(derived) = object {
            derived.cluster_ips = vec!["10.96.0.1".into()];
        }
    }
    let mut all = imported(empty(by_mcs_api), &all);
    // The fleet's API imports the Service too, but not from member-2 any more.
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-3"]));
    let claim = claim("member-1", &import).with_status(import.status.clone());
    let left = bound_to_app(&slices[0].meta.name.name, "10.0.0.1");
    all.extend([request.object(), import.object(), claim.object(), left]);
    all.push(derived_service("work-app", "work/app").object());
    all
}

fn needless_of_mcs_imports(api: fn(&mut Settings), objects: &[Object]) -> [usize; 2] {
    let mut settled = settled(empty(api), objects);
    let derived = Service { imports: Some("other".into()), ..service("work/x") };
    let at = names::mcs_derived(&named("work/other")).to_string();
    let derived = Service { imports: derived.imports, ..service(&at) };
    let import = service_import("work/app").showing(resolved(&["member-2"]));
    let claimed = claim("member-1", &import).with_status(import.status).called("another");
    let claimed = InternalServiceImport { reference: reference("member-1", &import.meta, None), ..claimed };
    let other = Arc::new(mcs::import());
    let present = settled.view.mcs_imports.iter().next().expect("one is made").clone();
    let mut made = present.uid("uid-of-made");
    made.meta.name = named("work/made");
    // While it is not known if a claim lists the exporter of a slice, that fact stays as it was.
    settled.remembers = |kind| remembers(kind) || kind == Kind::InternalServiceImport;
    settled.further.extend(["other", "made"].map(|name| Key::McsImport(ObjectName::new("work", name))));
    let new = [
        derived.object(),
        made.object(),
        build::merged_service_import("member-1", "work/other", &other).object(),
        distributed(&from("member-2", "app-5", &["10.0.0.5"])),
        claimed.object(),
        mcs_export("work/app").object(),
        request("work/undecodable").object(),
    ];
    [assert_requeued(&settled, &new), assert_watches(&mut settled)]
}

#[test]
fn a_change_of_an_object_of_a_mcs_import_requeues_every_key_whose_plan_it_changes() {
    assert_eq!(needless_of_mcs_imports(by_mcs_api, &mcs_imports()), [821, 280], "{NEEDLESS}");
}

#[test]
fn a_change_of_an_object_of_routing_slices_requeues_every_key_whose_plan_it_changes() {
    // The process before this one ran without routing slices, or with them.
    let before = imported(empty(with_routing_slices), &mcs_imports());
    let needless = [
        needless_of_mcs_imports(with_routing_slices, &before),
        needless_of_mcs_imports(with_routing_slices, &mcs_imports()),
        needless_of_mcs_imports(by_mcs_api, &before),
    ];
    assert_eq!(needless, [[1_178, 398], [1_021, 290], [1_222, 330]], "{NEEDLESS}");
}

/// Returns the settings of a member with a fleet manager.
fn managed(settings: &mut Settings) {
    settings.mcs_api = McsApi::LabelledNamespaces;
    settings.membership = Membership { agents: MembershipAgent::ALL.to_vec(), ..Membership::default() };
}

#[test]
fn a_change_of_an_object_of_a_member_that_leaves_requeues_every_key_whose_plan_it_changes() {
    let mut needless = 0;
    for state in [MembershipState::Join, MembershipState::Leave] {
        let membership = internal_member_cluster("member-1", state).object();
        for now in [NOW, SEEN.plus_micros(FOUND_LEAVE_MICROS)] {
            let mut bare = settled_at(now, empty(managed), &[own_agent().object(), membership.clone()]);
            bare.further.push(Key::MultiClusterService(named("work/app")));
            bare.asks_again = has_left;
            bare.further.push(Key::McsImport(named("work/app")));
            let new = [service_export("work/app").object(), request("work/app").object(), imported_by_mcs_api()];
            needless += assert_requeued(&bare, &new);
            needless += assert_requeued(&bare, &[not_ours()]);
            needless += assert_watches(&mut bare);
            let objects = [mcs_exports(), vec![membership.clone(), request("work/app").object()]].concat();
            needless += assert_membership(&settled_at(now, empty(managed), &objects));
            let objects = [mcs_imports(), vec![membership.clone()]].concat();
            needless += assert_membership(&settled_at(now, empty(managed), &objects));
        }
    }
    assert_eq!(needless, 891, "{NEEDLESS}");
}

/// A member that has nothing more of the standard API reports at once that it has left.
fn has_left(key: &Key, kind: Kind) -> bool {
    *key == Key::Membership && kind == Kind::EndpointSlice
}

// A member that leaves deletes also what it sees while its lists are not complete.
#[test]
fn a_member_that_leaves_plans_each_object_of_the_mcs_api_and_of_an_incomplete_list() {
    let membership = internal_member_cluster("member-1", MembershipState::Leave).object();
    let now = SEEN.plus_micros(FOUND_LEAVE_MICROS);
    let objects = [own_agent().object(), membership, imported_by_mcs_api()];
    let mut with_import = settled_at(now, empty(managed), &objects);
    with_import.asks_again = has_left;
    let mut needless = assert_requeued(&with_import, &[]);
    let mut listing = settled_at(now, empty(managed), &objects[..2]);
    listing.remembers = |_| true; // what it remembers is tested with complete lists
    listing.view.watch_state(Kind::ServiceExport, WatchState::Incomplete, SEEN, &mut Vec::new());
    listing.view.decide_and_record(&Key::Membership, now);
    listing.further.push(Key::MultiClusterService(named("work/app")));
    let new = [service_export("work/app").object(), request("work/app").object()];
    needless += listing.assert_requeued(paths_of_new(new));
    assert_eq!(needless, 133, "{NEEDLESS}");
}

fn imported_by_mcs_api() -> Object {
    let labels = McsLabels { service: "app".into(), cluster: "member-3".into(), headless: false };
    EndpointSlice { mcs: Some(Box::new(labels)), ..imported_slice("mcs", "app") }.object()
}

/// Returns a ServiceImport of the standard API that another writer made.
fn not_ours() -> Object {
    let mut imports = mcs_imports().into_iter();
    let import = imports.find_map(|object| match object {
        Object::McsServiceImport(it) => Some(McsServiceImport { is_ours: false, ..it }),
        _ => None,
    });
    import.expect("it is imported").object()
}

/// Asserts that each of these changes of what the agent knows beside objects requeues every key whose plan it changes.
fn assert_each_requeued(view: &mut Planner, changes: &[fn(&mut Planner, &mut Vec<Key>)]) {
    for key in view.every_key() {
        view.decide_and_record(&key, NOW);
    }
    let plans = |view: &Planner| -> BTreeMap<Key, Plan> {
        view.every_key().into_iter().map(|key| (key.clone(), view.decide(&key, NOW))).collect()
    };
    for (index, change) in changes.iter().enumerate() {
        let (before, mut requeue) = (plans(view), Vec::new());
        change(view, &mut requeue);
        let after = plans(view);
        for (key, plan) in &after {
            let is_same = before.get(key) == Some(plan);
            assert!(
                is_same || requeue.contains(key),
                "{index}: {key:?} is not requeued: {:?} {plan:?}",
                before.get(key)
            );
        }
        assert_ne!(before, after, "{index}");
        requeue.iter().for_each(|key| drop(view.decide_and_record(key, NOW)));
    }
}

/// Returns a distributed slice of `importing` as a slice stream delivers it.
fn preview(view: &Planner, cluster: &str, addresses: &[&str]) -> HubSlice {
    let name = from(cluster, "app-1", &[]).meta.name;
    let present = view.distributed_slices.get(&name).expect("it is distributed").clone();
    let generation = present.spec.reference.generation + 1;
    present.with_addresses(addresses, generation)
}

#[test]
fn each_message_of_a_slice_stream_requeues_every_key_whose_plan_it_changes() {
    let mut view = settled(empty(|_| ()), &importing()).view;
    view.slice_stream.chosen = SliceStreamUse::Fixed;
    let mut changes: Vec<fn(&mut Planner, &mut Vec<Key>)> = vec![
        |view, requeue| {
            let shown = preview(view, "member-2", &["10.0.0.31"]);
            view.show_preview(&shown.meta.name.name, shown.spec, SEEN, requeue);
        },
        |view, requeue| view.stream_ended(StreamEnd::ByHub, SEEN, requeue),
        |view, requeue| {
            let shown = preview(view, "member-2", &["10.0.0.32"]);
            view.show_preview(&shown.meta.name.name, shown.spec, SEEN, requeue);
        },
        |view, requeue| view.distributed_slices_listed_again(SEEN, requeue),
        |view, requeue| {
            // The imported slice has what a stream delivered, and the object is older.
            let at = in_system(&from("member-2", "app-1", &[]).meta.name.name);
            let mut present = view.slices.get(&at).expect("it is imported").clone();
            (present.observed_generation, present.content) = (Some(9), content(&["10.0.0.33"]));
            view.applied(present.object(), SEEN, requeue);
        },
        |view, requeue| view.hub_followed(None, SEEN, requeue),
        |view, requeue| view.hub_followed(Some(SEEN), SEEN, requeue),
    ];
    changes.push(|view, requeue| view.stream_began(SEEN.plus_micros(1), requeue));
    changes.push(|view, requeue| view.stream_ended(StreamEnd::Other, SEEN, requeue));
    assert_each_requeued(&mut view, &changes);
}

#[test]
fn each_change_of_the_rights_in_the_hub_requeues_every_key_whose_plan_it_changes() {
    let mut view = settled(empty(|_| ()), &exporting()).view;
    let changes: [fn(&mut Planner, &mut Vec<Key>); 6] = [
        |view, requeue| view.slices_lost(requeue),
        |view, requeue| view.slices_followed(requeue),
        |view, requeue| view.applied(MemberAgent { cluster_uid: None, ..own_agent() }.object(), SEEN, requeue),
        |view, requeue| view.renewal_denied(SEEN, requeue),
        |view, requeue| {
            view.renewal_written(NOW, requeue);
            requeue.push(Key::Heartbeat); // a key is planned again after its own write
        },
        |view, requeue| view.applied(own_agent().object(), SEEN, requeue),
    ];
    assert_each_requeued(&mut view, &changes);
}

#[test]
fn a_change_that_no_plan_depends_on_requeues_nothing() {
    let own_slice = from("member-1", "app-1", &["10.0.0.1"]);
    let foreign = |port_number| Service {
        ports: vec![port("http", port_number)],
        ..service(&names::mcs_derived(&named("work/gone")).to_string())
    };
    type Case<'a> = (&'a str, Vec<Object>, &'a dyn Fn(&mut Planner, &mut Vec<Key>));
    let table: [Case<'_>; 3] = [
        ("this cluster owned its id before", exporting(), &|view, requeue| view.renewal_written(NOW, requeue)),
        (
            "a slice of this cluster may have its addresses",
            vec![own_agent().object(), distributed(&own_slice)],
            &|view, requeue| {
                let own = Service { cluster_ips: vec!["10.0.0.1".into()], ..service("work/own") };
                view.applied(own.object(), SEEN, requeue);
            },
        ),
        ("a Service without our label keeps no import", vec![foreign(80).object()], &|view, requeue| {
            view.decide_and_record(&Key::McsImport(named("work/gone")), NOW);
            view.applied(foreign(81).object(), SEEN, requeue);
        }),
    ];
    for (why, objects, change) in table {
        let (mut view, mut requeue) = (settled(empty(by_mcs_api), &objects).view, Vec::new());
        change(&mut view, &mut requeue);
        assert_eq!(requeue, [], "{why}");
    }
}

/// Asserts that a change of the InternalMemberCluster requeues every key whose plan it changes.
fn assert_membership(settled: &Settled<Planner>) -> usize {
    let memberships = settled.view.memberships.iter().cloned().map(Object::InternalMemberCluster);
    let paths = memberships.flat_map(|membership| {
        let left = [Step::Changed(applied(membership.clone())), Step::Changed(applied(leaving(&membership)))];
        paths_of(&membership, states(&membership)).into_iter().chain([left.to_vec()]).collect::<Vec<_>>()
    });
    settled.assert_requeued(paths)
}

fn leaving(membership: &Object) -> Object {
    let Object::InternalMemberCluster(it) = membership else { panic!("it is {membership:?}") };
    let version = it.meta.resource_version + 1;
    InternalMemberCluster { state: MembershipState::Leave, ..it.clone().version(version) }.object()
}
