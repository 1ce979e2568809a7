//! Helpers for tests of whole fleets.

use crate::support::build::{
    BuildService, BuildSlice, IntoObject, content, named, port, service, service_export, slice,
};
use crate::support::world::{Who, World};
use fleetnet_core::model::{
    Condition, EndpointSlice, Kind, MultiClusterService, Object, Service, ServiceExport, ServiceImport,
};
use fleetnet_types::ObjectName;

/// Creates a Service with this port, one slice and a ServiceExport in a member.
pub(crate) fn export(world: &mut World, member: usize, path: &str, number: i32, endpoints: &[&str]) {
    let who = Who::Member(member);
    world.create(who, service(path).ports(&[port("http", number)]).object());
    world.create(who, slice(&format!("{path}-1")).endpoints(endpoints).object());
    world.create(who, service_export(path).object());
}

pub(crate) fn count(world: &World, who: Who, kind: Kind) -> usize {
    world.cluster(who).list(kind).count()
}

pub(crate) fn names(world: &World, who: Who, kind: Kind) -> Vec<String> {
    world.cluster(who).list(kind).map(|object| object.meta().name.name.to_string()).collect()
}

fn imported_slices(world: &World, member: usize) -> impl Iterator<Item = &EndpointSlice> {
    world.members[member].cluster.list(Kind::EndpointSlice).filter_map(|object| match object {
        Object::EndpointSlice(slice) if slice.imported => Some(slice),
        _ => None,
    })
}

fn addresses<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> Vec<String> {
    let endpoints = slices.flat_map(|slice| &slice.content.endpoints);
    let mut all: Vec<String> =
        endpoints.flat_map(|endpoint| endpoint.addresses.iter().map(ToString::to_string)).collect();
    all.sort();
    all
}

/// Returns the endpoints of all imported slices of a member, sorted.
pub(crate) fn imported(world: &World, member: usize) -> Vec<String> {
    addresses(imported_slices(world, member))
}

/// Returns the endpoints of the imported slices of one derived Service, sorted.
pub(crate) fn bound(world: &World, member: usize, derived: &str) -> Vec<String> {
    addresses(imported_slices(world, member).filter(|slice| slice.service.as_deref() == Some(derived)))
}

macro_rules! the {
    ($kind:ident, $world:expr, $who:expr, $name:expr) => {
        match $world.cluster($who).get(Kind::$kind, $name) {
            Some(Object::$kind(object)) => Some(object),
            _ => None,
        }
    };
}

pub(crate) fn derived<'a>(world: &'a World, member: usize, name: &str) -> Option<&'a Service> {
    the!(Service, world, Who::Member(member), &ObjectName::new("fleet-system", name))
}

pub(crate) fn import_in_hub<'a>(world: &'a World, path: &str) -> Option<&'a ServiceImport> {
    the!(ServiceImport, world, Who::Hub, &named(path))
}

pub(crate) fn export_of<'a>(world: &'a World, member: usize, path: &str) -> Option<&'a ServiceExport> {
    the!(ServiceExport, world, Who::Member(member), &named(path))
}

pub(crate) fn request_of<'a>(world: &'a World, member: usize, path: &str) -> Option<&'a MultiClusterService> {
    the!(MultiClusterService, world, Who::Member(member), &named(path))
}

/// Returns the status and the reason of the condition with this type.
pub(crate) fn status_and_reason(conditions: &[Condition], condition_type: &str) -> Option<(String, String)> {
    let condition = conditions.iter().find(|condition| &*condition.condition_type == condition_type)?;
    Some((condition.status.to_string(), condition.reason.to_string()))
}

pub(crate) fn export_condition(world: &World, member: usize, condition_type: &str) -> String {
    let export = export_of(world, member, "work/app").expect("the export is there");
    status_and_reason(&export.conditions, condition_type).map_or_else(String::new, |(_, reason)| reason)
}

pub(crate) fn request_reason(world: &World, member: usize, path: &str) -> String {
    let request = request_of(world, member, path).expect("the MultiClusterService exists");
    status_and_reason(&request.conditions, "Valid").map_or_else(String::new, |(_, reason)| reason)
}

pub(crate) fn edit_request(
    world: &mut World,
    member: usize,
    path: &str,
    change: impl FnOnce(&mut MultiClusterService),
) {
    let done = world.edit(Who::Member(member), Kind::MultiClusterService, &named(path), |object| {
        let Object::MultiClusterService(request) = object else { return };
        change(request);
    });
    assert!(done, "{path} is there and changes");
}

pub(crate) fn edit_service(world: &mut World, member: usize, name: &ObjectName, change: impl FnOnce(&mut Service)) {
    let done = world.edit(Who::Member(member), Kind::Service, name, |object| {
        let Object::Service(service) = object else { return };
        change(service);
    });
    assert!(done, "{name} is there and changes");
}

pub(crate) fn weigh(world: &mut World, member: usize, weight: Option<&str>) {
    let done = world.edit(Who::Member(member), Kind::ServiceExport, &named("work/app"), |object| {
        let Object::ServiceExport(export) = object else { return };
        export.weight = weight.map(Into::into);
    });
    assert!(done, "the export is there and changes");
}

pub(crate) fn set_endpoints(world: &mut World, slice: &str, endpoints: &[&str]) {
    let done = world.edit(Who::Member(0), Kind::EndpointSlice, &named(slice), |object| {
        let Object::EndpointSlice(slice) = object else { return };
        slice.content = content(endpoints);
    });
    assert!(done, "{slice} is there and changes");
}

/// If `blocked` is true, adds a finalizer of another controller to an object, so that the object stays after its
/// deletion. Otherwise removes the finalizers of other controllers.
pub(crate) fn hold(world: &mut World, who: Who, kind: Kind, name: &ObjectName, blocked: bool) {
    let done = world.edit(who, kind, name, |object| {
        object.meta_mut().finalizers.others = if blocked { vec!["example.com/hold".into()] } else { Vec::new() };
    });
    assert!(done, "{kind:?} {name} is there");
}

/// Deletes a namespace with all its objects. Until [`reappear`], every create in this namespace fails.
pub(crate) fn vanish(world: &mut World, who: Who, namespace: &str) {
    let missing = |world: &mut World| match who {
        Who::Hub => world.hub.missing_namespaces.insert(namespace.to_owned()),
        Who::Member(member) => world.members[member].cluster.missing_namespaces.insert(namespace.to_owned()),
    };
    assert!(missing(world), "{namespace} was there");
    let all = world.cluster(who).all().filter(|object| &*object.meta().name.namespace == namespace);
    let all: Vec<(Kind, ObjectName)> = all.map(|object| (object.kind(), object.meta().name.clone())).collect();
    for (kind, name) in all {
        world.delete(who, kind, &name);
    }
}

/// Creates a deleted namespace again, without objects.
pub(crate) fn reappear(world: &mut World, who: Who, namespace: &str) {
    let found = match who {
        Who::Hub => world.hub.missing_namespaces.remove(namespace),
        Who::Member(member) => world.members[member].cluster.missing_namespaces.remove(namespace),
    };
    assert!(found, "{namespace} was missing");
}
