//! Users of the standard API `multicluster.x-k8s.io`, and what must be true of their Service in the end. In some runs
//! they also export and import the Service by the fleet's API. The Service is in a namespace of its own, so that the
//! rules about the fleet's API alone do not look at it.

mod objects;

pub(crate) use objects::{NAMESPACE, concerns};

use crate::users::{create, delete, merge};
use crate::world::World;
use fastrand::Rng;
use fleetnet_api::names::labels;
use fleetnet_core::model::{
    EndpointSlice, ImportType, Kind, McsServiceExport, McsServiceImport, MergedServiceImport, MultiClusterService,
    Object, Service, ServiceExport, ServicePort, ServiceType,
};
use fleetnet_core::names;
use fleetnet_types::{ClusterId, ConditionStatus, ObjectName};
use histories::users::MEMBERS;
use serde_json::{Value, json};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

const APP: &str = "standard/app";
/// Action of a user of the standard API. Members are indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A Service is made. `port` is `None` for a headless Service without ports.
    MakeService { member: usize, port: Option<u16> },
    /// The port of a Service changes.
    ChangePort { member: usize, port: u16 },
    /// A Service is deleted, and its slices.
    DeleteService { member: usize },
    /// A ServiceExport of the standard API is made.
    Export { member: usize },
    /// A ServiceExport of the standard API is deleted.
    Unexport { member: usize },
    /// A slice is made, or gets this endpoint.
    SetSlice { member: usize, slice: usize, endpoint: u8 },
    /// A slice is deleted.
    DeleteSlice { member: usize, slice: usize },
    /// The namespace imports, or imports no more.
    Label { member: usize, imports: bool },
    /// A ServiceExport of the fleet's API is made.
    ExportByFleet { member: usize },
    /// A ServiceExport of the fleet's API is deleted.
    UnexportByFleet { member: usize },
    /// A MultiClusterService of type ClusterIP is made.
    ImportByFleet { member: usize },
    /// The MultiClusterService is deleted.
    EndImportByFleet { member: usize },
}

impl Action {
    /// True if an import, an export or a conflict may end with this action.
    pub(crate) fn ends_something(self) -> bool {
        matches!(
            self,
            Self::ChangePort { .. }
                | Self::DeleteService { .. }
                | Self::Unexport { .. }
                | Self::UnexportByFleet { .. }
                | Self::EndImportByFleet { .. }
                | Self::Label { imports: false, .. }
        )
    }
}

/// How the users of a run use the Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The Service has a port and a virtual address.
    Plain,
    /// The Service is headless and has no ports.
    Headless,
    /// Users also export and import the Service by the fleet's API.
    BothApis,
}

impl Manner {
    pub(crate) fn any(rng: &mut Rng) -> Self {
        [Self::Plain, Self::Headless, Self::BothApis, Self::BothApis][rng.usize(..4)]
    }

    /// Returns the actions of users in this manner who would otherwise do this.
    fn change(self, action: Action) -> Option<Action> {
        match (self, action) {
            (Self::Headless, Action::MakeService { member, .. }) => Some(Action::MakeService { member, port: None }),
            (Self::Headless, Action::ChangePort { .. }) => None,
            _ => Some(action),
        }
    }

    /// Returns an action of users of the fleet's API, for the manner with both APIs.
    fn of_fleet_api(self, rng: &mut Rng) -> Option<Action> {
        let member = rng.usize(..MEMBERS);
        let action = match rng.usize(..12) {
            0..=2 => Action::ExportByFleet { member },
            3 => Action::UnexportByFleet { member },
            4..=6 => Action::ImportByFleet { member },
            7 => Action::EndImportByFleet { member },
            _ => return None,
        };
        (self == Self::BothApis).then_some(action)
    }
}

/// Returns the first actions: two members export, and all import. Only one exports a headless Service, so that its
/// endpoints are often the last ones.
pub(crate) fn prelude(manner: Manner) -> Vec<Action> {
    let exporter = |member| {
        [
            Action::MakeService { member, port: Some(80) },
            Action::SetSlice { member, slice: 0, endpoint: 1 },
            Action::Export { member },
        ]
    };
    let importers = (0..MEMBERS).map(|member| Action::Label { member, imports: true });
    let of_fleet_api = [Action::ExportByFleet { member: 0 }, Action::ImportByFleet { member: 2 }];
    let of_fleet_api = of_fleet_api.into_iter().filter(|_| manner == Manner::BothApis);
    let exporters = if manner == Manner::Headless { 0..1 } else { 0..2 };
    let all = exporters.flat_map(exporter).chain(importers).filter_map(|action| manner.change(action));
    all.chain(of_fleet_api).collect()
}

/// Returns the next actions of users. `rng` decides about the standard API, and `of_fleet` about the fleet's API.
pub(crate) fn actions(manner: Manner, rng: &mut Rng, of_fleet: &mut Rng) -> impl Iterator<Item = Action> {
    manner.change(an_action(rng)).into_iter().chain(manner.of_fleet_api(of_fleet))
}

fn an_action(rng: &mut Rng) -> Action {
    let member = rng.usize(..MEMBERS);
    let (slice, endpoint) = (rng.usize(..2), rng.u8(1..5));
    let port = [80, 81][rng.usize(..2)];
    match rng.usize(..14) {
        0 | 1 => Action::MakeService { member, port: Some(port) },
        2 => Action::ChangePort { member, port },
        3 => Action::DeleteService { member },
        4 | 5 => Action::Export { member },
        6 => Action::Unexport { member },
        7..=10 => Action::SetSlice { member, slice, endpoint },
        11 => Action::DeleteSlice { member, slice },
        12 => Action::Label { member, imports: true },
        _ => Action::Label { member, imports: false },
    }
}

fn slice_path(slice: usize) -> String {
    format!("{NAMESPACE}/app-{slice}")
}

/// Carries out an action. An action without its object does nothing, as with a user who is too late.
pub(crate) async fn act(world: &World, action: Action) -> anyhow::Result<()> {
    let ports = |port: u16| json!({"ports": [{"name": "http", "port": port, "targetPort": 8080}]});
    match action {
        Action::MakeService { member, port } => {
            let spec = port.map_or_else(|| json!({"clusterIP": "None"}), ports);
            create(world, member, Kind::Service, APP, json!({"spec": spec})).await
        }
        Action::ChangePort { member, port } => {
            merge(world, Place::Member(member), Kind::Service, APP, "", json!({"spec": ports(port)})).await
        }
        Action::DeleteService { member } => {
            delete(world, Place::Member(member), Kind::Service, APP).await?;
            for slice in 0..2 {
                delete(world, Place::Member(member), Kind::EndpointSlice, &slice_path(slice)).await?;
            }
            Ok(())
        }
        Action::Export { member } => create(world, member, Kind::McsServiceExport, APP, json!({})).await,
        Action::Unexport { member } => delete(world, Place::Member(member), Kind::McsServiceExport, APP).await,
        Action::ExportByFleet { member } => create(world, member, Kind::ServiceExport, APP, json!({})).await,
        Action::UnexportByFleet { member } => delete(world, Place::Member(member), Kind::ServiceExport, APP).await,
        Action::ImportByFleet { member } => {
            let spec = json!({"serviceImport": {"name": "app"}, "type": "ClusterIP"});
            create(world, member, Kind::MultiClusterService, APP, json!({"spec": spec})).await
        }
        Action::EndImportByFleet { member } => {
            delete(world, Place::Member(member), Kind::MultiClusterService, APP).await
        }
        Action::SetSlice { member, slice, endpoint } => set_slice(world, member, slice, endpoint).await,
        Action::DeleteSlice { member, slice } => {
            delete(world, Place::Member(member), Kind::EndpointSlice, &slice_path(slice)).await
        }
        Action::Label { member, imports } => {
            let patch = json!({"metadata": {"labels": {labels::IMPORT: imports.then_some("true")}}});
            merge(world, Place::Member(member), Kind::Namespace, &format!("/{NAMESPACE}"), "", patch).await
        }
    }
}

async fn set_slice(world: &World, member: usize, slice: usize, endpoint: u8) -> anyhow::Result<()> {
    let endpoints = json!([{"addresses": [format!("10.{}.{slice}.{endpoint}", member + 1)]}]);
    let path = slice_path(slice);
    let service = world.api(Place::Member(member), Kind::Service, NAMESPACE).get_opt("app").await?;
    let is_headless = service.is_some_and(|service| service.data["spec"]["clusterIP"] == "None");
    let ports = if is_headless { json!([]) } else { json!([{"name": "http", "protocol": "TCP", "port": 8080}]) };
    let body: Value = json!({
        "metadata": {"labels": {"kubernetes.io/service-name": "app"}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    });
    create(world, member, Kind::EndpointSlice, &path, body).await?;
    merge(world, Place::Member(member), Kind::EndpointSlice, &path, "", json!({"endpoints": endpoints})).await
}

/// Objects of the Service in one member.
#[derive(Default)]
struct Member {
    id: String,
    imports: bool,
    /// Service of the user.
    service: Option<Service>,
    export: Option<McsServiceExport>,
    /// Slices of the user.
    slices: Vec<EndpointSlice>,
    derived: Vec<Service>,
    import: Option<McsServiceImport>,
    /// Slices with the labels of the standard API, for gateways.
    imported: Vec<EndpointSlice>,
    /// Slices that are bound to the derived Service, for kube-proxy.
    bound: Vec<EndpointSlice>,
    /// True if the agent uses routing slices.
    has_routing_slices: bool,
    by_fleet: ByFleet,
}

/// Objects of the fleet's API for the Service in one member.
#[derive(Default)]
struct ByFleet {
    export: Option<ServiceExport>,
    request: Option<MultiClusterService>,
    derived: Vec<Service>,
    imported: Vec<EndpointSlice>,
}

impl Member {
    fn of(world: &World, index: usize) -> Self {
        let place = Place::Member(index);
        let has_routing_slices = world.fleet.has_routing_slices(place);
        let mut member = Self { id: crate::world::cluster_id(index), has_routing_slices, ..Self::default() };
        let kinds = [
            Kind::Namespace,
            Kind::Service,
            Kind::EndpointSlice,
            Kind::McsServiceExport,
            Kind::McsServiceImport,
            Kind::ServiceExport,
            Kind::MultiClusterService,
        ];
        for object in kinds.into_iter().flat_map(|kind| world.objects_of_kind(place, kind)) {
            let is_here = &*object.meta().name.namespace == NAMESPACE;
            let is_of_fleet_api = !is_here && concerns(&object);
            match object {
                Object::Service(it) if is_of_fleet_api => member.by_fleet.derived.push(it),
                Object::EndpointSlice(it) if is_of_fleet_api => member.by_fleet.imported.push(it),
                Object::ServiceExport(it) if is_here => member.by_fleet.export = Some(it),
                Object::MultiClusterService(it) if is_here => member.by_fleet.request = Some(it),
                Object::Namespace(it) if &*it.meta.name.name == NAMESPACE => member.imports = it.is_importing,
                Object::Service(it) if is_here && it.imports.is_some() => member.derived.push(it),
                Object::Service(it) if is_here => member.service = Some(it),
                Object::EndpointSlice(it) if is_here && it.imported => {
                    member.bound.extend(it.service.is_some().then(|| it.clone()));
                    member.imported.extend(it.mcs.is_some().then_some(it));
                }
                Object::EndpointSlice(it) if is_here => member.slices.push(it),
                Object::McsServiceExport(it) if is_here => member.export = Some(it),
                Object::McsServiceImport(it) if is_here => member.import = Some(it),
                _ => {}
            }
        }
        member
    }

    fn exports(&self) -> bool {
        let is_exportable = |service: &Service| service.service_type != ServiceType::ExternalName;
        self.export.is_some() && self.service.as_ref().is_some_and(is_exportable)
    }

    /// True if the fleet's API exports the Service. By this API, a headless Service is exported only on request.
    fn exports_by_fleet(&self) -> bool {
        let is_exportable = |service: &Service| service.service_type != ServiceType::ExternalName && !service.headless;
        self.by_fleet.export.is_some() && self.service.as_ref().is_some_and(is_exportable)
    }

    fn port(&self) -> Option<i32> {
        self.service.as_ref().and_then(|service| port(&service.ports))
    }

    fn endpoints(&self) -> impl Iterator<Item = String> {
        self.slices.iter().map(|slice| endpoints(&self.id, slice))
    }
}

/// Returns the exporting cluster of an imported slice. A routing slice shows it only in its name.
pub(crate) fn exporter(slice: &EndpointSlice) -> ClusterId {
    let of_name = || slice.meta.name.name.split(&format!("-{NAMESPACE}-")).next().unwrap_or_default().into();
    slice.mcs.as_ref().map_or_else(of_name, |labels| labels.cluster.clone())
}

/// Returns the endpoints of the imported slices of a member, sorted. `cluster` is the exporter of a slice.
fn imported(slices: &[EndpointSlice], cluster: impl Fn(&EndpointSlice) -> String) -> Vec<String> {
    let mut all: Vec<String> = slices.iter().map(|slice| endpoints(&cluster(slice), slice)).collect();
    all.sort();
    all
}

/// Returns the endpoints of a slice of a cluster.
fn endpoints(cluster: &str, slice: &EndpointSlice) -> String {
    let addresses = slice.content.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    format!("{cluster} {:?}", addresses.map(ToString::to_string).collect::<Vec<_>>())
}

/// Returns the number of the port `http`. Clients reach only clusters with the number that the import has.
fn port(ports: &[ServicePort]) -> Option<i32> {
    ports.first().map(|port| port.port.as_written())
}

/// Returns the endpoints that an import with this port has, sorted.
fn expected(exporters: &[&Member], of_import: Option<i32>) -> Vec<String> {
    let of_exporter = |member: &&Member| {
        let own = member.service.as_ref().and_then(|service| port(&service.ports));
        let (id, serves) = (member.id.clone(), own == of_import);
        let shown = move |slice: &EndpointSlice| if serves { endpoints(&id, slice) } else { format!("{id} []") };
        member.slices.iter().map(shown).collect::<Vec<_>>()
    };
    let mut all: Vec<String> = exporters.iter().flat_map(of_exporter).collect();
    all.sort();
    all
}

fn equal<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, not {expected:?}")) }
}

/// Checks a fleet at rest: the imports are what users request, and nothing else is left.
///
/// # Errors
/// The text says what is wrong.
pub(crate) fn check(world: &World) -> Result<(), String> {
    let members: Vec<Member> = (0..MEMBERS).map(|index| Member::of(world, index)).collect();
    let exporters: Vec<&Member> = members.iter().filter(|member| member.exports()).collect();
    let ids: Vec<String> = exporters.iter().map(|member| member.id.clone()).collect();
    let offered: Vec<Option<i32>> = exporters.iter().map(|member| member.port()).collect();
    for member in &members {
        let id = &member.id;
        let is_importer = member.imports && !exporters.is_empty();
        let of_import = member.import.as_ref().and_then(|import| port(&import.spec.ports));
        let cluster = |slice: &EndpointSlice| exporter(slice).to_string();
        let expected = if is_importer { expected(&exporters, of_import) } else { Vec::new() };
        equal(&format!("imported slices of {id}"), &imported(&member.imported, cluster), &expected)?;
        let is_headless = member.import.as_ref().is_some_and(|import| import.spec.import_type == ImportType::Headless);
        let is_derived = is_importer && !is_headless;
        let expected = if is_derived { expected } else { Vec::new() };
        equal(&format!("slices for kube-proxy in {id}"), &imported(&member.bound, cluster), &expected)?;
        let mut bound_for_gateways = member.imported.iter().filter(|slice| slice.service.is_some());
        let is_mixed = member.has_routing_slices && bound_for_gateways.next().is_some();
        equal(&format!("a slice for both in {id}, which has routing slices"), &is_mixed, &false)?;
        equal(&format!("derived Services of {id}"), &member.derived.len(), &usize::from(is_derived))?;
        equal(&format!("ServiceImport of {id}"), &member.import.is_some(), &is_importer)?;
        if let Some(import) = &member.import {
            let clusters: Vec<String> = import.status.clusters.iter().map(ToString::to_string).collect();
            equal(&format!("clusters of the ServiceImport of {id}"), &clusters, &ids)?;
            let ips = member.derived.iter().flat_map(|derived| derived.cluster_ips.clone()).collect::<Vec<_>>();
            equal(&format!("addresses of the ServiceImport of {id}"), &import.spec.ips, &ips)?;
            equal(&format!("an exporter with the port of {id}"), &offered.contains(&of_import), &true)?;
        }
        if let Some(export) = member.export.as_ref().filter(|_| member.exports()) {
            let is_ready =
                export.conditions.iter().any(|it| &*it.condition_type == "Ready" && it.status == ConditionStatus::True);
            equal(&format!("Ready of the ServiceExport of {id}"), &is_ready, &true)?;
        }
    }
    let accepted = accepted(world, &members)?;
    for member in &members {
        check_import_by_fleet(member, &accepted)?;
    }
    check_hub(world, &members, &accepted)
}

/// Returns the members whose exports by the fleet's API are accepted. Exports with different ports are in conflict.
fn accepted<'a>(world: &World, members: &'a [Member]) -> Result<Vec<&'a Member>, String> {
    let is_of_app = |object: Object| match object {
        Object::ServiceImport(import) if concerns(&Object::ServiceImport(import.clone())) => Some(import),
        _ => None,
    };
    let mut hub_imports = world.objects_of_kind(Place::Hub, Kind::ServiceImport).into_iter().filter_map(is_of_app);
    let mut found: Vec<ClusterId> = hub_imports.next().map(|import| import.status.clusters).unwrap_or_default();
    found.sort();
    let exporting = || members.iter().filter(|member| member.exports_by_fleet());
    let first = exporting().find(|member| found.iter().any(|id| **id == *member.id)).or_else(|| exporting().next());
    let accepted: Vec<&Member> =
        exporting().filter(|member| Some(member.port()) == first.map(|first| first.port())).collect();
    let expected: Vec<ClusterId> = accepted.iter().map(|member| ClusterId::from(&*member.id)).collect();
    equal("accepted exports of the fleet's API", &found, &expected)?;
    Ok(accepted)
}

/// Checks the import of a member by the fleet's API.
fn check_import_by_fleet(member: &Member, accepted: &[&Member]) -> Result<(), String> {
    let (id, by_fleet) = (&member.id, &member.by_fleet);
    let is_importer = by_fleet.request.is_some() && !accepted.is_empty();
    let mut expected: Vec<String> =
        accepted.iter().filter(|_| is_importer).flat_map(|exporter| exporter.endpoints()).collect();
    expected.sort();
    let cluster = |slice: &EndpointSlice| {
        let is_of = |member: &&&Member| slice.meta.name.name.starts_with(&format!("{}-", member.id));
        accepted.iter().find(is_of).map(|member| member.id.clone()).unwrap_or_default()
    };
    equal(&format!("slices of {id} by the fleet's API"), &imported(&by_fleet.imported, cluster), &expected)?;
    let derived = by_fleet.derived.len();
    equal(&format!("derived Services of {id} by the fleet's API"), &derived, &usize::from(is_importer))
}

fn check_hub(world: &World, members: &[Member], accepted: &[&Member]) -> Result<(), String> {
    let is_accepted = |member: &Member| accepted.iter().any(|accepted| accepted.id == member.id);
    let of_kind = |kind: Kind| {
        let objects = world.objects_of_kind(Place::Hub, kind).into_iter().filter(concerns);
        objects.map(|object| object.meta().name.clone()).collect::<Vec<ObjectName>>()
    };
    let cluster = |name: &ObjectName| names::cluster_of(&name.namespace).map(|id| id.to_string()).unwrap_or_default();
    let exports: BTreeSet<String> = of_kind(Kind::InternalServiceExport).iter().map(cluster).collect();
    let exporting = members.iter().filter(|member| member.exports() || member.exports_by_fleet());
    equal("exporting clusters in the hub", &exports, &exporting.map(|member| member.id.clone()).collect())?;
    let merged: BTreeMap<String, bool> = world
        .objects_of_kind(Place::Hub, Kind::MergedServiceImport)
        .into_iter()
        .filter_map(|object| match object {
            Object::MergedServiceImport(MergedServiceImport { meta, .. }) => {
                Some((cluster(&meta.name), meta.finalizers.ours))
            }
            _ => None,
        })
        .collect();
    let is_exported = members.iter().any(Member::exports);
    let expected = members.iter().filter(|_| is_exported).map(|member| (member.id.clone(), member.imports));
    equal("MergedServiceImports with their finalizers", &merged, &expected.collect())?;
    let with_slices = |member: &&Member| member.exports() || is_accepted(member);
    let slices: usize = members.iter().filter(with_slices).map(|member| member.slices.len()).sum();
    equal("exported slices", &of_kind(Kind::EndpointSliceExport).len(), &slices)?;
    let is_importer_of = |importer: &Member, exporter: &Member| {
        (importer.imports && exporter.exports()) || (importer.by_fleet.request.is_some() && is_accepted(exporter))
    };
    let importers = |exporter: &Member| members.iter().filter(|it| is_importer_of(it, exporter)).count();
    let distributed: usize = members.iter().map(|exporter| exporter.slices.len() * importers(exporter)).sum();
    equal("distributed slices", &of_kind(Kind::EndpointSliceImport).len(), &distributed)
}
