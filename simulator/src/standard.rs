//! Users of the standard API `multicluster.x-k8s.io`, and what must be true of their Service in the end. The Service is in a namespace
//! of its own, so that the rules about the fleet's API do not look at it.

use crate::users::{create, delete, merge};
use crate::world::World;
use fastrand::Rng;
use fleetnet_api::names::labels;
use fleetnet_core::model::{
    EndpointSlice, Kind, MergedServiceImport, Object, Service, ServicePort, ServiceType, StandardServiceExport,
    StandardServiceImport,
};
use fleetnet_core::names;
use fleetnet_types::{ConditionStatus, ObjectName};
use histories::users::MEMBERS;
use serde_json::{Value, json};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Namespace of the Service.
pub(crate) const NAMESPACE: &str = "standard";
const APP: &str = "standard/app";

/// Action of a user of the standard API. Members are indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    MakeService {
        member: usize,
        port: u16,
    },
    ChangePort {
        member: usize,
        port: u16,
    },
    DeleteService {
        member: usize,
    },
    Export {
        member: usize,
    },
    Unexport {
        member: usize,
    },
    SetSlice {
        member: usize,
        slice: usize,
        endpoint: u8,
    },
    DeleteSlice {
        member: usize,
        slice: usize,
    },
    /// The namespace imports, or imports no more.
    Label {
        member: usize,
        imports: bool,
    },
}

/// Returns the first actions: two members export, and all import.
pub(crate) fn prelude() -> Vec<Action> {
    let exporter = |member| {
        [
            Action::MakeService { member, port: 80 },
            Action::SetSlice { member, slice: 0, endpoint: 1 },
            Action::Export { member },
        ]
    };
    let importers = (0..MEMBERS).map(|member| Action::Label { member, imports: true });
    (0..2).flat_map(exporter).chain(importers).collect()
}

pub(crate) fn an_action(rng: &mut Rng) -> Action {
    let member = rng.usize(..MEMBERS);
    let (slice, endpoint) = (rng.usize(..2), rng.u8(1..5));
    let port = [80, 81][rng.usize(..2)];
    match rng.usize(..14) {
        0 | 1 => Action::MakeService { member, port },
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
            create(world, member, Kind::Service, APP, json!({"spec": ports(port)})).await
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
        Action::Export { member } => create(world, member, Kind::StandardServiceExport, APP, json!({})).await,
        Action::Unexport { member } => delete(world, Place::Member(member), Kind::StandardServiceExport, APP).await,
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
    let body: Value = json!({
        "metadata": {"labels": {"kubernetes.io/service-name": "app"}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    });
    create(world, member, Kind::EndpointSlice, &path, body).await?;
    merge(world, Place::Member(member), Kind::EndpointSlice, &path, "", json!({"endpoints": endpoints})).await
}

/// True if an object belongs to the Service, or to the standard API.
pub(crate) fn concerns(object: &Object) -> bool {
    match object {
        Object::InternalServiceExport(export) => &*export.reference.source.namespace == NAMESPACE,
        Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice) => {
            &*slice.spec.owner.namespace == NAMESPACE
        }
        Object::StandardServiceExport(_) | Object::StandardServiceImport(_) | Object::MergedServiceImport(_) => true,
        other => &*other.meta().name.namespace == NAMESPACE,
    }
}

/// Objects of the Service in one member.
struct Member {
    id: String,
    imports: bool,
    /// Service of the user.
    service: Option<Service>,
    export: Option<StandardServiceExport>,
    /// Slices of the user.
    slices: Vec<EndpointSlice>,
    derived: Vec<Service>,
    import: Option<StandardServiceImport>,
    imported: Vec<EndpointSlice>,
}

impl Member {
    fn of(world: &World, index: usize) -> Self {
        let place = Place::Member(index);
        let mut member = Self {
            id: crate::world::cluster_id(index),
            imports: false,
            service: None,
            export: None,
            slices: Vec::new(),
            derived: Vec::new(),
            import: None,
            imported: Vec::new(),
        };
        let kinds = [
            Kind::Namespace,
            Kind::Service,
            Kind::EndpointSlice,
            Kind::StandardServiceExport,
            Kind::StandardServiceImport,
        ];
        for object in kinds.into_iter().flat_map(|kind| world.objects_of_kind(place, kind)) {
            let is_here = &*object.meta().name.namespace == NAMESPACE;
            match object {
                Object::Namespace(it) if &*it.meta.name.name == NAMESPACE => member.imports = it.is_importing,
                Object::Service(it) if is_here && it.imports.is_some() => member.derived.push(it),
                Object::Service(it) if is_here => member.service = Some(it),
                Object::EndpointSlice(it) if is_here && it.imported => member.imported.push(it),
                Object::EndpointSlice(it) if is_here => member.slices.push(it),
                Object::StandardServiceExport(it) if is_here => member.export = Some(it),
                Object::StandardServiceImport(it) if is_here => member.import = Some(it),
                _ => {}
            }
        }
        member
    }

    fn exports(&self) -> bool {
        let is_exportable = |service: &Service| service.service_type != ServiceType::ExternalName;
        self.export.is_some() && self.service.as_ref().is_some_and(is_exportable)
    }
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
    let offered: Vec<Option<i32>> =
        exporters.iter().map(|member| member.service.as_ref().and_then(|service| port(&service.ports))).collect();
    for member in &members {
        let id = &member.id;
        let is_importer = member.imports && !exporters.is_empty();
        let of_import = member.import.as_ref().and_then(|import| port(&import.spec.ports));
        let of_slice = |slice: &EndpointSlice| {
            let cluster = slice.standard.as_ref().map(|labels| labels.cluster.to_string());
            endpoints(&cluster.unwrap_or_default(), slice)
        };
        let mut imported: Vec<String> = member.imported.iter().map(of_slice).collect();
        imported.sort();
        let expected = if is_importer { expected(&exporters, of_import) } else { Vec::new() };
        equal(&format!("imported slices of {id}"), &imported, &expected)?;
        equal(&format!("derived Services of {id}"), &member.derived.len(), &usize::from(is_importer))?;
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
    check_hub(world, &members, &ids)
}

fn check_hub(world: &World, members: &[Member], ids: &[String]) -> Result<(), String> {
    let of_kind = |kind: Kind| {
        let objects = world.objects_of_kind(Place::Hub, kind).into_iter().filter(concerns);
        objects.map(|object| object.meta().name.clone()).collect::<Vec<ObjectName>>()
    };
    let cluster = |name: &ObjectName| names::cluster_of(&name.namespace).map(|id| id.to_string()).unwrap_or_default();
    let exports: BTreeSet<String> = of_kind(Kind::InternalServiceExport).iter().map(cluster).collect();
    equal("exporting clusters in the hub", &exports, &ids.iter().cloned().collect())?;
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
    let expected = members.iter().filter(|_| !ids.is_empty()).map(|member| (member.id.clone(), member.imports));
    equal("MergedServiceImports with their finalizers", &merged, &expected.collect())?;
    let count = |of: &dyn Fn(&Member) -> usize| members.iter().map(of).sum::<usize>();
    let slices = count(&|member| if member.exports() { member.slices.len() } else { 0 });
    equal("exported slices", &of_kind(Kind::EndpointSliceExport).len(), &slices)?;
    let importers = members.iter().filter(|member| member.imports).count();
    equal("distributed slices", &of_kind(Kind::EndpointSliceImport).len(), &(slices * importers))
}
