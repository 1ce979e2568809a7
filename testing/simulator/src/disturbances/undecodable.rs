//! An object in the hub that the agents cannot decode for a while. In the end it is deleted, so that its agent writes
//! it again. The hub's CRD is an old one that accepts the object, from then on.

use super::{Dice, Disturbance, Kind};
use crate::users::{delete, merge};
use crate::world::World;
use anyhow::ensure;
use fastrand::Rng;
use fleetnet_core::model::{Kind as ObjectKind, Object};
use futures::future::LocalBoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use sim::fleet::Place;
use sim::manager::api_resource;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("undecodable", 2, 5..=90, make).slow().changing();

#[derive(Debug)]
struct Undecodable {
    kind: ObjectKind,
    dice: Dice,
    broken: Mutex<Option<String>>,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let kinds = [
        ObjectKind::EndpointSliceExport,
        ObjectKind::EndpointSliceImport,
        ObjectKind::InternalServiceExport,
        ObjectKind::InternalServiceImport,
    ];
    Arc::new(Undecodable { kind: kinds[rng.usize(..4)], dice: Dice::new(rng), broken: Mutex::default() })
}

/// Returns the field in `spec` that names the source object.
fn reference(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::InternalServiceExport => "serviceReference",
        ObjectKind::InternalServiceImport => "serviceImportReference",
        _ => "endpointSliceReference",
    }
}

/// Replaces the schema in the hub's CRD of a kind by one that accepts any object.
async fn accept_anything(world: &World, kind: ObjectKind) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(world.server(Place::Hub).admin());
    let ApiResource { plural, group, .. } = api_resource(kind);
    let name = format!("{plural}.{group}");
    let mut definition = definitions.get(&name).await?;
    for version in &mut definition.spec.versions {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        version.schema = Some(serde_json::from_value(schema)?);
    }
    definitions.replace(&name, &PostParams::default(), &definition).await?;
    Ok(())
}

impl Disturbance for Undecodable {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            // An object that is being deleted stays decodable.
            let may_break = |object: &Object| object.kind() == self.kind && !object.meta().deleting;
            let all: Vec<_> = world.objects(Place::Hub).into_iter().filter(may_break).collect();
            let Some(object) = self.dice.fork().choice(&all) else { return Ok(()) };
            let name = &object.meta().name;
            let path = format!("{}/{}", name.namespace, name.name);
            accept_anything(world, self.kind).await?;
            let patch = json!({"spec": {reference(self.kind): {"name": ""}}});
            *self.broken.lock() = Some(path.clone());
            merge(world, Place::Hub, self.kind, &path, "", patch).await?;
            let decoded = world.objects(Place::Hub);
            let is_decodable = decoded.iter().any(|object| may_break(object) && object.meta().name == *name);
            ensure!(!is_decodable, "{path} is still decodable");
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let Some(path) = self.broken.lock().clone() else { return Ok(()) };
            delete(world, Place::Hub, self.kind, &path).await
        })
    }
}
