//! Actions of users, as requests to the API servers. Users have no faults: what they do takes effect at once.

use crate::world::World;
use fleetnet_api::names::annotations;
use fleetnet_core::model::Kind;
use histories::users::{APPS, Action, REQUEST_NAMES, addresses, ports, slice_name};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sim::fleet::Place;

/// Last byte of the address of an endpoint that is never ready.
const NEVER_READY: u8 = 9;

/// Carries out an action. An action without its object does nothing, as with a user who is too late.
pub async fn act(world: &World, action: &Action) -> anyhow::Result<()> {
    match action.clone() {
        Action::MakeService { member, app, ports } => {
            let spec = json!({"ports": service_ports(ports)});
            create(world, member, Kind::Service, APPS[app], json!({"spec": spec})).await
        }
        Action::DeleteService { member, app } => {
            delete(world, Place::Member(member), Kind::Service, APPS[app]).await?;
            for slice in 0..2 {
                delete(world, Place::Member(member), Kind::EndpointSlice, &slice_name(app, slice)).await?;
            }
            Ok(())
        }
        Action::ChangePorts { member, app, ports } => {
            let patch = json!({"spec": {"ports": service_ports(ports)}});
            merge(world, Place::Member(member), Kind::Service, APPS[app], "", patch).await
        }
        Action::ChangeServiceType { member, app, external } => {
            let spec = if external {
                json!({"type": "ExternalName", "externalName": "app.example", "clusterIP": null, "clusterIPs": null})
            } else {
                json!({"type": "ClusterIP", "externalName": null})
            };
            merge(world, Place::Member(member), Kind::Service, APPS[app], "", json!({"spec": spec})).await
        }
        Action::Export { member, app } => create(world, member, Kind::ServiceExport, APPS[app], json!({})).await,
        Action::Unexport { member, app } => delete(world, Place::Member(member), Kind::ServiceExport, APPS[app]).await,
        Action::Weigh { member, app, weight } => {
            let patch = json!({"metadata": {"annotations": {annotations::WEIGHT: weight}}});
            merge(world, Place::Member(member), Kind::ServiceExport, APPS[app], "", patch).await
        }
        Action::SetSlice { .. }
        | Action::RecycleSlice { .. }
        | Action::TouchSlice { .. }
        | Action::Unready { .. }
        | Action::DeleteSlice { .. } => act_on_slice(world, action).await,
        Action::CreateRequest { member, name, app, consumer } => {
            let spec = json!({"serviceImport": {"name": name_of(APPS[app])}, "type": consumer_type(consumer)});
            create(world, member, Kind::MultiClusterService, REQUEST_NAMES[name], json!({"spec": spec})).await
        }
        Action::Retarget { member, name, app } => {
            let patch = json!({"spec": {"serviceImport": {"name": name_of(APPS[app])}}});
            merge(world, Place::Member(member), Kind::MultiClusterService, REQUEST_NAMES[name], "", patch).await
        }
        Action::ChangeConsumer { member, name, consumer } => {
            let patch = json!({"spec": {"type": consumer_type(consumer)}});
            merge(world, Place::Member(member), Kind::MultiClusterService, REQUEST_NAMES[name], "", patch).await
        }
        Action::DeleteRequest { member, name } => {
            delete(world, Place::Member(member), Kind::MultiClusterService, REQUEST_NAMES[name]).await
        }
        Action::Address { member, name } => give_address(world, member, REQUEST_NAMES[name]).await,
        Action::Meddle { hub, member, which } => {
            let place = if hub { Place::Hub } else { Place::Member(member) };
            meddle(world, place, which).await
        }
    }
}

async fn act_on_slice(world: &World, action: &Action) -> anyhow::Result<()> {
    match action.clone() {
        Action::SetSlice { member, app, slice, endpoints } | Action::RecycleSlice { member, app, slice, endpoints } => {
            set_slice(world, member, app, &slice_name(app, slice), &addresses(member, app, &endpoints)).await
        }
        Action::TouchSlice { member, app, slice } => {
            let address = addresses(member, app, &[NEVER_READY]).remove(0);
            edit_endpoints(world, member, &slice_name(app, slice), |endpoints| {
                let count = endpoints.len();
                endpoints.retain(|endpoint| endpoint["addresses"][0] != address.as_str());
                if endpoints.len() == count {
                    endpoints.push(json!({"addresses": [address], "conditions": {"ready": false}}));
                }
            })
            .await
        }
        Action::Unready { member, app, slice, is_draining } => {
            let conditions = json!({"ready": false, "serving": is_draining, "terminating": is_draining});
            edit_endpoints(world, member, &slice_name(app, slice), |endpoints| {
                let ready = endpoints.iter_mut().rfind(|endpoint| endpoint["conditions"]["ready"] != json!(false));
                ready.into_iter().for_each(|endpoint| endpoint["conditions"] = conditions.clone());
            })
            .await
        }
        Action::DeleteSlice { member, app, slice } => {
            delete(world, Place::Member(member), Kind::EndpointSlice, &slice_name(app, slice)).await
        }
        _ => Ok(()),
    }
}

fn name_of(path: &str) -> &str {
    path.split_once('/').map_or(path, |(_, name)| name)
}

fn service_ports(variant: usize) -> Value {
    let port =
        |(name, number): &(&str, u16)| json!({"name": name, "port": number, "protocol": "TCP", "targetPort": 8080});
    ports(variant).iter().map(port).collect()
}

fn consumer_type(which: usize) -> &'static str {
    ["LoadBalancer", "ClusterIP"][which]
}

pub(crate) async fn create(world: &World, member: usize, kind: Kind, path: &str, body: Value) -> anyhow::Result<()> {
    let (namespace, name) = path.split_once('/').expect("a path has a namespace");
    let mut object = body;
    object["metadata"]["name"] = name.into();
    let api = world.api(Place::Member(member), kind, namespace);
    let created = api.create(&PostParams::default(), &world.object(kind, object)?).await;
    tolerate(created)
}

/// Merges a patch into an object, or into its subresource.
pub(crate) async fn merge(
    world: &World,
    place: Place,
    kind: Kind,
    path: &str,
    subresource: &str,
    patch: Value,
) -> anyhow::Result<()> {
    let (namespace, name) = path.split_once('/').expect("a path has a namespace");
    let api = world.api(place, kind, namespace);
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
    tolerate(match subresource {
        "" => api.patch(name, &parameters, &patch).await,
        subresource => api.patch_subresource(subresource, name, &parameters, &patch).await,
    })
}

pub(crate) async fn delete(world: &World, place: Place, kind: Kind, path: &str) -> anyhow::Result<()> {
    let (namespace, name) = path.split_once('/').expect("a path has a namespace");
    tolerate(world.api(place, kind, namespace).delete(name, &DeleteParams::default()).await)
}

/// Treats the answer to an action that came too late as success: the object exists already, or does not exist, or
/// changed.
fn tolerate<T>(answer: kube::Result<T>) -> anyhow::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404 | 409) => Ok(()),
        answer => Ok(answer.map(drop)?),
    }
}

async fn set_slice(world: &World, member: usize, app: usize, path: &str, addresses: &[String]) -> anyhow::Result<()> {
    let endpoints: Value = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
    let (namespace, name) = path.split_once('/').expect("a path has a namespace");
    let api = world.api(Place::Member(member), Kind::EndpointSlice, namespace);
    if api.get_opt(name).await?.is_some() {
        let patch = json!({"endpoints": endpoints});
        return merge(world, Place::Member(member), Kind::EndpointSlice, path, "", patch).await;
    }
    let slice = json!({
        "metadata": {"labels": {"kubernetes.io/service-name": name_of(APPS[app])}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    });
    create(world, member, Kind::EndpointSlice, path, slice).await
}

/// Changes the endpoints of a slice, if it exists.
async fn edit_endpoints(
    world: &World,
    member: usize,
    path: &str,
    edit: impl FnOnce(&mut Vec<Value>),
) -> anyhow::Result<()> {
    let (namespace, name) = path.split_once('/').expect("a path has a namespace");
    let Some(slice) = world.api(Place::Member(member), Kind::EndpointSlice, namespace).get_opt(name).await? else {
        return Ok(());
    };
    let mut endpoints = slice.data["endpoints"].as_array().cloned().unwrap_or_default();
    edit(&mut endpoints);
    merge(world, Place::Member(member), Kind::EndpointSlice, path, "", json!({"endpoints": endpoints})).await
}

/// Assigns an address to the load balancer of a derived Service, as a cloud does.
async fn give_address(world: &World, member: usize, request: &str) -> anyhow::Result<()> {
    let place = Place::Member(member);
    let name = request.replace('/', "-");
    let Some(service) = world.api(place, Kind::Service, sim::server::FLEET_SYSTEM).get_opt(&name).await? else {
        return Ok(());
    };
    if service.data["spec"]["type"] != "LoadBalancer" {
        return Ok(());
    }
    let patch = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let path = format!("{}/{name}", sim::server::FLEET_SYSTEM);
    merge(world, place, Kind::Service, &path, "status", patch).await
}

/// Deletes one of the objects that agents created.
async fn meddle(world: &World, place: Place, which: usize) -> anyhow::Result<()> {
    let all = world.objects_of_agents(place);
    let Some(object) = all.get(which % all.len().max(1)) else { return Ok(()) };
    let name = &object.meta().name;
    delete(world, place, object.kind(), &format!("{}/{}", name.namespace, name.name)).await
}
