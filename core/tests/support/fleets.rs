//! Fleets, as the hub agent sees them, and states of their objects: each field that rules read is changed once.

use super::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, BuildNamespace, IntoObject, claim, conflict,
    distributed_slice, endpoint, internal_export, mcs_part, member_agent, merged_service_import, named, namespace,
    no_conflict, port, resolved, seconds, service, service_import, slice, slice_export,
};
use super::requeued::{Settled, Step, paths_of, paths_of_new, paths_of_watches, states_of};
use super::view::SEEN;
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub::{Key, Planner, SilenceLimits};
use fleetnet_core::model::{
    AddressType, Announcement, ConsumerType, ExportedBy, HubSlice, ImportType, InternalServiceExport,
    InternalServiceImport, Kind, MemberAgent, MergedCluster, MergedImport, MergedServiceImport, Namespace, Object,
    Place, ServiceImport, SessionAffinity, Silence, SilencePhase, SilentMember, Treatment,
};
use fleetnet_core::names;
use fleetnet_core::ranges::SourceRanges;
use fleetnet_types::Timestamp;
use std::sync::Arc;

/// Returns the states of an object in which one of the fields that rules read is another one.
pub(crate) fn states(object: &Object) -> Vec<Object> {
    match object {
        Object::InternalServiceExport(it) => all(states_of(it, &EXPORT), Object::InternalServiceExport),
        Object::InternalServiceImport(it) => all(states_of(it, &CLAIM), Object::InternalServiceImport),
        Object::ServiceImport(it) => all(states_of(it, &IMPORT), Object::ServiceImport),
        Object::EndpointSliceExport(it) => all(states_of(it, &SLICE), Object::EndpointSliceExport),
        Object::EndpointSliceImport(it) => all(states_of(it, &SLICE), Object::EndpointSliceImport),
        Object::Namespace(it) => all(states_of(it, &NAMESPACE), Object::Namespace),
        Object::MemberAgent(it) => all(states_of(it, &AGENT), Object::MemberAgent),
        Object::MergedServiceImport(it) => all(states_of(it, &MERGED), Object::MergedServiceImport),
        other => panic!("the hub agent does not watch {other:?}"),
    }
}

fn all<T>(states: Vec<T>, object: fn(T) -> Object) -> Vec<Object> {
    states.into_iter().map(object).collect()
}

fn mcs_part_of(export: &mut InternalServiceExport) -> &mut fleetnet_core::model::McsExport {
    Arc::make_mut(export.mcs.get_or_insert_with(|| Arc::new(mcs_part())))
}

const EXPORT: [fn(&mut InternalServiceExport); 17] = [
    |it| it.reference.source = named("work/other"),
    |it| it.reference.uid = "uid-of-another-service".into(),
    |it| it.reference.generation += 1,
    |it| it.reference.exported_since = None,
    |it| it.ports = vec![port("https", 443)],
    |it| it.ports.push(port("metrics", 9090)),
    |it| it.headless = !it.headless,
    |it| it.session_affinity = SessionAffinity::ClientIp { timeout_seconds: 60 },
    |it| it.mcs = if it.mcs.is_some() { None } else { Some(Arc::new(mcs_part())) },
    |it| mcs_part_of(it).exported_by = ExportedBy::Both,
    |it| mcs_part_of(it).properties.labels = [("team".into(), "red".into())].into(),
    |it| mcs_part_of(it).properties.families = Vec::new(),
    |it| mcs_part_of(it).export_created = Some(seconds(3)),
    |it| it.conditions = vec![conflict("work/app")],
    |it| it.conditions = Vec::new(),
    |it| it.stamp = None,
    |it| {
        let place = Place { cluster: "member-3".into(), export_created: seconds(1), since: seconds(1) };
        it.precedence = vec![place];
    },
];

const CLAIM: [fn(&mut InternalServiceImport); 6] = [
    |it| it.reference.source = named("work/other"),
    |it| it.reference.uid = "uid-of-another-import".into(),
    |it| it.consumer_type = ConsumerType::ClusterIp,
    |it| it.consumer_type = ConsumerType::LoadBalancer,
    |it| it.status = resolved(&["member-3"]),
    |it| it.status = fleetnet_core::model::ImportStatus::default(),
];

const IMPORT: [fn(&mut ServiceImport); 11] = [
    |it| it.status.clusters.clear(),
    |it| it.status.clusters.push("member-4".into()),
    |it| it.status.ports = vec![port("https", 443)],
    |it| it.status.import_type = Some(ImportType::Headless),
    |it| it.status = fleetnet_core::model::ImportStatus::default(),
    |it| it.claims.importers.clear(),
    |it| drop(it.claims.importers.pop_first()),
    |it| drop(it.claims.importers.insert(names::member_namespace("member-1"), "member-1".into())),
    |it| drop(it.claims.importers.insert(names::member_namespace("member-4"), "member-4".into())),
    |it| it.claims.load_balancer = Some(names::member_namespace("member-2")),
    |it| it.claims = fleetnet_core::model::Claims::default(),
];

const SLICE: [fn(&mut HubSlice); 14] = [
    |it| it.spec.reference.cluster = "member-4".into(),
    |it| it.spec.reference.source = named("work/other-1"),
    |it| it.spec.reference.uid = "uid-of-another-slice".into(),
    |it| it.spec.reference.generation += 1,
    |it| it.spec.reference.exported_since = Some(seconds(9)),
    |it| it.spec.owner = named("work/other"),
    |it| Arc::make_mut(&mut it.spec.content).endpoints = vec![endpoint("10.0.0.9"), endpoint("10.9.0.9")],
    |it| Arc::make_mut(&mut it.spec.content).endpoints.clear(),
    |it| Arc::make_mut(&mut it.spec.content).endpoints[0].hostname = Some("one".into()),
    |it| Arc::make_mut(&mut it.spec.content).draining = vec![endpoint("10.0.0.8")],
    |it| Arc::make_mut(&mut it.spec.content).address_type = AddressType::IPv6,
    |it| Arc::make_mut(&mut it.spec.content).ports.clear(),
    |it| it.misnamed = true,
    |it| (it.meta.deleting, it.deleted) = (true, Some(seconds(8))),
];

const NAMESPACE: [fn(&mut Namespace); 7] = [
    |it| it.exporters = None,
    |it| it.importers = None,
    |it| it.exporters = Some(Namespace::clusters("member-4")),
    |it| it.importers = Some(Namespace::clusters("member-4")),
    |it| it.source_ranges = SourceRanges::of("10.9.0.0/16"),
    |it| it.source_ranges = SourceRanges::of("malformed"),
    |it| it.is_importing = true,
];

const AGENT: [fn(&mut MemberAgent); 13] = [
    |it| it.member = Announcement::default(),
    |it| it.member = Announcement::new("1.2.3", Features::NONE),
    |it| it.member = Announcement::new("1.2.3", Features::ALL.without(Feature::McsApi)),
    |it| it.member = Announcement::new("1.2.3", Features::ALL.without(Feature::SilentMembers)),
    |it| it.member.version = "1.2.4".into(),
    |it| it.cluster_uid = Some("uid-of-cluster".into()),
    |it| it.leader = Some("another".into()),
    |it| it.renewed = Some(seconds(6)),
    |it| it.renewed = None,
    |it| it.stopped = Some(seconds(6)),
    |it| {
        let silence = Silence { phase: SilencePhase::Withdrawn, since: SEEN, renewed: seconds(5), count: 1 };
        it.status.silence = Some(silence);
    },
    |it| it.status = fleetnet_core::model::MemberStatus::default(),
    |it| it.status.announcement = Announcement::new("1.2.2", Features::NONE),
];

const MERGED: [fn(&mut MergedServiceImport); 3] = [
    |it| it.service = named("work/other"),
    |it| Arc::make_mut(&mut it.import).clusters.clear(),
    |it| Arc::make_mut(&mut it.import).ports = vec![port("https", 443)],
];

/// A fleet, as the hub agent sees it.
pub(crate) struct Fleet {
    /// View without objects.
    pub(crate) empty: Planner,
    pub(crate) present: Vec<Object>,
    /// Objects that are not there yet.
    pub(crate) absent: Vec<Object>,
    /// Keys beside those of the objects.
    pub(crate) further: Vec<Key>,
    pub(crate) now: Timestamp,
    /// False if the view keeps something of earlier states of any object.
    pub(crate) is_forgetful: bool,
}

impl Fleet {
    pub(crate) fn new(present: Vec<Object>, absent: Vec<Object>) -> Self {
        let (further, now) = (Vec::new(), SEEN);
        Self { empty: Planner::default(), present, absent, further, now, is_forgetful: true }
    }

    pub(crate) fn settled(&self) -> Settled<Planner> {
        let mut settled = Settled::new(self.empty.clone(), &self.present, self.further.clone(), self.now);
        // A lost feature holds for a minute, and gains do not follow each other at once.
        let remembers: fn(Kind) -> bool = |kind| kind == Kind::MemberAgent;
        settled.remembers = if self.is_forgetful { remembers } else { |_| true };
        settled.asks_again = asks_again;
        settled
    }

    #[must_use]
    pub(crate) fn assert_requeued(&self) -> usize {
        self.settled().assert_requeued(self.paths())
    }

    /// Returns the paths of all objects and watches.
    pub(crate) fn paths(&self) -> Vec<Vec<Step>> {
        let present = self.present.iter().flat_map(|object| paths_of(object, states(object)));
        let absent = self.absent.iter().flat_map(|object| paths_of_new(states(object)));
        present.chain(absent).chain(paths_of_watches::<Planner>()).collect()
    }
}

/// True if a change of a kind need not requeue a key, because the next renewal by the member does: the counts in its
/// MemberAgent.
fn asks_again(key: &Key, kind: Kind) -> bool {
    let is_counted = matches!(
        kind,
        Kind::InternalServiceExport
            | Kind::InternalServiceImport
            | Kind::EndpointSliceExport
            | Kind::EndpointSliceImport
    );
    is_counted && matches!(key, Key::Member(_))
}

pub(crate) fn agents() -> Vec<Object> {
    ["member-1", "member-2", "member-3"].map(|it| member_agent(it, Features::ALL, Features::ALL).object()).into()
}

pub(crate) fn merged_key(service: &str, importer: &str) -> Key {
    Key::MergedImport { service: named(service), importer: names::member_namespace(importer) }
}

/// Returns the exported slices of member-1 and member-3.
pub(crate) fn slices() -> [HubSlice; 2] {
    let three = slice("work/app-3").uid("uid-three");
    [slice_export("member-1", &slice("work/app-1")).marked(), slice_export("member-3", &three).marked()]
}

/// Returns slices that compete with those of [`slices`]: member-3 exports the source slice of member-1 too, and another
/// source slice under the name of member-1's.
pub(crate) fn competing() -> [Object; 2] {
    let [one, _] = slices();
    let twin = HubSlice { meta: slice_export("member-3", &slice("work/app-1")).meta, ..one.clone() };
    let mut same_name = one.uid("uid-same-name");
    same_name.meta.name.namespace = names::member_namespace("member-3").into();
    same_name.spec.reference.uid = "uid-of-another".into();
    [twin, same_name].map(Object::EndpointSliceExport)
}

/// Returns the objects of a fleet in which member-1 and member-3 export `work/app`, and member-2 imports it.
pub(crate) fn of_fleet() -> Vec<Object> {
    let import = service_import("work/app").showing(resolved(&["member-1", "member-3"])).claimed_by(&["member-2"]);
    let accepted = |cluster| {
        let export = internal_export(cluster, &service("work/app")).port_set_since(seconds(5));
        export.judged(no_conflict("work/app"))
    };
    let mut objects = agents();
    objects.extend([accepted("member-1").object(), accepted("member-3").object(), import.clone().object()]);
    let claimed = claim("member-2", &import).east_west().marked().with_status(import.status.clone());
    objects.push(claimed.object());
    objects.extend(slices().iter().map(|it| Object::EndpointSliceImport(distributed_slice("member-2", it).marked())));
    objects.extend(slices().map(Object::EndpointSliceExport));
    objects
}

/// Returns objects that are not there yet, in a fleet of [`of_fleet`].
pub(crate) fn others_of_fleet() -> Vec<Object> {
    let import = service_import("work/app");
    let second = slice_export("member-1", &slice("work/app-2").uid("uid-2"));
    vec![
        Object::EndpointSliceImport(distributed_slice("member-2", &second)),
        Object::EndpointSliceImport(distributed_slice("member-1", &slices()[0])),
        Object::EndpointSliceExport(second),
        claim("member-3", &import).object(),
        claim("member-2", &import).called("second").object(),
        internal_export("member-2", &service("work/app")).object(),
        service_import("work/other").showing(resolved(&["member-1"])).claimed_by(&["member-2"]).object(),
        namespace("work").exported_from_by("member-1,member-2").imported_from_by("member-2").object(),
        namespace("fleet-member-member-1").exporting_from("10.1.0.0/16").object(),
        member_agent("member-4", Features::ALL, Features::ALL).object(),
    ]
}

/// Returns the objects of a fleet in which member-1 and member-3 export `work/app` by the standard API, and member-2
/// imports it.
pub(crate) fn of_mcs_api() -> Vec<Object> {
    let export = |cluster| internal_export(cluster, &service("work/app")).mcs(mcs_part());
    let cluster = |cluster: &str| MergedCluster { cluster: cluster.into(), ports: None };
    let import = MergedImport {
        import_type: ImportType::ClusterSetIp,
        ports: vec![port("http", 80)],
        session_affinity: SessionAffinity::None,
        properties: mcs_part().properties,
        clusters: ["member-1", "member-3"].map(cluster).into(),
    };
    let mut objects = agents();
    objects.extend(["member-1", "member-3"].map(|it| export(it).object()));
    objects.push(merged_service_import("member-2", "work/app", &Arc::new(import)).marked().object());
    objects.extend(slices().map(Object::EndpointSliceExport));
    objects.push(Object::EndpointSliceImport(distributed_slice("member-2", &slices()[0]).marked()));
    objects
}

pub(crate) fn others_of_mcs_api() -> Vec<Object> {
    let Some(Object::MergedServiceImport(used)) =
        of_mcs_api().into_iter().find(|it| it.kind() == Kind::MergedServiceImport)
    else {
        panic!("member-2 imports")
    };
    let mut misnamed = used.clone().uid("uid-misnamed");
    misnamed.meta.name.name = "misnamed".into();
    let mut of_another = used;
    of_another.meta.name.namespace = names::member_namespace("member-1").into();
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    vec![
        misnamed.object(),
        of_another.object(),
        internal_export("member-2", &service("work/app")).mcs(mcs_part()).object(),
        internal_export("member-1", &service("work/other")).mcs(mcs_part()).object(),
        Object::EndpointSliceImport(distributed_slice("member-2", &slices()[1])),
        import.clone().object(),
        claim("member-2", &import).east_west().object(),
        namespace("work").exported_from_by("member-1,member-2").imported_from_by("member-2").object(),
        member_agent("member-4", Features::ALL, Features::ALL).object(),
    ]
}

pub(crate) fn of_mcs() -> Fleet {
    let keys = ["member-1", "member-2", "member-3", "member-4"].map(|it| merged_key("work/app", it));
    let others = ["member-1", "member-2"].map(|it| merged_key("work/other", it));
    let fleet = Fleet::new(of_mcs_api(), others_of_mcs_api());
    Fleet { further: keys.into_iter().chain(others).collect(), ..fleet }
}

/// Returns namespaces that list all members.
pub(crate) fn lists() -> [Object; 2] {
    let all = "member-1,member-2,member-3";
    [
        namespace("work").exported_from_by(all).imported_from_by(all).object(),
        namespace("fleet-member-member-1").exporting_from("10.0.0.0/16").object(),
    ]
}

/// Returns the MemberAgents of three members. The hub agent judged that member-1 is silent, and member-2 does not know
/// silent members.
fn silent_agents() -> Vec<Object> {
    let silence = Silence { phase: SilencePhase::Draining, since: SEEN, renewed: seconds(5), count: 1 };
    let mut one = member_agent("member-1", Features::ALL, Features::ALL);
    one.status.silence = Some(silence);
    let two = member_agent("member-2", Features::ALL.without(Feature::SilentMembers), Features::ALL);
    let mut three = member_agent("member-3", Features::ALL, Features::ALL);
    three.status.silent_members = vec![SilentMember { cluster: "member-1".into(), treatment: Treatment::Draining }];
    [one, two, three].map(IntoObject::object).into()
}

/// Returns a fleet of [`of_fleet`] in which member-1 is silent.
pub(crate) fn silent() -> Fleet {
    let is_agent = |object: &Object| object.kind() == Kind::MemberAgent;
    let objects = of_fleet().into_iter().filter(|it| !is_agent(it)).chain(silent_agents());
    let mut fleet = Fleet::new(objects.collect(), Vec::new());
    fleet.empty.silence_limits = Some(SilenceLimits { soft_micros: 60_000_000, hard_micros: 600_000_000 });
    fleet.empty.announces = Announcement::new("1.2.3", Features::ALL);
    fleet.now = SEEN.plus_micros(10_000_000);
    fleet
}

/// Returns the same fleet. Member-2 has got a preview of the slice of member-3 over its slice stream.
pub(crate) fn previewing() -> Fleet {
    let mut fleet = Fleet { is_forgetful: false, ..silent() };
    fleet.empty.object_lag_micros = 5_000_000;
    fleet.empty.stream_began(&names::member_namespace("member-2"), SEEN, &mut Vec::new());
    for object in &mut fleet.present {
        if let Object::EndpointSliceExport(slice) = object
            && &*slice.spec.reference.cluster == "member-3"
        {
            slice.spec.reference.generation += 2;
        }
    }
    fleet
}
