//! Actions of users, applied to the fleet in memory.

use super::build::{
    BuildRequest, BuildSlice, IntoObject, address, content, named, port, request, service, service_export, slice,
};
use super::world::{Who, World};
use fleetnet_core::model::{ConsumerType, EndpointSlice, Kind, Object, ServicePort, ServiceType};
use fleetnet_types::ObjectName;
use histories::users::{self, APPS, Action, REQUEST_NAMES};

fn ports(variant: usize) -> Vec<ServicePort> {
    users::ports(variant).iter().map(|(name, number)| port(name, i32::from(*number))).collect()
}

fn consumer(which: usize) -> ConsumerType {
    [ConsumerType::LoadBalancer, ConsumerType::ClusterIp][which]
}

fn slice_of(app: usize, index: usize) -> EndpointSlice {
    slice(&users::slice_name(app, index))
}

/// Applies an action of a user to a fleet.
pub(crate) fn act(world: &mut World, action: &Action) {
    match action.clone() {
        Action::MakeService { member, app, ports: variant } => {
            let mut made = service(APPS[app]);
            made.ports = ports(variant);
            world.create(Who::Member(member), made.object());
        }
        Action::DeleteService { member, app } => {
            world.delete(Who::Member(member), Kind::Service, &named(APPS[app]));
            for index in 0..2 {
                let name = slice_of(app, index).meta.name;
                world.delete(Who::Member(member), Kind::EndpointSlice, &name);
            }
        }
        Action::ChangePorts { member, app, ports: variant } => {
            edit_service(world, member, app, |service| service.ports = ports(variant));
        }
        Action::ChangeServiceType { member, app, external } => edit_service(world, member, app, |service| {
            service.service_type = if external { ServiceType::ExternalName } else { ServiceType::ClusterIp };
        }),
        Action::Export { member, app } => {
            world.create(Who::Member(member), service_export(APPS[app]).object());
        }
        Action::Unexport { member, app } => {
            world.delete(Who::Member(member), Kind::ServiceExport, &named(APPS[app]));
        }
        Action::Weigh { member, app, weight } => {
            world.edit(Who::Member(member), Kind::ServiceExport, &named(APPS[app]), |object| {
                let Object::ServiceExport(export) = object else { return };
                export.weight = weight.map(Into::into);
            });
        }
        Action::SetSlice { member, app, slice, endpoints } | Action::RecycleSlice { member, app, slice, endpoints } => {
            set_slice(world, member, slice_of(app, slice), &users::addresses(member, app, &endpoints));
        }
        Action::TouchSlice { member, app, slice } => {
            let name = slice_of(app, slice).meta.name;
            world.edit(Who::Member(member), Kind::EndpointSlice, &name, |object| object.meta_mut().generation += 1);
        }
        Action::Unready { member, app, slice, is_draining } => {
            let name = slice_of(app, slice).meta.name;
            world.edit(Who::Member(member), Kind::EndpointSlice, &name, |object| {
                let Object::EndpointSlice(slice) = object else { return };
                let endpoint = slice.content.endpoints.pop();
                slice.content.draining.extend(endpoint.filter(|_| is_draining));
            });
        }
        Action::DeleteSlice { member, app, slice } => {
            world.delete(Who::Member(member), Kind::EndpointSlice, &slice_of(app, slice).meta.name);
        }
        Action::CreateRequest { .. }
        | Action::Retarget { .. }
        | Action::ChangeConsumer { .. }
        | Action::DeleteRequest { .. }
        | Action::Address { .. } => act_on_request(world, action),
        Action::Meddle { hub, member, which } => meddle(world, hub, member, which),
    }
}

fn act_on_request(world: &mut World, action: &Action) {
    match *action {
        Action::CreateRequest { member, name, app, consumer: which } => {
            let target = named(APPS[app]).name;
            let made = request(REQUEST_NAMES[name]).importing(&target).consumed_as(consumer(which));
            world.create(Who::Member(member), made.object());
        }
        Action::Retarget { member, name, app } => {
            world.edit(Who::Member(member), Kind::MultiClusterService, &named(REQUEST_NAMES[name]), |object| {
                let Object::MultiClusterService(request) = object else { return };
                request.import_name = named(APPS[app]).name;
            });
        }
        Action::ChangeConsumer { member, name, consumer: which } => {
            world.edit(Who::Member(member), Kind::MultiClusterService, &named(REQUEST_NAMES[name]), |object| {
                let Object::MultiClusterService(request) = object else { return };
                request.consumer_type = consumer(which);
            });
        }
        Action::DeleteRequest { member, name } => {
            world.delete(Who::Member(member), Kind::MultiClusterService, &named(REQUEST_NAMES[name]));
        }
        Action::Address { member, name } => {
            let derived = ObjectName::new("fleet-system", REQUEST_NAMES[name].replace('/', "-"));
            world.edit(Who::Member(member), Kind::Service, &derived, |object| {
                let Object::Service(service) = object else { return };
                if service.service_type == ServiceType::LoadBalancer {
                    service.load_balancer = address("192.0.2.1");
                }
            });
        }
        _ => {}
    }
}

fn edit_service(world: &mut World, member: usize, app: usize, change: impl FnOnce(&mut fleetnet_core::model::Service)) {
    world.edit(Who::Member(member), Kind::Service, &named(APPS[app]), |object| {
        if let Object::Service(service) = object {
            change(service);
        }
    });
}

/// Creates a slice in a member, or replaces the endpoints of an existing slice.
pub(crate) fn set_slice(world: &mut World, member: usize, slice: EndpointSlice, endpoints: &[String]) {
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    let name = slice.meta.name.clone();
    if !world.create(Who::Member(member), slice.endpoints(&endpoints).object()) {
        world.edit(Who::Member(member), Kind::EndpointSlice, &name, |object| {
            let Object::EndpointSlice(slice) = object else { return };
            slice.content = content(&endpoints);
        });
    }
}

/// Deletes one of the objects that agents created.
fn meddle(world: &mut World, hub: bool, member: usize, which: usize) {
    let who = if hub { Who::Hub } else { Who::Member(member) };
    let ours = |object: &Object| match object {
        Object::Service(service) => service.derived_from.is_some(),
        Object::EndpointSlice(slice) => slice.imported,
        Object::ServiceExport(_) | Object::MultiClusterService(_) => false,
        _ => true,
    };
    let all: Vec<(Kind, ObjectName)> = world
        .cluster(who)
        .all()
        .filter(|object| ours(object))
        .map(|object| (object.kind(), object.meta().name.clone()))
        .collect();
    if let Some((kind, name)) = all.get(which % all.len().max(1)) {
        world.delete(who, *kind, name);
    }
}
